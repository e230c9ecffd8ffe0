"""Answers inside the messages of other libraries.

Those have places for text and calls, but none that every provider's reasoning fits into. So each
answer travels along as a whole, as JSON in a field that the library keeps but does not read, and is
unpacked when the library sends its history back. What the caller has edited meanwhile is respected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from mull.agent.results import Result
from mull.neutral.assemble import Assembler, read_object
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.errors import LocalError
from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.former import Reader
from mull.neutral.messages import Message

__all__ = [
    "Piece",
    "Pieces",
    "arguments_of",
    "call_of",
    "facts_of",
    "foreign_answer",
    "media_of",
    "open_calls",
    "pack",
    "shown_text",
    "unpack",
]

_encode = msgspec.json.Encoder().encode


class _Packed(Value, frozen=True):
    """The messages that one request added, and the text that the library was given as the answer if
    it is not the text of the last message.
    """

    messages: tuple[Message, ...]
    text: str | None = None


_read: Reader[_Packed] = Reader(_Packed)


def shown_text(result: Result) -> str:
    """The text of an answer for the library; that of an answer with a schema is JSON."""
    if result.value is None:
        return result.text
    return _encode(result.value).decode()


def open_calls(messages: Sequence[Message]) -> tuple[ToolCallBlock, ...]:
    """The calls of the last answer that have no result yet."""
    answers = [message for message in messages if message.role == "assistant"]
    done = {
        block.call_id
        for message in messages
        for block in message.blocks
        if isinstance(block, ToolResultBlock)
    }
    return tuple(call for call in answers[-1].tool_calls if call.id not in done) if answers else ()


def pack(result: Result, text: str) -> str:
    """An answer, as one line, to be kept by a library that was given this text."""
    packed = _Packed(result.messages, None if text == result.text else text)
    return _encode(packed).decode() + "\n"


def unpack(packed: str, text: str, calls: Sequence[ToolCallBlock]) -> list[Message]:
    """The messages of an answer that the library now has with this text and these calls.

    Several lines are answers that the library has joined; they are taken as they are.

    Raises:
        LocalError: it was damaged.
    """
    try:
        kept = [_read(line) for line in packed.removesuffix("\n").split("\n")]
    except (msgspec.DecodeError, UnicodeError) as error:
        raise LocalError(f"an answer that mull stored in the history is damaged: {error}") from None
    messages = [message for one in kept for message in one.messages]
    last = max((n for n, one in enumerate(messages) if one.role == "assistant"), default=None)
    if last is None or len(kept) > 1:
        return messages
    answer, text = messages[last], str(text)  # not a subclass, which has no JSON form
    before = answer.text if kept[0].text is None else kept[0].text
    new_text = None if before.strip() == text.strip() else text
    was = open_calls(messages)
    if new_text is not None or _by_id(was) != _by_id(calls):
        messages[last] = _edited(answer, new_text, was, calls)
    return messages


def _by_id(calls: Iterable[ToolCallBlock]) -> dict[str, tuple[str, Any]]:
    return {call.id: _meaning(call) for call in calls}


def _meaning(call: ToolCallBlock) -> tuple[str, Any]:
    written = call.arguments or ""
    is_object = not written.strip() or read_object(written) is not None
    return call.name, call.input if is_object else written


def _edited(
    answer: Message,
    text: str | None,
    was: Sequence[ToolCallBlock],
    calls: Sequence[ToolCallBlock],
) -> Message:
    """The answer with another text, unless that is None, and other open calls in their places."""
    wanted = {call.id: call for call in calls}
    blocks: list[Block] = []
    for block in answer.blocks:
        if isinstance(block, TextBlock) and text is not None:
            # OpenAI requires the item that followed a reasoning item, which `wire` identifies.
            blocks += [TextBlock(text, wire=block.wire)] if text else []
            text = ""
        elif isinstance(block, ToolCallBlock) and block in was:
            new = wanted.pop(block.id, None)
            if new is not None:
                blocks.append(block if _meaning(block) == _meaning(new) else new)
        else:
            blocks.append(block)
    blocks += [TextBlock(text)] if text else []
    return msgspec.structs.replace(answer, blocks=(*blocks, *wanted.values()))


def foreign_answer(thoughts: Iterable[str], text: str, calls: Iterable[ToolCallBlock]) -> Message:
    """An answer that another adapter of the library wrote: the caller vouches for it."""
    thinking = (ThinkingBlock(thought, "reasoning_content") for thought in thoughts if thought)
    said = (TextBlock(str(text)),) if text else ()
    return Message(role="assistant", status="complete", blocks=(*thinking, *said, *calls))


def facts_of(result: Result) -> dict[str, Any]:
    """What is known about an answer beside its content, as JSON data."""
    notes = [note.text for note in result.notes]
    facts = {"status": result.status, "request_id": result.request_id}
    return {**facts, "cost": result.cost, "notes": notes}


def arguments_of(call: ToolCallBlock) -> str:
    """The arguments of a call as JSON text, or as whatever the model wrote instead."""
    return _encode(call.input).decode() if call.arguments is None else call.arguments


def call_of(call_id: str, name: str, arguments: Any) -> ToolCallBlock:
    """A call from the arguments that a library has: an object, or its text."""
    if not isinstance(arguments, str):
        return ToolCallBlock(call_id, name, dict(arguments or {}))
    found = read_object(arguments) if arguments.strip() else {}
    return ToolCallBlock(call_id, name, found or {}, arguments if found is None else None)


def media_of(media_type: str | None, data: str | None, url: str | None) -> MediaBlock:
    """An attachment from base64 data or a URL, which may be a `data:` URL."""
    if url is not None and url.startswith("data:"):
        head, _, data = url[len("data:") :].partition(",")
        media_type, url = head.partition(";")[0] or media_type, None
    return MediaBlock(media_type or "image/*", data, url)


class Piece(NamedTuple):
    """A chunk of an answer: its thinking, its text, or the arguments of a call.

    `at` is the position of its block. The first chunk of a call has the id and the name, no other.
    """

    kind: Literal["thinking", "text", "call"]
    at: int
    text: str
    id: str = ""
    name: str = ""


class _Call:
    """A call that arrives; nothing of it is given out before its id and its name are known."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.waiting: list[str] = []
        self.is_given = False

    def take(self, event: ToolCallDelta, at: int) -> Iterator[Piece]:
        self.id, self.name = self.id or event.id or "", self.name or event.name or ""
        self.waiting.append(event.arguments)
        if self.id and self.name:
            yield from self.give(at)

    def give(self, at: int) -> Iterator[Piece]:
        text = "".join(self.waiting)
        self.waiting.clear()
        if not self.is_given:
            yield Piece("call", at, text, self.id, self.name)
        elif text:
            yield Piece("call", at, text)
        self.is_given = True


class Pieces:
    """The chunks of one answer as it arrives.

    With `whole`, text and calls are withheld until the end: an answer that must match a schema may
    be corrected, or given as a call.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole
        self._assembler = Assembler()
        self._calls: dict[int, _Call] = {}
        self._texts: list[str] = []
        self._next = 0

    @property
    def text(self) -> str:
        """The text that was given out so far."""
        return "".join(self._texts)

    def take(self, event: Event) -> Iterator[Piece]:
        """The chunks in an event."""
        self._assembler.add(event)
        at = self._assembler.at
        if at is None:
            return
        self._next = max(self._next, at + 1)
        if isinstance(event, ThinkingDelta):
            if event.text:
                yield Piece("thinking", at, event.text)
        elif self._whole:
            return
        elif isinstance(event, TextDelta):
            if event.text:
                yield self._say(at, event.text)
        elif isinstance(event, ToolCallDelta):
            yield from self._calls.setdefault(at, _Call()).take(event, at)

    def end(self, result: Result) -> Iterator[Piece]:
        """What is left when the answer is complete."""
        if self._whole:
            if text := shown_text(result):
                yield self._say(self._next, text)
            for at, call in enumerate(open_calls(result.messages), self._next + 1):
                yield Piece("call", at, arguments_of(call), call.id, call.name)
            return
        for at, arriving in self._calls.items():
            if not arriving.is_given:
                block = self._assembler.blocks()[at]
                arriving.id = block.id if isinstance(block, ToolCallBlock) else ""
                yield from arriving.give(at)

    def _say(self, at: int, text: str) -> Piece:
        self._texts.append(text)
        return Piece("text", at, text)
