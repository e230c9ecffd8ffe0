"""What a client's name for a model means."""

from __future__ import annotations

import pytest

from growth import ends
from mull.agent.engine import Engine
from mull.gateway.names import Meant, Names
from mull.gateway.routes import Routes
from mull.neutral.errors import UnknownModel
from mull.store.serve import ServeConfig, ServedModel

HIGH = {"reasoning.effort": "high"}
MODELS = {
    "kimi": ServedModel("moonshotai/kimi-k2.5", aliases=("gpt-5", "gemini-3*-pro-preview")),
    "claude-*": ServedModel("moonshotai/kimi-k2.5"),
    "claude-opus-*": ServedModel("moonshotai/kimi-k2.5"),
    "qwen3/low": ServedModel("moonshotai/kimi-k2.5"),
}


@pytest.mark.parametrize(
    ("wanted", "name", "asked"),
    [
        ("kimi", "kimi", {}),
        ("kimi/high", "kimi", HIGH),
        ("kimi:high", "kimi", HIGH),
        ("kimi:HIGH", "kimi", HIGH),
        ("kimi/4096", "kimi", {"reasoning.maxTokens": 4096}),
        ("gpt-5", "kimi", {}),
        ("gpt-5/high", "kimi", HIGH),
        ("gemini-3.1-pro-preview", "kimi", {}),
        ("claude-sonnet-4-5", "claude-*", {}),
        ("claude-sonnet-4-5/high", "claude-*", HIGH),
        ("claude-opus-4-1", "claude-opus-*", {}),
        ("claude-opus-4-1:8b", "claude-opus-*", {}),
        ("qwen3/low", "qwen3/low", {}),
        ("kimi/0", None, {}),
        ("kimi:8b", None, {}),
        ("kimi/", None, {}),
        ("Kimi", None, {}),
        (":high", None, {}),
        ("", None, {}),
    ],
)
def test_what_is_meant(wanted, name, asked):
    assert Names(MODELS).find(wanted) == (Meant(name, asked) if name else None)


def test_patterns_and_aliases_are_not_listed():
    assert Names(MODELS).listed() == ["kimi", "qwen3/low"]


def test_a_hostile_name_takes_no_time():
    names = Names({"a*a*a*a*a*b": ServedModel("x/y")})
    with ends():
        assert names.find("a" * 1_000_000) is None
        assert names.find("a" * 1_000_000 + "b") == Meant("a*a*a*a*a*b")


def routes(only=None, **config):
    models = {
        name: ServedModel("moonshotai/kimi-k2.5", base_url="http://127.0.0.1:9")
        for name in config.pop("names", ())
    }
    return Routes(Engine(isolated=True), ServeConfig(models=models, **config), only)


def test_names_that_clients_make_up_are_not_kept_without_end():
    found = routes(names=["m"], default="m")
    for number in range(3_000):
        assert found.find(f"made-up-{number}").target.model == "kimi-k2.5"
    assert len(found._known) == 1


def test_a_name_that_clients_make_up_is_not_kept_if_it_is_long():
    found = routes()
    found.find("ollama/made-up")
    with pytest.raises(UnknownModel, match="more than 500 characters"):
        found.find(f"ollama/{'x' * 1_000}")
    assert list(found._known) == ["ollama/made-up"]


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(UnknownModel, match='no model named "x" is served here: use m or n'):
        routes(names=["m", "n"]).find("x")


def test_a_level_in_an_unknown_name_holds_for_the_default():
    assert routes(names=["m"], default="m").offer("whatever/high").asked == HIGH
    assert routes(names=["m"], default="m").offer("whatever").asked == {}
