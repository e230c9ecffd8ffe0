"""A misspelt level is told with the levels of its model, wherever the model is named."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

import mull
from mull.agent.engine import Engine
from mull.cli.main import main
from mull.neutral.errors import UnknownModel

LEVELS = {
    "claude-sonnet-4-5/hihg": "none, minimal, low, medium or high, or a number of tokens",
    "anthropic/claude-opus-4-6/hgih": "none, low, medium, high or max, or a number of tokens",
    "o3/hihg": "low, medium or high",
    "gpt-5/medum": "minimal, low, medium or high",
    "google/gemini-3-pro/lwo": "low or high",
    "glm-4.7/hihg": "none or high",
    "local/smollm2/hihg": "none, minimal, low, medium or high, or a number of tokens",
    "qwen/qwen3-max/hihg": "none, minimal, low, medium, high, xhigh or max, or a number of tokens",
    "acme/thinker-1/hihg": "none, low, medium or high",
}
ACME = """
[providers.acme]
base_url = "https://llm.acme.example/v1"
[models."acme/thinker-1"]
reasoning = true
reasoning_options = [{ type = "toggle" }, { type = "effort", values = ["low", "medium", "high"] }]
[[compat]]
match = { provider = "acme" }
set = { thinkingWriter = "thinking-type" }
"""


@pytest.fixture
def config(monkeypatch):
    """Puts lines before the rest of the config file."""
    folder = Path(os.environ["MULL_CONFIG_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def config(first=""):
        (folder / "config.toml").write_text(first + ACME)
        return folder

    config()
    return config


def refusal(name):
    model, _, word = name.rpartition("/")
    return f"{model} has no level {word!r}: use {LEVELS[name]}"


def by_option(name, config, monkeypatch):
    return ["-m", name]


def by_variable(name, config, monkeypatch):
    monkeypatch.setenv("MULL_MODEL", name)
    return []


def by_config(name, config, monkeypatch):
    config(f'model = "{name}"\n')
    return []


def by_profile(name, config, monkeypatch):
    profiles = config() / "profiles"
    profiles.mkdir()
    (profiles / "work.json").write_text(f'{{"version": 1, "model": "{name}"}}')
    return ["--profile", "work"]


@pytest.mark.parametrize("by", [by_option, by_variable, by_config, by_profile])
@pytest.mark.parametrize("name", LEVELS)
def test_the_levels_are_named_wherever_the_model_is(name, by, config, monkeypatch, capsys):
    assert main(["ask", *by(name, config, monkeypatch), "hello"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"mull: {refusal(name)}\n"


@pytest.mark.parametrize("command", ["settings", "profile save x"])
def test_other_commands_say_the_same(command, config, capsys):
    assert main([*command.split(), "-m", "o3/hihg"]) == 2
    assert capsys.readouterr().err == f"mull: {refusal('o3/hihg')}\n"


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("name", LEVELS)
def test_the_library_says_the_same(name):
    engine = Engine()
    with pytest.raises(UnknownModel) as caught:
        mull.Conversation(name, engine=engine)
    assert str(caught.value) == refusal(name)
    model, _, _ = name.rpartition("/")
    assert all(one.startswith(f"{model}/") for one in caught.value.candidates)


@pytest.mark.usefixtures("config")
@pytest.mark.parametrize("name", ["gpt-4o/hihg", "kimi-k2-thinking/hihg"])
def test_a_model_without_levels_is_told_as_such(name, capsys):
    assert main(["ask", "-m", name, "hello"]) == 2
    model, _, word = name.rpartition("/")
    told = f"mull: {word!r} is not a level, and {model} has none to choose from\n"
    assert capsys.readouterr().err == told
