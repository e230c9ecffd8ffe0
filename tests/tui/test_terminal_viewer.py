"""Reading at the real terminal: over the screen, while the scrollback is written once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mull.testing.server import STALL, Gate, ScriptedServer
from tui.scripts import answer, call, calls, say, think

pytestmark = pytest.mark.slow

DRAWN = b"\x1b[?2026l"
THOUGHTS = [f"**Title {n}**\n\nfirst-{n} `code` words\n\nlast-{n} words." for n in range(3)]


def counts(terminal, *words):
    return {word: terminal.everything.count(word) for word in words}


def ask(terminal, text, reply):
    terminal.say(text)
    terminal.wait_for(reply)
    terminal.wait_idle()


def test_ctrl_t_opens_the_thoughts_over_the_screen_and_leaves_no_copy(converse):
    replies = [answer(think(text), say(f"Answer {n}.")) for n, text in enumerate(THOUGHTS)]
    with ScriptedServer(replies) as server:
        terminal = converse(server, rows=20)
        terminal.press("c-t")
        terminal.wait_for("There is no thinking to read yet.")
        for n in range(3):
            ask(terminal, f"question {n}", f"Answer {n}.")
        before, history = terminal.text, terminal.history
        terminal.press("c-t")
        terminal.wait_for("Thoughts 3 of 3")
        assert "▾ 3." in terminal.text
        assert "last-2 words." in terminal.text
        assert "first-0" not in terminal.text
        assert "**" not in terminal.text
        assert terminal.cell("Title 2").bold
        assert terminal.cell("last-2").italics
        terminal.press("s-tab", "s-tab", "enter")
        terminal.wait_for("▾ 1.")
        terminal.wait_for("first-0")
        terminal.type("/last-1")
        terminal.wait_for("/last-1")
        terminal.press("enter")
        terminal.wait_for(lambda t: "last-1" in t.text and t.cell("last-1").reverse)
        terminal.type("/nowhere")
        terminal.press("enter")
        terminal.wait_for("Not found: nowhere")
        terminal.press("c-t")
        terminal.wait_for("Answer 2.")
        assert terminal.text == before
        assert terminal.history == history


def test_a_thought_can_be_read_while_it_comes(converse):
    more, over = Gate(), Gate()
    reply = answer(think("one-part.\n\n"), more, think("two-part."), over, say("Done."))
    with ScriptedServer([reply]) as server:
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for("one-part.")
        terminal.press("c-t")
        terminal.wait_for("Thoughts · all")
        more.open()
        terminal.wait_for("two-part.")
        over.open()
        terminal.press("esc")  # closes the viewer, and stops nothing
        terminal.wait_for("Done.")
        terminal.wait_idle()
        assert "Interrupted" not in terminal.text


def test_ctrl_o_opens_what_tools_did(converse):
    Path("a.txt").write_text("x\n" * 12)
    command = "seq 1 200; echo broken >&2; exit 3"
    steps = (call("read", path="a.txt"), call("run", command=command))
    with ScriptedServer([*map(calls, steps), answer(say("Ran."))]) as server:
        terminal = converse(server, "--yes")
        terminal.say("go")
        terminal.wait_for("Ran.")
        terminal.wait_idle()
        assert "└ 12 lines" in terminal.text
        assert "└ failed: exit status 3 · 193 lines above (Ctrl-O)" in terminal.text
        assert "broken" in terminal.text
        history = len(terminal.history)
        terminal.press("c-o")
        terminal.wait_for("Tools 2 of 2")
        terminal.wait_for(lambda t: t.screen[1].strip() == "1")
        terminal.type("G")
        terminal.wait_for("broken")
        terminal.type("q")
        terminal.wait_for("Ran.")
        assert len(terminal.history) == history


def test_what_a_stopped_command_printed_stays_on_the_screen(converse):
    command = "for n in 1 2 3 4 5 6; do echo line-$n; done; sleep 60"
    with ScriptedServer([calls(call("run", command=command)), answer(say("never"))]) as server:
        terminal = converse(server, "--yes")
        terminal.say("go")
        terminal.wait_for("line-6")
        terminal.press("esc")
        terminal.wait_for("Interrupted")
        assert "line-6" in terminal.text
        terminal.press("c-o")
        terminal.wait_for("line-1")


def test_a_command_stands_on_the_screen_once_when_it_is_asked_about(converse):
    with ScriptedServer([calls(call("run", command="touch hello")), answer(say("Ok."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for("❯ 1. Yes")
        said = terminal.text.partition("Run this command?")[0]
        assert said.count("touch hello") == 1
        assert "Running tools" not in terminal.text
        assert "waiting for you" in terminal.text
        terminal.press("enter")
        terminal.wait_for("Ok.")


def test_a_diff_is_there_again_when_the_session_is_gone_on_with(converse, start):
    Path("a.py").write_text("x = 1\nkept = 2\n")
    edit = call("edit", path="a.py", old="x = 1", new="x = 11")
    with ScriptedServer([calls(edit), answer(say("Edited."))]) as server:
        terminal = converse(server, "--yes")
        terminal.say("go")
        terminal.wait_for("Edited.")
        terminal.wait_idle()
        shown = [row for row in terminal.screen if re.match(r"  \d [-+ ]", row)]
        assert shown == ["  1 - x = 1", "  1 + x = 11", "  2   kept = 2"]
        terminal.say("/export out.md")
        terminal.wait_for("Wrote out.md")
        terminal.say("/export out.html")
        terminal.wait_for("Wrote out.html")
        terminal.say("/quit")
        assert terminal.end() == 0
        Path("a.py").unlink()
        again = start("--continue", "-m", "openai-compatible/thinker", "--base-url", server.url)
        again.wait_for("Resumed session")
        assert [row for row in again.screen if re.match(r"  \d [-+ ]", row)] == shown
    assert "```diff\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-x = 1\n+x = 11\n" in (
        Path("out.md").read_text()
    )
    assert '<span class="added">+x = 11</span>' in Path("out.html").read_text()


def test_nothing_stands_twice_after_ten_resizes_themes_and_views(converse):
    text = "\n\n".join(f"para-{n:02} with a few words in it" for n in range(20))
    with ScriptedServer([answer(think("deep-thought here"), say(text))] * 2) as server:
        terminal = converse(server, rows=24)
        ask(terminal, "first", "para-19")
        for columns in (80, 70, 60, 50, 60, 70, 80, 90, 100, 90):
            drawn = terminal.raw.count(DRAWN)
            terminal.resize(columns, 24)
            terminal.wait_for(lambda t, drawn=drawn: t.raw.count(DRAWN) > drawn)
        terminal.say("/theme light")
        terminal.wait_for("Theme: light.")
        terminal.say("/view full")
        terminal.wait_for("Thinking is shown in full.")
        terminal.press("c-l")
        terminal.type("end")
        terminal.wait_for("❯ end")
        words = [f"para-{n:02}" for n in range(20)]
        assert counts(terminal, *words) == dict.fromkeys(words, 1)
        assert terminal.everything.count("deep-thought here") == 1
        assert terminal.everything.count("openai-compatible/thinker ·") == 1


NOISE = "\x1b[3;9H\x1b[41mNOISE\x1b[2;5r\x1b(0NOISE\x1b[?6h\r\nNOISE\r\n"
"""Colours, another set of characters, a part of the window that scrolls, and the cursor there."""


@pytest.mark.parametrize("rows", [20, 40])
def test_a_redraw_mends_what_another_program_has_written(converse, rows):
    words = [f"para-{n:02}" for n in range(9)]
    with ScriptedServer([answer(think("deep"), say("\n\n".join(words)))] * 2) as server:
        terminal = converse(server, rows=rows)
        ask(terminal, "first", words[-1])
        terminal.type("half a question")
        terminal.wait_for("❯ half a question")
        before = terminal.text
        terminal.scribble(NOISE)
        terminal.wait_for("NOISE")
        terminal.press("c-l")
        terminal.wait_gone("NOISE")
        terminal.wait_for("❯ half a question")
        assert terminal.text == before
        assert terminal.cell(words[-1]).bg == "default"
        terminal.press("enter")
        terminal.wait_for(lambda t: t.everything.count(words[-1]) > 1)
        terminal.wait_idle()
        if rows == 20:  # the screen was full: nothing of it was written twice
            assert counts(terminal, *words) == dict.fromkeys(words, 2)


def test_a_redraw_keeps_what_is_above_mull_on_the_screen(converse):
    with ScriptedServer([answer(say("Answer."))]) as server:
        terminal = converse(server, rows=30)
        terminal.scribble("\x1b7\x1b[20;1Hsomebody else\x1b8")
        terminal.wait_for("somebody else")
        terminal.press("c-l")
        terminal.wait_gone("somebody else")
        assert "somebody else" in "\n".join(terminal.history)


def test_undo_takes_the_turn_off_the_screen_where_it_is_whole_there(converse):
    with ScriptedServer([answer(say("Answer one.")), answer(say("Answer two."))]) as server:
        terminal = converse(server)
        ask(terminal, "first question", "Answer one.")
        ask(terminal, "second question", "Answer two.")
        terminal.say("/undo")
        terminal.wait_for("Undid the last turn")
        terminal.wait_gone("Answer two.")
        assert "Answer one." in terminal.text
        assert counts(terminal, "first question", "Answer one.") == {
            "first question": 1, "Answer one.": 1,
        }  # fmt: skip


def test_little_is_sent_to_a_terminal_that_has_not_taken_the_last_drawing(converse):
    go, text = Gate(), "\n\n".join(f"para-{n:04} " + "word " * 20 for n in range(2000))
    with ScriptedServer([answer(say("Begin.\n\n"), go, say(text), STALL)]) as server:
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for("Begin.")
        terminal.answers_cursor = False
        before = len(terminal.raw)
        go.open()
        terminal.wait_for("para-")
        terminal.type("typed")
        terminal.wait_for("typed")
        terminal.press("esc")
        assert len(terminal.raw) - before < 100_000  # of more than 200,000
        terminal.answers_cursor = True
        terminal.type("\x1b[1;1R")
        terminal.wait_for("Interrupted")
