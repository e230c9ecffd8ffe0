"""What a request counts of thinking is what its body holds, for every dialect and every row."""

from functools import cache

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import listed, snapshot, target, wired
from effort import tried
from mull.catalog.resolve import resolve
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.policy.prepare import prepare
from mull.policy.tokens import CHARACTERS, count_block

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini")
CHAT = ("reasoning_content", "reasoning", "reasoning_text", "thinking", "extra_content", "novel")
FIELDS = {
    "openai-chat": (*CHAT, "think_tags", "content_list", "reasoning_details", None),
    "openai-responses": ("summary", "reasoning_text", None),
    "anthropic": ("thinking", "redacted_thinking", None),
    "gemini": ("thought", None),
}
CARRIERS = ("signature", "encrypted", "redacted", "wire")
ROWS = """
anthropic/claude-sonnet-4-5 anthropic/claude-opus-4-6 openai/gpt-5.2 openai/o3
google/gemini-2.5-pro google/gemini-3-pro-preview moonshotai/kimi-k2-thinking moonshotai/kimi-k2.5
deepseek/deepseek-reasoner zai/glm-4.6 minimax/MiniMax-M2 alibaba/qwen-plus
mistral/magistral-medium-latest xai/grok-4 groq/openai/gpt-oss-120b openrouter/x-ai/grok-4
chutes/zai-org/GLM-4.6-TEE vllm/a sglang/a llama.cpp/a ollama/a lmstudio/a
github-copilot/gemini-2.5-pro github-copilot/claude-sonnet-4.5 openai-compatible/a
cerebras/gpt-oss-120b togetherai/a fireworks-ai/a nvidia/a
""".split()


@st.composite
def thoughts(draw, dialect):
    """A thought with texts and carriers that occur nowhere else."""
    name = f"«{draw(st.integers(0, 10**9))}»"
    given = {one: f"{one}{name}" for one in draw(st.sets(st.sampled_from(CARRIERS), max_size=2))}
    text = f"thought{name}" if draw(st.booleans()) or not given else ""
    if dialect == "openai-responses":
        given.pop("wire", None)
    elif "wire" in given and dialect != "openai-chat":
        given["wire"] = Wire(dialect, {"novel": given["wire"]})
    elif "wire" in given:
        entry = {"type": "reasoning.text", "text": text}
        if draw(st.booleans()):
            entry["format"] = "anthropic-claude-v1"
        if draw(st.booleans()):
            entry["signature"] = given["wire"]
        given["wire"] = listed([entry])
    kind = draw(st.sampled_from(["raw", "summary"]))
    return ThinkingBlock(text, draw(st.sampled_from(FIELDS[dialect])), kind=kind, **given)


@st.composite
def conversations(draw, dialect, origin):
    """Turns with thoughts anywhere in their answers; the last one may be an open chain."""
    log, calls = [], 0
    for turn in range(draw(st.integers(1, 3))):
        log.append(user(f"question {turn}"))
        for _ in range(draw(st.integers(0, 2))):
            calls += 1
            call = ToolCallBlock(f"call{calls}", "look")
            blocks = draw(st.lists(thoughts(dialect), max_size=2))
            trailing = draw(st.lists(thoughts(dialect), max_size=1))
            log.append(assistant(*blocks, call, *trailing, origin=origin, stop_reason="tool_calls"))
            result = ToolResultBlock(call.id, f"saw {calls}")
            log.append(Message(role="tool", blocks=(result,)))
        if turn < 2 and draw(st.booleans()):
            text = TextBlock(draw(st.sampled_from(["", f"answer {turn}"])))
            parts = [*draw(st.lists(thoughts(dialect), max_size=2)), text]
            parts += draw(st.lists(thoughts(dialect), max_size=1))
            log.append(assistant(*parts, origin=origin))
    return log


@cache
def resolved(name):
    return resolve(name, base_url="http://localhost/v1")


WISHES = st.fixed_dictionaries(
    {},
    optional={
        "includeInContext": st.booleans(),
        "stripFromContext": st.sampled_from(["all", "allButLast", "none"]),
        "enabled": st.booleans(),
        "fieldName": st.sampled_from(["reasoning", "reasoning_details"]),
    },
)


def marks(block):
    """What tells that a block is in a body."""
    held = wired(block)
    details = [entry.get("signature") for entry in held.get("reasoning_details", [held])]
    details.append(held.get("novel"))
    return {
        one
        for one in (block.thought, block.signature, block.encrypted, block.redacted, *details)
        if one
    }


def check(log, settings, to):
    """Every thought that is counted is in the body whole, and none that is not."""
    prepared = prepare(Log(log), snapshot(**settings), to)
    wire = encode_request(prepared.request, to)
    body = msgspec.json.encode(msgspec.json.decode(wire.body)).decode()
    sent = [b for m in prepared.request.messages for b in m.thinking]
    counted = set().union(*map(marks, sent))
    everything = set().union(*(marks(b) for m in log for b in m.thinking))
    assert {mark for mark in everything if mark in body} == counted
    assert prepared.parts.thinking == sum(count_block(block, CHARACTERS) for block in sent)
    assert not [note for note in wire.notes if note.about.startswith("reasoning")]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_br_004_the_count_is_of_what_the_body_holds(dialect, data):
    compat = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "reasoning_out": st.sampled_from(["same", "never", *CHAT[:3], "reasoning_details"]),
                "requires_reasoning": st.sampled_from(["no", "tool_calls", "all"]),
                "signed_only": st.booleans(),
            },
        )
    )
    if dialect != "openai-chat" and compat.get("reasoning_out") != "never":
        compat.pop("reasoning_out", None)
    to = target(dialect=dialect, compat=compat)
    log = data.draw(conversations(dialect, data.draw(st.sampled_from([to.origin, None]))))
    check(log, data.draw(WISHES), to)


@pytest.mark.parametrize("name", ROWS)
@tried(0.25)
@given(data=st.data())
def test_br_004_the_count_holds_for_every_row(name, data):
    to = resolved(name)
    check(data.draw(conversations(to.dialect, to.origin)), data.draw(WISHES), to)
