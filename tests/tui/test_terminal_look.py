"""What the terminal looks like: shades from its own background, fewer colours, widths, resizes."""

from __future__ import annotations

import re
import sys
from threading import Timer

import pytest

from mull.testing.server import Gate, ScriptedServer
from mull.tui.screen.colour import Rgb, contrast
from tui.scripts import answer, say, think
from tui.terminal import DARK, LIGHT

pytestmark = pytest.mark.slow

STEP = re.compile(rb"\x1b\[\?2026h.*?\x1b\[\?2026l", re.DOTALL)
THOUGHT = "Let me weigh the options here."


def reply():
    return answer(think(THOUGHT), say("The *answer*."))


def asked(terminal):
    terminal.say("q")
    terminal.wait_for("The answer.")
    terminal.wait_idle()
    return terminal


def rgb(hexadecimal):
    return Rgb(*bytes.fromhex(hexadecimal))


@pytest.mark.parametrize(
    ("background", "colour"), [(DARK, "1e1e2e"), (LIGHT, "fffaf0")], ids=["dark", "light"]
)
def test_a_thought_stands_on_a_shade_of_the_terminals_own_background(converse, background, colour):
    with ScriptedServer([reply()]) as server:
        terminal = asked(converse(server, "--view", "full", background=background))
        cell, own = terminal.cell(THOUGHT), rgb(colour)
        shade = rgb(cell.bg)
        assert cell.italics
        assert shade != own
        assert (sum(shade) > sum(own)) is (background == DARK)
        assert contrast(shade, own) < 1.6
        assert contrast(rgb(cell.fg), shade) >= 4.5
        assert terminal.cell("The answer.").bg == "default"
        assert "\x1b]11;?" in terminal.raw.decode()


def test_inside_tmux_the_shade_is_one_of_256(converse):
    with ScriptedServer([reply()]) as server:
        env = {"TERM": "tmux-256color", "TMUX": "/tmp/tmux,1,0"}
        terminal = asked(converse(server, "--view", "full", env=env))
        assert terminal.cell(THOUGHT).bg != "default"
        assert b";2;" not in re.sub(rb"\x1b\[\?[0-9;]*c", b"", terminal.raw)
        assert re.search(rb"48;5;\d+", terminal.raw)


def test_no_color_means_none(converse):
    with ScriptedServer([reply()]) as server:
        terminal = asked(converse(server, "--view", "full", env={"NO_COLOR": "1"}))
        assert THOUGHT in terminal.text
        assert not re.search(rb"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9[0-7])[0-9;]*m", terminal.raw)
        assert {terminal.cell(THOUGHT).fg, terminal.cell(THOUGHT).bg} == {"default"}


def test_a_terminal_that_answers_late_or_never_types_nothing_into_the_line(converse):
    with ScriptedServer([reply()]) as server:
        terminal = converse(server, silent=True)
        terminal.type(f"\x1b]11;rgb:{DARK}\x1b\\\x1b[?62;22c")
        terminal.type(f"\x1b]11;rgb:{LIGHT}\x07")
        terminal.say("hello")
        terminal.wait_for("The answer.")
        assert "❯ hello" in terminal.screen
        assert [m["content"] for m in server.requests[0].json["messages"]][-1] == "hello"


def test_sixty_columns_hold_everything(converse):
    words = " ".join(f"word{n}" for n in range(40))
    table = "\n\n| a | b |\n|---|---|\n| 1 | " + "long " * 12 + "|\n"
    with ScriptedServer([answer(think(words), say(words + table + "\nEnd."))]) as server:
        terminal = converse(server, "--view", "full", columns=60)
        terminal.say("q " + "x" * 100)
        terminal.wait_for("End.")
        terminal.wait_idle()
        text = re.sub(r"\s+", " ", terminal.everything)
        assert all(text.count(f"word{n} ") == 2 for n in range(40))
        assert "thinker" in terminal.screen[-1] or "thinker" in terminal.text.splitlines()[-1]


def test_resizing_in_mid_stream_loses_nothing_and_leaves_nothing_behind(converse):
    first, second, third = Gate(), Gate(), Gate()
    parts = [" ".join(f"{name}{n}" for n in range(25)) + "\n\n" for name in "abc"]
    reply = answer(
        think("Weighing it."), say(parts[0]), first, say(parts[1]), second, say(parts[2]), third
    )
    with ScriptedServer([reply]) as server:
        terminal = converse(server)
        terminal.say("how?")
        terminal.wait_for("a24")
        terminal.resize(50, 30)
        terminal.wait_for(lambda t: len(t.text.splitlines()[-1]) <= 50 and "a24" in t.text)
        first.open()
        terminal.wait_for("b24")
        terminal.type("typed")
        terminal.wait_for("❯ typed")
        terminal.resize(110, 24)
        terminal.wait_for(lambda t: any("b0 b1" in row and len(row) > 60 for row in t.screen))
        second.open()
        terminal.wait_for("c24")
        third.open()
        terminal.wait_idle()
        rows = terminal.screen
        text = " ".join("\n".join(rows).split())
        for name in "abc":
            assert " ".join(f"{name}{n}" for n in range(25)) in text
        assert sum("❯ typed" in row for row in rows) == 1
        assert sum("openai-compatible/thinker ·" in row for row in rows) == 1
        assert sum("Thought for" in row for row in rows) == 1
        assert "Thinking…" not in text
        assert not re.search(rb"\x1b\[\d*[JKH]", STEP.sub(b"", terminal.raw))


def test_the_terminal_of_these_tests_shows_no_half_drawn_screen(start):
    """A program that has begun a step and not ended it is waited for."""
    source = (
        "import sys; print('whole\\x1b[?2026h\\x1b[2J\\x1b[Hhal', end='', flush=True);"
        " sys.stdin.readline(); print('f and half\\x1b[?2026l', flush=True); sys.stdin.readline()"
    )
    terminal = start(program=(sys.executable, "-c", source))
    Timer(0.2, lambda: terminal.press("c-d")).start()
    terminal.wait_for(lambda terminal: "hal" in terminal.text)
    assert "half and half" in terminal.text


@pytest.mark.slow
def test_a_window_that_only_grows_taller_stays_as_it_is(converse):
    with ScriptedServer([reply()]) as server:
        terminal = asked(converse(server, rows=20))
        terminal.resize(90, 40)
        terminal.type("still here")
        terminal.wait_for("❯ still here")
        assert terminal.text.count("The answer.") == 1
        assert terminal.text.count("openai-compatible/thinker ·") == 1


def test_the_theme_can_be_chosen_and_is_drawn_at_once(converse):
    with ScriptedServer([reply()]) as server:
        terminal = asked(converse(server, "--view", "full"))
        before = terminal.cell(THOUGHT)
        terminal.say("/theme light")
        terminal.wait_for("Theme: light.")
        terminal.wait_for(lambda t: t.cell(THOUGHT) != before)
        assert terminal.text.count(THOUGHT) == 1
