"""Renders answers as Gemini would send them, whole and in chunks, for the tests of that dialect."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from conversations import json_objects, names, target, texts, wired
from mull.dialects.registry import decoder
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import Event, Failed
from mull.neutral.messages import Message
from mull.neutral.request import Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan

FIXTURES = Path(__file__).parent / "fixtures" / "gemini"
LEVEL = target("gemini-level", dialect="gemini", model="gemini-level")
BUDGET = target("gemini-budget", dialect="gemini", model="gemini-budget")
ABSENT = ThinkingPlan("absent")
COUNTS = {
    "promptTokenCount": 10,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 35,
}


def fixture(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


def fixture_names(ending: str) -> list[str]:
    return sorted(file.name for file in FIXTURES.glob(f"*.{ending}"))


class Decoded:
    """An answer and everything that was said about it."""

    def __init__(self, events: list[Event], to: Target) -> None:
        assembler = Assembler(to.origin)
        for event in events:
            assembler.add(event)
        self.events = events
        self.message = assembler.message()
        self.warnings = [(warned.code, warned.text) for warned in assembler.warnings]
        self.error = next((e for e in events if isinstance(e, Failed)), None)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.message.blocks


def decode(*pieces: bytes, to: Target = LEVEL) -> Decoded:
    reading = decoder(to)
    events = [event for piece in pieces for event in reading.feed(piece)]
    return Decoded(events + reading.close(), to)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    return [body[a:b] for a, b in pairwise(edges)]


def response(parts: Any, **more: Any) -> dict[str, Any]:
    """One response with these parts; `finish` and `counts` end it."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish := more.pop("finish", None):
        candidate["finishReason"] = finish
    whole = {"candidates": [candidate], "modelVersion": "m", "responseId": "r-1"}
    if counts := more.pop("counts", None):
        whole["usageMetadata"] = counts
    return {**whole, **more}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: " + msgspec.json.encode(chunk) + b"\r\n\r\n" for chunk in chunks)


def ended(*parts: Any, finish: str = "STOP") -> bytes:
    """A stream of one part per chunk that ends as it should."""
    *first, last = [[part] for part in parts] or [[]]
    return sse(*map(response, first), response(last, finish=finish, counts=COUNTS))


def whole(*parts: Any, finish: str = "STOP") -> bytes:
    return msgspec.json.encode(response(list(parts), finish=finish, counts=COUNTS))


def request(*messages: Message, thinking: ThinkingPlan = ABSENT, **more: Any) -> Request:
    return Request(messages=messages, thinking=thinking, **more)


# Answers that the wire can say in both ways: neighbours without signature would become one.

signatures = st.text("ABCDwxyz0189+/=", min_size=1, max_size=12)
some_text = texts.filter(bool)
opaque = st.builds(
    lambda name, data, signed: OpaqueBlock({name: data, **signed}),
    st.sampled_from(["executableCode", "codeExecutionResult", "inlineData", "toolCall", "newKind"]),
    json_objects.filter(bool),
    st.just({}) | st.builds(lambda s: {"thoughtSignature": s}, signatures),
)
_plain_text = st.builds(TextBlock, some_text)
_signed_text = st.builds(TextBlock, texts, signatures)
_thought = st.builds(
    lambda text, signature: ThinkingBlock(text, "thought", signature=signature, kind="summary"),
    texts,
    st.none() | signatures,
)
_call = st.builds(
    lambda name, args, signature: ToolCallBlock("?", name, args, signature=signature),
    names,
    json_objects,
    st.none() | signatures,
)


def _settle(blocks: list[Block], with_ids: bool) -> tuple[Block, ...]:
    out: list[Block] = []
    for block in blocks:
        if out and type(block) is type(out[-1]) and _joins(block) and _joins(out[-1]):
            continue
        if isinstance(block, ToolCallBlock):
            given = f"fc-{len(out)}"
            wire = Wire("gemini", {"id": given}) if with_ids else None
            block = msgspec.structs.replace(block, id=given, wire=wire)
        out.append(block)
    return tuple(out)


def _joins(block: Block) -> bool:
    return isinstance(block, TextBlock | ThinkingBlock) and block.signature is None


answers = st.builds(
    _settle,
    st.lists(st.one_of(_plain_text, _signed_text, _thought, _call, opaque), max_size=6),
    st.booleans(),
)


def part_of(block: Block) -> dict[str, Any]:
    """The one part that the block is in a whole response."""
    match block:
        case TextBlock():
            part = {"text": block.text}
        case ThinkingBlock():
            part = {"text": block.thought, "thought": True}
        case ToolCallBlock():
            part = {"functionCall": {**wired(block), "name": block.name, "args": block.input}}
        case OpaqueBlock():
            return block.data
    return {**part, "thoughtSignature": block.signature} if block.signature else part


def stream_of(blocks: tuple[Block, ...], places: list[int]) -> bytes:
    """The answer in chunks of one or more parts, plain text in pieces."""
    parts: list[dict[str, Any]] = []
    for block in blocks:
        part = part_of(block)
        if isinstance(block, TextBlock | ThinkingBlock) and block.signature is None:
            text = part["text"]
            edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
            pieces = [text[a:b] for a, b in pairwise(edges)] or [""]
            parts += [{**part, "text": piece} for piece in pieces]
        else:
            parts.append(part)
    size = 1 + (places[0] % 3 if places else 0)
    groups = [parts[at : at + size] for at in range(0, len(parts), size)]
    return sse(*map(response, groups), response([{"text": ""}], finish="STOP", counts=COUNTS))


def without_made_up_ids(blocks: tuple[Block, ...]) -> list[Block]:
    """Calls that came without an id get one that only the decoder knows."""
    return [
        msgspec.structs.replace(b, id="?") if isinstance(b, ToolCallBlock) and not b.wire else b
        for b in blocks
    ]
