"""One server for all processes, that never outlives them; with a fake server's process."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mull.local.manage import Embedded, Options, embedded
from mull.local.place import Running, ServerFolder
from mull.local.spawn import PIPE
from mull.neutral.errors import LocalError
from mull.store.locks import FileLock

FAKE = Path(__file__).with_name("fake_server.py")


def fake_command(directory: Path, options: Options) -> list[str]:
    command = [sys.executable, "-P", str(FAKE), str(directory), str(PIPE)]
    return [*command, "--kept"] if options.kept else command


@pytest.fixture
def directory(tmp_path):
    place = tmp_path / "data" / "local"
    yield place
    Embedded(place, fake_command).stop()


def test_the_folders_are_for_the_user_alone_whoever_makes_them_first(tmp_path):
    ServerFolder(tmp_path / "data" / "deep" / "local").make()
    for name in ("data", "data/deep", "data/deep/local"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o700


@pytest.fixture
def server(directory):
    one = Embedded(directory, fake_command)
    yield one
    one.close()


USER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_manage import fake_command
from mull.local.manage import Embedded
one = Embedded(Path(sys.argv[1]), fake_command)
running = one.ensure() if sys.argv[2] == "ensure" else one.start()[0]
print(running.pid, flush=True)
if sys.argv[2] == "ensure":
    sys.stdin.read()
"""


def another_process(directory: Path, act: str = "ensure") -> subprocess.Popen[str]:
    """A process that uses the server until its stdin is closed."""
    code = USER.format(tests=str(FAKE.parent))
    command = [sys.executable, "-c", code, str(directory), act]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_until_gone(directory: Path) -> None:
    """Return when the server's process is gone; the test's own time limit is the deadline."""
    with FileLock(ServerFolder(directory).alive_lock):
        pass


def is_free(path: Path) -> bool:
    lock = FileLock(path)
    free = lock.acquire(wait=False)
    lock.release()
    return free


def launches(directory: Path) -> list[int]:
    return [int(line) for line in (directory / "launches").read_text().split()]


def test_it_starts_once_and_is_found_again(server, directory):
    first = server.ensure()
    assert re.fullmatch(r"http://127.0.0.1:\d+/v1", first.base_url)
    assert first.model == "local/fake"
    assert len(first.key) >= 24
    assert server.ensure() == first
    other = Embedded(directory, fake_command)
    assert other.ensure() == first
    other.close()
    assert launches(directory) == [first.pid]


def test_only_the_user_may_read_the_state_and_it_holds_the_key(server, directory):
    running = server.ensure()
    place = ServerFolder(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for file in directory.iterdir():
        if file.name not in ("launches", "environment"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert json.loads(place.state.read_bytes())["key"] == running.key


def test_the_key_is_shown_nowhere(server):
    running = server.ensure()
    command = Path(f"/proc/{running.pid}/cmdline")
    if command.exists():
        assert running.key.encode() not in command.read_bytes()
    assert running.key not in repr(running)
    assert running.key not in str([running])
    assert running.key not in repr(server.status())


def test_the_process_gets_no_keys_of_others(server, directory, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("SOME_SECRET", "canary")
    server.ensure()
    names = (directory / "environment").read_text().split()
    assert "PATH" in names
    assert not {"OPENAI_API_KEY", "SOME_SECRET"} & set(names)


def test_it_ends_with_the_last_that_uses_it(server, directory):
    server.ensure()
    server.close()
    wait_until_gone(directory)
    assert server.status() is None
    assert not ServerFolder(directory).state.exists()


def test_it_stays_while_another_uses_it(server, directory):
    other = another_process(directory)
    pid = int(other.stdout.readline())
    assert server.ensure().pid == pid
    other.kill()
    other.communicate()
    # the starter is dead; a forsaken server ends within a hundredth of a second here, so by the
    # time a process has come and gone it would have
    third = another_process(directory)
    assert int(third.stdout.readline()) == pid
    third.communicate()
    assert server.ensure().pid == pid
    assert launches(directory) == [pid]


def test_a_killed_user_leaves_no_server(directory):
    user = another_process(directory)
    pid = int(user.stdout.readline())
    user.send_signal(signal.SIGKILL)
    user.communicate()
    wait_until_gone(directory)
    assert ServerFolder(directory).read() is None
    assert launches(directory) == [pid]


def test_many_at_once_start_one(directory):
    users = [another_process(directory) for _ in range(4)]
    pids = {int(user.stdout.readline()) for user in users}
    assert launches(directory) == list(pids)
    for user in users:
        user.communicate()
    wait_until_gone(directory)


def test_threads_at_once_start_one(server, directory):
    found: list[Running] = []
    threads = [threading.Thread(target=lambda: found.append(server.ensure())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({running.pid for running in found}) == 1
    assert len(found) == 4
    assert len(launches(directory)) == 1


def test_a_killed_server_that_still_holds_its_lock_is_not_used(server, directory):
    """The kernel closes its files one after the other."""
    first = server.ensure()
    lock = FileLock(ServerFolder(directory).alive_lock)
    os.kill(first.pid, signal.SIGKILL)
    lock.acquire()
    found = []
    asking = threading.Thread(target=lambda: found.append(server.ensure()))
    asking.start()
    asking.join(0.2)
    lock.release()
    asking.join()
    assert found[0].pid != first.pid


def test_a_killed_server_is_replaced(server, directory):
    first = server.ensure()
    os.kill(first.pid, signal.SIGKILL)
    wait_until_gone(directory)
    assert ServerFolder(directory).state.exists()
    assert server.status() is None
    second = server.ensure()
    assert second.pid != first.pid
    assert second.key != first.key


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": 1}', b"\xff"])
def test_a_damaged_state_of_a_dead_server_is_healed(server, directory, content):
    place = ServerFolder(directory)
    place.make()
    place.state.write_bytes(content)
    assert server.status() is None
    assert server.ensure().pid == launches(directory)[0]


def test_a_state_that_names_a_foreign_process_harms_nobody(server, directory):
    place = ServerFolder(directory)
    place.make()
    place.write(Running(os.getpid(), "http://127.0.0.1:1/v1", "k", "local/fake", 0.0, 1.0))
    assert server.stop() is False  # or this test would have ended here


def test_one_that_lost_its_starter_while_loading_is_waited_for(server, directory):
    ServerFolder(directory).make()
    wait = directory / "wait"
    wait.touch()
    starter = another_process(directory)
    while not (directory / "launches").exists():
        threading.Event().wait(0.01)
    starter.kill()
    starter.communicate()
    found: list[Running] = []
    user = threading.Thread(target=lambda: found.append(server.ensure()))
    user.start()
    while is_free(ServerFolder(directory).users_lock):
        threading.Event().wait(0.01)
    wait.unlink()
    user.join()
    assert [running.pid for running in found] == launches(directory)


def test_one_that_is_started_is_kept(server, directory):
    starter = another_process(directory, "start")
    pid = int(starter.stdout.readline())
    assert starter.wait() == 0
    starter.communicate()
    running = server.ensure()
    server.close()
    assert running.pid == pid
    assert running.kept
    assert server.start() == (running, False)
    assert launches(directory) == [pid]


def test_start_keeps_one_that_runs(server, directory):
    tied = server.ensure()
    assert not tied.kept
    kept, started = server.start()
    assert (kept.pid, kept.kept, started) == (tied.pid, True, False)
    assert server.status().kept


def test_stop(server, directory):
    assert server.stop() is False
    running = server.ensure()
    assert server.stop() is True
    assert not ServerFolder(directory).is_alive()
    assert not ServerFolder(directory).state.exists()
    assert server.stop() is False
    with pytest.raises(ProcessLookupError):
        os.kill(running.pid, 0)


def test_stop_ends_one_that_hangs(server, directory):
    running = server.ensure()
    os.kill(running.pid, signal.SIGSTOP)
    assert server.stop() is True
    assert not ServerFolder(directory).is_alive()


def test_status(directory):
    server = Embedded(directory, fake_command, clock=lambda: 4e9)
    assert server.status() is None
    running = server.ensure()
    status = server.status()
    server.close()
    assert (status.pid, status.model) == (running.pid, "local/fake")
    assert f":{status.port}/" in running.base_url
    assert status.uptime == 4e9 - running.started
    assert 1e6 < status.memory < 1e9
    assert (status.tokens_read, status.busy) == (None, None)  # nothing listens there


def test_why_it_did_not_start(server, directory):
    ServerFolder(directory).make()
    (directory / "fail").write_text("no such model")
    with pytest.raises(LocalError) as caught:
        server.ensure()
    assert str(caught.value).splitlines() == [
        "the embedded model did not start: no such model.",
        f"More may be in {directory / 'server.log'}",
    ]
    (directory / "fail").unlink()
    assert server.ensure()


def test_a_crash_while_loading_is_told_in_its_own_words(server, directory):
    ServerFolder(directory).make()
    (directory / "die").touch()
    with pytest.raises(LocalError, match=r"did not start: cannot allocate a tensor\.\n"):
        server.ensure()


def test_a_command_that_cannot_run(directory):
    server = Embedded(directory, lambda *_: ["/nonexistent/python"])
    with pytest.raises(LocalError, match="cannot run /nonexistent/python: No such file"):
        server.ensure()
    server.close()


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"cannot make .*file/local: "):
        Embedded(tmp_path / "file" / "local", fake_command).ensure()


def test_one_object_per_directory_so_one_lease(tmp_path):
    assert embedded(tmp_path) is embedded(tmp_path)
    assert embedded(tmp_path) is not embedded(tmp_path / "else")
