"""A disk that is really full or read-only: one can read, delete and talk."""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import contextmanager

import pytest

from mull.cli.main import main
from mull.neutral.errors import UnwritableError
from mull.store.sessions.sqlite import SqliteSessions, sessions_path
from mull.testing.server import Reply, ScriptedServer
from session_samples import faults, turn

ANSWER = {"choices": [{"message": {"role": "assistant", "content": "hello"}}]}


@contextmanager
def mounted(folder, *options):
    command = ["mount", "-t", "tmpfs", "-o", ",".join(("size=80m", *options)), "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a disk cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """A small disk that holds mull's data."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with mounted(folder):
        monkeypatch.setenv("MULL_DATA_DIR", str(folder / "data"))
        monkeypatch.chdir(tmp_path)
        yield folder


@pytest.fixture
def talks(disk):
    store = SqliteSessions(sessions_path())
    made = [store.create(folder=os.getcwd(), kind="ask").id for _ in range(3)]
    for session in made:
        for at in range(10):
            store.append(session, 2 * at, *turn(f"q{at}", os.urandom(60_000).hex(), "a"))
    yield store, made
    store.close()


def fill(disk):
    for size in (65536, 512):
        with (disk / f"fill{size}").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass


def test_a_full_disk_can_be_made_room_on(disk, talks):
    store, made = talks
    store.close()
    fill(disk)
    with pytest.raises(UnwritableError, match="full"):
        store.append(made[0], 20, *turn("q", "t" * 100_000, "a"))
    assert len(store.load(made[1])[1]) == 20
    store.delete(made[1])
    assert {info.id for info in store.list()} == {made[0], made[2]}
    store.append(made[0], 20, *turn("q", "t", "a"))
    assert store.search(["q3"])
    store.close()
    assert faults(sessions_path()) == []


def talk(url, *words):
    return main(["ask", *words, "-m", "openai-compatible/m", "--base-url", url, "hi"])


@pytest.mark.parametrize("words", [(), ("--continue",)], ids=["anew", "on"])
def test_one_can_talk_on_a_read_only_disk(disk, talks, words, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    store, _ = talks
    store.close()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with ScriptedServer([Reply.json(ANSWER)]) as server:
        assert talk(server.url, *words) == 0
        sent = server.requests[0].json["messages"]
    said = capsys.readouterr()
    assert said.out == "hello\n"
    assert "This conversation is kept only in memory" in said.err
    assert len(sent) == (1 if not words else 21)
