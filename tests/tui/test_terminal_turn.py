"""A turn at the real terminal: the thought while it comes, folded, shown and hidden, and again."""

from __future__ import annotations

import re

import pytest

from mull.store.sessions.sqlite import open_sessions
from mull.testing.script import Call, Say, Think
from mull.testing.server import STALL, Gate, ScriptedServer
from mull.testing.strict import StrictServer
from tui.scripts import answer, call, calls, say, think

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 1300,
    "total_tokens": 1320,
    "completion_tokens_details": {"reasoning_tokens": 1240},
}
LIVE = re.compile(r"Thinking… \d+ s · ~\d+ tokens")

pytestmark = pytest.mark.slow


def in_order(text, *words):
    at = [text.find(word) for word in words]
    return -1 not in at and at == sorted(at)


def test_a_thought_is_live_then_folds_and_the_view_can_be_changed(converse):
    thinking, answering = Gate(), Gate()
    first = answer(
        think("First the options.\n"), think("Now I weigh them."), thinking,
        say("It is **forty-two**."), answering, usage=USAGE,
    )  # fmt: skip
    second = answer(think("Again a thought."), say("As before."))
    with ScriptedServer([first, second]) as server:
        terminal = converse(server)
        terminal.say("what is it?")
        terminal.wait_for(LIVE)
        terminal.wait_for("Now I weigh them.")
        assert terminal.cell("Now I weigh").italics
        assert "First the options." in terminal.text
        thinking.open()
        terminal.wait_for("It is forty-two.")
        assert "Thinking…" not in terminal.text
        assert "First the options." not in terminal.text
        assert re.search(r"Thought for [\d.]+ s · ~\d+ tokens · Now I weigh them\.", terminal.text)
        assert terminal.cell("forty-two").bold
        answering.open()
        terminal.wait_idle()
        terminal.say("/view hidden")
        terminal.wait_for("thoughts: hidden")
        terminal.wait_for(lambda t: "It is forty-two." in t.text and "Thought for" not in t.text)
        assert "weigh" not in terminal.text
        terminal.say("and now?")
        terminal.wait_for("As before.")
        assert "Again a thought" not in terminal.everything
        terminal.wait_idle()
        terminal.say("/view full")  # those that are on the screen too
        terminal.wait_for("Again a thought.")
        terminal.wait_for(re.compile(r"Thought for [\d.]+ s · 1,240 tokens"))
        said = ("what is it?", "First the options.", "Now I weigh them.", "It is forty-two.")
        assert in_order(terminal.text, *said, "and now?", "Again a thought.", "As before.")
        terminal.say("/view preview")
        terminal.wait_for("thoughts: preview")
        terminal.wait_gone("First the options.")


def test_r02_views_change_in_the_middle_of_a_thought_too(converse):
    first, second = Gate(), Gate()
    reply = answer(think("The early part, "), first, think("the late part."), second, say("Done."))
    with ScriptedServer([reply]) as server:
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for("The early part,")
        terminal.say("/view hidden")
        terminal.wait_gone("The early part,")
        terminal.wait_for("· Esc interrupts")  # hidden, yet not dead
        assert "Thinking…" not in terminal.text
        first.open()
        terminal.say("/view full")
        terminal.wait_for("The early part, the late part.")
        second.open()
        terminal.wait_for("Done.")
        terminal.wait_idle()
        assert terminal.text.count("The early part, the late part.") == 1
        assert terminal.text.count("Thought for") == 1


def bodies_when(converse, view):
    replies = [answer(think("Hm, a thought."), say("One.")), answer(say("Two."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server, "--view", view)
        terminal.say("first")
        terminal.wait_for("One.")
        terminal.wait_idle()
        if view == "hidden":
            assert "thought" not in terminal.text.replace("thoughts: hidden", "").replace(
                "opens the thinking", ""
            )
            assert "Thought for" not in terminal.text
        terminal.say("second")
        terminal.wait_for("Two.")
        return [request.body for request in server.requests]


def test_r02_what_is_sent_does_not_depend_on_the_view(converse):
    shown, hidden = bodies_when(converse, "full"), bodies_when(converse, "hidden")
    assert len(shown) == 2
    assert shown == hidden
    assert b"Hm, a thought." in shown[1] or b"reasoning" not in shown[1]


def test_r01_thoughts_and_text_stay_in_the_order_of_the_wire_live_and_after_reload(converse, start):
    interleaved = calls(
        think("thought one"), say("text one"), think("thought two"), call("list", path=".")
    )
    ending = Gate()
    last = answer(think("thought three"), say("text two"), ending)
    parts = (
        "❯ go",
        "thought one",
        "text one",
        "thought two",
        "● list",
        "thought three",
        "text two",
    )
    with ScriptedServer([interleaved, last]) as server:
        terminal = converse(server, "--view", "full")
        terminal.say("go")
        terminal.wait_for("text two")
        assert in_order(terminal.text, *parts)
        assert "Thinking…" not in terminal.text
        ending.open()
        terminal.wait_idle()
        terminal.press("c-d")
        assert terminal.end() == 0
        again = start("--continue", "--view", "full")
        again.wait_for("Resumed session")
        assert in_order(again.text, *parts)
        assert again.text.count("thought one") == 1


def test_r03_blank_thoughts_draw_nothing(converse):
    tagged = answer(say("<think>\n\n</think>\n\nHi there"))
    blank = answer(think(" \n"), say("Hello again"))
    with ScriptedServer([tagged, blank]) as server:
        terminal = converse(server)
        terminal.say("one")
        terminal.wait_for("Hi there")
        terminal.wait_idle()
        terminal.say("two")
        terminal.wait_for("Hello again")
        terminal.wait_idle()
        assert "Thought" not in terminal.text
        assert "think>" not in terminal.text
        rows = terminal.screen
        assert rows[rows.index("❯ one") + 2] == "Hi there"
        assert rows[rows.index("❯ two") + 2] == "Hello again"


def is_journaled():
    """Whether what has come of the last answer is on disk."""
    store = open_sessions()
    try:
        return any(store.news(info.id, info.records)[1] for info in store.list())
    finally:
        store.close()


def test_a_thought_that_a_kill_cut_short_is_there_when_the_session_goes_on(converse, start):
    with ScriptedServer(
        [answer(think("I was just about to"), STALL), answer(say("Fine."))]
    ) as server:
        terminal = converse(server)
        terminal.say("slow question")
        terminal.wait_for("I was just about to")
        terminal.wait_for(lambda _: is_journaled())
        terminal.process.kill()
        terminal.process.wait()
        again = start("--continue", "--view", "full")
        again.wait_for(
            re.compile(r"ended in the middle of an answer,\s+and what had arrived\s+is kept")
        )
        assert in_order(again.text, "slow question", "I was just about to", "is kept.")
        again.say("go on")
        again.wait_for("Fine.")
        assert server.requests[-1].json["messages"][-1]["content"] == "go on"


def test_what_the_model_sends_cannot_command_the_terminal(converse):
    nasty = "\x1b]2;owned\x07\x1b[2Jred\x1b[31m \x9b5A bell\x07 \u202eevil 日本語 🎉 שלום |end"
    with ScriptedServer([answer(think(f"t {nasty}"), say(nasty))]) as server:
        terminal = converse(server, "--view", "full", "--set", "terminal.title=false")
        before = len(terminal.raw)
        terminal.say("try me")
        terminal.wait_for(lambda t: t.text.count("|end") == 2)
        terminal.wait_idle()
        raw = terminal.raw[before:]
        assert b"\x1b]2;" not in raw
        assert b"\x07" not in raw
        assert b"\xc2\x9b" not in raw
        assert "\u202e".encode() not in raw
        assert terminal.text.count("␛[2Jred␛[31m") == 2
        assert terminal.cell("red␛[31m").fg == "default"
        assert "日 本 語" in terminal.text or "日本語" in terminal.text
        assert "❯ try me" in terminal.screen


@pytest.mark.slow
def test_the_label_of_an_answer_without_text_ends_with_it(converse):
    empty = answer(think("only this"), finish="stop")
    with ScriptedServer([empty, empty]) as server:  # it is asked for again once
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for(re.compile("no answer", re.IGNORECASE))
        assert "Thinking…" not in terminal.text


def test_a_strict_provider_gets_its_signatures_back_whatever_is_shown(converse):
    script = [[Think("I must look."), Call("list", {"path": "."})], [Say("Nothing there.")]]
    with StrictServer("anthropic", script) as server:
        terminal = converse(
            server,
            "--view",
            "hidden",
            model="anthropic/claude-sonnet-4-5/high",
            env={"ANTHROPIC_API_KEY": "sk-ant-not-real"},
        )
        terminal.say("look around")
        terminal.wait_for("Nothing there.")
        assert "I must look." not in terminal.everything
        assert server.refusals == []
        assert server.issued
        assert server.returned[1] == server.issued[:1]
        assert "sk-ant-not-real" not in terminal.raw.decode()
