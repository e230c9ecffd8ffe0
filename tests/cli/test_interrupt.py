"""Ctrl-C while `mull ask` is at work, in a real process on a terminal and in a pipe.

Whenever it comes: exit status 130, the socket is closed, what came is stored as interrupted, no
traceback, and the terminal is as it was.
"""

from __future__ import annotations

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

import pytest

from mull.neutral.messages import message_to_json
from mull.store.sessions import open_sessions
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
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def chunk(**delta):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


class Place:
    """A running `mull ask` whose output is read as it comes."""

    out = ""
    err = ""

    def wait_for(self, words):
        """Read until these words are there."""
        until = time.monotonic() + PATIENCE
        while words not in self.out + self.err:
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

    def check_sane(self):
        assert termios.tcgetattr(self._slave) == self._before
        colours = COLOUR.findall(self.out)
        assert not colours or colours[-1] == "\x1b[0m"
        assert self.out.endswith("\n")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._master)
        os.close(self._slave)


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
    reply = Reply.events(chunk(reasoning_content="weighing "), chunk(reasoning_content="it"), STALL)
    with ScriptedServer([reply]) as server:
        going = ask(place, server, "--thinking", "show", "q")
        going.wait_for("weighing it")
        check_interrupted(going)
        assert server.requests[0].wait_left()
    question, answer = stored()
    assert question["role"] == "user"
    assert answer["status"] == "interrupted"
    assert [block["thought"] for block in answer["blocks"]] == ["weighing it"]


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
        going.wait_for("asking again in 9")
        began = time.monotonic()
        check_interrupted(going)
        assert time.monotonic() - began < PATIENCE
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


@pytest.mark.parametrize("form", ["--json", "--stream-json"])
def test_json_stays_json(ask, form):
    gate = Gate()
    with ScriptedServer([Reply.events(chunk(content="half"), gate, STALL)]) as server:
        going = ask(Piped, server, form, "q")
        assert gate.wait_reached(PATIENCE)
        if form == "--stream-json":
            going.wait_for("half")
        check_interrupted(going)
        assert server.requests[0].wait_left()
    lines = [json.loads(line) for line in going.out.splitlines()]
    assert lines[-1] in (
        {"status": "interrupted"},
        {"type": "error", "text": "interrupted"},
    )
    assert going.err == ""


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
