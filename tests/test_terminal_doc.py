"""docs/terminal.md: its conversations can be held, and it names only what there is."""

import re
from pathlib import Path

from mull.client.access import Access
from mull.tui.commands.table import COMMANDS
from mull.tui.conversation.thought import MODES
from mull.tui.screen.keys import KEYS
from mull.tui.screen.theme import THEMES
from page_examples import run_page

PAGE = Path(__file__).parents[1] / "docs/terminal.md"
TEXT = PAGE.read_text()


def test_every_example_prints_what_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mull.agent.engine._embedded_way", lambda: Access("http://127.0.0.1:9"))
    assert run_page(PAGE, monkeypatch, capsys) == 3


def test_it_names_only_commands_and_keys_that_there_are():
    commands = {command.name for command in COMMANDS} | {"mo", "review", "git"}  # by way of example
    assert set(re.findall(r"`/([a-z]+)", TEXT)) <= commands
    pressed = re.compile(r"\b(?:Ctrl|Alt|Shift)-\w+")
    keys = {name for key in KEYS for name in pressed.findall(f"{key.shown} {key.line}")}
    assert set(pressed.findall(TEXT)) <= {*keys, "Ctrl-F"}  # that one is the picker's


def test_it_names_every_theme_and_every_view():
    assert {name for name in (*THEMES, *MODES) if f"`{name}`" not in TEXT} == set()
