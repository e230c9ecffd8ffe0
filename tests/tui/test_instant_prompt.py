"""The instant prompt at a terminal: every byte reaches the editor, and the terminal is restored."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import select
import signal
import struct
import sys
import termios
from contextlib import suppress

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.output import DummyOutput

from effort import tried
from mull.cli.main import OPTIONS_OF_A_PROMPT, parser_of
from mull.testing.server import ScriptedServer
from mull.tui.instant import prompt as instant
from mull.tui.instant.prompt import InstantPrompt
from mull.tui.screen.keyboard import ESC_WAITS, Keyboard
from tui.scripts import answer, say
from tui.terminal import PATIENCE

REPLY = b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\\x1b[?62;22c"
_GATED = """
import os, sys, time
from pathlib import Path
from mull.cli import chat
from mull.tui.screen import terminal
run, terminal.PATIENCE = chat.run, 30

def late(options):
    gate = Path(os.environ["GATE"])
    gate.with_name("waits").touch()
    while not gate.exists():
        time.sleep(0.01)
    if gate.read_text() == "crash":
        raise RuntimeError("crashed")
    return run(options)

chat.run = late
from mull.cli.main import main
sys.exit(main())
"""
GATED = (sys.executable, "-c", _GATED)


class Pseudo:
    """A terminal without a program: what is drawn on it, and what is typed at it."""

    def __init__(self, columns=40, rows=12):
        self.master, self.slave = pty.openpty()
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data):
        os.write(self.master, data)

    def read(self, seconds=0.0):
        while select.select([self.master], [], [], seconds)[0]:
            self._stream.feed(os.read(self.master, 65536))
            seconds = 0.0

    @property
    def text(self):
        return "\n".join(row.rstrip() for row in self.screen.display).strip("\n")

    def wait_for(self, words):
        for _ in range(PATIENCE * 10):
            self.read(0.1)
            if words in self.text:
                return
        raise AssertionError(f"{words!r} did not come:\n{self.text}")

    def unread(self, size):
        """So many bytes that nobody has read."""
        data = b""
        while len(data) < size and select.select([self.slave], [], [], PATIENCE)[0]:
            data += os.read(self.slave, 65536)
        return data

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(instant, "_is_utf_8", lambda: True)
    for name in ("NO_COLOR", "FORCE_COLOR", "TMUX", "STY", "TERM_PROGRAM", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    one = Pseudo()
    yield one
    os.close(one.master)
    os.close(one.slave)


@pytest.fixture
def prompt(terminal):
    one = InstantPrompt(terminal.slave, terminal.slave, "auto")
    yield one
    one.close()


def taken(terminal, prompt, size):
    """So many bytes, those that the prompt has read and then those that it left."""
    pieces, origin = prompt.take()
    data = b"".join(piece for _, piece in pieces)
    return data + terminal.unread(size - len(data)), origin


def test_what_is_typed_is_shown_and_taken_byte_by_byte(terminal, prompt):
    prompt.open()
    terminal.type(REPLY)
    terminal.wait_for("❯\nopening …")
    for piece in (b"h\xc3", b"\xa9llo ", "漢".encode(), b"x\x7f", b"\x1b[200~a\rb\x1b[201~"):
        terminal.type(piece)
    terminal.wait_for("❯ héllo 漢a\n  b\nopening …")
    terminal.type(b"\x1b[Dnot shown\r")
    assert prompt.background(PATIENCE) == REPLY[: -len(b"\x1b[?62;22c")]
    keys = REPLY + "héllo 漢x\x7f\x1b[200~a\rb\x1b[201~\x1b[Dnot shown\r".encode()
    data, origin = taken(terminal, prompt, len(keys))
    assert data == keys
    assert origin == "\r\x1b[2A"
    terminal.read()
    assert "not shown" not in terminal.text, "nor did the system show it"


def test_what_was_typed_before_comes_first_with_its_enter(terminal, prompt):
    terminal.type(b"early\n")
    terminal.wait_for("early")
    prompt.open()
    terminal.type(REPLY + b"late")
    terminal.wait_for("❯ early")
    keys = b"early\r" + REPLY + b"late"
    assert taken(terminal, prompt, len(keys))[0] == keys


def test_closing_leaves_the_terminal_as_it_was_and_says_what_was_typed(terminal, prompt):
    prompt.open()
    terminal.type(REPLY + "a long text 漢字 that takes some rows of the terminal".encode())
    terminal.wait_for("the terminal\nopening …")
    assert not terminal.is_restored()
    assert prompt.close() == "a long text 漢字 that takes some rows of the terminal"
    terminal.read()
    assert terminal.text == ""
    assert (terminal.screen.cursor.x, terminal.screen.cursor.y) == (0, 0)
    assert terminal.is_restored()


def test_at_another_width_it_is_drawn_anew(terminal, prompt):
    prompt.open()
    terminal.type(REPLY + b"twenty-one characters")
    terminal.wait_for("❯ twenty-one characters\nopening …")
    terminal.resize(20, 12)
    terminal.wait_for("❯ twenty-one charact\n  ers\nopening …")
    prompt.close()
    terminal.read()
    assert terminal.text == ""


def test_a_terminal_that_says_nothing_still_shows_what_is_typed(terminal, prompt):
    prompt.open()
    terminal.wait_for("❯\nopening …")
    terminal.type(b"quiet")
    terminal.wait_for("❯ quiet")
    assert prompt.background(0) == b""


def test_what_is_written_meanwhile_takes_its_place_and_nothing_typed_is_lost(terminal, prompt):
    prompt.open()
    terminal.type(REPLY + b"ab")
    terminal.wait_for("❯ ab")
    prompt.hide()
    os.write(terminal.slave, b"a message\r\n")
    terminal.type(b"cd")
    terminal.wait_for("a message")
    keys = REPLY + b"abcd"
    assert taken(terminal, prompt, len(keys))[0] == keys
    terminal.read()
    assert terminal.text == "a message"


@pytest.mark.parametrize(("columns", "rows"), [(11, 12), (40, 2)])
def test_where_there_is_no_room_it_only_keeps_what_is_typed(terminal, prompt, columns, rows):
    terminal.resize(columns, rows)
    prompt.open()
    terminal.type(REPLY + b"ab")
    prompt.background(PATIENCE)
    keys = REPLY + b"ab"
    assert taken(terminal, prompt, len(keys))[0] == keys
    terminal.read()
    assert terminal.text == ""


# The hand-over

KEYS = [
    b"a", "é".encode(), "漢".encode(), b"\x7f", b"\r", b"\x03", b"\x04", b"\x1b", b"\x1b[D",
    b"\x1bOA", b"\x1bb", b"\x1b[97;5u", b"\x1b[27;2;13~", b"\x1b[200~two\rlines\x1b[201~", REPLY,
]  # fmt: skip


class Keys:
    """A keyboard, and the keys that it has given."""

    def __init__(self):
        self._end, self._begin = os.pipe()
        os.close(self._begin)
        self._stdin = io.TextIOWrapper(os.fdopen(self._end, "rb"), encoding="utf-8")
        self._keyboard = Keyboard(self._stdin, DummyOutput(), environ={})
        self.given = []

    def replay(self, pieces):
        self._keyboard.replay(pieces)
        self.given += get_typeahead(self._keyboard)

    def close(self):
        self.given += self._keyboard.flush_keys()
        self._stdin.close()
        return [(key.key, key.data) for key in self.given]


@tried(0.5)
@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=8),
    st.integers(0, 8),
    st.integers(0, 12),
)
def test_the_editor_gets_the_same_keys_wherever_it_takes_over(keys, first, inside):
    """At a key, and in the middle of one; whether it was pressed after a pause or not."""
    pieces, now = [], 1.0
    for key, pauses in keys:
        now += 2 * ESC_WAITS if pauses else 0
        pieces.append((now, key))
    whole = Keys()
    whole.replay(pieces)
    parted = Keys()
    parted.replay(pieces[:first])
    for at, key in pieces[first : first + 1]:
        cut = inside if 1 < inside < len(key) else 0
        parted.replay([(at, key[:cut])])
        parted.replay([(at, key[cut:]), *pieces[first + 1 :]])
    assert parted.close() == whole.close()


def options(words):
    """What the parser makes of words, and whether they are all it needs."""
    with suppress(SystemExit):
        return vars(parser_of("chat").parse_args(words))
    return None


def test_options_of_a_prompt_are_options_of_the_conversation():
    for option, has_value in OPTIONS_OF_A_PROMPT.items():
        given = options([option, "value"] if has_value else [option])
        assert given is not None
        assert given["prompt"] == []
        assert not given["plain"]
        assert given["theme"] == "auto"


@pytest.fixture
def gated(start, tmp_path):
    """Starts mull so that it loads nothing until the gate is opened, with a word."""
    gate, written, waits = tmp_path / "gate", tmp_path / "written", tmp_path / "waits"

    def open_gate(word=""):
        written.write_text(word)
        written.rename(gate)

    def begin(*words):
        terminal = start(*words, program=GATED, env={"GATE": str(gate)})
        terminal.wait_for("❯\nopening …")
        terminal.wait_for(lambda _: waits.exists())
        return terminal, open_gate

    return begin


TYPED = ["hé", "llo 漢", "x\x7f", "\x1b[D", "\x1b[200~, a\rb\x1b[201~", "\x01", "say: ", "\r"]


@pytest.mark.parametrize(
    "early", [len(TYPED) - 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 4, 5, 8))]
)
def test_the_same_is_sent_wherever_the_editor_takes_over(gated, early):
    with ScriptedServer([answer(say("Heard."))]) as server:
        terminal, go_on = gated("-m", "openai-compatible/thinker", "--base-url", server.url)
        for keys in TYPED[:early]:
            terminal.type(keys)
        if early > 1:
            terminal.wait_for("❯ héllo 漢")
        go_on()
        terminal.wait_for("/help lists commands")
        for keys in TYPED[early:]:
            terminal.type(keys)
        terminal.wait_for("Heard.")
        terminal.wait_idle()
        sent = server.requests[0].json["messages"][-1]["content"]
        assert sent == "héllo , a\nsay: b漢"
        shown = [row for row in terminal.screen if row]
        assert shown[3:-2] == ["❯ héllo , a", "  say: b漢", "Heard."]
        terminal.press("c-d")
        assert terminal.end() == 0
        assert terminal.is_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_while_loading_leaves_the_terminal_as_it_was(gated, number):
    terminal, _ = gated()
    terminal.type("half a question")
    terminal.wait_for("❯ half a question")
    terminal.process.send_signal(number)
    assert terminal.end() == -number
    assert terminal.is_restored()
    assert terminal.text == ""


def test_three_interrupts_end_what_never_loads(gated):
    terminal, _ = gated()
    terminal.type("x\x03\x03\x03")
    assert terminal.end() == 130
    assert terminal.is_restored()


def test_a_crash_while_loading_leaves_the_terminal_as_it_was(gated):
    terminal, go_on = gated()
    terminal.type("hello")
    terminal.wait_for("❯ hello")
    go_on("crash")
    assert terminal.end() == 1
    assert terminal.is_restored()
    assert "RuntimeError: crashed" in terminal.text
    assert "opening" not in terminal.text


def test_an_error_while_loading_says_what_was_not_sent(gated):
    terminal, go_on = gated("-m", "no-such-model/x", "--profile", "none-of-this-name")
    terminal.type("my question")
    terminal.wait_for("❯ my question")
    go_on()
    assert terminal.end() == 2
    assert terminal.is_restored()
    lines = terminal.text.splitlines()
    assert lines[0].startswith("mull: ")
    assert "none-of-this-name" in lines[0]
    assert lines[-1] == "mull: not sent: my question"


def test_what_was_entered_is_told_if_no_session_can_be_opened(gated):
    terminal, go_on = gated("-m", "nosuch/xyz")
    terminal.type("first\rsecond")
    terminal.wait_for("❯ first")
    go_on()
    assert terminal.end() == 2
    assert terminal.is_restored()
    assert terminal.text.splitlines()[-2:] == ["mull: not sent: first", "second"]


def test_the_first_of_two_signals_ends_the_program(gated):
    terminal, _ = gated()
    terminal.process.send_signal(signal.SIGHUP)
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.end() in (-signal.SIGHUP, -signal.SIGTERM)
    assert terminal.is_restored()
    assert terminal.text == ""
