"""Refusals of budgets, and of models that take no thinking parameter at all."""

import json

import pytest

from conversations import target
from healing import (
    ASK,
    LOOK,
    again,
    body,
    mended,
    open_turn,
    plain_turn,
    prepared,
    steered,
    thoughts,
)
from mull.dialects.registry import encode_request
from mull.policy.failure import Failure
from mull.policy.heal.healing import heal
from mull.policy.heal.lessons import Lessons, apply_lessons, lessons_from_json, lessons_to_json

TOGGLE = {"type": "toggle"}
EFFORT = {"type": "effort", "values": ("low", "medium", "high")}
BUDGET = {"type": "budget_tokens", "min": 1024, "max": 64_000}
CLAUDE = target(
    "anthropic-budget",
    dialect="anthropic",
    options=[TOGGLE, BUDGET],
    compat={"requires_reasoning": "tool_calls"},
    output=128_000,
)


def test_a_budget_over_max_tokens_is_lowered_under_it():
    refused = prepared(CLAUDE, ASK, max_tokens=8_000, settings={"effort": "minimal"})
    assert body(refused)["thinking"]["budget_tokens"] == 1024
    high = prepared(CLAUDE, ASK, settings={"effort": "high"})
    text = "max_completion_tokens [13107] must be greater than thinking_budget [32768]"
    assert body(mended(high, text))["thinking"]["budget_tokens"] == 13_107 - 1_024
    small = "max_tokens [1100] must be greater than thinking_budget [64000]"
    repaired = mended(high, small)
    assert body(repaired)["thinking"] == {"type": "disabled"}
    assert repaired.learn is None


def test_an_explicit_budget_that_the_endpoint_finds_too_large_is_lowered():
    unlisted = target("anthropic-budget", dialect="anthropic", known=False, can_be_off=True)
    refused = prepared(unlisted, ASK, max_tokens=8_000, settings={"maxTokens": 9_000})
    text = "`max_tokens` must be greater than `thinking.budget_tokens`."
    assert body(mended(refused, text))["thinking"]["budget_tokens"] == 8_000 - 1_024


@pytest.mark.parametrize(
    ("writer", "dialect", "asked", "text", "sent"),
    [
        (
            "enable-thinking",
            "openai-chat",
            60_000,
            "The thinking_budget parameter must be a positive integer and not greater than 38912",
            38_912,
        ),
        (
            "anthropic-budget",
            "anthropic",
            512,
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            1_024,
        ),
        (
            "gemini-budget",
            "gemini",
            100,
            "The thinking budget 100 is invalid. Please choose a value between 128 and 32768.",
            128,
        ),
        (
            "gemini-budget",
            "gemini",
            60_000,
            "The thinking budget 60000 is invalid. Please choose a value between 128 and 32768.",
            32_768,
        ),
        ("gemini-budget", "gemini", 52_428, "The thinking budget (52428) is invalid.", None),
    ],
)
def test_a_budget_out_of_range_goes_to_the_end_that_is_named(writer, dialect, asked, text, sent):
    unlisted = target(writer, dialect=dialect, known=False)
    refused = prepared(unlisted, ASK, max_tokens=64_000, settings={"maxTokens": asked})
    repaired = mended(refused, text)
    assert repaired.request.thinking.budget == sent
    assert str(asked) not in json.dumps(steered(body(repaired)))
    if sent is not None:
        learnt = repaired.learn.facts["reasoning_options"][-1]
        assert sent in (learnt.get("min"), learnt.get("max"))


@pytest.mark.parametrize(
    ("known", "options"),
    [(False, []), (True, [{"type": "budget_tokens", "min": 1, "max": 90_000}])],
)
def test_a_range_that_a_refusal_taught_clamps_later_budgets_and_says_so(known, options):
    unlisted = target("enable-thinking", known=known, options=options, output=None)
    refused = prepared(unlisted, ASK, settings={"maxTokens": 60_000})
    text = "The thinking_budget parameter must be a positive integer and not greater than 38912"
    lessons = Lessons().learn(unlisted, mended(refused, text).learn)
    stored = lessons_from_json(lessons_to_json(lessons))
    taught = apply_lessons(apply_lessons(unlisted, stored), stored)
    later = prepared(taught, ASK, settings={"maxTokens": 60_000})
    assert later.request.thinking.budget == 38_912
    assert later.thinking == "38,912 tokens"
    (note,) = (note for note in later.notes if note.warning)
    assert (
        note.text
        == "budget 60,000 → 38,912, the range of thinker according to an earlier rejection"
    )
    within = prepared(taught, ASK, settings={"maxTokens": 30_000})
    assert within.request.thinking.budget == 30_000
    assert not any(note.warning for note in within.notes)


def test_a_budget_that_was_clamped_is_lowered_further_where_the_answer_needs_room():
    small = target(
        "anthropic-budget",
        dialect="anthropic",
        options=[{"type": "budget_tokens", "min": 1024, "max": 32_000, "learnt": True}],
        output=20_000,
    )
    later = prepared(small, ASK, settings={"maxTokens": 60_000})
    assert later.request.thinking.budget == 20_000 - 1_024
    assert later.thinking == "18,976 tokens"


def test_a_server_without_budgets_gets_none():
    vllm = target(
        "template-kwargs",
        options=[TOGGLE, BUDGET],
        compat={"budget_field": "thinking_token_budget"},
    )
    refused = prepared(vllm, ASK, settings={"maxTokens": 2_000})
    assert body(refused)["thinking_token_budget"] == 2_000
    text = "thinking_token_budget is set but reasoning_config is not configured. Please set it."
    repaired = mended(refused, text)
    assert "thinking_token_budget" not in body(repaired)
    assert steered(body(repaired)) == {
        "chat_template_kwargs": {"enable_thinking": True, "thinking": True}
    }
    assert repaired.learn.compat == {"budgetField": None}


@pytest.mark.parametrize(
    ("writer", "dialect", "text"),
    [
        ("ollama-think", "openai-chat", '"qwen2" does not support thinking'),
        ("openai-effort", "openai-chat", "Unsupported parameter: 'reasoning_effort' is not ..."),
        (
            "openai-effort",
            "openai-chat",
            "Unrecognized request argument supplied: reasoning_effort",
        ),
        ("openai-effort", "openai-chat", "Argument not supported on this model: reasoningEffort"),
        ("openai-effort", "openai-chat", "reasoning_effort is not supported by this model"),
        ("openrouter", "openai-chat", "property 'reasoning' is unsupported"),
        ("responses", "openai-responses", "Unsupported parameter: 'reasoning.effort'"),
        ("responses", "openai-responses", "Unknown parameter: 'reasoning'."),
        ("gemini-level", "gemini", "thinking_config is not supported."),
        (
            "gemini-level",
            "gemini",
            "Unable to submit request because thinking is not configurable in this model; please"
            " remove the thinking_config setting and try it again.",
        ),
        (
            "enable-thinking",
            "openai-chat",
            '{"detail":[{"type":"extra_forbidden","loc":["body","enable_thinking"]}]}',
        ),
    ],
)
def test_a_model_that_takes_no_thinking_parameter_gets_none(writer, dialect, text):
    options = [TOGGLE, EFFORT]
    refused = prepared(
        target(writer, dialect=dialect, options=options), ASK, settings={"effort": "high"}
    )
    assert steered(body(refused))
    repaired = mended(refused, text)
    assert steered(body(repaired)) == {}
    assert repaired.learn.compat == {"thinkingWriter": "none"}
    assert steered(again(repaired, refused, effort="high")) == {}


def test_thinking_that_is_left_out_in_a_chain_leaves_no_thoughts_in_it():
    refused = prepared(CLAUDE, [*plain_turn(CLAUDE, "a"), *open_turn(CLAUDE, "c")])
    repaired = mended(refused, "thinking is not supported by this model")
    wire = body(repaired)
    assert "thinking" not in wire
    assert thoughts(wire) == ["Ta"]


def test_a_repair_that_would_change_nothing_is_none():
    refused = prepared(target("openai-effort", options=[EFFORT]), ASK, tools=(LOOK,))
    before = encode_request(refused.request, refused.target)
    for text in (
        '"thinking.type.enabled" is not supported for this model.',
        "Unsupported value: 'reasoning_effort' does not support 'high' with this model."
        " Supported values are: 'medium'.",
        "Unsupported value: 'verbosity' does not support 'low'. Supported values are: 'medium'.",
        "Invalid `signature` in `thinking` block",
        "Reasoning is mandatory for this model",
    ):
        assert heal(refused, Failure(text, 400)) is None
    assert encode_request(refused.request, refused.target) == before
