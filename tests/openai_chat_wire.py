"""Renders answers the way Chat Completions servers send them, and reads the fixtures."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from conversations import listed, target, wired
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import Event
from mull.neutral.messages import Message, assistant
from mull.neutral.target import Target
from mull.neutral.usage import Usage

HERE = Path(__file__).parent / "fixtures" / "openai_chat"
STREAMS = {file.stem: file.read_bytes() for file in sorted(HERE.glob("*.sse"))}
WHOLES = {file.stem: file.read_bytes() for file in sorted(HERE.glob("*.json"))}
GOOGLE = target(compat={"tags": (("<thought>", "</thought>"),)})
TARGETS = {"google-signatures": GOOGLE}
"""Fixtures of endpoints that differ from the default."""
DONE = b"data: [DONE]\n\n"


def chunk(delta: dict[str, Any], reason: str | None = None, **top: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    about = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "thinker"}
    return {**about, "choices": [choice], **top}


def sse(*chunks: Any, done: bool = True) -> bytes:
    frames = b"".join(b"data: " + msgspec.json.encode(one) + b"\n\n" for one in chunks)
    return frames + DONE if done else frames


def deltas(*parts: dict[str, Any], reason: str | None = "stop") -> bytes:
    """A stream of these deltas and a finish reason."""
    return sse(*map(chunk, parts), chunk({}, reason))


def whole(message: dict[str, Any], reason: str | None = "stop", **top: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return msgspec.json.encode({"id": "chatcmpl-1", "choices": [choice], **top})


def events_of(
    body: bytes, to: Target | None = None, cuts: list[int] | None = None, field: str | None = None
) -> list[Event]:
    one = decoder(to or target(), field)
    edges = [0, *sorted(cut % (len(body) + 1) for cut in cuts or []), len(body)]
    found = [e for a, b in pairwise(edges) for e in one.feed(body[a:b])]
    return found + one.close()


def decode(
    body: bytes, to: Target | None = None, cuts: list[int] | None = None, field: str | None = None
) -> Message:
    return assemble(events_of(body, to, cuts, field))


def fixture(name: str, cuts: list[int] | None = None) -> Message:
    return decode(STREAMS[name], TARGETS.get(name), cuts)


# Answers that can be rendered both ways.

_texts = st.text(max_size=30)
_ids = st.text("abcdefgh0123456789_", min_size=1, max_size=8)
_keys = st.fixed_dictionaries({"format": st.sampled_from(["unknown", "anthropic-claude-v1"])})


@st.composite
def _entries(draw: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for index in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "summary", "encrypted", "novel"]))
        entry: dict[str, Any] = {"type": f"reasoning.{kind}", "index": index, **draw(_keys)}
        if kind in ("text", "summary"):
            entry[kind] = draw(_texts)
            if kind == "text" and draw(st.booleans()):
                entry["signature"] = draw(_ids)
        else:
            entry["data"] = draw(_ids)
        entries.append(entry)
    return entries


@st.composite
def thinking(draw: Any) -> ThinkingBlock:
    field = draw(
        st.sampled_from(["reasoning_content", "reasoning", "reasoning_text", "thinking", "details"])
    )
    if field != "details":
        signature = draw(st.none() | _ids) if field == "reasoning_text" else None
        return ThinkingBlock(draw(_texts), field, signature=signature)
    entries = draw(_entries())
    text = "".join(e.get("text") or e.get("summary") or "" for e in entries)
    mirrored = bool(text) and draw(st.booleans())
    bearing = {e["type"] for e in entries if e.get("text") or e.get("summary")}
    return ThinkingBlock(
        text,
        "reasoning" if mirrored or not entries else "reasoning_details",
        kind="summary" if bearing == {"reasoning.summary"} else "raw",
        wire=listed(entries),
    )


def _signed(signature: str) -> Wire:
    google = {"google": {"thought_signature": signature}}
    return Wire("openai-chat", {"extra_content": google})


@st.composite
def calls(draw: Any) -> list[ToolCallBlock]:
    made = []
    for number in range(draw(st.integers(0, 3))):
        value = draw(st.dictionaries(_ids, _texts | st.integers(-9, 9), max_size=2))
        wire = draw(st.none() | _ids.map(_signed))
        made.append(ToolCallBlock(f"call_{number}", draw(_ids), value, wire=wire))
    return made


@st.composite
def answers(draw: Any) -> Message:
    """An answer as this wire orders it: thought, text, calls."""
    blocks: list[Block] = []
    if draw(st.booleans()):
        blocks.append(draw(thinking()))
    text = draw(st.text(alphabet=st.characters(exclude_characters="<", codec="utf-8"), max_size=30))
    if text:
        blocks.append(TextBlock(text))
    made = draw(calls())
    blocks += made
    counts = draw(st.none() | st.tuples(*[st.integers(0, 10**6)] * 3))
    usage = None
    if counts is not None:
        given, output, reasoning = counts
        usage = Usage(given, output, min(reasoning, output), given + output)
    reason = "tool_calls" if made else "stop"
    answered = bool(made) or bool(text.strip())
    return assistant(
        *blocks, usage=usage, stop_reason=reason, status="complete" if answered else "no_answer"
    )


def _usage(message: Message) -> dict[str, Any] | None:
    usage = message.usage
    return usage and {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _call(block: ToolCallBlock, index: int) -> dict[str, Any]:
    text = msgspec.json.encode(block.input).decode()
    function = {"name": block.name, "arguments": text}
    call = {"index": index, "id": block.id, "type": "function", "function": function}
    return call | wired(block)


def render_whole(message: Message) -> bytes:
    written: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    for block in message.thinking:
        if block.source_field != "reasoning_details":
            written[block.source_field or ""] = block.thought
        if block.wire:
            written["reasoning_details"] = wired(block)["reasoning_details"]
        if block.signature:
            written["reasoning_opaque"] = block.signature
    if message.tool_calls:
        written["tool_calls"] = [_call(call, n) for n, call in enumerate(message.tool_calls)]
    return whole(written, message.stop_reason, usage=_usage(message))


def _pieces(draw: Any, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    edges = [0, *cuts, len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def _detail_deltas(draw: Any, block: ThinkingBlock) -> list[dict[str, Any]]:
    made = []
    for entry in wired(block).get("reasoning_details", []):
        growing = "summary" if "summary" in entry else "text"
        fixed = {k: v for k, v in entry.items() if k not in (growing, "signature")}
        if growing not in entry:
            made.append({"reasoning": None, "reasoning_details": [fixed]})
            continue
        for piece in _pieces(draw, entry[growing]):
            delta: dict[str, Any] = {"reasoning_details": [fixed | {growing: piece}]}
            if block.source_field == "reasoning":
                delta["reasoning"] = piece
            made.append(delta)
        if "signature" in entry:
            signed = {"type": entry["type"], "index": entry["index"]}
            made.append({"reasoning_details": [signed | {"signature": entry["signature"]}]})
    return made


def render_deltas(draw: Any, message: Message) -> list[dict[str, Any]]:
    """The deltas of a stream of this answer, cut anywhere."""
    made: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for block in message.blocks:
        match block:
            case ThinkingBlock() if block.wire:
                made += _detail_deltas(draw, block)
            case ThinkingBlock():
                field = block.source_field or ""
                made += [{field: piece, "content": None} for piece in _pieces(draw, block.thought)]
                if block.signature:
                    made.append({"reasoning_opaque": block.signature})
            case TextBlock():
                made += [{"content": piece} for piece in _pieces(draw, block.text)]
    for index, call in enumerate(message.tool_calls):
        head, *tail = _pieces(draw, _call(call, index)["function"]["arguments"])
        first = _call(call, index)
        first["function"]["arguments"] = head
        made.append({"tool_calls": [first]})
        for piece in tail:
            made.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    return made


def render_stream(draw: Any, message: Message) -> bytes:
    usage = _usage(message)
    chunks = [chunk(delta) for delta in render_deltas(draw, message)]
    chunks.append(chunk({}, message.stop_reason))
    if usage:
        chunks.append({"choices": [], "usage": usage})
    return sse(*chunks)
