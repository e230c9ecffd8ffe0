"""`/undo` and `/redo` at the real terminal: conversation and files go together."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mull.testing.server import STALL, ScriptedServer
from tui.scripts import answer, call, calls, say

pytestmark = pytest.mark.slow


def test_undo_puts_files_back_also_after_the_session_was_left(converse, start):
    subprocess.run(("git", "init", "-q"), check=True)
    Path("notes.txt").write_text("old line\nkept line\n")
    Path("other.txt").write_text("theirs\n")
    replies = [
        calls(call("edit", path="notes.txt", old="old line", new="NEW LINE")),
        answer(say("Edited.")),
        calls(call("run", command="echo made > made.txt; echo more >> other.txt")),
        answer(say("Ran it.")),
        answer(say("After redo.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server, "--mode", "ask")
        terminal.say("edit")
        terminal.choose(1)
        terminal.wait_for("Edited.")
        terminal.wait_idle()
        terminal.say("make")
        terminal.choose(1)
        terminal.wait_for("Ran it.")
        terminal.wait_idle()
        terminal.say("/quit")
        assert terminal.end() == 0
        Path("other.txt").write_text("changed by a person\n")

        last = terminal.text.splitlines()[-1]
        again = start(*last.split("mull ")[1].split())
        again.wait_for("Resumed session")
        again.say("/undo 2")
        again.wait_for("notes.txt +1 −1")
        again.wait_for("made.txt +0 −1")
        again.wait_for("other.txt was left unchanged: a command or another program has")
        assert Path("notes.txt").read_text() == "old line\nkept line\n"
        assert not Path("made.txt").exists()
        assert Path("other.txt").read_text() == "changed by a person\n"
        again.wait_for("❯ edit")
        again.press("c-c")
        again.wait_gone("❯ edit")
        again.say("/redo")
        again.wait_for("Restored what /undo removed.")
        again.wait_for("notes.txt +1 −1")
        assert Path("notes.txt").read_text() == "NEW LINE\nkept line\n"
        assert Path("made.txt").read_text() == "made\n"
        again.say("and now?")
        again.wait_for("After redo.")
        users = [m["content"] for m in server.requests[4].json["messages"] if m["role"] == "user"]
        assert users == ["edit", "make", "and now?"]
        again.wait_idle()
        again.say("/redo")
        again.wait_for("nothing to redo")


def test_what_a_stopped_command_printed_is_kept_for_the_person_and_the_model(converse):
    replies = [
        calls(call("run", command="touch a; echo first; echo second; sleep 600")),
        answer(say("I see.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.choose(1)
        terminal.wait_for(lambda t: "1. Yes" not in t.text and "second\n" in t.text)
        terminal.press("esc")
        terminal.wait_for("Interrupted")
        assert "second" in terminal.text
        terminal.say("what now?")
        terminal.wait_for("I see.")
        (result,) = (m for m in server.requests[1].json["messages"] if m["role"] == "tool")
        assert result["content"].endswith("Output up to that point:\nfirst\nsecond")


def test_undo_without_git_puts_back_what_a_command_changed(converse):
    replies = [calls(call("run", command="echo made > made.txt")), answer(say("Ran it."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server, "--yes")
        terminal.say("make")
        terminal.wait_for("Ran it.")
        terminal.wait_idle()
        terminal.say("/undo")
        terminal.wait_for("made.txt +0 −1")
        assert not Path("made.txt").exists()


def test_a_copy_is_called_one(converse):
    with ScriptedServer([answer(say("One."))]) as server:
        terminal = converse(server)
        terminal.say("a question")
        terminal.wait_for("One.")
        terminal.wait_idle()
        terminal.say("/fork")
        terminal.wait_for("This is a copy of a question; the original is unchanged.")


def test_compressing_shows_that_it_works_and_esc_says_that_nothing_changed(converse):
    long = " and so on" * 800
    replies = [
        answer(say(f"One.{long}")),
        answer(say("Two.")),
        answer(say("half a sum"), STALL),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        for question, text in (("first question", "so on"), ("second question", "Two.")):
            terminal.say(question)
            terminal.wait_for(text)
            terminal.wait_idle()
        terminal.say("/compress")
        terminal.wait_for("Compressing the conversation")
        terminal.press("esc")
        terminal.wait_for("Interrupted: nothing was compressed.")
