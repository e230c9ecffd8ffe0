"""Ctrl-C while `mull ask` is at work, in a real process on a terminal and in a pipe.

Whenever it comes: exit status 130, the socket is closed, what came is stored as interrupted, no
traceback, no process is left, and the terminal is as it was.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import replace

import pytest

from mull.agent.processes import members
from mull.cli import interrupt
from mull.cli.draw import Plain
from mull.cli.main import main
from mull.client.connection import Connection
from mull.neutral.errors import SessionError
from mull.neutral.events import TextDelta
from mull.neutral.messages import message_to_json
from mull.store.sessions.sqlite import SqliteSessions, open_sessions
from mull.testing.server import STALL, Gate, Reply, ScriptedServer

PATIENCE = 20
MULL = [sys.executable, "-m", "mull"]
ON_TERMINAL = f"""
import fcntl, os, sys, termios
os.setsid()
terminal = os.open(sys.argv[1], os.O_RDWR)
fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
for place in (0, 1, 2):
    os.dup2(terminal, place)
os.execv(sys.executable, {MULL!r} + sys.argv[2:])
"""
NO = "not run: the user refused, and says: "
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DRAWN = re.compile(r"\x1b\[([0-9;]*m|F|2K)")
"""What mull draws with: colours, and a sign of life that is drawn over."""


def chunk(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


class Place:
    """A running `mull ask` whose output is read as it comes."""

    out = ""
    err = ""

    def wait_for(self, words):
        """Read until these words are there."""
        until = time.monotonic() + PATIENCE
        while words not in COLOUR.sub("", self.out + self.err):
            assert time.monotonic() < until, f"{words!r} did not come: {self.out!r} {self.err!r}"
            self.read_more()

    def end(self):
        """Its exit status, once all that it says has been read."""
        while self.read_more():
            pass
        return self.process.wait(PATIENCE)


class Piped(Place):
    def __init__(self, words):
        self.process = subprocess.Popen(
            [*MULL, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._open = {self.process.stdout: "out", self.process.stderr: "err"}

    def read_more(self):
        for pipe in select.select(list(self._open), [], [], 1)[0] if self._open else ():
            piece = os.read(pipe.fileno(), 65536).decode()
            name = self._open[pipe]
            setattr(self, name, getattr(self, name) + piece)
            if not piece:
                del self._open[pipe]
        return bool(self._open)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def check_sane(self):
        assert "\x1b" not in self.out + self.err

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class OnTerminal(Place):
    def __init__(self, words):
        self._master, self._slave = pty.openpty()
        self._before = termios.tcgetattr(self._slave)
        self.process = subprocess.Popen(
            [sys.executable, "-c", ON_TERMINAL, os.ttyname(self._slave), *words]
        )

    def read_more(self):
        if select.select([self._master], [], [], 0.2)[0]:
            self.out += os.read(self._master, 65536).decode()
            return True
        return self.process.poll() is None

    def interrupt(self):
        os.write(self._master, b"\x03")  # the terminal itself sends the signal

    def type(self, data):
        os.write(self._master, data)

    def check_sane(self):
        assert termios.tcgetattr(self._slave) == self._before
        colours = COLOUR.findall(self.out)
        assert not colours or colours[-1] == "\x1b[m"
        assert self.out.endswith("\n")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


@pytest.fixture(autouse=True)
def hangups_count():
    """Under nohup they would not, here and in what is started from here."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(params=[Piped, OnTerminal], ids=["pipe", "terminal"])
def place(request):
    return request.param


@pytest.fixture
def ask():
    started = []

    def ask(place, server, *words):
        model = ["-m", "openai-compatible/thinker", "--base-url", server.url]
        started.append(place(["ask", *model, *words]))
        return started[-1]

    yield ask
    for one in started:
        one.close()


def stored():
    store = open_sessions()
    _, records = store.load(store.last(os.getcwd()).id)
    return [json.loads(message_to_json(record.message)) for record in records]


def check_interrupted(going):
    going.interrupt()
    assert going.end() == 130
    assert "Traceback" not in going.out + going.err
    assert "interrupted" in going.out + going.err
    going.check_sane()


def test_while_it_thinks(place, ask):
    pieces = [chunk(reasoning_content=piece) for piece in ("weighing ", "it", " all")]
    reply = Reply.events(*pieces, STALL)
    with ScriptedServer([reply]) as server:
        going = ask(place, server, "--thinking", "show", "q")
        going.wait_for("weighing it")
        check_interrupted(going)
        assert server.requests[0].wait_left()
    question, answer = stored()
    assert question["role"] == "user"
    assert answer["status"] == "interrupted"
    (block,) = answer["blocks"]
    assert block["thought"].startswith("weighing it")


def test_while_it_answers(place, ask):
    reply = Reply.events(chunk(reasoning_content="hm"), chunk(content="half an ans"), STALL)
    with ScriptedServer([reply]) as server:
        going = ask(place, server, "q")
        going.wait_for("half an ans")
        check_interrupted(going)
        assert server.requests[0].wait_left()
    assert "mull: interrupted" in (going.out + going.err).splitlines()[-1]
    assert "\nmull: interrupted" in f"\n{going.err or going.out}".replace("\r", "")
    _, answer = stored()
    assert answer["status"] == "interrupted"
    assert [block["type"] for block in answer["blocks"]] == ["thinking", "text"]
    assert answer["blocks"][1]["text"] == "half an ans"


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ((), "; what arrived is stored (mull ask --continue)"),
        (("--no-save",), "; nothing is stored (--no-save)"),
    ],
    ids=["kept", "not kept"],
)
def test_what_is_said_to_be_kept_is_kept(ask, words, left):
    with ScriptedServer([Reply.events(chunk(content="half"), STALL)]) as server:
        going = ask(Piped, server, *words, "q")
        going.wait_for("half")
        check_interrupted(going)
    assert going.err == f"mull: interrupted{left}\n"
    found = open_sessions().last(os.getcwd())
    assert (found is None) is bool(words)


def test_of_an_answer_that_did_not_begin_only_the_question_is_kept(ask):
    with ScriptedServer([Reply(before=(STALL,))]) as server:
        going = ask(Piped, server, "q")
        assert server.wait_requests()
        check_interrupted(going)
    assert going.err == "mull: interrupted; the question is stored (mull ask --continue)\n"


def test_a_session_of_another_folder_is_gone_on_with_by_its_id(ask, tmp_path, monkeypatch):
    done = Reply.events(chunk(content="ok"), {"choices": [{"finish_reason": "stop"}]}, "[DONE]")
    (tmp_path / "elsewhere").mkdir()
    with ScriptedServer([done, Reply.events(chunk(content="half"), STALL)]) as server:
        assert ask(Piped, server, "one").end() == 0
        session = open_sessions().last(os.getcwd()).id
        monkeypatch.chdir(tmp_path / "elsewhere")
        going = ask(Piped, server, "--session", session, "two")
        going.wait_for("half")
        check_interrupted(going)
    assert going.err == (
        f"mull: interrupted; what arrived is stored (mull ask --session {session})\n"
    )


def test_what_could_not_be_saved_is_not_said_to_be_kept(in_here, monkeypatch, capsys):
    """The first piece of the answer is there, the disk is full, and the user stops."""
    show = Plain.event

    def full(*_):
        raise SessionError("disk full")

    def show_and_stop(plain, event):
        if isinstance(event, TextDelta):
            monkeypatch.setattr(SqliteSessions, "append", full)
            signal.raise_signal(signal.SIGINT)
        show(plain, event)

    monkeypatch.setattr(Plain, "event", show_and_stop)
    with ScriptedServer([Reply.events(chunk(content="half"), STALL)]) as server:
        words = ["-m", "openai-compatible/thinker", "--base-url", server.url, "q"]
        assert main(["ask", *words]) == 130
    err = capsys.readouterr().err
    assert "disk full" in err
    assert err.endswith("mull: interrupted\n")


def test_before_the_head(place, ask):
    with ScriptedServer([Reply(before=(STALL,))]) as server:
        going = ask(place, server, "q")
        assert server.wait_requests(1, PATIENCE)
        check_interrupted(going)
        assert server.requests[0].wait_left()
    assert [message["role"] for message in stored()] == ["user"]


def test_while_it_waits_to_ask_again(place, ask):
    busy = Reply.json({"error": {"message": "slow down"}}, 429, {"retry-after": "90"})
    with ScriptedServer([busy]) as server:
        going = ask(place, server, "q")
        going.wait_for("retrying in 9")
        check_interrupted(going)
        assert len(server.requests) == 1
    assert [message["role"] for message in stored()] == ["user"]


def test_what_was_kept_can_be_gone_on_with(ask):
    reply = Reply.events(chunk(content="half an ans"), STALL)
    done = Reply.events(chunk(content="whole"), {"choices": [{"finish_reason": "stop"}]}, "[DONE]")
    with ScriptedServer([reply, done]) as server:
        going = ask(Piped, server, "first")
        going.wait_for("half an ans")
        check_interrupted(going)
        again = ask(Piped, server, "--continue", "second")
        assert again.end() == 0
        assert again.out == "whole\n"
        sent = server.requests[1].json["messages"]
        assert [m["content"] for m in sent if m["role"] == "user"] == ["first", "second"]
    assert [message.get("status") for message in stored()][1::2] == ["interrupted", "complete"]


def calling(command):
    """An answer that calls `run`."""
    function = {"name": "run", "arguments": json.dumps({"command": command})}
    return Reply.events(
        chunk(reasoning_content="look"),
        chunk(tool_calls=[{"index": 0, "id": "call_1", "function": function}]),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    )


def pid_in(file, going):
    """The process that wrote its number into the file."""
    until = time.monotonic() + PATIENCE
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < until, f"it did not run: {going.out!r} {going.err!r}"
        going.read_more()
    return int(file.read_text())


def check_gone(command):
    """Nobody is left who could end what the command began: it has been ended."""
    until = time.monotonic() + PATIENCE
    while left := members(command):
        assert time.monotonic() < until, f"still running: {left}"
        time.sleep(0.01)


def check_stopped_in_a_tool():
    """The call is closed by a result, so that the session can be gone on with."""
    *_, answer, result = stored()
    assert [block["type"] for block in answer["blocks"]] == ["thinking", "tool_call"]
    (block,) = result["blocks"]
    assert (block["callId"], block["isError"]) == ("call_1", True)
    assert block["output"] == "Interrupted by the user before it finished."


def test_while_a_command_runs(place, ask, tmp_path):
    with ScriptedServer([calling(f"echo $$ > {tmp_path}/pid; sleep 600 | sleep 600")]) as server:
        going = ask(place, server, "--tools", "all", "--yes", "q")
        command = pid_in(tmp_path / "pid", going)
        check_interrupted(going)
    check_gone(command)
    check_stopped_in_a_tool()


class InBackground(Piped):
    """As a shell without job control starts `mull ask &`: with Ctrl-C ignored."""

    def __init__(self, words):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            super().__init__(words)
        finally:
            signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_background_job_ends_when_it_is_told_to(ask, number):
    gate = Gate()
    with ScriptedServer([Reply.events(chunk(content="half"), gate, STALL)]) as server:
        going = ask(InBackground, server, "q")
        assert gate.wait_reached(PATIENCE)
        going.process.send_signal(signal.SIGINT)
        going.process.send_signal(number)
        assert going.end() == 130
        assert server.requests[0].wait_left()
    assert going.err.startswith("mull: interrupted")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_told_to_end_leaves_no_command_behind(ask, tmp_path, number):
    with ScriptedServer([calling(f"echo $$ > {tmp_path}/pid; sleep 600")]) as server:
        going = ask(Piped, server, "--tools", "all", "--yes", "q")
        command = pid_in(tmp_path / "pid", going)
        going.process.send_signal(number)
        assert going.end() == 130
    check_gone(command)
    said = f"mull: run: echo $$ > {tmp_path}/pid; sleep 600\n"
    assert going.err == f"{said}mull: interrupted; what arrived is stored (mull ask --continue)\n"
    check_stopped_in_a_tool()


def test_while_it_asks_whether_a_tool_may_run(ask, tmp_path):
    with ScriptedServer([calling(f"touch {tmp_path}/x")]) as server:
        going = ask(OnTerminal, server, "--tools", "all", "--mode", "ask", "q")
        going.wait_for("a reason for no: ")
        check_interrupted(going)
    assert not (tmp_path / "x").exists()
    check_stopped_in_a_tool()


def test_the_question_hides_nothing_and_takes_an_answer(ask, tmp_path):
    """What is typed before the question is no answer to it."""
    done = Reply.events(chunk(content="done"), {"choices": [{"finish_reason": "stop"}]}, "[DONE]")
    command = f"touch {tmp_path}/x # \x1b[2A\x1b[2J\r echo"
    for typed, ran in ((b"no, thanks\n", False), (b"1\n", True)):
        gate = Gate()
        reply = calling(command)
        with ScriptedServer([replace(reply, before=(gate,)), done]) as server:
            going = ask(OnTerminal, server, "--tools", "all", "--mode", "ask", "q")
            assert gate.wait_reached(PATIENCE)
            going.type(b"1\n")
            gate.open()
            going.wait_for("a reason for no: ")
            going.type(typed)
            assert going.end() == 0
            told = server.requests[1].json["messages"][-1]["content"]
        assert (tmp_path / "x").exists() is ran
        assert set(DRAWN.sub("", going.out)) & {"\x1b"} == set()
        assert f"  | touch {tmp_path}/x # \\x1b[2A" in going.out
        assert "Yes, for this session" not in going.out  # no rule for what cannot be read
        assert told == ("(no output)" if ran else f"{NO}no, thanks")


@pytest.mark.parametrize("form", ["--json", "--stream-json"])
def test_json_stays_json(ask, form):
    gate = Gate()
    pieces = chunk(reasoning_content="hm"), chunk(content="half")
    with ScriptedServer([Reply.events(*pieces, gate, STALL)]) as server:
        going = ask(Piped, server, form, "q")
        assert gate.wait_reached(PATIENCE)
        if form == "--stream-json":
            going.wait_for("half")
        check_interrupted(going)
        assert server.requests[0].wait_left()
    shown = json.loads(going.out if form == "--json" else going.out.splitlines()[-1])
    (session,) = open_sessions().list()
    assert shown["status"] == "interrupted"
    assert shown["session"] == session.id
    assert shown["error"]["kind"] == "interrupted"
    assert shown["error"]["message"].endswith(" is stored (mull ask --continue)")
    if form == "--stream-json":  # who waited for it has it
        assert (shown["text"], shown["thinking"]) == ("half", "hm")
        assert [block["type"] for block in shown["message"]["blocks"]] == ["thinking", "text"]
    assert going.err == ""


@pytest.fixture
def in_here(monkeypatch):
    """For commands that run in this process: nothing to read, and its signals as they were."""
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("form", ["--json", "--stream-json"])
def test_in_the_very_moment_when_something_comes(in_here, monkeypatch, capsys, caplog, form):
    """Between seeing that somebody waits and waking them, where a signal may come too."""

    def wake(self):
        if self._waiter is not None and not self._waiter.done():
            signal.raise_signal(signal.SIGINT)
            self._waiter.set_result(None)

    monkeypatch.setattr(Connection, "_wake", wake)
    with ScriptedServer([Reply.events(chunk(content="half"), STALL)]) as server:
        words = ["-m", "openai-compatible/thinker", "--base-url", server.url, form, "q"]
        assert main(["ask", *words]) == 130
    said = capsys.readouterr()
    assert (said.err, caplog.records) == ("", [])
    assert "interrupted" in said.out


def test_a_stop_that_comes_too_late_changes_nothing(in_here, monkeypatch, capsys):
    """An answer that is whole is printed once, in one object, and nothing after it."""
    from mull.agent.session import Session

    close = Session.aclose

    async def stopped(self):
        signal.raise_signal(signal.SIGINT)
        await close(self)

    monkeypatch.setattr(Session, "aclose", stopped)
    done = Reply.events(chunk(content="whole"), {"choices": [{"finish_reason": "stop"}]}, "[DONE]")
    with ScriptedServer([done]) as server:
        words = ["-m", "openai-compatible/thinker", "--base-url", server.url, "--json", "q"]
        assert main(["ask", *words]) in (0, 130)
    assert json.loads(capsys.readouterr().out)["text"] == "whole"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_work_is_stopped_between_two_of_its_steps(caplog, number):
    done = []

    async def work():
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()

        def step():
            signal.raise_signal(number)
            done.append("step")
            waiter.set_result(None)

        loop.call_soon(step)
        try:
            await waiter
            await asyncio.Event().wait()
        finally:
            done.append("in order")

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        interrupt.run(work())
    assert done == ["step", "in order"]
    assert caplog.records == []
    assert signal.getsignal(number) is before


def test_who_stops_twice_does_not_wait():
    async def work():
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(PATIENCE)

    with pytest.raises(KeyboardInterrupt):
        interrupt.run(work())


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)

    async def work():
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        return "done"

    try:
        assert interrupt.run(work()) == "done"
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_terminal_check_can_fail(ask):
    """A process that leaves its colour on is caught."""
    going = OnTerminal(["--version"])
    try:
        assert going.end() == 0
        going.out = "\x1b[2mdim\n"
        with pytest.raises(AssertionError):
            going.check_sane()
        going.out = "mull\n"
        going.check_sane()
        mode = termios.tcgetattr(going._slave)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(going._slave, termios.TCSANOW, mode)
        with pytest.raises(AssertionError):
            going.check_sane()
    finally:
        going.close()
