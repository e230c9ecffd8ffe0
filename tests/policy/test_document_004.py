"""Document 004's examples on the real catalog: numbers, wire shapes and the lines users see."""

import json

import pytest

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import decoder, encode_request
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, message_from_json, message_to_json, user
from mull.neutral.thinking import write_thinking
from mull.policy.prepare import prepare
from mull.policy.thinking.budget import budget_for_level
from mull.policy.thinking.plan import feedback, plan_thinking
from mull.settings.layers import Settings
from mull.settings.presets import preset_values


@pytest.fixture(scope="module")
def catalog():
    return load()


def choose(catalog, name):
    """What `/model NAME` does: find the target, read the settings, plan."""
    target = resolve(name, catalog=catalog)
    snapshot = Settings().snapshot(preset=preset_values(target.facts), model=name)
    return target, plan_thinking(target, snapshot)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-sonnet-4-5", (1024, 22_016, 43_008, 64_000)),
        ("claude-opus-4-5", (1024, 22_016, 43_008, 64_000)),
        ("claude-haiku-4-5", (1024, 11_349, 21_674, 32_000)),
        ("claude-3-7-sonnet", (1024, 11_349, 21_674, 32_000)),
        ("gemini-2.5-pro", (128, 11_008, 21_888, 32_768)),
        ("gemini-2.5-flash", (0, 8192, 16_384, 24_576)),
        ("gemini-2.5-flash-lite", (512, 8533, 16_554, 24_576)),
        ("anthropic/claude-nova-9", (1024, 22_016, 43_008, 64_000)),
    ],
)
def test_the_budgets_of_every_model_it_names(catalog, model, expected):
    budget = resolve(model, catalog=catalog).facts.budget
    levels = ("minimal", "low", "medium", "high")
    assert tuple(budget_for_level(budget, level) for level in levels) == expected


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "claude-sonnet-4-5/med",
            (
                "✓ Switched to Anthropic claude-sonnet-4-5",
                "  Thinking: medium (43,008 tokens)",
            ),
        ),
        (
            "gemini-2.5-pro/high",
            ("✓ Switched to Google gemini-2.5-pro", "  Thinking: high (32,768 tokens)"),
        ),
        (
            "gemini-3-pro-preview/none",
            (
                "✓ Switched to Google gemini-3-pro-preview",
                "  ⚠ This model does not support disabling thinking",
                "  Thinking: LOW level (minimum)",
            ),
        ),
        (
            "o3/med",
            (
                "✓ Switched to OpenAI o3 (Responses API)",
                "  Thinking: medium effort (~50% of output budget)",
                "  Recommended output buffer: 25,000 tokens",
            ),
        ),
        (
            "o3-mini/none",
            (
                "✓ Switched to OpenAI o3-mini (Responses API)",
                "  ⚠ This model does not support disabling thinking",
                "  Thinking: low effort (minimum)",
                "  Recommended output buffer: 25,000 tokens",
            ),
        ),
        (
            "claude-sonnet-4-5/50000",
            ("✓ Switched to Anthropic claude-sonnet-4-5", "  Thinking: 50,000 tokens"),
        ),
        (
            "gpt-4o",
            (
                "✓ Switched to OpenAI gpt-4o (Responses API)",
                "  Thinking: none (this model does not reason)",
            ),
        ),
    ],
)
def test_the_lines_users_see(catalog, name, lines):
    assert feedback(*choose(catalog, name)) == lines


@pytest.mark.parametrize(
    ("name", "fragment"),
    [
        ("claude-sonnet-4-5/med", {"thinking": {"type": "enabled", "budget_tokens": 43_008}}),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        ("claude-sonnet-4-5/none", {}),
        ("claude-sonnet-4-5-thinking", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        (
            "gemini-2.5-pro/med",
            {
                "generationConfig": {
                    "thinkingConfig": {"thinkingBudget": 21_888, "includeThoughts": True}
                }
            },
        ),
        (
            "gemini-3-pro-preview/med",
            {
                "generationConfig": {
                    "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}
                }
            },
        ),
        ("o3/med", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("gpt-5.1/none", {"reasoning": {"effort": "none"}}),
        ("gpt-4o", {}),
        (
            "claude-opus-4-7/xhigh",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "xhigh"},
            },
        ),
        ("claude-sonnet-5/none", {"thinking": {"type": "disabled"}}),
        (
            "github-copilot/claude-sonnet-4.5",
            {"thinking": {"type": "enabled", "budget_tokens": 10_000}},
        ),
        ("github-copilot/gpt-5.2", {}),
        ("deepseek-v4-pro/none", {"thinking": {"type": "disabled"}}),
        (
            "deepseek-v4-pro/low",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        ("kimi-k2-thinking/high", {}),
        ("openrouter/anthropic/claude-sonnet-4.5/low", {"reasoning": {"max_tokens": 22_015}}),
    ],
)
def test_what_is_sent(catalog, name, fragment):
    _, planned = choose(catalog, name)
    assert write_thinking(planned.plan) == fragment


def test_a_model_that_needs_its_reasoning_back_says_so_by_preset(catalog):
    """BR-001: the default stays false; the catalog's preset turns it on where it must be."""
    target = resolve("moonshotai/kimi-k2-thinking", catalog=catalog)
    settings = Settings()
    assert settings.snapshot()["reasoning.includeInContext"] is False
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    assert snapshot["reasoning.includeInContext"] is True
    assert snapshot.origin("reasoning.includeInContext") == "preset"
    assert target.compat.reasoning_out == "reasoning_content"
    settings.set("reasoning.includeInContext", False)
    assert (
        settings.snapshot(preset=preset_values(target.facts))["reasoning.includeInContext"] is False
    )


ANSWERS = {
    "anthropic": {
        "content": [
            {"type": "thinking", "thinking": "one", "signature": "S1"},
            {"type": "thinking", "thinking": "two", "signature": "S2"},
            {"type": "text", "text": "x"},
        ],
        "stop_reason": "end_turn",
    },
    "bedrock-converse": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "one", "signature": "S1"}}},
                    {"reasoningContent": {"reasoningText": {"text": "two", "signature": "S2"}}},
                    {"text": "x"},
                ],
            }
        },
        "stopReason": "end_turn",
    },
    "openai-chat": {
        "choices": [
            {"message": {"reasoning_content": "one", "content": "x"}, "finish_reason": "stop"}
        ]
    },
}
WRITTEN = {
    "anthropic": ANSWERS["anthropic"]["content"],
    "bedrock-converse": ANSWERS["bedrock-converse"]["output"]["message"]["content"],
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("anthropic/claude-3-7-sonnet-20250219", "raw"),
        ("anthropic/claude-sonnet-4-20250514", "summary"),
        ("anthropic/claude-sonnet-4-5", "summary"),
        ("anthropic/claude-opus-4-6", "summary"),
        ("anthropic/claude-fable-5-1", "summary"),
        ("amazon-bedrock/us.anthropic.claude-3-7-sonnet-20250219-v1:0", "raw"),
        ("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "summary"),
        ("google-vertex-anthropic/claude-opus-4-5@20251101", "summary"),
        ("github-copilot/claude-sonnet-4.5", "summary"),
        ("minimax/MiniMax-M2.5", "raw"),
        ("302ai/claude-opus-4-5", "summary"),
        ("moonshotai/kimi-k2-thinking", "raw"),
        ("openrouter/google/gemini-2.5-pro", "summary"),
        ("openai-compatible/Gemma-4-31B-Claude-4.6-Opus-Reasoning-Distilled", "raw"),
    ],
)
def test_sonnet_3_7_shows_whole_thoughts_and_later_ones_summaries(catalog, name, kind):
    target = resolve(name, catalog=catalog)
    reader = decoder(target)
    given = ANSWERS[target.dialect]
    message = assemble([*reader.feed(json.dumps(given).encode()), *reader.close()], target.origin)
    assert {block.kind for block in message.thinking} == {kind}
    stored = message_from_json(message_to_json(message))
    log = Log([user("q"), stored, user("again")])
    snapshot = Settings().snapshot(preset=preset_values(target.facts))
    body = json.loads(encode_request(prepare(log, snapshot, target).request, target).body)
    answer = body["messages"][-2]
    assert answer["content"] == WRITTEN.get(target.dialect, "x")
    assert answer.get("reasoning_content", "one") == "one"


def test_thoughts_that_a_gateway_joins_go_back_as_they_came(catalog):
    target = resolve("302ai/claude-opus-4-5", catalog=catalog)
    thoughts = (ThinkingBlock(t, "reasoning_content", kind="summary") for t in ("one ", "two"))
    log = Log([user("q"), assistant(*thoughts, TextBlock("x"), origin=target.origin), user("r")])
    snapshot = Settings().snapshot(preset=preset_values(target.facts))
    body = json.loads(encode_request(prepare(log, snapshot, target).request, target).body)
    assert body["messages"][1]["reasoning_content"] == "one two"
