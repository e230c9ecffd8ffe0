"""Responses streams for tests: fixtures, and a generator that renders items as servers do."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from conversations import json_objects, names, target, texts
from mull.dialects.registry import decoder
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolCallBlock, Wire
from mull.neutral.events import Event, Failed, Warned
from mull.neutral.messages import Message
from mull.neutral.target import Target

FOLDER = Path(__file__).parent / "fixtures" / "openai_responses"
TARGET = target("responses", dialect="openai-responses")
STREAMS = {file.stem: file.read_bytes() for file in sorted(FOLDER.glob("*.sse"))}
WHOLE = {file.stem: file.read_bytes() for file in sorted(FOLDER.glob("*.json"))}

Item = dict[str, Any]


class Answer(NamedTuple):
    """What a decoder made of some bytes."""

    message: Message
    events: list[Event]
    failed: Failed | None
    warnings: list[Warned]


def decode(*chunks: bytes, at: Target = TARGET) -> Answer:
    """Feed the chunks to a fresh decoder."""
    one, events = decoder(at), list[Event]()
    for chunk in chunks:
        events += one.feed(chunk)
    events += one.close()
    assembler = Assembler(at.origin)
    for event in events:
        assembler.add(event)
    failed = next((event for event in events if isinstance(event, Failed)), None)
    return Answer(assembler.message(), events, failed, assembler.warnings)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data cut at these places."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


def sse(values: list[Item]) -> bytes:
    """Values as server-sent events."""
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (value["type"].encode(), msgspec.json.encode(value))
        for value in values
    )


class Piece(NamedTuple):
    """An output item and the blocks that it must become."""

    item: Item
    blocks: list[Block]


def reasoning_piece(
    number: int, summary: list[str], content: list[str], encrypted: str | None
) -> Piece:
    item_id = f"rs_{number}"
    item: Item = {"type": "reasoning", "id": item_id, "summary": _parts("summary_text", summary)}
    if content:
        item["content"] = _parts("reasoning_text", content)
    if encrypted is not None:
        item["encrypted_content"] = encrypted
    blocks: list[Block] = []
    usable = bool(encrypted or "\n\n".join(content))
    for kind, field, some in (
        ("summary", "summary", summary),
        ("raw", "reasoning_text", content),
    ):
        if not some and (kind == "raw" or content):
            continue
        parts = item["summary"] if kind == "summary" else item["content"]
        blocks.append(
            ThinkingBlock(
                "\n\n".join(some),
                source_field=field,
                encrypted=None if blocks else encrypted,
                id=item_id,
                kind=kind,
                wire=_wire(parts=parts) if len(some) > 1 or (some == [""] and usable) else None,
            )
        )
    return Piece(item, blocks)


def _wire(**data: Any) -> Wire:
    return Wire("openai-responses", data)


def _parts(kind: str, some: list[str]) -> list[Item]:
    return [{"type": kind, "text": text} for text in some]


def message_piece(number: int, parts: list[tuple[str, str]], phase: str | None) -> Piece:
    item: Item = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
    extra: Item = {"id": f"msg_{number}"}
    if phase:
        item["phase"] = extra["phase"] = phase
    content: list[Item] = []
    blocks: list[Block] = []
    for kind, text in parts:
        if kind == "refusal":
            content.append({"type": kind, "refusal": text})
            blocks.append(TextBlock(text, wire=_wire(**extra, part={"type": "refusal"})))
        else:
            content.append({"type": kind, "text": text, "annotations": [], "logprobs": []})
            blocks.append(TextBlock(text, wire=_wire(**extra)))
    if not parts:
        blocks.append(TextBlock("", wire=_wire(**extra, part={})))
    return Piece({**item, "status": "completed", "content": content}, blocks)


def call_piece(number: int, name: str, value: Item, spaced: bool) -> Piece:
    text = msgspec.json.encode(value).decode()
    kept = f" {text}" if spaced else None
    item: Item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
    item |= {"name": name, "arguments": kept or text, "status": "completed"}
    block = ToolCallBlock(
        f"call_{number}", name, value, kept, wire=Wire("openai-responses", {"id": f"fc_{number}"})
    )
    return Piece(item, [block])


def other_piece(number: int, data: Item) -> Piece:
    item = {**data, "type": "crystal_ball_call", "id": f"cb_{number}"}
    return Piece(item, [OpaqueBlock(item)])


seals = st.text("ABCDEFabcdef0123456789+/=", min_size=1, max_size=30)


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    """The output of one answer."""
    made = []
    for number in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["reasoning", "reasoning", "message", "call", "other"]))
        if kind == "reasoning":
            some = st.lists(texts, max_size=3)
            made.append(
                reasoning_piece(
                    number, draw(some), draw(some), draw(st.none() | seals | st.just(""))
                )
            )
        elif kind == "message":
            part = st.tuples(st.sampled_from(["output_text", "output_text", "refusal"]), texts)
            phase = draw(st.sampled_from([None, "commentary", "final_answer"]))
            made.append(message_piece(number, draw(st.lists(part, max_size=3)), phase))
        elif kind == "call":
            made.append(call_piece(number, draw(names), draw(json_objects), draw(st.booleans())))
        else:
            made.append(other_piece(number, draw(json_objects)))
    return made


USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 8},
    "output_tokens": 34,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 46,
}


def response(made: list[Piece], **more: Any) -> Item:
    """The whole response."""
    output = [piece.item for piece in made]
    start = {"id": "resp_1", "object": "response", "model": "thinker", "status": "completed"}
    return {**start, "output": output, "usage": USAGE, **more}


class Renderer:
    """Renders a response as a stream; `draw` decides what a server may decide.

    A complete stream has every event, number and index that the API promises.
    """

    def __init__(self, draw: st.DrawFn, *, complete: bool = False) -> None:
        self._draw = draw
        self._complete = complete
        self._bare = not complete and draw(st.booleans())
        self.values: list[Item] = []

    def render(self, whole: Item) -> bytes:
        self._say("response.created", response={**whole, "status": "in_progress", "output": []})
        for index, item in enumerate(whole["output"]):
            self._item(index, item)
        self._say("response.completed", response=whole)
        return sse(self.values)

    def _say(self, kind: str, **more: Any) -> None:
        value = {"type": kind, **more}
        if self._bare:
            value.pop("output_index", None)
        else:
            value["sequence_number"] = len(self.values)
        self.values.append(value)

    def _item(self, index: int, item: Item) -> None:
        if item["type"] == "crystal_ball_call" or not self._tells():
            self._say("response.output_item.done", output_index=index, item=item)
            return
        opening = {"summary": [], "content": [], "arguments": "", "encrypted_content": "part"}
        first = {key: opening.get(key, value) for key, value in item.items()}
        first["status"] = "in_progress"
        self._say("response.output_item.added", output_index=index, item=first)
        where = {"item_id": item["id"], "output_index": index}
        if item["type"] == "function_call":
            self._deltas("response.function_call_arguments", "arguments", item["arguments"], where)
        for number, part in enumerate(item.get("summary", ())):
            at = {**where, "summary_index": number}
            self._part("response.reasoning_summary_part", "reasoning_summary_text", part, at)
        for number, part in enumerate(item.get("content", ())):
            at = {**where, "content_index": number}
            self._part("response.content_part", part["type"], part, at)
        if self._tells():
            self._say("response.output_item.done", output_index=index, item=item)

    def _tells(self) -> bool:
        return self._complete or self._draw(st.booleans())

    def _part(self, name: str, kind: str, part: Item, at: Item) -> None:
        field = "refusal" if kind == "refusal" else "text"
        frames = self._tells()
        if frames:
            self._say(f"{name}.added", **at, part={**part, field: ""})
        self._deltas(f"response.{kind}", field, part[field], at)
        if frames:
            self._say(f"{name}.done", **at, part=part)

    def _deltas(self, name: str, field: str, text: str, at: Item) -> None:
        places = self._draw(st.lists(st.integers(0, max(len(text), 1)), max_size=3))
        edges = [0, *sorted(min(place, len(text)) for place in places), len(text)]
        for a, b in itertools.pairwise(edges):
            self._say(f"{name}.delta", **at, delta=text[a:b])
        if self._tells():
            self._say(f"{name}.done", **at, **{field: text})
