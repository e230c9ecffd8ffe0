"""How rows are joined: weight, order, the model's own field, the user's last word."""

from __future__ import annotations

import pytest

from mull.catalog.compat import Row, dialect_of, join, read_rows
from mull.catalog.match import Subject
from mull.neutral.errors import ConfigError
from mull.neutral.target import Compat, Interleaved, ModelFacts

PLACE = Subject("moonshotai", "kimi-k2-thinking", "openai-chat", "https://api.moonshot.ai/v1")
FACTS = ModelFacts()
WANTS_BACK = ModelFacts(interleaved=Interleaved("reasoning_details"))


def rows(*given: dict) -> tuple[Row, ...]:
    return read_rows(given)


def out(name: str, **match) -> dict:
    return {"match": match, "set": {"reasoningOut": name}}


def test_no_rows_give_the_defaults():
    assert join((), PLACE, FACTS) == Compat()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([out("a"), out("b", dialect="openai-*")], "b"),
        ([out("b", model="kimi*"), out("a", dialect="openai-chat")], "b"),
        ([out("b", provider="moonshotai"), out("a", model="kimi*", dialect="*")], "b"),
        ([out("b", endpoint="https://api.moonshot.ai*"), out("a", provider="*", model="*")], "b"),
        ([out("a", provider="moon*"), out("b", provider="MOONSHOTAI")], "b"),
        ([out("b"), out("a", provider="else"), out("a", provider="moon*", model="glm*")], "b"),
        ([out("a"), out("b", provider=["x", "moonshot*"])], "b"),
        ([out("b"), out("a", endpoint="https://else*")], "b"),
    ],
)
def test_heavier_rows_win_and_among_equals_the_later(given, expected):
    assert join(rows(*given), PLACE, FACTS).reasoning_out == expected


def test_an_endpoint_row_outweighs_all_other_keys_together():
    heavy = out("b", endpoint="*moonshot*")
    light = out("a", provider="*", model="*", dialect="*")
    assert join(rows(heavy, light), PLACE, FACTS).reasoning_out == "b"


def test_rows_are_merged_key_by_key():
    merged = join(
        rows(
            {"match": {"provider": "moonshotai"}, "set": {"requiresReasoning": "tool_calls"}},
            {
                "set": {
                    "requiresReasoning": "all",
                    "missingReasoning": " ",
                    "tags": [["<a>", "</a>"]],
                }
            },
        ),
        PLACE,
        FACTS,
    )
    assert merged == Compat(
        requires_reasoning="tool_calls", missing_reasoning=" ", tags=(("<a>", "</a>"),)
    )


def test_the_models_own_field_holds_unless_a_row_names_one():
    assert join((), PLACE, WANTS_BACK).reasoning_out == "reasoning_details"
    assert join(rows(out("same")), PLACE, WANTS_BACK).reasoning_out == "same"
    assert join((), PLACE, ModelFacts(interleaved=True)).reasoning_out == "same"


def test_the_users_rows_and_then_the_requests_own_come_last():
    shipped = rows(out("a", endpoint="*", provider="*"))
    own = rows(out("b"))
    assert join(shipped, PLACE, WANTS_BACK, own).reasoning_out == "b"
    assert join(shipped, PLACE, WANTS_BACK, own, {"reasoningOut": "c"}).reasoning_out == "c"


def test_a_row_may_name_the_dialect():
    given = rows(
        {"match": {"provider": "moonshotai"}, "dialect": "anthropic"},
        {"match": {"model": "kimi*"}, "dialect": "gemini"},
        {"match": {"provider": "else"}, "dialect": "openai-responses"},
    )
    assert dialect_of(given, PLACE) == "anthropic"
    assert dialect_of((), PLACE) is None


def test_rows_that_were_read_are_taken_as_they_are():
    read = rows(out("a"))
    assert read_rows(read) == read


@pytest.mark.parametrize(
    ("once", "text"),
    [
        (
            {"reasoning_out": "x"},
            "compat: there is no key 'reasoning_out'.\nAllowed: reasoningIn, reasoningOut, "
            "requiresReasoning, missingReasoning, signedOnly, thinkingWriter, thinkingIsGuess, "
            "ignoresOff, budgetField, levelBudgets, zeroBudgetEnds, template, templateKey, "
            "keepThinking, tags, "
            "startsInReasoning, tagsAnywhere, cumulative, "
            "maxTokensField, omits, holds, eitherSampling, mostStops, hostedTools, namespaces, "
            "strictTools, "
            "systemRole, systemInside, streamUsage, thinkingNeedsStream, emptyContent, "
            "toolsNeedResponses, path, toolIdLength, resultMedia, assistantAfterResults, "
            "bindsThinking, readsThinkingOf, thinkingKind, encryptedReasoning, auth, endThinking, "
            "countThinking, grammar, "
            "batches, batchPrice, extraBody, refusedKeys.",
        ),
        (
            {"requiresReasoning": "some"},
            "compat: requiresReasoning: Invalid enum value 'some'; allowed: no, tool_calls, all",
        ),
        ({"cumulative": "yes"}, "compat: cumulative: Expected `bool`, got `str`"),
        ({"tags": [["<a>"]]}, "compat: tags: Expected `array` of length 2, got 1"),
    ],
)
def test_what_is_wrong_is_named_with_what_is_allowed(once, text):
    with pytest.raises(ConfigError) as caught:
        join((), PLACE, FACTS, (), once)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            {"match": {"host": "x"}},
            "compat row 1: Object contains unknown field `host` - at `$.match`\n"
            "A row holds: match (provider, model, dialect, endpoint), dialect, set, source, seen.",
        ),
        (
            "x",
            "compat row 1: Expected `object`, got `str`\n"
            "A row is an object of: match, dialect, set, source, seen.",
        ),
        (
            {"set": {"thinkingWriter": "x"}},
            "compat row 1: thinkingWriter: Invalid enum value 'x'; allowed: openai-effort, "
            "responses, anthropic-budget, anthropic-adaptive, gemini-budget, gemini-level, "
            "openrouter, thinking-type, enable-thinking, template-kwargs, template-responses, "
            "template-messages, ollama-think, nova, usual, none",
        ),
    ],
)
def test_a_bad_row_is_named_by_its_number(row, text):
    with pytest.raises(ConfigError) as caught:
        read_rows([row])
    assert str(caught.value) == text
