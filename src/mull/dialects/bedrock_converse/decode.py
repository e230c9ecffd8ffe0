"""Interprets the messages of a Converse stream, or a complete response.

Blocks are identified by their index; an index that starts again is another block. An answer is
complete once its stop reason was received: counts follow it, and a stream that ends without one was
cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.parts import (
    OpaquePart,
    Part,
    ReasoningPart,
    TextPart,
    ToolUsePart,
    begun_by,
)
from mull.dialects.bedrock_converse.words import (
    REASONING,
    REDACTED,
    neutral_stop_reason,
    read_error,
    read_usage,
)
from mull.dialects.decoder import NAMELESS, Stage
from mull.dialects.eventstream import ERROR, EXCEPTION, EventStreamReader
from mull.dialects.ids import distinct_id
from mull.neutral.blocks import wire_of
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    Started,
    TextDelta,
    UsageReported,
    Warned,
)
from mull.neutral.target import Target

__all__ = ["FRAMING", "ChunkInterpreter"]

FRAMING = EventStreamReader
_KINDS = ("text", "toolUse", "toolResult", REASONING)
"""The members of a block that a model's answer has one of."""


class ChunkInterpreter:
    """Reads one answer. `field_name` has no effect: reasoning has only one place in this
    dialect.
    """

    def __init__(self, target: Target, field_name: str | None = None) -> None:
        self._kind = target.compat.thinking_kind
        self._parts: dict[int, Part] = {}
        self._newest: Part | None = None
        self._keys: set[int] = set()
        self._call_ids: set[str] = set()
        self._begun = self._failed = self._called = False
        self.stage: Stage = "open"
        self._reason: str | None = None
        self._steps: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "messageStart": self._start_message,
            "contentBlockStart": self._start_block,
            "contentBlockDelta": self._take_delta,
            "contentBlockStop": self._stop_block,
            "messageStop": self._end_message,
            "metadata": self._count,
        }

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one message of the stream."""
        if type(value) is not dict:
            return []
        if event == "contentBlockDelta":
            return self._take_delta(value)
        step = self._steps.get(event or "")
        if step is not None:
            return step(value)
        for mark in (EXCEPTION, ERROR):
            if event is not None and event.startswith(mark):
                return self._fail(event.removeprefix(mark), value)
        if event is None:  # as SDKs record a stream: the name is the only key
            return self._unwrap(value)
        return []

    def whole(self, value: Any) -> list[Event]:
        """Events of a complete response, including its end."""
        if not isinstance(value, dict):
            return [Failed("the answer is not an object", "unreadable", body=value)]
        if not self._steps.keys().isdisjoint(value):
            return [*self.take(None, value), *self.end(False)]
        output = value.get("output")
        message = output.get("message") if isinstance(output, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        if not isinstance(content, list):
            if {"message", "Message", "error", "__type", "code"} & value.keys():
                return [read_error(None, value)]
            return [Failed("the answer has no content", "unreadable", body=value)]
        events = self._start_message(value)
        blocks = [one for block in content for one in _apart(block)]
        for index, block in enumerate(blocks):
            if isinstance(block, dict):
                events += self._read_block(index, block)
            elif block is not None:
                text = f"a block that is not an object was left out: {block!r:.80}"
                events.append(Warned("unreadable", text))
        return [*events, *self._end_message(value), *self._count(value), *self.end(True)]

    def end(self, done: bool) -> list[Event]:
        """Events of the end of the stream."""
        if not self._begun:
            return []
        ended = done or self._reason is not None
        still_open = [part for part in self._parts.values() if not part.stopped]
        # The end of a message ends its blocks, even if their own stops were lost.
        events = [event for p in still_open for event in (p.stop() if ended else p.cut())]
        if self._failed:
            return events
        if not ended:
            text = "the stream ended before the answer did"
            return [*events, Failed(text, "incomplete", "interrupted")]
        reason = neutral_stop_reason(self._reason, calls=self._called)
        if reason == "tool_calls" and self._call_ids and not self._called:
            reason = "stop"  # none of the calls can be run
        return [*events, Finished(reason)]

    def _unwrap(self, value: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        for name, inner in value.items():
            if name in self._steps and isinstance(inner, dict):
                events += self._steps[name](inner)
            elif name.endswith("Exception") and isinstance(inner, dict):
                events += self._fail(name, inner)
        return events

    def _start_message(self, value: dict[str, Any]) -> list[Event]:
        if self._begun and self._parts:
            self._failed = True
            text = "the server started another answer in the middle of this one"
            return [Failed(text, "spliced")]
        self._begun = True
        return [Started()]

    def _take_delta(self, value: dict[str, Any]) -> list[Event]:
        get = value.get
        delta, index = get("delta"), get("contentBlockIndex")
        if type(delta) is not dict:
            return []
        part = self._parts.get(index) if type(index) is int else self._newest
        if part is not None:
            return part.take(delta)
        at = self._place(index)
        begun = begun_by(delta, self._new_key(at), self._kind)
        if begun is None:
            return [Warned("unexpected_delta", f"a chunk of {_kind(delta)} without a block")]
        return self._open(at, begun) + begun.take(delta)

    def _start_block(self, value: dict[str, Any]) -> list[Event]:
        start = value.get("start")
        at = self._place(value.get("contentBlockIndex"))
        if not isinstance(start, dict) or not start:
            return []
        return self._begin(at, start)

    def _begin(self, at: int, start: dict[str, Any]) -> list[Event]:
        """A block with an explicit start: a call, or an unknown kind."""
        key = self._new_key(at)
        call = start.get("toolUse")
        if isinstance(call, dict) and call.get("type") is None:
            part = ToolUsePart(key)
            events = self._open(at, part)
            if isinstance(name := call.get("name"), str) and name:
                self._called = True
            else:
                events = [*events, NAMELESS]
            call_id = distinct_id(call.get("toolUseId"), key, self._call_ids)
            return events + part.begin(call, call_id)
        return self._open(at, OpaquePart(key, start))

    def _read_block(self, at: int, block: dict[str, Any]) -> list[Event]:
        """A block of a complete response, as events of a stream."""
        match block:
            case {"text": str(text)}:
                part: Part = TextPart(self._new_key(at))
                rest = {name: value for name, value in block.items() if name != "text"}
                events = self._open(at, part) + part.take({"text": text})
                if rest:
                    events.append(TextDelta("", at, wire=wire_of(DIALECT, rest)))
                return events + part.stop()
            case {"citationsContent": {"content": list(content)} as given}:
                cited = {name: value for name, value in given.items() if name != "content"}
                return self._read_cited(at, content, cited)
            case {"reasoningContent": dict(thought)}:
                part = ReasoningPart(self._new_key(at), self._kind)
                told = thought.get("reasoningText")
                given = dict(told) if isinstance(told, dict) else {}
                if isinstance(redacted := thought.get(REDACTED), str):
                    given[REDACTED] = redacted
                events = self._open(at, part) + part.take({REASONING: given})
                return events + part.stop()
        return self._begin(at, block) + self._parts[at].stop()

    def _read_cited(self, at: int, content: list[Any], cited: dict[str, Any]) -> list[Event]:
        key = self._new_key(at)
        part = TextPart(key)
        pieces = [piece for piece in content if isinstance(piece, dict)]
        text = "".join(said for piece in pieces if isinstance(said := piece.get("text"), str))
        kept = cited if len(pieces) == 1 else {"content": content, **cited}
        events = self._open(at, part)
        return [*events, TextDelta(text, key, wire=wire_of(DIALECT, kept)), BlockEnded(key)]

    def _place(self, index: Any) -> int:
        return index if type(index) is int else max(self._parts, default=-1) + 1

    def _new_key(self, at: int) -> int:
        key = at if at not in self._keys else max(self._keys) + 1
        self._keys.add(key)
        return key

    def _open(self, at: int, part: Part) -> list[Event]:
        self._begun = True
        before = self._parts.get(at)
        self._parts[at] = self._newest = part
        return [] if before is None or before.stopped else before.cut()

    def _stop_block(self, value: dict[str, Any]) -> list[Event]:
        index = value.get("contentBlockIndex")
        part = self._parts.get(index) if type(index) is int else self._newest
        return [] if part is None or part.stopped else part.stop()

    def _end_message(self, value: dict[str, Any]) -> list[Event]:
        self._begun = True
        reason = value.get("stopReason")
        if isinstance(reason, str):
            self._reason = reason
            self.stage = "closing"
        return []

    def _count(self, value: dict[str, Any]) -> list[Event]:
        self._begun = True
        if self.stage == "closing":  # the counts are the last message
            self.stage = "over"
        usage = value.get("usage")
        return [UsageReported(read_usage(usage))] if isinstance(usage, dict) and usage else []

    def _fail(self, name: str, value: dict[str, Any]) -> list[Event]:
        self._failed = self._begun = True
        self.stage = "closing"
        return [read_error(name, value)]


def _apart(block: Any) -> list[Any]:
    """The blocks in one that holds several kinds: none may be lost, and only one is accepted."""
    kinds = [name for name in block if name in _KINDS] if isinstance(block, dict) else []
    if len(kinds) < 2:
        return [block]
    first = {name: value for name, value in block.items() if name not in kinds[1:]}
    return [first, *({name: block[name]} for name in kinds[1:])]


def _kind(delta: dict[str, Any]) -> str:
    return next(iter(delta), "nothing")
