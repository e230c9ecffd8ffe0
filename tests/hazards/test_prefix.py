"""In a growing conversation each request extends the one before, so prompt caches hold."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mull.catalog.load import load
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request, is_sealed
from mull.history.log import Entry, Log
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    wire_of,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.settings.layers import Settings
from mull.settings.presets import preset_values

CATALOG = load()
INCLUDE = "reasoning.includeInContext"
KEPT = (
    "anthropic/claude-3-7-sonnet-20250219",
    "anthropic/claude-opus-4-1",
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-haiku-4-5",
    "anthropic/claude-opus-4-7",
    "anthropic/claude-opus-5",
    "anthropic/claude-sonnet-5",
    "anthropic/claude-opus-5-5",
    "anthropic/claude-fable-5-1",
    "anthropic/claude-opus-7",
    "openai-compatible/claude-opus-4-5",
    "openai-compatible/team-claude",
    "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "google-vertex-anthropic/claude-opus-4-5@20251101",
    "github-copilot/claude-sonnet-4.5",
    "github-copilot/gpt-5.2",
    "github-copilot/gemini-3-pro-preview",
    "openrouter/anthropic/claude-sonnet-4.5",
    "openrouter/openai/gpt-5",
    "openrouter/google/gemini-3-pro-preview",
    "openai-compatible/vertex_ai/gemini-3-pro-preview",
    "openai/o3",
    "openai/gpt-5",
    "openai/gpt-5.6",
    "azure/gpt-5",
    "google/gemini-3-pro-preview",
    "google/gemini-2.5-pro",
    "google-vertex/gemini-2.5-flash",
    "xai/grok-4.3",
    "openrouter/x-ai/grok-4.3",
    "openai-compatible/team-grok-4.3",
    "openai-compatible/eu.magistral-medium",
    "moonshotai/kimi-k2-thinking",
    "moonshotai/kimi-k2.6",
    "moonshotai/kimi-k9",
    "kimi-for-coding/k2p6",
    "moonshotai/kimi-k3",
    "deepseek/deepseek-v4-pro",
    "zai/glm-4.7",
    "zai/glm-5.3",
    "zai/glm-7",
    "vllm/Qwen/Qwen3.6-35B-A3B",
    "alibaba/qwen3.7-max",
    "openrouter/qwen/qwen3.6-plus",
    "mistral/magistral-medium-latest",
    "mistral/mistral-medium-3.5",
    "minimax/MiniMax-M2.5",
    "minimax/MiniMax-M3",
    "xiaomi/mimo-v2.5",
    "openrouter/arcee-ai/trinity-large-thinking",
    "openrouter/poolside/laguna-m.1",
)
"""Models whose thoughts go back by preset, of every maker that wants that and in every dialect."""
DROPPED = (
    "groq/openai/gpt-oss-120b",
    "alibaba/qwen3-32b",
    "fireworks-ai/accounts/fireworks/models/deepseek-v3p2",
    "zai/glm-4.6",
    "openai-compatible/anything",
)
"""Models whose makers leave the thoughts of finished turns out, and one that nobody knows."""
SEALED = (
    "openai-compatible/anything",
    "vllm/house",
    "kilo/qwen/qwen3.7-max",
    "amazon-bedrock/arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
)
"""Models of which no row says what goes back."""
LIST = {"anthropic": "messages", "openai-chat": "messages", "bedrock-converse": "messages"}
LIST |= {"openai-responses": "input", "gemini": "contents"}
URL = "http://127.0.0.1:9/v1"
SERVED = {
    "anthropic": [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
    ],
    "openai-responses": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}],
}
"""What a provider's own tools leave in an answer."""
ENDS = (
    ("complete", "stop"),
    ("complete", "refusal"),
    ("truncated", "length"),
    ("truncated_in_reasoning", "length"),
    ("no_answer", "stop"),
    ("interrupted", None),
    ("error", None),
)
WORDS = st.text("ab \n<>{}\"'é語", min_size=1, max_size=8).filter(str.strip)
TOOLS = RequestOptions(system="s", tools=(Tool("f", "d", {"type": "object"}),))


@st.composite
def thoughts(draw, dialect):
    """A thought as this API sends it."""
    text, seal = draw(WORDS), draw(st.text("xyz", min_size=4, max_size=8))
    kind = draw(st.sampled_from(["plain", "other", "sealed"]))
    match dialect:
        case "anthropic" | "bedrock-converse":
            if kind == "sealed":
                return ThinkingBlock(redacted=seal, source_field="redacted_thinking")
            empty = kind == "other"
            return ThinkingBlock("" if empty else text, signature=seal, source_field="thinking")
        case "openai-responses":
            summary = "" if kind == "sealed" else text
            return ThinkingBlock(summary, encrypted=seal, id=f"rs_{seal}", kind="summary")
        case "gemini":
            signature = seal if kind == "sealed" else None
            return ThinkingBlock(text, signature=signature, source_field="thought")
    if kind == "plain":
        return ThinkingBlock(text, source_field="reasoning_content")
    if kind == "sealed" and draw(st.booleans()):
        blocks = [{"type": "thinking", "thinking": text, "signature": seal}]
        kept = wire_of("openai-chat", {"reasoning_details": blocks})
        return ThinkingBlock(text, source_field="reasoning_content", wire=kept)
    entry = {"type": "reasoning.text", "text": text, "signature": seal}
    details = wire_of("openai-chat", {"reasoning_details": [entry]})
    if kind == "other":
        return ThinkingBlock(text, source_field="reasoning_details", wire=details)
    return ThinkingBlock(text, source_field="reasoning_text", signature=seal)


@st.composite
def answers(draw, dialect, calls, first):
    """An answer that makes so many calls; the first after the user thinks."""
    seals = st.sampled_from([None, "SIG"] if dialect == "gemini" else [None])
    blocks = draw(st.lists(thoughts(dialect), min_size=first, max_size=2))
    if not calls or draw(st.booleans()):
        blocks.append(TextBlock(draw(WORDS), signature=draw(seals)))
        if calls:
            blocks += draw(st.lists(thoughts(dialect), max_size=1))
    for number in range(calls):
        seal = "SIG" if dialect == "gemini" and not number else None
        blocks.append(ToolCallBlock(f"c{number}", "f", {"n": number}, signature=seal))
    return blocks


@st.composite
def turns(draw, dialect):
    """A question, tool rounds, and an answer in any state, of which nothing may have come; the user
    may say something during the rounds, and the last calls may have no results.
    """
    picture = st.sampled_from([(), (), (MediaBlock("image/png", data="AAAA"),)])
    turn = [(Message("user", blocks=(TextBlock(draw(WORDS)), *draw(picture))), False)]
    for calls in draw(st.lists(st.integers(1, 2), max_size=3)):
        asked = turn[-1][0].role == "user"
        blocks = draw(answers(dialect, calls, asked))
        if draw(st.integers(0, 4)) == 4:
            blocks[1:1] = map(OpaqueBlock, SERVED.get(dialect, ()))
        ran = draw(st.sampled_from(["well", "well", "badly", "not"]))
        status = draw(st.sampled_from(["complete", "interrupted"])) if ran == "not" else "complete"
        turn.append((replace(assistant(*blocks), status=status), False))
        if ran == "not":
            return turn
        results = tuple(
            ToolResultBlock(f"c{at}", draw(WORDS), is_error=ran == "badly") for at in range(calls)
        )
        turn.append((Message("tool", blocks=results), False))
        if draw(st.integers(0, 4)) == 4:
            turn.append((user(draw(WORDS)), True))
    status, reason = draw(st.sampled_from(ENDS))
    blocks = draw(answers(dialect, 0, turn[-1][0].role == "user"))
    if status in ("no_answer", "truncated_in_reasoning"):
        blocks = [block for block in blocks if not isinstance(block, TextBlock)]
    elif status in ("interrupted", "error"):
        blocks = blocks[: draw(st.integers(0, len(blocks)))]
        if draw(st.booleans()):  # it ended within a thought, before its signature
            blocks = [ThinkingBlock(draw(WORDS), source_field="thinking")]
    turn.append((replace(assistant(*blocks), status=status, stop_reason=reason), False))
    return turn


def made_of(turns, origin):
    """The messages with ids of their own and their origin, and whether each steers."""
    for at, (message, steers) in enumerate(one for turn in turns for one in turn):
        place = at if message.role == "assistant" else at - 1
        blocks = []
        for block in message.blocks:
            match block:
                case ToolCallBlock():
                    block = replace(block, id=f"{place}{block.id}")
                case ToolResultBlock():
                    block = replace(block, call_id=f"{place}{block.call_id}")
            blocks.append(block)
        own = origin if message.role == "assistant" else None
        yield replace(message, blocks=tuple(blocks), origin=own), steers


def requests_of(target, turns):
    """The body of each request of the conversation, as mull sends it by default."""
    snapshot = Settings().snapshot(preset=preset_values(target.facts))
    log = Log()
    for message, steers in made_of(turns, target.origin):
        if message.role == "assistant":
            prepared = prepare(log, snapshot, target, TOOLS)
            yield json.loads(encode_request(prepared.request, target).body)
            log.add(Entry(message, prefix=prepared.prefix))
        else:
            log.add(Entry(message, steers=steers))


def without_cache_marks(value):
    """Anthropic's and Bedrock's marks say how far to cache. They move with the end of the
    conversation, and the providers do not compare them.
    """
    if isinstance(value, dict):
        return {k: without_cache_marks(v) for k, v in value.items() if k != "cache_control"}
    if not isinstance(value, list):
        return value
    points = ({"cachePoint": {"type": "default"}},)
    return [without_cache_marks(v) for v in value if v not in points]


def parts_of(body, dialect):
    """All but the messages, and their parts in order, each with its role: two messages of one role
    are the same to a provider as one with the parts of both.
    """
    body = without_cache_marks(body)
    parts = []
    for message in body.pop(LIST[dialect]):
        inner = message.get("content", message.get("parts"))
        if isinstance(inner, list) and "type" not in message:
            parts += [(message["role"], part) for part in inner]
        else:
            parts.append(message)
    return body, parts


def assert_extends(target, bodies):
    before = None
    for body in bodies:
        rest, parts = parts_of(body, target.dialect)
        if before is not None:
            assert rest == before[0]
            assert parts[: len(before[1])] == before[1]
        before = rest, parts


def place_of(model):
    return resolve(model, catalog=CATALOG, base_url=URL if model.startswith(OWN) else None)


OWN = ("openai-compatible/", "vllm/")


@pytest.mark.parametrize("model", KEPT)
@settings(max_examples=int(os.environ.get("MULL_EXAMPLES", "10")))
@given(data=st.data())
def test_each_request_extends_the_one_before(model, data):
    target = place_of(model)
    conversation = data.draw(st.lists(turns(target.dialect), min_size=1, max_size=4))
    assert_extends(target, requests_of(target, conversation))


@pytest.mark.parametrize("model", DROPPED)
@settings(max_examples=int(os.environ.get("MULL_EXAMPLES", "10")))
@given(data=st.data())
def test_where_thoughts_of_finished_turns_are_left_out_nothing_else_changes(model, data):
    target = resolve(model, catalog=CATALOG, base_url=URL)
    assert not preset_values(target.facts).get(INCLUDE)
    conversation = data.draw(st.lists(turns(target.dialect), min_size=1, max_size=4))
    assert_extends(target, map(without_thoughts, requests_of(target, conversation)))


def sealed(turn):
    """The turn with a signature on each thought."""
    return [
        (replace(message, blocks=(*map(signed, message.blocks),)), steers)
        for message, steers in turn
    ]


def signed(block):
    plain = isinstance(block, ThinkingBlock) and not is_sealed(block)
    return replace(block, signature="SIG") if plain else block


@pytest.mark.parametrize("model", SEALED)
@settings(max_examples=int(os.environ.get("MULL_EXAMPLES", "10")))
@given(data=st.data())
def test_signed_thoughts_go_back_where_nobody_says_what_does(model, data):
    target = place_of(model)
    assert INCLUDE not in preset_values(target.facts)
    conversation = data.draw(st.lists(turns(target.dialect), min_size=1, max_size=4))
    assert_extends(target, requests_of(target, map(sealed, conversation)))


def without_thoughts(body):
    keys = ("reasoning", "thinking_blocks")
    messages = [
        {key: value for key, value in message.items() if not key.startswith(keys)}
        for message in body["messages"]
    ]
    return {**body, "messages": messages}
