"""The table of commands: found by name, refused in good words, and told by /help."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from mull.neutral.errors import LocalError
from mull.tui.commands.table import COMMANDS, find_command, run_command
from mull.tui.screen.keys import KEYS
from tui.fronts import FakeFront, at_terminal, drive

SPECIFIED = (
    "model thinking set unset profile context compress sessions resume retry undo redo tools mcp"
    " export stats theme help quit new fork rename why view image keys login jobs copy"
).split()


def test_every_command_that_is_promised_is_there_once():
    assert sorted(command.name for command in COMMANDS) == sorted(SPECIFIED)
    names = [name for command in COMMANDS for name in (command.name, *command.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("typed", "name"), [("exit", "quit"), ("clear", "new"), ("?", "help")])
def test_aliases_mean_their_command(typed, name):
    assert find_command(typed).name == name
    assert find_command(typed.upper()).name == name


def test_a_mistyped_command_is_told_the_nearest(talk):
    with pytest.raises(LocalError, match="did you mean /thinking"):
        drive(talk, "/thinkng")
    with pytest.raises(LocalError, match="/help lists them"):
        drive(talk, "/zzzz")
    with pytest.raises(LocalError, match="start with a space"):
        drive(talk, "/usr/bin/python is missing")


def test_commands_that_change_the_turn_wait_for_the_model(talk):
    talk.busy = True
    for command in COMMANDS:
        if not command.while_busy:
            with pytest.raises(
                LocalError, match=f"/{command.name} cannot run while the model works"
            ):
                drive(talk, f"/{command.name}")
    assert "Commands" in drive(talk, "/help")
    assert talk.done == []


def test_a_command_that_begins_while_nothing_goes_on_is_not_stopped_by_itself(talk):
    """The conversation counts a running command as work."""
    started = run_command(talk, "retry")
    talk.busy = True
    asyncio.run(started)
    assert talk.done == ["retry"]


def test_help_names_every_command_and_every_key(talk):
    text = drive(talk, "/help")
    for command in COMMANDS:
        assert f"  /{command.name} " in text
    for key in KEYS:
        assert key.shown in text


def test_help_of_one_command_shows_its_forms(talk):
    text = drive(talk, "/help /thinking")
    for form, _ in find_command("thinking").forms:
        assert form in text
    assert "also /exit" in drive(talk, "/help quit")
    with pytest.raises(LocalError, match="did you mean /export"):
        drive(talk, "/help exprt")


def test_quit_leaves(talk):
    drive(talk, "/quit")
    assert talk.front.left


@pytest.mark.parametrize("width", [40, 60, 200])
def test_no_command_shows_a_line_that_is_too_wide(tmp_path, width):
    with at_terminal(tmp_path, front=FakeFront(width)) as talk:
        talk.front.picks = [None] * 10
        for command in COMMANDS:
            words = {"unset": "reasoning.effort", "set": "reasoning.effort high"}
            with suppress(LocalError):  # what cannot be done here is told by an error
                drive(talk, f"/{command.name} {words.get(command.name, '')}")


def test_a_stray_word_is_not_ignored(talk):
    for name in ("context", "stats", "new", "retry", "redo"):
        with pytest.raises(LocalError, match="takes no arguments"):
            drive(talk, f"/{name} x")
    with pytest.raises(LocalError, match="the number of turns"):
        drive(talk, "/undo x")
    with pytest.raises(LocalError, match="missing closing quotation mark"):
        drive(talk, '/model "x')
