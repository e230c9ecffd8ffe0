"""A model that speaks very fast: keys are still answered, and nothing of it is lost."""

from __future__ import annotations

import pytest

from mull.testing.server import Pause, Reply, ScriptedServer
from tui import terminal
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


def check_whole(terminal, text, patience=terminal.PATIENCE):
    terminal.wait_for("END.", patience)
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
        check_whole(terminal, text, PATIENCE)
        assert "❯ typed meanwhile" in terminal.screen


def test_a_line_that_the_terminal_draws_wider_leaves_the_prompt_where_it_is(converse):
    """A skin tone is drawn apart here, so that lines wrap which fit as mull measures them."""
    lines = [f"line {number} {'👍🏽 ' * (number % 14)}end{number}\n\n" for number in range(24)]
    text = "".join(lines)
    pieces = [say(text[at : at + 12]) for at in range(0, len(text), 12)]
    steps = [step for piece in pieces for step in (piece, Pause(0.03))]
    replies = [Reply.events(*steps, say("END."), chunk("stop"), "[DONE]")]
    with ScriptedServer(replies) as server:
        terminal = converse(server, rows=20, columns=60)
        terminal.say("wave")
        terminal.wait_for("end1")
        terminal.type("a draft")
        terminal.wait_for("END.")
        terminal.wait_idle()
        terminal.wait_for("❯ a draft")
        flat = terminal.everything.replace("\n", "")
        assert all(f"end{number}" in flat for number in range(24))
