"""Refusals that are about what was asked of the model's thinking: shape, level, budget."""

import json

import pytest

from conversations import target
from healing import ASK, again, body, mended, prepared, steered

TOGGLE = {"type": "toggle"}
EFFORT = {"type": "effort", "values": ("low", "medium", "high")}
BUDGET = {"type": "budget_tokens", "min": 1024, "max": 64_000}
NEEDS = {"requires_reasoning": "tool_calls"}


def anthropic(writer, *options, **facts):
    return target(
        writer, dialect="anthropic", options=list(options), compat=NEEDS, output=128_000, **facts
    )


def gemini(writer, *options, **facts):
    return target(writer, dialect="gemini", options=list(options), compat=NEEDS, **facts)


@pytest.mark.parametrize(
    ("settings", "effort"),
    [
        ({}, None),
        ({"effort": "low"}, "low"),
        ({"effort": "medium"}, "medium"),
        ({"effort": "max"}, "high"),
        ({"maxTokens": 30_000}, "high"),
    ],
)
def test_a_budget_becomes_adaptive_thinking_and_stays_so(settings, effort):
    refused = prepared(anthropic("anthropic-budget", TOGGLE, BUDGET), ASK, settings=settings)
    text = (
        '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and'
        ' "output_config.effort" to control thinking behavior.'
    )
    repaired = mended(refused, text)
    wire = steered(body(repaired))
    assert wire["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert wire.get("output_config") == ({"effort": effort} if effort else None)
    assert repaired.learn.compat == {"thinkingWriter": "anthropic-adaptive"}
    assert steered(again(repaired, refused, **settings)) == wire
    assert steered(again(repaired, refused, effort="high"))["output_config"] == {"effort": "high"}
    assert steered(again(repaired, refused, maxTokens=5_000))["thinking"]["type"] == "adaptive"


def test_the_refusal_may_be_quoted_by_a_proxy():
    refused = prepared(anthropic("anthropic-budget", TOGGLE, BUDGET), ASK)
    inner = {"message": '"thinking.type.enabled" is not supported for this model.'}
    text = json.dumps({"error": json.dumps(inner)})
    assert body(mended(refused, text))["thinking"]["type"] == "adaptive"


@pytest.mark.parametrize(
    "text",
    [
        '"thinking.type.adaptive" is not supported for this model.',
        "adaptive thinking is not supported on this model",
    ],
)
@pytest.mark.parametrize(
    ("settings", "budget"), [({}, 10_000), ({"effort": "high"}, 24_576), ({"effort": "low"}, 8_874)]
)
def test_adaptive_thinking_becomes_a_budget_under_max_tokens(text, settings, budget):
    refused = prepared(anthropic("anthropic-adaptive", EFFORT), ASK, settings=settings)
    repaired = mended(refused, text)
    wire = body(repaired)
    assert steered(wire) == {"thinking": {"type": "enabled", "budget_tokens": budget}}
    assert wire["max_tokens"] > budget
    assert repaired.learn.compat == {"thinkingWriter": "anthropic-budget"}
    assert steered(again(repaired, refused, **settings)) == steered(wire)


def test_gemini_is_steered_by_the_other_of_its_two_ways():
    level = prepared(gemini("gemini-level", EFFORT), ASK, settings={"effort": "high"})
    for text in (
        "Thinking level is not supported for this model.",
        "Unable to submit request because thinking_level is not supported by this model.",
    ):
        config = steered(body(mended(level, text)))["thinkingConfig"]
        assert config == {"thinkingBudget": 24_576, "includeThoughts": True}
    budget = prepared(gemini("gemini-budget", BUDGET), ASK, settings={"effort": "low"})
    repaired = mended(budget, "Thinking budget is not supported for this model.")
    config = steered(body(repaired))["thinkingConfig"]
    assert config == {"thinkingLevel": "LOW", "includeThoughts": True}


DISABLED = '"thinking.type.disabled" is not supported for this model.'


def test_what_cannot_be_off_thinks_as_little_as_it_can():
    refused = prepared(anthropic("anthropic-adaptive", TOGGLE), ASK, settings={"enabled": False})
    assert steered(body(refused)) == {"thinking": {"type": "disabled"}}
    repaired = mended(refused, DISABLED + ' Use "thinking.type.adaptive".')
    adaptive = {"type": "adaptive", "display": "summarized"}
    assert steered(body(repaired)) == {"thinking": adaptive, "output_config": {"effort": "low"}}
    assert steered(again(repaired, refused, enabled=False)) == steered(body(repaired))


def test_between_tools_is_off_where_the_refusal_names_it():
    refused = prepared(anthropic("anthropic-adaptive", TOGGLE), ASK, settings={"enabled": False})
    repaired = mended(refused, DISABLED + ' Use "thinking.type.between_tools".')
    assert steered(body(repaired)) == {"thinking": {"type": "between_tools"}}
    assert repaired.learn.facts == {"off_type": "between_tools"}


@pytest.mark.parametrize(
    ("writer", "options", "text", "sent"),
    [
        (
            "openrouter",
            [TOGGLE, EFFORT],
            "Reasoning is mandatory for this endpoint and cannot be disabled.",
            {"reasoning": {"effort": "low"}},
        ),
        ("openrouter", [TOGGLE], "Reasoning is mandatory for this model", {}),
        (
            "enable-thinking",
            [TOGGLE],
            "The value of the enable_thinking parameter is restricted to True.",
            {},
        ),
        (
            "openai-effort",
            [{"type": "effort", "values": ("none", "low", "high")}],
            "Harmony does not support reasoning effort none",
            {"reasoning_effort": "low"},
        ),
        (
            "openai-effort",
            [{"type": "effort", "values": ("none", "low", "high")}],
            "Invalid reasoning effort: none",
            {"reasoning_effort": "low"},
        ),
    ],
)
def test_mandatory_thinking_is_not_switched_off(writer, options, text, sent):
    refused = prepared(target(writer, options=options), ASK, settings={"enabled": False})
    repaired = mended(refused, text)
    assert steered(body(repaired)) == sent
    assert repaired.learn.facts["can_be_off"] is False
    assert steered(again(repaired, refused, enabled=False)) == sent


def test_a_budget_of_zero_is_raised_where_thinking_is_mandatory():
    flash = gemini("gemini-budget", {"type": "budget_tokens", "min": 0, "max": 24_576})
    refused = prepared(flash, ASK, settings={"enabled": False})
    assert steered(body(refused))["thinkingConfig"] == {"thinkingBudget": 0}
    text = "Budget 0 is invalid. This model only works in thinking mode."
    assert steered(body(mended(refused, text)))["thinkingConfig"]["includeThoughts"]


@pytest.mark.parametrize(
    ("writer", "dialect", "asked", "text", "sent"),
    [
        (
            "openai-effort",
            "openai-chat",
            "high",
            "Unsupported value: 'reasoning_effort' does not support 'high' with this model."
            " Supported values are: 'medium'.",
            {"reasoning_effort": "medium"},
        ),
        (
            "responses",
            "openai-responses",
            "minimal",
            "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported"
            " values are: 'none', 'low', 'medium', and 'high'.",
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        (
            "openai-effort",
            "openai-chat",
            "minimal",
            "Invalid reasoning_effort: minimal. Valid values are: high, low, medium, none",
            {"reasoning_effort": "low"},
        ),
        (
            "ollama-think",
            "openai-chat",
            "xhigh",
            'invalid think value: "xhigh" (must be "high", "medium", "low", "max", true, or false)',
            {"think": "max"},
        ),
        (
            "anthropic-adaptive",
            "anthropic",
            "xhigh",
            'output_config.effort "xhigh" is not supported by model m; supported values: [medium]',
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "medium"},
            },
        ),
        (
            "anthropic-adaptive",
            "anthropic",
            "max",
            "This model does not support effort level 'max'. Supported levels: high, low, medium.",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "high"},
            },
        ),
    ],
)
def test_a_level_the_model_lacks_becomes_the_nearest_listed(writer, dialect, asked, text, sent):
    ladder = ("minimal", "low", "medium", "high", "xhigh", "max")
    options = [{"type": "effort", "values": ladder}]
    wise = target(writer, dialect=dialect, options=options)
    refused = prepared(wise, ASK, settings={"effort": asked})
    repaired = mended(refused, text, code="unsupported_value")
    assert steered(body(repaired)) == sent
    assert steered(again(repaired, refused, effort=asked)) == sent


@pytest.mark.parametrize(
    ("writer", "dialect", "asked", "text", "sent"),
    [
        (
            "gemini-level",
            "gemini",
            "minimal",
            "Thinking level MINIMAL is not supported for this model. Please retry with other"
            " thinking level.",
            {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}},
        ),
        (
            "gemini-level",
            "gemini",
            "medium",
            "Unable to submit request because thinking_level MEDIUM is not supported by this model",
            {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}},
        ),
        (
            "ollama-think",
            "openai-chat",
            "medium",
            'think value "medium" is not supported for this model',
            {"think": True},
        ),
    ],
)
def test_a_level_refused_without_a_list_becomes_another(writer, dialect, asked, text, sent):
    unlisted = target(writer, dialect=dialect, known=False)
    refused = prepared(unlisted, ASK, settings={"effort": asked})
    repaired = mended(refused, text)
    assert steered(body(repaired)) == sent
    assert steered(again(repaired, refused, effort=asked)) == sent


@pytest.mark.parametrize(
    "text",
    [
        "This model does not support the effort parameter.",
        'output_config.effort "high" was provided, but model m does not support reasoning effort',
        "output_config.effort: Extra inputs are not permitted",
    ],
)
def test_an_effort_that_is_not_taken_is_left_out_and_thinking_stays(text):
    refused = prepared(anthropic("anthropic-adaptive", EFFORT), ASK, settings={"effort": "high"})
    repaired = mended(refused, text)
    adaptive = {"thinking": {"type": "adaptive", "display": "summarized"}}
    assert steered(body(repaired)) == adaptive
    assert steered(again(repaired, refused, effort="high")) == adaptive


def test_summaries_that_are_not_for_this_account_are_not_asked_for():
    facts = {"options": [EFFORT], "thinks_by_default": True}
    refused = prepared(target("responses", dialect="openai-responses", **facts), ASK)
    text = "Your organization must be verified to generate reasoning summaries."
    repaired = mended(refused, text, code="unsupported_value")
    assert "reasoning" not in body(repaired)
