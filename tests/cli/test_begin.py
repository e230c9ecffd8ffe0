"""`mull` with a question, misspelt, and asked for help."""

from __future__ import annotations

import pytest

from mull.cli.main import main
from mull.testing.server import ScriptedServer
from tui.scripts import answer, say
from tui.terminal import Terminal


@pytest.fixture
def start(monkeypatch, tmp_path):
    started = []
    monkeypatch.chdir(tmp_path)

    def start(*words):
        started.append(Terminal(*words))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.mark.parametrize("words", [["why is the sky blue"], ["why", "is", "the", "sky", "blue"]])
@pytest.mark.parametrize("first", [True, False])
def test_a_question_begins_a_conversation(start, words, first):
    with ScriptedServer([answer(say("It scatters."))]) as server:
        place = ["-m", "openai-compatible/m", "--base-url", server.url, "--tools", "none"]
        terminal = start(*([*words, *place] if first else [*place, *words]))
        terminal.wait_for("It scatters.")
        terminal.wait_for("❯ why is the sky blue")
        assert server.requests[0].json["messages"][-1]["content"] == "why is the sky blue"


@pytest.mark.parametrize("words", [["modles"], ["sesions", "list"]])
def test_a_misspelt_command_is_no_question(capsys, words):
    assert main(words) == 2
    err = capsys.readouterr().err
    assert f"unknown command '{words[0]}': did you mean" in err
    assert f'`mull chat "{" ".join(words)}"`' in err


def test_a_question_without_a_terminal_is_for_ask(capsys, monkeypatch):
    assert main(["what is this"]) == 2
    assert '`mull ask "what is this"`' in capsys.readouterr().err


def test_help_has_the_commands_and_the_options_of_the_conversation(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    for word in (
        "QUESTION",
        "--model MODEL",
        "-c, --continue",
        "--tools",
        "--plain",
        "  sessions  ",
    ):
        assert word in out
    assert out.index("  ask  ") < out.index("options:")


@pytest.mark.parametrize("command", ["keys", "sessions", "local"])
def test_what_there_is_is_shown_without_a_word(capsys, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([command]) in (0, 1)
    assert capsys.readouterr().out
