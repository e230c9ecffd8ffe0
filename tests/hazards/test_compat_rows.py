"""Every row of quirks: the request it makes at no level, none, low and high, and one replay.

The table is what the shipped rows produce today; a change of a row shows here as a difference.
"""

import json
from pathlib import Path

import pytest

from conversations import ELSEWHERE, listed
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
EXPECTED = Path(__file__).with_name("compat_rows.json")
NAMES = [
    "openai/gpt-5",
    "openai/gpt-5.2",
    "openai/o3",
    "azure/gpt-5",
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-opus-4-6",
    "anthropic/claude-opus-4-7",
    "anthropic/claude-sonnet-5",
    "anthropic/claude-sonnet-5-5",
    "anthropic/claude-opus-5-5",
    "google/gemini-2.5-flash",
    "google/gemini-2.5-flash-lite",
    "google/gemini-2.5-pro",
    "google/gemini-3-pro-preview",
    "moonshotai/kimi-k2-thinking",
    "moonshotai/kimi-k2.5",
    "deepseek/deepseek-v4-pro",
    "zai/glm-4.7",
    "zhipuai/glm-4.7",
    "zai/glm-5.2",
    "minimax/MiniMax-M2.5",
    "minimax/MiniMax-M3",
    "alibaba/qwen-plus",
    "mistral/magistral-medium-latest",
    "mistral/mistral-small-latest",
    "xai/grok-4.3",
    "groq/openai/gpt-oss-120b",
    "groq/qwen/qwen3-32b",
    "cerebras/gpt-oss-120b",
    "togetherai/moonshotai/Kimi-K2.5",
    "fireworks-ai/accounts/fireworks/models/glm-4p7",
    "openrouter/anthropic/claude-sonnet-4.5",
    "openrouter/moonshotai/kimi-k2-thinking",
    "chutes/zai-org/GLM-4.7-TEE",
    "huggingface/moonshotai/Kimi-K2-Thinking",
    "nvidia/moonshotai/kimi-k2.5",
    "github-copilot/claude-sonnet-4.5",
    "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "amazon-bedrock/global.anthropic.claude-opus-4-7",
    "amazon-bedrock/amazon.nova-2-lite-v1:0",
    "amazon-bedrock/openai.gpt-oss-120b-1:0",
    "amazon-bedrock/deepseek.v3.2",
    "google-vertex/claude-sonnet-4-5@20250929",
    "google-vertex/gemini-3-flash-preview",
    "github-copilot/claude-opus-4.7",
    "github-copilot/gpt-5.2",
    "github-copilot/gemini-2.5-pro",
    "ollama/qwen3",
    "ollama/gpt-oss",
    "vllm/qwen3",
    "vllm/gpt-oss-20b",
    "sglang/qwen3",
    "llama.cpp/qwen3",
    "llama.cpp/qwq-32b",
    "llama.cpp/gemma-4-31b-it",
    "llama.cpp/gpt-oss-20b",
    "llama.cpp/nobody-knows",
    "lmstudio/openai/gpt-oss-20b",
    "vllm/nobody-knows",
    "sglang/nobody-knows",
    "lmstudio/nobody-knows",
    "openai-compatible/nobody-knows",
]
LEVELS = (None, "none", "low", "high")
STEADY = {"messages", "input", "contents", "model", "stream", "tools", "instructions", "system"}
STEADY |= {"toolConfig"}
LIST = {"anthropic": "messages", "openai-chat": "messages", "bedrock-converse": "messages"}
LIST |= {"openai-responses": "input", "gemini": "contents"}


def encode(target, level, messages, wishes=None):
    settings = Settings()
    for key, value in (wishes or {}).items():
        settings.set(key, value)
    if level:
        settings.set("reasoning.effort", level)
    snapshot = settings.snapshot(preset=preset_values(target.facts))
    conversation = RequestOptions(tools=(Tool("f", "d", {"type": "object"}),))
    prepared = prepare(Log(messages), snapshot, target, conversation)
    wire = encode_request(prepared.request, target)
    return wire, json.loads(wire.body)


def thought(target):
    match target.dialect:
        case "anthropic":
            return ThinkingBlock("why", "thinking", signature="SIG")
        case "bedrock-converse":
            return ThinkingBlock("why", "reasoningContent", signature="SIG")
        case "openai-responses":
            return ThinkingBlock("", "reasoning", encrypted="ENC", id="rs_1", kind="summary")
        case "gemini":
            return ThinkingBlock("why", "thought")
        case _:
            field = target.compat.reasoning_out
            if field == "reasoning_details":
                details = [{"type": "reasoning.text", "text": "why", "index": 0}]
                return ThinkingBlock("why", field, wire=listed(details))
            return ThinkingBlock("why", "reasoning" if field in ("same", "never") else field)


def picture(name):
    """What the endpoint is sent: how thinking is asked for at each level, and a turn replayed."""
    target = resolve(name, catalog=CATALOG)
    shown = {"dialect": target.dialect}
    for level in LEVELS:
        wire, body = encode(target, level, [user("q")])
        shown["path"] = wire.path
        shown[level or "unset"] = {k: v for k, v in body.items() if k not in STEADY}
    signature = "SIG" if target.dialect == "gemini" else None
    turn = [
        user("q"),
        assistant(
            thought(target),
            ToolCallBlock("c1", "f", {"n": 1}, signature=signature),
            origin=target.origin,
        ),
        Message(role="tool", blocks=(ToolResultBlock("c1", "r"),)),
    ]
    _, body = encode(target, None, turn)
    shown["replay"] = [
        item for item in body[LIST[target.dialect]] if item.get("role") not in ("user", "tool")
    ]
    return shown


def test_there_is_a_picture_of_every_provider_that_must_be_known():
    providers = {name.partition("/")[0] for name in NAMES}
    assert providers >= {
        "openai",
        "azure",
        "anthropic",
        "google",
        "moonshotai",
        "deepseek",
        "zai",
        "zhipuai",
        "minimax",
        "alibaba",
        "mistral",
        "xai",
        "groq",
        "cerebras",
        "togetherai",
        "fireworks-ai",
        "openrouter",
        "chutes",
        "huggingface",
        "nvidia",
        "github-copilot",
        "ollama",
        "vllm",
        "sglang",
        "llama.cpp",
        "lmstudio",
    }


@pytest.mark.parametrize("name", NAMES)
def test_each_row_makes_the_request_it_is_known_for(name):
    assert picture(name) == json.loads(EXPECTED.read_text())[name]


def test_an_endpoint_nobody_knows_gets_nothing_invented_but_what_was_asked_for():
    shown = picture("openai-compatible/nobody-knows")
    assert set(shown["unset"]) <= {"stream_options"}
    for level in ("none", "low", "high"):
        assert shown[level]["reasoning_effort"] == level


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_an_endpoint_nobody_knows_gets_its_thoughts_back_where_it_sent_them(field):
    target = resolve("openai-compatible/nobody-knows", catalog=CATALOG)
    for origin, sent in ((target.origin, {field: "why"}), (ELSEWHERE, {})):
        blocks = ThinkingBlock("why", field), TextBlock("so")
        talk = [user("q"), assistant(*blocks, origin=origin), user("r")]
        _, body = encode(target, None, talk, {"reasoning.includeInContext": True})
        assert body["messages"][1] == {"role": "assistant", "content": "so", **sent}


if __name__ == "__main__":  # writes the table anew: see CONTRIBUTING.md
    EXPECTED.write_text(json.dumps({name: picture(name) for name in NAMES}, indent=1) + "\n")
