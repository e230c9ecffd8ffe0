"""Interprets the events of a Messages stream, or a complete message.

Blocks are identified by their index; an index that starts again is another block. An answer is
complete once its stop reason or its end was received; a stream that just ends is not. A stream
contains one message, or the same one announced twice; anything else was spliced by a proxy and is
reported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.endings import (
    neutral_stop_reason,
    read_error,
    read_stop_details,
    read_transformations,
)
from mull.dialects.anthropic.parts import Part, ToolUsePart, guess_block, new_part
from mull.dialects.anthropic.usage import merge_counts, read_usage
from mull.dialects.decoder import NAMELESS, Stage
from mull.dialects.extras import unread
from mull.dialects.ids import distinct_id
from mull.dialects.sse import SseReader
from mull.neutral.blocks import wire_of
from mull.neutral.events import Event, Failed, Finished, Started, UsageReported, Warned
from mull.neutral.target import Target

__all__ = ["FRAMING", "ChunkInterpreter"]

FRAMING = SseReader
_MESSAGE = (
    *("id", "type", "role", "model", "content", "stop_reason", "usage", "input_transformations"),
    "message",
    "delta",
)
"""The keys of a message and of the event of its end that are read."""


class ChunkInterpreter:
    """Reads one answer. `field_name` has no effect: reasoning has only one place in this
    dialect.
    """

    def __init__(self, target: Target, field_name: str | None = None) -> None:
        self.stage: Stage = "open"
        self._kind = target.compat.thinking_kind
        self._parts: dict[int, Part] = {}
        self._newest: Part | None = None
        self._keys: set[int] = set()
        self._call_ids: set[str] = set()
        self._counts: dict[str, Any] = {}
        self._rest: dict[str, Any] = {}
        self._id: str | None = None
        self._begun = self._stopped = self._failed = self._called = False
        self._reason: str | None = None
        self._steps: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "message_start": self._start_message,
            "content_block_start": self._start_block,
            "content_block_stop": self._stop_block,
            "message_delta": self._end_message,
            "message_stop": self._stop_message,
            "error": self._fail,
        }

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one value of the stream."""
        if type(value) is not dict:
            return []
        kind = value.get("type") or event
        if kind == "content_block_delta":
            delta = value.get("delta")
            if type(delta) is not dict:
                return []
            index = value.get("index")
            part = self._parts.get(index) if type(index) is int else self._newest
            return self._open_for(value, delta) if part is None else part.take(delta)
        if value.get("error"):
            return self._fail(value)
        step = self._steps.get(kind) if isinstance(kind, str) else None
        return step(value) if step is not None else []

    def whole(self, value: Any) -> list[Event]:
        """Events of a complete message, including its end."""
        if not isinstance(value, dict):
            return [Failed("the answer is not a message", "unreadable", body=value)]
        if value.get("error") or _string(value.get("type")) in self._steps:
            return [*self.take(None, value), *self.end(False)]
        if not isinstance(value.get("content"), list | str):
            return [Failed("the answer has no content", "unreadable", body=value)]
        self._stopped = True
        return [*self._read_message(value), *self.end(True)]

    def end(self, done: bool) -> list[Event]:
        """Events of the end of the stream."""
        if not self._begun:
            return []
        ended = done or self._reason is not None
        # The end of a message ends its blocks, even if their own stops were lost.
        events = self._close_parts(whole=ended)
        if self._failed:
            return events
        if not ended:
            text = "the stream ended before the answer did"
            return [*events, Failed(text, "incomplete", "interrupted")]
        reason = neutral_stop_reason(self._reason, calls=self._called)
        if reason == "tool_calls" and self._call_ids and not self._called:
            reason = "stop"  # none of the calls can be run
        rest = {**self._rest, "usage": self._counts} if self._counts else self._rest
        return [*events, Finished(reason, wire=wire_of(DIALECT, rest))]

    @property
    def _is_over(self) -> bool:
        return self._stopped or self._reason is not None

    def _start_message(self, value: dict[str, Any]) -> list[Event]:
        message = value.get("message")
        if not isinstance(message, dict):
            message = {}
        events: list[Event] = []
        if self._begun and not self._is_over:
            if message.get("id") == self._id:
                return []  # a gateway sent it twice: BerriAI/litellm#32479
            if self._parts:
                # A retry spliced into the stream. Two answers in one never verify, and a call
                # may be cut in half: vercel/ai#18331.
                self._failed = True
                text = "the server started another answer in the middle of this one"
                events = [*self._close_parts(whole=False), Failed(text, "spliced")]
        elif self._begun:
            events = self._close_parts(whole=True)
            events.append(Warned("second_message", "another answer followed in the same stream"))
        self._parts, self._newest, self._counts, self._rest = {}, None, {}, {}
        self._stopped, self._reason, self.stage = False, None, "open"
        return events + self._read_message(message)

    def _read_message(self, message: dict[str, Any]) -> list[Event]:
        """A message object: bare in `message_start`, full in a complete response."""
        self._begun = True
        self._leave(message)
        self._id = _string(message.get("id"))
        events: list[Event] = [Started(self._id, _string(message.get("model")))]
        content = message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                events += self._open(index, block)
                events += self._parts[index].stop()
        events += read_transformations(message.get("input_transformations"))
        return events + self._read_ending(message, message.get("usage"))

    def _read_ending(self, holder: dict[str, Any], usage: Any) -> list[Event]:
        if reason := _string(holder.get("stop_reason")):
            self._reason, self.stage = reason, "closing"
        events: list[Event] = [*read_stop_details(holder.get("stop_details"))]
        if merge_counts(self._counts, usage):
            events.append(UsageReported(read_usage(self._counts)))
        return events

    def _start_block(self, value: dict[str, Any]) -> list[Event]:
        block = value.get("content_block")
        if not isinstance(block, dict):
            return []
        index = value.get("index")
        if type(index) is not int:
            index = max(self._parts, default=-1) + 1
        return self._open(index, block)

    def _open_for(self, value: dict[str, Any], delta: dict[str, Any]) -> list[Event]:
        """For a delta without a block, its start is made up if its kind is known."""
        block = guess_block(delta)
        if block is None:
            return [Warned("unexpected_delta", f"a {delta.get('type')} without a block")]
        events = self._start_block({**value, "content_block": block})
        return events + (self._newest.take(delta) if self._newest else [])

    def _open(self, index: int, block: dict[str, Any]) -> list[Event]:
        self._begun = True
        before = self._parts.get(index)
        events = [] if before is None or before.stopped else before.cut()
        key = index if index not in self._keys else max(self._keys) + 1
        self._keys.add(key)
        if block.get("type") == "tool_use":
            call_id = distinct_id(block.get("id"), key, self._call_ids)
            part: Part = ToolUsePart(key, block, call_id)
            if _string(block.get("name")):
                self._called = True
            else:
                events = [*events, NAMELESS]
        else:
            part = new_part(key, block, self._kind)
        self._parts[index] = self._newest = part
        return events + part.open()

    def _stop_block(self, value: dict[str, Any]) -> list[Event]:
        index = value.get("index")
        part = self._parts.get(index) if type(index) is int else self._newest
        return [] if part is None or part.stopped else part.stop()

    def _end_message(self, value: dict[str, Any]) -> list[Event]:
        self._begun = True
        delta = value.get("delta")
        holder = delta if isinstance(delta, dict) else value
        self._leave(value)
        self._leave(holder)
        events: list[Event] = [*read_transformations(value.get("input_transformations"))]
        return events + self._read_ending(holder, value.get("usage"))

    def _leave(self, holder: dict[str, Any]) -> None:
        """Keep what else is said about the message, for those who know it."""
        for name, value in unread(holder, _MESSAGE).items():
            if value is not None:
                self._rest[name] = value

    def _stop_message(self, value: dict[str, Any]) -> list[Event]:
        self._begun = self._stopped = True
        self.stage = "over"
        return []

    def _close_parts(self, *, whole: bool) -> list[Event]:
        still_open = [part for part in self._parts.values() if not part.stopped]
        return [event for p in still_open for event in (p.stop() if whole else p.cut())]

    def _fail(self, value: dict[str, Any]) -> list[Event]:
        self._failed = self._begun = True
        self.stage = "closing"
        return [read_error(value)]


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
