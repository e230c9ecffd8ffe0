"""A model that speaks very fast: keys are still answered, and nothing of it is lost."""

from __future__ import annotations

import pytest

from mull.testing.server import Reply, ScriptedServer
from tui.scripts import chunk, say, think

PATIENCE = 500


def words(count):
    """So many characters, in paragraphs of numbered lines."""
    text, number = "", 0
    while len(text) < count:
        text += f"line {number} of it\n\n"
        number += 1
    return text


def pour(text, piece):
    """The text in single characters, as fast as they can be sent."""
    steps = b"".join(Reply.events(*map(piece, text)).steps)
    return Reply.events(steps, say("\n\nEND."), chunk("stop"), "[DONE]")


def check_whole(terminal, text):
    terminal.wait_for("END.", PATIENCE)
    terminal.wait_idle()
    lines = [row.strip() for row in terminal.everything.splitlines() if " of it" in row]
    assert lines == [line for line in text.splitlines() if line]


def test_five_thousand_pieces_are_all_there(converse):
    text = words(5_000)
    with ScriptedServer([pour(text, say)]) as server:
        terminal = converse(server, rows=20, columns=60)
        terminal.say("pour")
        check_whole(terminal, text)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("piece", [say, think], ids=["text", "thought"])
def test_a_key_is_echoed_while_two_hundred_thousand_pieces_pour_in(converse, piece):
    text = words(200_000)
    with ScriptedServer([pour(text, piece)]) as server:
        terminal = converse(server, "--view", "full", rows=20, columns=60)
        terminal.say("pour")
        terminal.wait_for(lambda t: b"line 1 of it" in t.raw, PATIENCE)
        terminal.type("typed meanwhile")
        terminal.wait_for("❯ typed meanwhile", PATIENCE)
        assert b"END." not in terminal.raw
        check_whole(terminal, text)
        assert "❯ typed meanwhile" in terminal.screen
