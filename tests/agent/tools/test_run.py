"""`run`: commands that fail, hang, flood, leave things behind, or pull the floor away."""

import asyncio
import os
import re
import resource
import signal
import time

import pytest

from loops import run_moved, until
from mull.agent import processes
from mull.agent.tools import process
from mull.agent.tools.process import Command
from mull.agent.tools.table import builtin_tools
from tool_calls import (
    Screen,
    answer,
    call,
    fail,
    fill,
    is_running,
    preview,
    start,
    use,
    wait_for_the_rest,
    wait_until_gone,
)


@pytest.fixture
def workspace(tmp_path):
    return fill(tmp_path / "project", {"a.txt": "hello\n"})


def test_output_and_errors_come_in_order_without_colour_or_pager(workspace, monkeypatch):
    monkeypatch.setenv("CDPATH", "/")  # nor does `cd` go anywhere else
    command = "cat a.txt; echo wrong >&2; echo $PAGER $TERM $CDPATH; pwd"
    assert use(workspace, "run", command=command) == f"hello\nwrong\ncat dumb\n{workspace.root}"


def test_a_command_without_output_says_so(workspace):
    assert use(workspace, "run", command="true") == "(no output)"


def test_the_exit_status_is_told(workspace):
    assert fail(workspace, "run", command="echo no; exit 3") == "no\n[exit status 3]"
    assert fail(workspace, "run", command="kill -SEGV $$") == "[ended by signal SIGSEGV]"
    assert "[exit status 127]" in fail(workspace, "run", command="no-such-program")


def test_nothing_can_be_typed_in(workspace):
    assert use(workspace, "run", command="cat; read x || echo end") == "end"
    assert fail(workspace, "run", command="read x < /dev/tty") != ""


def test_output_is_shown_while_it_comes(workspace, tmp_path):
    door = tmp_path / "door"
    os.mkfifo(door)

    class Opener(Screen):
        def emit(self, text):
            super().emit(text)
            if "first" in text:
                with open(door, "w") as file:  # only now may the command go on
                    file.write("go\n")

    screen = Opener()
    result = asyncio.run(
        start(workspace, "run", command=f"echo first; cat {door}; echo last", screen=screen)
    )
    assert screen.text == "first\ngo\nlast\n"
    assert result.output == "first\ngo\nlast"


def test_bytes_that_are_no_utf8_are_replaced_also_across_pieces(workspace):
    screen = Screen()
    result = asyncio.run(
        start(workspace, "run", command=r"printf 'a\xff\xc3'; printf '\xa9b'", screen=screen)
    )
    assert result.output == "a\ufffdéb"
    assert screen.text == "a\ufffdéb"


@pytest.mark.parametrize(
    ("size", "count"),
    [("100M", "104,857,600"), pytest.param("1G", "1,073,741,824", marks=pytest.mark.slow)],
)
def test_a_flood_of_output_is_counted_and_stays_small(workspace, size, count):
    screen = Screen()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = asyncio.run(start(workspace, "run", command=f"yes | head -c {size}", screen=screen))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert not result.is_error
    head, note, tail = re.fullmatch(r"((?:y\n)+)\[(.*)\]\n((?:y\n?)+)", result.output).groups()
    left_out = int(count.replace(",", "")) - len(head) - len(tail) - 1
    assert note.startswith(
        f"{left_out // 2:,} of {int(count.replace(',', '')) // 2:,} lines, {left_out:,} of {count}"
        " bytes, left out here; its first 33,554,432 bytes: read"
    )
    assert 60_000 < len(result.output) < 70_000
    assert len(screen.text) < 300_000
    assert screen.text.endswith("[further output is not shown]\n")
    assert grown < 50_000  # kB


def test_what_is_left_out_can_be_read(workspace):
    output = use(workspace, "run", command="seq 1 30000")
    note = next(row for row in output.split("\n") if row.startswith("["))
    path, offset = note.split("path=")[1].rstrip("]").split(" offset=")
    shown = output.split("\n")
    assert shown[0] == "1"
    assert shown[-1] == "30000"
    page = use(workspace, "read", path=path, offset=int(offset), limit=2).split("\n")
    last_shown = int(shown[shown.index(note) - 1])
    assert page[:2] == [f"{last_shown + n:>6}\t{last_shown + n}" for n in (1, 2)]
    assert use(workspace, "read", path=path, offset=30000) == " 30000\t30000"


def test_what_was_put_aside_goes_with_the_workspace(tmp_path):
    workspace = fill(tmp_path, {})
    use(workspace, "run", command="seq 1 30000")
    aside = workspace._aside.folder
    assert oct(aside.stat().st_mode)[-3:] == "700"
    del workspace
    assert not aside.exists()


def run_until_late(workspace, command, lines):
    """The result of a command whose time is over once it has printed so many lines."""

    async def run(loop):
        printed = asyncio.Event()

        class Watch(Screen):
            def emit(self, text):
                super().emit(text)
                if self.text.count("\n") == lines:
                    printed.set()

        running = asyncio.ensure_future(start(workspace, "run", command=command, screen=Watch()))
        await printed.wait()
        await loop.advance(121)
        while not running.done():  # one that will not end is given time to
            await asyncio.to_thread(time.sleep, 0.01)
            await loop.advance(0.1)
        return await running

    result = run_moved(run)
    assert result.is_error
    return result.output.split("\n")


def test_a_command_that_hangs_is_ended_with_all_it_started(workspace):
    command = "echo $$; sleep 1000 & echo $!; timeout 1000 sleep 1000 & echo $!; sleep 1000"
    *pids, note = run_until_late(workspace, command, lines=3)
    assert note == "[ended after 120 seconds, before it finished; timeout can be longer]"
    assert len(pids) == 3
    assert not any(is_running(int(pid)) for pid in pids)


def test_a_command_that_will_not_end_is_ended_all_the_same(workspace, monkeypatch):
    monkeypatch.setattr(process, "_GRACE", 0.1)
    command = "trap '' TERM; echo $$; while :; do :; done"
    pid, _ = run_until_late(workspace, command, lines=1)
    assert not is_running(int(pid))


def test_the_time_can_be_set_within_a_limit(workspace):
    short = builtin_tools(workspace, most_seconds=1)["run"]
    result = asyncio.run(answer(short, call("run", command="sleep 1000", timeout=120_000)))
    assert result.output == "[ended after 1 seconds, before it finished; timeout can be longer]"


GRANDCHILDREN = (
    "sh -c 'sleep 1000 & echo $! > {pids};"
    ' timeout 1000 sh -c "echo \\$\\$ >> {pids}; echo up; sleep 1000"\''
)


def test_cancelling_ends_grandchildren(workspace, tmp_path):
    pids = tmp_path / "pids"

    async def cancel_when_up():
        up = asyncio.Event()
        screen = Screen()
        screen.emit = lambda text: up.set()
        command = GRANDCHILDREN.format(pids=pids)
        running = asyncio.ensure_future(start(workspace, "run", command=command, screen=screen))
        await up.wait()
        numbers = [int(pid) for pid in pids.read_text().split()]
        assert all(is_running(pid) for pid in numbers)
        running.cancel()
        await asyncio.wait((running,))
        return running.cancelled(), numbers

    was_cancelled, numbers = asyncio.run(cancel_when_up())
    assert was_cancelled
    assert len(numbers) == 2
    assert not any(is_running(pid) for pid in numbers)


@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_what_is_just_starting_leaves_nothing(workspace, tmp_path, times):
    """The command runs already, and nobody reads it yet."""
    pids = tmp_path / "pids"

    async def cancel_early():
        loop = asyncio.get_running_loop()
        connect = loop.connect_read_pipe

        async def connect_late(*given):
            await until(lambda: pids.exists() and pids.read_text().count("\n") == 2)
            running.cancel()
            for _ in range(times - 1):
                loop.call_soon(running.cancel)
            await asyncio.sleep(0.01)
            return await connect(*given)

        loop.connect_read_pipe = connect_late
        command = f"echo $$ > {pids}; sleep 1000 & echo $! >> {pids}; wait"
        running = asyncio.ensure_future(start(workspace, "run", command=command))
        await asyncio.wait((running,))
        numbers = [int(pid) for pid in pids.read_text().split()]
        for number in numbers:
            await asyncio.to_thread(wait_until_gone, number)
        await wait_for_the_rest()
        return running.cancelled()

    assert asyncio.run(cancel_early())


def test_who_is_forked_while_we_look_gets_the_signal_too(monkeypatch):
    looks = iter([[2, 3], [3, 5], [5], []])
    killed = []
    monkeypatch.setattr(processes, "members", lambda session: next(looks))
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    assert processes.signal_all(2, signal.SIGKILL)
    assert killed == [2, 3, 5]


def test_cancelling_twice_does_not_wait_for_manners(workspace, tmp_path):
    pids = tmp_path / "pids"

    async def cancel_twice():
        up = asyncio.Event()
        screen = Screen()
        screen.emit = lambda text: up.set()
        command = f"trap '' TERM; echo $$ > {pids}; echo up; while :; do :; done"
        running = asyncio.ensure_future(start(workspace, "run", command=command, screen=screen))
        await up.wait()
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait((running,))
        await asyncio.to_thread(wait_until_gone, int(pids.read_text()))
        await wait_for_the_rest()
        return running.cancelled()

    assert asyncio.run(cancel_twice())


def test_what_is_left_in_the_background_is_ended_and_told(workspace):
    said = use(workspace, "run", command="sleep 1000 & echo $!")
    pid, note = said.split("\n")
    assert note == "[what it left running was ended: set background to keep it running]"
    assert not is_running(int(pid))


def test_a_background_process_that_floods_does_not_hold_the_call(workspace):
    said = use(workspace, "run", command="yes & echo $! > pid")
    assert said.endswith("[what it left running was ended: set background to keep it running]")
    assert not is_running(int((workspace.root / "pid").read_text()))


def test_a_command_that_closes_its_output_is_waited_for(workspace):
    said = fail(workspace, "run", command="exec >&- 2>&-; sleep 0.1; touch done; exit 4")
    assert said == "[exit status 4]"
    assert (workspace.root / "done").exists()


def test_a_command_may_delete_its_working_folder(workspace):
    assert use(workspace, "run", command='rm -rf "$PWD" && echo gone') == "gone"
    assert not workspace.root.exists()
    assert "no longer exists" in fail(workspace, "run", command="echo hi")


def test_keys_are_kept_from_commands(workspace, monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "sk-1")
    monkeypatch.setenv("OTHER_API_KEY", "sk-2")
    monkeypatch.setenv("SPECIAL", "sk-3")
    monkeypatch.setenv("PLAIN", "p")
    command = "echo ${ACME_API_KEY-none} ${OTHER_API_KEY-none} ${SPECIAL-none} ${PLAIN-none}"
    assert use(workspace, "run", command=command) == "none none sk-3 p"
    tool = builtin_tools(workspace, withheld=["SPECIAL"], passed_on=["OTHER_API_KEY"])["run"]
    result = asyncio.run(answer(tool, call("run", command=command)))
    assert result.output == "none sk-2 none p"
    assert use(workspace, "run", command="env | grep ^MULL_ || true") == "(no output)"


def test_odd_commands_are_errors_in_words(workspace):
    assert fail(workspace, "run", command="echo \0") == "a command cannot contain a zero byte"
    assert "length" in fail(workspace, "run", command="")
    assert "too long" in fail(workspace, "run", command="echo " + "x" * 3_000_000)
    assert "surrogates not allowed" in fail(workspace, "run", command="echo \ud800")


def test_commands_run_side_by_side(workspace):
    """Each waits for the next: one after the other they would never end."""

    async def all_at_once():
        commands = [f"echo {n} > f{n}; until [ -e f{(n + 1) % 4} ]; do sleep 0.01; done; echo {n}"
                    for n in range(4)]  # fmt: skip
        return await asyncio.gather(*(start(workspace, "run", command=c) for c in commands))

    assert [result.output for result in asyncio.run(all_at_once())] == ["0", "1", "2", "3"]


def test_the_preview_hides_nothing(workspace):
    shown = preview(builtin_tools(workspace)["run"], command="rm -rf /\r\x1b[2Kls\nmore\u202e")
    assert shown.title == "run: rm -rf /\\r\\x1b[2Kls …"
    assert shown.detail == "rm -rf /\\r\\x1b[2Kls\nmore\\u202e"
    assert shown.kind == "command"


def test_a_disk_that_is_full_costs_only_the_rest(workspace, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workspace, "put_aside", full)
    output = use(workspace, "run", command="seq 1 30000")
    assert "bytes, left out here]" in output
    assert output.endswith("\n30000")


def test_where_the_system_does_not_list_processes_the_group_is_ended(workspace, monkeypatch):
    monkeypatch.setattr(process.os.path, "isdir", lambda path: False)
    monkeypatch.setattr(process, "_GRACE", 0.1)

    async def end():
        command = await Command.start(("sh", "-c", "sleep 1000 & echo $!; wait"), workspace.root)
        pid = int(await command.read())
        status = await command.end()
        return pid, status

    pid, status = asyncio.run(end())
    assert status == -signal.SIGTERM
    assert not is_running(pid)
