"""In a growing conversation each request extends the one before, so prompt caches hold."""

import json

import pytest

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values

CATALOG = load()
MODELS = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-7",
    "openai/gpt-5",
    "google/gemini-3-pro-preview",
    "google/gemini-2.5-pro",
    "moonshotai/kimi-k2-thinking",
    "deepseek/deepseek-v4-pro",
    "zai/glm-4.7",
    "mistral/magistral-medium-latest",
    "openrouter/anthropic/claude-sonnet-4.5",
    "groq/openai/gpt-oss-120b",
    "minimax/MiniMax-M2.5",
    "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
)
LIST = {"anthropic": "messages", "openai-chat": "messages", "bedrock-converse": "messages"}
LIST |= {"openai-responses": "input", "gemini": "contents"}


def grow(origin):
    """A conversation message by message: plain and tool turns, two calls at once."""

    def thought(text):
        return ThinkingBlock(
            text, signature=f"sig-{text}", encrypted=f"enc-{text}", id=f"rs_{text}"
        )

    for n in range(3):
        yield user(f"question {n}")
        calls = (ToolCallBlock(f"c{n}a", "f", {"n": n}), ToolCallBlock(f"c{n}b", "f", {"n": n}))
        yield assistant(thought(f"t{n}"), TextBlock("looking"), *calls, origin=origin)
        yield Message(
            role="tool", blocks=(ToolResultBlock(f"c{n}a", "A"), ToolResultBlock(f"c{n}b", "B"))
        )
        yield assistant(thought(f"u{n}"), TextBlock(f"answer {n}"), origin=origin)


def without_cache_markers(value):
    if isinstance(value, dict):
        return {k: without_cache_markers(v) for k, v in value.items() if k != "cache_control"}
    if not isinstance(value, list):
        return value
    points = ({"cachePoint": {"type": "default"}},)
    return [without_cache_markers(v) for v in value if v not in points]


@pytest.mark.parametrize("model", MODELS)
def test_each_request_extends_the_one_before(model):
    target = resolve(model, catalog=CATALOG)
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    conversation = RequestOptions(system="s", tools=(Tool("f", "d", {"type": "object"}),))
    log, previous = Log(), []
    for message in grow(target.origin):
        log.append(message)
        if message.role == "assistant":
            continue
        prepared = prepare(log, snapshot, target, conversation)
        body = json.loads(encode_request(prepared.request, target).body)
        sent = without_cache_markers(body[LIST[target.dialect]])
        assert sent[: len(previous)] == previous
        assert len(sent) > len(previous)
        previous = sent
