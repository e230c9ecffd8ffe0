"""Writes an answer in the Responses API: as a stream, as one response, or as an error.

Each item is added, extended by deltas and completed; the final response repeats all items. Blocks
that came from one item (the summary and raw text of a reasoning item, the parts of a message) are
written as one item again. Thinking from another dialect becomes a summary, because that is what
clients of this API show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from mull.dialects.body import merge
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.closing import STATUSES, write_ending, write_usage
from mull.dialects.openai_responses.messages import item_groups
from mull.dialects.openai_responses.shapes import (
    FREE_CALL,
    PART_TYPE,
    SEPARATOR,
    called_as,
    free_text,
    is_free_call,
    kept_parts,
    kept_rest,
    part_text,
    unpack_part,
)
from mull.dialects.tables import Statuses
from mull.dialects.writer import (
    About,
    AnswerWriter,
    Block,
    Call,
    Opaque,
    Text,
    Thought,
    encode,
    event_frame,
)
from mull.neutral.assemble import tell
from mull.neutral.blocks import TextBlock, ThinkingKind
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Key,
    OpaqueReceived,
    Started,
    TextDelta,
    ThinkingCarrier,
    ToolCallDelta,
)
from mull.neutral.messages import Dialect, Message

__all__ = ["COMPACTION_KEY", "STATUSES", "Writer", "write_document", "write_error"]

COMPACTION_KEY = "mull/compaction"
"""The key of a compaction item, which this server creates itself for any upstream dialect."""
_TOLD = frozenset({"id", "type", "part", "arguments", "input"})
_UNNAMED = ("item ", "block ")
"""Prefixes of keys that are not ids."""
_PARAMS = {"previous_response_not_found": "previous_response_id"}
"""The parameter that an error code refers to."""


class _Channel(NamedTuple):
    """The events that stream one kind of text: their name, the name of the part's index, the field
    of the complete text, and the events that open and close a part, if any."""

    name: str
    number: str | None
    field: str
    frame: str | None = None
    more: dict[str, Any] = {}


_CHANNELS = {
    "summary": _Channel(
        "response.reasoning_summary_text",
        "summary_index",
        "text",
        "response.reasoning_summary_part",
    ),
    "raw": _Channel("response.reasoning_text", "content_index", "text"),
    "output_text": _Channel(
        "response.output_text", "content_index", "text", "response.content_part", {"logprobs": []}
    ),
    "refusal": _Channel("response.refusal", "content_index", "refusal", "response.content_part"),
    "arguments": _Channel("response.function_call_arguments", None, "arguments"),
    "input": _Channel("response.custom_tool_call_input", None, "input"),
}


class _Item:
    """One output item and the blocks it holds."""

    __slots__ = ("at", "blocks", "id", "is_done")

    def __init__(self, at: int, item_id: str) -> None:
        self.at, self.id = at, item_id
        self.blocks: list[Any] = []
        self.is_done = False


class Writer(AnswerWriter):
    """Writes the events of a Responses stream, numbered from 0."""

    DIALECT: ClassVar[Dialect] = DIALECT
    DOCUMENT_FAILS: ClassVar[bool] = True

    def __init__(self, about: About, statuses: Statuses = STATUSES) -> None:
        super().__init__(about, statuses)
        self.response: dict[str, Any] = {}
        self.is_whole = False
        self._number = -1
        self._items: list[_Item | dict[str, Any]] = []
        self._item_of: dict[int, _Item] = {}
        self._items_by_key: dict[tuple[type, Key], _Item] = {}
        self._parts: dict[int, list[str]] = {}
        self._open_parts: set[int] = set()
        self._at_border: set[int] = set()

    def start(self) -> bytes:
        begun = self._respond("in_progress")
        created = self._say("response.created", response=begun)
        return created + self._say("response.in_progress", response=begun)

    def open(self, block: Block, event: Event) -> bytes:
        self._parts[block.number] = []
        item, out = self._shared_item(block), b""
        if item is None:
            item = _Item(len(self._items), self._name(block))
            self._items.append(item)
            begun = self._written(item, block)
            out = self._say("response.output_item.added", output_index=item.at, item=begun)
        else:
            out = self._end_part(item.blocks[-1])
        item.blocks.append(block)
        self._item_of[block.number] = self._items_by_key[type(block), block.key] = item
        text = event.arguments if isinstance(event, ToolCallDelta) else getattr(event, "text", "")
        return out + (self.piece(block, text) if text else b"")

    def piece(self, block: Any, text: str) -> bytes:
        if type(block) is Call and self._is_free(block):
            block.pieces.append(text)  # `stop` sends the text that the complete object contains
            return b""
        return self._piece(block, text)

    def _piece(self, block: Any, text: str) -> bytes:
        out = b""
        if not block.head:
            out = self._begin_part(block)
        elif block.number in self._at_border and text.startswith(SEPARATOR):
            # The blank line separates parts in one text; it belongs to neither part.
            self._at_border.discard(block.number)
            out, text = self._begin_part(block), text.removeprefix(SEPARATOR)
        block.pieces.append(text)
        self._number += 1
        return b'%b%b%b,"sequence_number":%d}\n\n' % (out, block.head, encode(text), self._number)

    def stop(self, block: Block) -> bytes:
        out = b""
        if type(block) is Call and self._is_free(block):
            text = free_text("".join(block.pieces))
            block.pieces = []
            out = self._piece(block, text) if text else b""
        elif type(block) is Call and not block.head:
            out = self._piece(block, "{}")
        wants_part = type(block) is Call or (type(block) is Text and not _is_bare(block))
        if wants_part and not block.head:
            out += self._begin_part(block)
        out += self._end_part(block)
        item = self._item_of[block.number]
        if item.is_done or not all(one.is_stopped for one in item.blocks):
            return out
        item.is_done = True
        done = self._written(item, *item.blocks)
        return out + self._say("response.output_item.done", output_index=item.at, item=done)

    def stays(self, block: Block, beside: Block) -> bool:
        shared = self._shared_item(beside)
        return shared is not None and shared is self._item_of.get(block.number)

    def opaque(self, block: Opaque, data: dict[str, Any]) -> bytes:
        place = {"output_index": len(self._items), "item": data}
        self._items.append(data)
        added = self._say("response.output_item.added", **place)
        return added + self._say("response.output_item.done", **place)

    def takes(self, event: OpaqueReceived) -> bool:
        return self.is_own or event.key == COMPACTION_KEY

    def carry(self, block: Thought, event: ThinkingCarrier) -> bytes:
        if self.is_own and event == ThinkingCarrier(event.key, event.source_field, kind=event.kind):
            self._at_border.add(block.number)
        foreign = event.wire and not self.own(event.wire)
        if event.signature or event.redacted is not None or foreign:
            self.leave_out("a carrier that this API cannot express")
        return b""

    def mark(self, block: Text | Call, event: TextDelta | ToolCallDelta) -> bytes:
        if event.signature or (event.wire and not self.own(event.wire)):
            self.leave_out("keys or a signature that only their own dialect can express")
        return b""

    def finish(self, reason: str | None) -> bytes:
        texts = [block for block in self._found if type(block) is Text]
        refused = any(self._channel(block) == "refusal" for block in texts)
        ending = write_ending(reason, refused=refused)
        self.response = merge(self._respond(ending.pop("status"), **ending), self.rest)
        return self._say(f"response.{self.response['status']}", response=self.response)

    def fail(self, failed: Failed) -> bytes:
        out = self._begin()
        error = _error(failed, self.status_of(failed))["error"]
        reported = {"code": error["code"], "message": error["message"]}
        self.response = self._respond("failed", error=reported)
        return out + self._say("response.failed", response=self.response)

    def _end_block(self, key: Key) -> bytes:
        """A message ends with its last part, a reasoning item when both its summary and its raw
        text have ended."""
        out = super()._end_block(key)
        item = self._items_by_key.get((Text, key))
        rest = [one for at, one in self._opened.items() if item and self._item_of.get(at) is item]
        return out + b"".join([self._stop(one) for one in rest])

    def _shared_item(self, block: Block) -> _Item | None:
        """The open item to which a block belongs as another part."""
        base, slash, _ = block.key.rpartition("/") if isinstance(block.key, str) else ("", "", "")
        item = self._items_by_key.get((type(block), base)) if slash and self.is_own else None
        return None if item is None or item.is_done else item

    def _name(self, block: Block) -> str:
        given: Any = None
        if self.is_own and isinstance(block, Thought):
            key = block.key if isinstance(block.key, str) else ""
            named = None if key.startswith(_UNNAMED) else key.removesuffix("/content")
            given = block.carried.get("id") or named
        elif self.is_own:
            given = block.kept.get("id")
        prefix = {Thought: "rs", Text: "msg", Call: "fc"}[type(block)]
        prefix = "ctc" if type(block) is Call and self._is_free(block) else prefix
        made = f"{prefix}_{(self.id or '0').removeprefix('resp_')}_{len(self._items)}"
        return given if isinstance(given, str) and given else made

    def _channel(self, block: Block) -> str:
        match block:
            case Thought():
                return "raw" if self.is_own and block.kind == "raw" else "summary"
            case Text():
                part = block.kept.get("part")
                is_refusal = isinstance(part, dict) and part.get("type") == "refusal"
                return "refusal" if is_refusal else "output_text"
            case Call() if self._is_free(block):
                return "input"
        return "arguments"

    def _is_free(self, block: Call) -> bool:
        """Whether the client expects a text as the call's input rather than an object."""
        return is_free_call(block.kept) or block.name in self.about.free_text

    def _offered(self, call: Call) -> dict[str, Any]:
        """The keys of the called tool that only this dialect has."""
        return self.own(self.about.tools.get(call.name or ""))

    def _place(self, block: Block, channel: _Channel) -> dict[str, Any]:
        item = self._item_of[block.number]
        place: dict[str, Any] = {"item_id": item.id, "output_index": item.at}
        if channel.number is not None:
            is_text = type(block) is Text
            done = self._parts[block.number]
            place[channel.number] = item.blocks.index(block) if is_text else len(done)
        return place

    def _begin_part(self, block: Any) -> bytes:
        out = self._end_part(block)
        channel = _CHANNELS[self._channel(block)]
        place = self._place(block, channel)
        if channel.frame is not None:
            out += self._say(f"{channel.frame}.added", **place, part=self._part(block, ""))
        delta = {"type": f"{channel.name}.delta", **place, **channel.more, "delta": 0}
        block.head = event_frame(delta).removesuffix(b"0}\n\n")
        self._open_parts.add(block.number)
        return out

    def _end_part(self, block: Any) -> bytes:
        """Close the open part, if any, with its complete text."""
        if block.number not in self._open_parts:
            return b""
        self._open_parts.remove(block.number)
        channel = _CHANNELS[self._channel(block)]
        place, text = self._place(block, channel), "".join(block.pieces)
        named = {"name": block.name} if channel.field == "arguments" else {}
        out = self._say(
            f"{channel.name}.done", **place, **channel.more, **named, **{channel.field: text}
        )
        if channel.frame is not None:
            out += self._say(f"{channel.frame}.done", **place, part=self._part(block, text))
        self._parts[block.number].append(text)
        block.pieces = []
        return out

    def _texts(self, block: Any) -> list[str]:
        """The parts of a block; text after the last part's end belongs to that part."""
        texts, late = self._parts[block.number], "".join(block.pieces)
        if late:
            texts = [*texts[:-1], "".join((*texts[-1:], late))]
        return texts

    def _part(self, block: Text | Thought, text: str) -> dict[str, Any]:
        if isinstance(block, Thought):
            return {"type": PART_TYPE["summary"], "text": text}
        part = {"part": block.kept["part"]} if block.kept.get("part") else {}
        return unpack_part(text, part, logprobs=True) or {}

    def _written(self, item: _Item, *blocks: Any) -> dict[str, Any]:
        """The item in its current state."""
        match blocks[0]:
            case Thought():
                return self._reasoning(item, blocks)
            case Text() as text:
                kept = _beside(text)
                status = kept.pop("status", "completed") if text.is_stopped else "in_progress"
                parts = [self._part(one, "".join(self._texts(one))) for one in blocks if one.head]
                about = {"id": item.id, "type": "message", "role": "assistant", "status": status}
                return {**about, "content": parts, **kept}
            case Call() as call:
                words, free = "".join(self._texts(call)), self._is_free(call)
                return {
                    "id": item.id,
                    "type": FREE_CALL if free else "function_call",
                    "status": "completed" if call.is_stopped else "in_progress",
                    "call_id": call.id,
                    **called_as(call.name, self._offered(call)),
                    **({"input": words} if free else {"arguments": words}),
                    **_beside(call),
                }
        raise AssertionError(blocks)

    def _reasoning(self, item: _Item, blocks: Sequence[Thought]) -> dict[str, Any]:
        written: dict[str, Any] = {"id": item.id, "type": "reasoning", "summary": []}
        for block in blocks:
            kind: ThinkingKind = "raw" if self._channel(block) == "raw" else "summary"
            parts = [{"type": PART_TYPE[kind], "text": text} for text in self._texts(block)]
            kept = kept_parts(block.kept)
            is_same = self._is_same([*map(part_text, kept)], self._texts(block))
            parts = kept if kept and (not parts or is_same) else parts
            written |= kept_rest(block.kept)
            written["summary" if kind == "summary" else "content"] = parts
            if block.carried.get("encrypted") is not None:
                written["encrypted_content"] = block.carried["encrypted"]
        return written

    def _is_same(self, kept: list[str], sent: list[str]) -> bool:
        """Whether the kept parts are those that were sent; in a document, they may be joined."""
        return kept == sent or (self.is_whole and SEPARATOR.join(kept) == SEPARATOR.join(sent))

    def _respond(self, status: str, **more: Any) -> dict[str, Any]:
        items = [
            self._written(one, *one.blocks) if isinstance(one, _Item) else one
            for one in self._items
        ]
        response = {
            "id": self.id or "resp_0",
            "object": "response",
            "created_at": self.about.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model or "",
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None if self.usage is None or not self._ended else write_usage(self.usage),
        }
        return {**response, **self.about.echo, **more}

    def _say(self, kind: str, **more: Any) -> bytes:
        self._number += 1
        return event_frame({"type": kind, **more, "sequence_number": self._number})


def write_document(message: Message, about: About) -> bytes:
    """The answer as one response."""
    writer = Writer(about)
    writer.is_whole = True
    for event in tell(message, _keys(message)):
        if not isinstance(event, BlockEnded | Started):  # an item ends when the next one starts
            writer.feed(event)
    return encode(writer.response)


def _keys(message: Message) -> Iterator[str]:
    """The keys that these blocks would have had in a stream."""
    for number, group in enumerate(item_groups(message.blocks)):
        yield f"item {number}"
        for at in range(1, len(group)):
            is_text = isinstance(group[0], TextBlock)
            yield f"item {number}/{at if is_text else 'content'}"


def write_error(failed: Failed, status: int) -> bytes:
    """The body of an error response: a rejection, or a failure before any answer."""
    return encode(_error(failed, status))


def _error(failed: Failed, status: int) -> dict[str, Any]:
    code = STATUSES.word(status, failed.code)
    kind = "invalid_request_error" if status < 500 else "server_error"
    param = _PARAMS.get(code)
    return {"error": {"message": failed.text, "type": kind, "param": param, "code": code}}


def _beside(block: Text | Call) -> dict[str, Any]:
    """Keys of the item besides those that every item has; the id it started with is kept."""
    return {name: value for name, value in block.kept.items() if name not in _TOLD}


def _is_bare(block: Text) -> bool:
    """Whether it represents a message without parts."""
    return block.kept.get("part") == {}
