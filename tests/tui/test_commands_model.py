"""/model and /thinking: what is said is what is sent."""

from __future__ import annotations

import asyncio
import re

import pytest

from mull.neutral.errors import BudgetError, CatalogError, LocalError, SettingError
from mull.policy.thinking.levels import next_level
from mull.settings.layers import Settings
from mull.store.keys import Keys
from mull.testing.server import Reply
from mull.tui.commands.thinking import cycle_level
from mull.tui.screen.picker import matching
from tui.fronts import answer, at_terminal, drive

HOW = {"elsewhere": True}
DOCUMENT_004 = {
    "claude-sonnet-4-5/med": """\
✓ Switched to Anthropic claude-sonnet-4-5
  Thinking: medium (43,008 tokens)""",
    "gemini-2.5-pro/high": """\
✓ Switched to Google gemini-2.5-pro
  Thinking: high (32,768 tokens)""",
    "gemini-3-pro/none": """\
✓ Switched to Google gemini-3-pro-preview
  ⚠ This model does not support disabling thinking
  Thinking: LOW level (minimum)
  · 'gemini-3-pro' is taken as gemini-3-pro-preview""",
    "o3/med": """\
✓ Switched to OpenAI o3 (Responses API)
  Thinking: medium effort (~50% of output budget)
  Recommended output buffer: 25,000 tokens""",
}

PRESET = "· This model makes use of its earlier thinking; a preset sends it (see /set)"


@pytest.mark.parametrize("name", DOCUMENT_004)
def test_document_004_the_lines_after_a_switch(tmp_path, monkeypatch, name):
    for provider in ("ANTHROPIC", "GEMINI", "OPENAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", "k" * 24)
    with at_terminal(tmp_path, elsewhere=True) as talk:
        said = drive(talk, f"/model {name}")
    assert said.removeprefix(DOCUMENT_004[name]).split() == PRESET.split()


def test_the_next_request_goes_to_the_model_that_was_named(tmp_path):
    with at_terminal(tmp_path, answer("yes")) as talk:
        drive(talk, "/model zai/glm-4.5/high")

        async def ask():
            try:
                await talk.say("hello")
            finally:
                await talk.session.engine.close()

        asyncio.run(ask())
        body = talk.server.requests[0].json
        assert body["model"] == "glm-4.5"
        assert body["thinking"]["type"] == "enabled"
    assert talk.session.store.info(talk.session.info.id).model == "zai/glm-4.5/high"


def test_a_budget_behind_the_model_goes_before_its_level(talk):
    text = drive(talk, "/model claude-sonnet-4-5/med --thinking-budget=50000")
    assert "\n  Thinking: 50,000 tokens\n" in text
    assert talk.session.prepared().request.thinking.budget == 50_000


@pytest.mark.parametrize(
    ("typed", "error", "words"),
    [
        ("/model claude-sonnet-4-5 --thinking-budget=99999999", BudgetError, "64,000"),
        ("/model claude-sonnet-4-5 --thinking-budget=few", SettingError, "whole number"),
        ("/model no-such-model-here", CatalogError, "no-such-model-here"),
        ("/model one two", LocalError, "too many arguments"),
        ("/model --fast", LocalError, "unknown option"),
        ("/model x --thinking-budget", LocalError, "needs a value"),
    ],
)
def test_what_cannot_be_switched_to_changes_nothing(talk, typed, error, words):
    before = talk.session.info, talk.session.target, dict(talk.session.snapshot().items())
    with pytest.raises(error, match=words):
        drive(talk, typed)
    assert (talk.session.info, talk.session.target, dict(talk.session.snapshot().items())) == before
    assert talk.text == ""


def test_a_preset_and_a_missing_key_are_told_when_the_model_is_chosen(talk):
    text = drive(talk, "/model moonshotai/kimi-k2-thinking")
    assert "This model requires its thinking back, in reasoning_content" in " ".join(text.split())
    assert "MOONSHOT_API_KEY" in text


def test_a_bare_model_offers_those_with_a_key_first(tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-" + "a" * 24)
    with at_terminal(tmp_path) as talk:
        talk.front.picks = ["deepseek/deepseek-v4-pro"]
        text = drive(talk, "/model")
        title, items = talk.front.offered[0]
    assert title == "Which model?"
    names = [item.name for item in items if "recently used" not in item.about and not item.current]
    with_key = [name for name in names if name.startswith("deepseek/")]
    assert names[: len(with_key)] == with_key
    assert "anthropic/claude-sonnet-4-5" in names
    assert len(names) == len(set(names)) > 5000
    assert "key found" in items[1].about
    assert items[1].about.endswith("tokens")
    assert text.startswith("✓ Switched to DeepSeek deepseek-v4-pro")


def test_the_makers_model_is_found_by_what_people_type_and_favourites_are_on_top(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MOONSHOT_API_KEY", "sk-" + "a" * 24)
    with at_terminal(tmp_path) as talk:
        talk.front.picks = [None, None]
        drive(talk, "/model")
        _, items = talk.front.offered[0]
        assert talk.front.mark("groq/qwen/qwen3-32b")
        assert talk.front.mark("anthropic/claude-opus-4-0")
        drive(talk, "/model")
        _, again = talk.front.offered[1]
    assert matching(items, "kimi")[0].name == "moonshotai/kimi-k3"
    assert matching(items, "sonnet 4.5")[0].name == "anthropic/claude-sonnet-4-5"
    assert matching(items, "opus")[0].name == "anthropic/claude-opus-5-5"
    assert items[0].name == "zai/glm-4.7"  # used lately
    top = [(item.name, item.marked) for item in again[:3]]
    assert top == [
        ("groq/qwen/qwen3-32b", True),
        ("anthropic/claude-opus-4-0", True),
        ("zai/glm-4.7", False),
    ]


def test_a_model_without_a_key_asks_for_one_and_keeps_it(tmp_path):
    key = "sk-ant-" + "b" * 24
    with at_terminal(tmp_path, elsewhere=True) as talk:
        talk.session.engine.keys = Keys(tmp_path, {})
        talk.front.secrets = [key]
        text = drive(talk, "/model anthropic/claude-sonnet-4-5")
        assert talk.front.asked_for[0].startswith("Key for anthropic (hidden")
        assert "Stored the key for anthropic in" in text
        assert key not in text
        assert talk.session.engine.keys.stored() == {"anthropic": "file"}
        talk.front.secrets = [""]
        assert "No key entered" in drive(talk, "/model moonshotai/kimi-k3")
        assert "anthropic" in drive(talk, "/keys")
        assert key not in talk.text
        with pytest.raises(LocalError, match="/keys set PROVIDER asks"):
            drive(talk, f"/keys set openai {key}")
        assert "Deleted the key for anthropic" in drive(talk, "/keys delete anthropic")
        with pytest.raises(LocalError, match="has no login: store its key with /keys set openai"):
            drive(talk, "/login openai")
        assert "github-copilot" in drive(talk, "/login")


def test_picking_none_changes_nothing(talk):
    talk.front.picks = [None]
    assert drive(talk, "/model") == ""
    assert talk.session.target.name == "zai/glm-4.7"


def test_a_name_of_several_providers_is_asked_about_and_keeps_its_level(talk):
    talk.front.picks = ["groq/qwen/qwen3-32b"]
    text = drive(talk, "/model qwen/qwen3-32b/none")
    _, items = talk.front.offered[0]
    assert len(items) > 1
    assert text.startswith("✓ Switched to Groq qwen/qwen3-32b")
    assert talk.session.snapshot()["reasoning.effort"] == "none"


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("o3/hihg", "o3 has no level 'hihg': use low, medium or high"),
        ("qwen/qwen3-32b/nnoe", "qwen/qwen3-32b has no level 'nnoe': use none, minimal, low"),
        ("zai/glm-4.7/hihg", "zai/glm-4.7 has no level 'hihg': use none or high"),
    ],
)
def test_a_misspelt_level_is_told_with_the_levels_and_changes_nothing(talk, typed, told):
    before = talk.session.snapshot()
    with pytest.raises(LocalError, match=f"^{re.escape(told)}"):
        drive(talk, f"/model {typed}")
    assert talk.front.offered == []
    assert (talk.session.target.name, talk.session.snapshot()) == ("zai/glm-4.7", before)


# /thinking


def test_thinking_tells_what_the_next_request_asks_for_and_why(talk):
    text = drive(talk, "/model o3/med", "/thinking")
    assert (
        text
        == """\
Thinking: medium effort (~50% of output budget)
  asked for  medium (reasoning.effort, session)
  sent as    {"reasoning": {"effort": "medium", "summary":
             "auto"}}
  levels     low, medium, high
  shown      yes
  kept       Thinking is stored in full; earlier thinking is
             sent back (reasoning.includeInContext, preset)."""
    )


def test_effort_is_shown_set_and_taken_away(talk):
    drive(talk, "/model openai/gpt-5.1")
    assert drive(talk, "/thinking effort").startswith("reasoning.effort: unset (default)")
    assert drive(talk, "/thinking effort HIGH") == "  Thinking: high effort (~80% of output budget)"
    assert drive(talk, "/thinking effort").startswith("reasoning.effort: high (session)")
    assert "using high" in drive(talk, "/thinking effort max")
    drive(talk, "/thinking effort unset")
    assert talk.session.snapshot()["reasoning.effort"] is None


def test_a_bad_level_is_refused_with_what_is_allowed_and_changes_nothing(talk):
    drive(talk, "/thinking effort low")
    with pytest.raises(SettingError, match="none, minimal, low, medium, high, xhigh or max"):
        drive(talk, "/thinking effort extreme")
    assert talk.session.snapshot()["reasoning.effort"] == "low"


def test_off_and_on(talk):
    assert drive(talk, "/thinking off") == "  Thinking: off"
    assert talk.session.prepared().request.thinking.state == "off"
    drive(talk, "/thinking on")
    assert talk.session.snapshot()["reasoning.enabled"] is True


@pytest.mark.parametrize(
    ("model", "on"),
    [
        ("openai/gpt-5.2", "medium effort (~50% of output budget)"),
        ("google/gemini-2.5-flash-lite", "default (10,000 tokens)"),
        ("zai/glm-4.7", "on"),
        ("anthropic/claude-sonnet-4-5", "default (10,000 tokens)"),
    ],
)
def test_on_makes_a_model_think_whatever_the_session_chose_before(talk, model, on):
    for before in ("/thinking effort none", "/thinking off", f"/model {model}/none"):
        drive(talk, f"/model {model}", before)
        assert not talk.session.prepared().request.thinking.thinks
        assert drive(talk, "/thinking on") == f"  Thinking: {on}"
        assert talk.session.prepared().request.thinking.thinks
        drive(talk, "/unset reasoning.enabled", "/unset reasoning.effort")


def test_on_is_stronger_than_a_variable_that_says_none(tmp_path, monkeypatch):
    monkeypatch.setenv("REASONING_EFFORT", "none")
    with at_terminal(tmp_path, elsewhere=True) as talk:
        drive(talk, "/model openai/gpt-5.1")
        assert not talk.session.prepared().request.thinking.thinks
        assert "medium effort" in drive(talk, "/thinking on")
        assert "asked for  on (reasoning.enabled, session)" in drive(talk, "/thinking")


def test_what_a_refusal_taught_is_told_at_once(tmp_path):
    refusal = Reply.json({"error": {"message": "Unknown parameter: thinking"}}, 400)
    with at_terminal(tmp_path, refusal, answer("yes")) as talk:
        drive(talk, "/model zai/glm-4.5")
        assert drive(talk, "/thinking effort high").endswith("Thinking: on")

        async def ask():
            try:
                await talk.say("hello")
            finally:
                await talk.session.engine.close()

        asyncio.run(ask())
        text = drive(talk, "/thinking")
        assert "glm-4.5 accepts no thinking parameter here: high not sent" in " ".join(text.split())
        assert (
            next_level(talk.session.engine.learnt(talk.session.target), talk.session.snapshot())
            is None
        )


def test_the_key_goes_on_from_what_on_came_to(talk):
    assert "Thinking: high effort" in drive(talk, "/model mistral/zai-glm-latest")
    assert next_level(talk.session.target, talk.session.snapshot()) == "max"
    assert "Thinking: high effort" in drive(talk, "/thinking on")
    assert next_level(talk.session.target, talk.session.snapshot()) == "max"


def test_what_goes_before_the_effort_is_told(talk):
    drive(talk, "/model claude-sonnet-4-5/low")
    assert "The budget overrides the effort" in drive(talk, "/thinking budget 5000")
    assert "overrides effort and\n    budget: turn it on with /thinking on" in drive(
        talk, "/thinking off"
    )
    text = drive(talk, "/thinking on", "/thinking effort")
    assert "reasoning.maxTokens overrides it" in text
    assert "22,016" in drive(talk, "/thinking budget unset")


def test_a_budget_that_the_model_does_not_allow_is_refused_before_it_is_set(talk):
    drive(talk, "/model claude-sonnet-4-5")
    with pytest.raises(BudgetError, match="1,024"):
        drive(talk, "/thinking budget 10")
    assert talk.session.snapshot()["reasoning.maxTokens"] is None


@pytest.mark.parametrize("word", ["true", "false"])
def test_clear_means_what_the_variable_means(talk, word, monkeypatch):
    """Document 003: one meaning for `/thinking clear` and CLEAR_THINKING."""
    from mull.settings.environment import read_environment

    text = drive(talk, f"/thinking clear {word}")
    settings = Settings()
    for key, value in read_environment({"CLEAR_THINKING": word}).values.items():
        settings.set(key, value)
    said = settings.snapshot()
    for key in ("reasoning.stripFromContext", "reasoning.includeInContext"):
        if said.origin(key) == "session":
            assert talk.session.snapshot()[key] == said[key]
    assert ("not sent back" in " ".join(text.split())) == (word == "true")
    assert drive(talk, "/thinking clear") == text


def test_clear_takes_only_true_or_false(talk):
    with pytest.raises(SettingError, match="true leaves earlier thinking out"):
        drive(talk, "/thinking clear perhaps")
    with pytest.raises(LocalError, match="did you mean effort"):
        drive(talk, "/thinking efort high")
    with pytest.raises(LocalError, match="too many arguments"):
        drive(talk, "/thinking on now")


def test_the_key_goes_through_the_levels_that_the_model_has(talk):
    drive(talk, "/model openai/o3")
    seen = []
    for _ in range(4):
        cycle_level(talk)
        seen.append(talk.session.snapshot()["reasoning.effort"])
    assert seen == ["high", "low", "medium", "high"]
    assert "Thinking: high effort" in talk.text
    drive(talk, "/thinking budget 5000", "/thinking off")
    cycle_level(talk)
    snapshot = talk.session.snapshot()
    assert snapshot["reasoning.maxTokens"] is None
    assert snapshot["reasoning.enabled"] is True


def test_a_model_without_levels_says_so(talk):
    drive(talk, "/model openai/gpt-4o")
    cycle_level(talk)
    assert talk.text == "openai/gpt-4o has no levels to choose from"


@pytest.mark.parametrize("end", ["none", "4000"])
def test_a_name_and_a_budget_of_one_command_must_not_contradict_each_other(talk, end):
    before = talk.session.info
    with pytest.raises(SettingError, match="contradict each other"):
        drive(talk, f"/model zai/glm-4.5/{end} --thinking-budget=5000")
    assert talk.session.info == before
