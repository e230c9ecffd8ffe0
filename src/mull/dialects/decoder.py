"""Drives a dialect's interpreter with bytes: events out, whatever comes in.

The interpreter of a dialect knows what its JSON means, its framing how a stream of it is cut into
pieces. This file looks whether a body is a stream or one JSON document, which all of them have,
and keeps every failure inside the events. It never raises: damage becomes a warning where nothing
was lost and a `Failed` event where it was.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import DecodeError

from mull.dialects.sse import (
    BOM,
    GLUED,
    LINE_LIMIT,
    Frame,
    SseReader,
    decode_json,
    parse_payload,
)
from mull.dialects.surrogates import Surrogates, cleaned
from mull.neutral.events import Event, Failed, Finished, Warned

__all__ = ["Decoder", "FrameReader", "Interpreter"]

_ENDS = frozenset((Finished, Failed))
_UNEXPECTED = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)


class Interpreter(Protocol):
    """What a dialect makes of the JSON values it is sent."""

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one value of a stream; `event` is its name in the stream, if it has one."""

    def whole(self, value: Any) -> list[Event]:
        """Events of one whole response, its end included."""

    def end(self, done: bool) -> list[Event]:
        """Events of the end of a stream; `done` says that the stream said so itself."""


class FrameReader(Protocol):
    """The framing of a dialect's streams: it cuts bytes into frames.

    `comments` counts signs of life without data. `damage` says why nothing more can be read.
    """

    comments: int

    @property
    def damage(self) -> str | None: ...

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that are whole now."""

    def close(self) -> list[Frame]:
        """What the end of the stream makes whole."""


class Decoder:
    """Feed it bytes as they come, then close it; the events do not depend on the cuts.

    A document may have `limit` bytes; a stream has the limits of its framing.
    """

    def __init__(
        self, interpreter: Interpreter, limit: int = LINE_LIMIT, reader: FrameReader | None = None
    ) -> None:
        self._interpreter = interpreter
        self._reader = SseReader(limit) if reader is None else reader
        self._limit = limit
        self._document: list[bytes] | None = None
        self._size = 0
        self._opening = b""
        self._looked = False
        self._done = False
        self._lost: bytes | None = None
        self._glued = False
        self._finished: Finished | Failed | None = None
        self._surrogates = Surrogates()

    @property
    def comments(self) -> int:
        """How many comments came: signs of life without data."""
        return self._reader.comments

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if not self._looked:
            data = self._look(data)
        if self._document is not None:
            self._size += len(data)
            if self._size <= self._limit:
                self._document.append(data)
            return []
        return self._frames(self._reader.feed(data))

    def close(self) -> list[Event]:
        """The events of the end. Nothing may be fed after it."""
        if self._document is not None:
            events = self._close_document(b"".join(self._document))
        else:
            opening, self._opening = self._opening, b""
            events = self._frames(self._reader.feed(opening) if opening else [])
            events += self._frames(self._reader.close())
            events += self._guard(self._interpreter.end, self._done)
            self._mind_damage()
        if self._finished is None:
            self._finished = Failed("the stream ended before it began", "empty", "interrupted")
        return [*events, *self._surrogates.flush(), self._ending(self._finished)]

    def _mind_damage(self) -> None:
        """What framing could not read is why an answer has no end."""
        damage, end = self._reader.damage, self._finished
        if damage is not None and not (isinstance(end, Failed) and end.status == "error"):
            self._finished = Failed(f"the stream is damaged: {damage}", "damaged")

    def _look(self, data: bytes) -> bytes:
        """Decide between a stream and a document by the first byte that is not blank."""
        data = self._opening + data
        start = data.removeprefix(BOM).lstrip()
        if not start or BOM.startswith(data):
            self._opening = data
            return b""
        self._opening, self._looked = b"", True
        if start[:1] in b"{[":
            self._document = []
            return start
        return data

    def _frames(self, frames: list[Frame]) -> list[Event]:
        events: list[Event] = []
        take = self._interpreter.take
        for event, data in frames:
            try:
                value = decode_json(data)
            except (DecodeError, UnicodeDecodeError, RecursionError):
                events += self._odd_frame(event, data)
                continue
            try:
                events += self._keep(take(event, value))
            except _UNEXPECTED as error:
                events.append(self._damage(error, value))
        return events

    def _odd_frame(self, event: str | None, data: bytes) -> list[Event]:
        """A frame that is not one JSON value: the end of the stream, or something to put right."""
        if data.strip() == b"[DONE]":
            self._done = True
            return []
        if data.lstrip().startswith(b":"):  # a comment that a proxy passed on as data
            self._reader.comments += 1
            return []
        parsed = parse_payload(data)
        self._surrogates.needed |= parsed.odd
        self._done = self._done or parsed.done
        events = self._mended(parsed.problem)
        for value in parsed.values:
            events += self._guard(self._interpreter.take, event, value)
        if parsed.lost:
            self._lost = parsed.lost
            events.append(Warned("unreadable", f"not JSON: {_shorten(parsed.lost)}"))
        return events

    def _close_document(self, body: bytes) -> list[Event]:
        if self._size > self._limit:
            self._lost = b"a body over the size limit"
        parsed = parse_payload(body)
        self._surrogates.needed |= parsed.odd
        if parsed.lost:
            self._lost = parsed.lost
        events, values = self._mended(parsed.problem), parsed.values
        if len(values) == 1 and isinstance(values[0], list):
            values = values[0]
        elif len(values) == 1:
            return events + self._guard(self._interpreter.whole, values[0])
        for value in values:
            events += self._guard(self._interpreter.take, None, value)
        if values:
            return events + self._guard(self._interpreter.end, True)
        self._finished = Failed(f"the answer is not JSON: {_shorten(body)}", "unreadable")
        return events

    def _mended(self, problem: str | None) -> list[Event]:
        """A warning of what was put right; a proxy that glues events does so all the time."""
        if problem is None or (self._glued and problem.endswith(GLUED)):
            return []
        self._glued = self._glued or problem.endswith(GLUED)
        return [Warned("stream", problem)]

    def _guard(self, step: Any, *arguments: Any) -> list[Event]:
        """Run a step of the interpreter; a shape that nobody expected is damage, not a crash."""
        try:
            return self._keep(step(*arguments))
        except _UNEXPECTED as error:
            return [self._damage(error, arguments[-1])]

    def _damage(self, error: Exception, value: Any) -> Warned:
        self._lost = repr(value)[:200].encode("utf-8", "replace")
        return Warned("unreadable", f"unexpected shape ({error}): {_shorten(self._lost)}")

    def _keep(self, events: list[Event]) -> list[Event]:
        for event in events:
            if type(event) in _ENDS:
                events = self._without_end(events)
                break
        return self._surrogates.mend(events) if self._surrogates.needed else events

    def _without_end(self, events: list[Event]) -> list[Event]:
        """Remember the end, which is told last; a failure goes before a regular end."""
        for event in events:
            if isinstance(event, Failed) or (
                isinstance(event, Finished) and self._finished is None
            ):
                self._finished = event
        return [event for event in events if type(event) not in _ENDS]

    def _ending(self, end: Finished | Failed) -> Event:
        if isinstance(end, Finished) and self._lost is not None:
            text = f"part of the answer could not be read: {_shorten(self._lost)}"
            return Failed(text, "damaged")
        return cleaned(end) if self._surrogates.needed else end


def _shorten(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(text) <= 200 else text[:200] + " …"
