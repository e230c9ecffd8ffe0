"""Drives a dialect's interpreter with bytes: events out, whatever comes in.

The interpreter of a dialect knows what its JSON means, its framing how a stream is split into
frames. This module detects whether a body is a stream or one JSON document, which all dialects
have, and turns every failure into events. It never raises: damage becomes a warning if nothing was
lost and a `Failed` event if something was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from msgspec import DecodeError

from mull.dialects.sse import (
    BOM,
    GLUED,
    LINE_LIMIT,
    Frame,
    Parsed,
    SseReader,
    decode_json,
    decode_short,
    parse_payload,
)
from mull.dialects.surrogates import Surrogates, cleaned
from mull.neutral.events import Event, Failed, Finished, Key, OpaqueReceived, Warned
from mull.neutral.nesting import TOO_SHORT

__all__ = [
    "NAMELESS",
    "OVERSIZED",
    "Decoder",
    "FrameReader",
    "Interpreter",
    "Stage",
    "broken_part",
]

ANSWER_LIMIT = 256 * 1024 * 1024
"""Maximum bytes of one answer; the longest answer of any model is a fraction of it."""
MOST_WARNINGS = 20
"""Warnings of one answer that are reported individually."""
OVERSIZED = "oversized"
"""The code of a failure caused by a limit of ours."""
NAMELESS = Warned("malformed", "the model made a tool call without a name, which cannot be run")
"""Said of each such call; it is kept, and not sent back."""
_DONE = b"[DONE]"
_BLANKS = b" \t\r\n"
"""What JSON allows around a value; Python strips more than that from bytes."""
_SHOWN = 120
_ASIDE = frozenset((Finished, Failed, Warned))
_UNEXPECTED = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError)

Stage: TypeAlias = Literal["open", "closing", "over"]
"""How close to its end an answer is. One that is `closing` has given its stop reason: counts, or a
little more text, may follow immediately. What follows one that is `over` is not part of it.
"""


def broken_part(data: dict[str, Any], key: Key, what: str) -> list[Event]:
    """The events of a part of an answer that cannot be what it says it is: kept, never sent back,
    and reported.
    """
    shown = repr(data)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]} …"
    said = f"{what} in the answer cannot be used and is not sent back: {shown}"
    return [OpaqueReceived(data, key, broken=True), Warned("malformed", said)]


if TYPE_CHECKING:

    class Interpreter(Protocol):
        """How a dialect interprets the JSON values it receives."""

        stage: Stage

        def take(self, event: str | None, value: Any) -> list[Event]:
            """Events of one value of a stream; `event` is its name in the stream, if it has one."""

        def whole(self, value: Any) -> list[Event]:
            """Events of one complete response, including its end."""

        def end(self, done: bool) -> list[Event]:
            """Events of the end of a stream; `done` means that the stream itself announced it."""

    class FrameReader(Protocol):
        """The framing of a dialect's streams: it splits bytes into frames.

        `comments` counts keep-alives without data. `damage` says why nothing more can be read, and
        `overflowed` that one frame is too long.
        """

        comments: int
        damage: str | None
        overflowed: bool

        def feed(self, chunk: bytes) -> list[Frame]:
            """The frames completed by these bytes."""

        def close(self) -> list[Frame]:
            """What the end of the stream completes."""


class Decoder:
    """Feed it bytes as they arrive, then close it; the events do not depend on how they are split.

    `limit` is the maximum size of one event or document, `ceiling` of the whole answer; a `reader`
    has its own limits. With `reads_on` it also reads what follows the end of an answer: a file may
    contain several, and nothing in it must be lost.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        limit: int = LINE_LIMIT,
        ceiling: int = ANSWER_LIMIT,
        reader: FrameReader | None = None,
        *,
        reads_on: bool = False,
    ) -> None:
        self._interpreter = interpreter
        self._reader = SseReader(limit) if reader is None else reader
        self._limit, self._ceiling = limit, ceiling
        self._reads_on = reads_on
        self._fed = 0
        self._document: list[bytes] | None = None
        self._size = self._tried = 0
        self._parsed: Parsed | None = None
        self._opening = b""
        self._looked = False
        self._done = self._over = self._tail = self._whole_document = False
        self._cut: Failed | None = None
        self._lost: bytes | None = None
        self._glued = False
        self._warnings = 0
        self._finished: Finished | Failed | None = None
        self._surrogates = Surrogates()

    @property
    def comments(self) -> int:
        """How many comments were received: keep-alives without data."""
        return self._reader.comments

    @property
    def stage(self) -> Stage:
        """How close to its end the answer is."""
        if self._over:
            return "over"
        return "closing" if self._whole_document else self._interpreter.stage

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete; none once the answer is over."""
        if self._over:
            return []
        self._fed += len(data)
        if not self._looked:
            data = self._look(data)
            if self._cut is not None:
                return []
        if self._document is not None:
            self._hold(self._document, data)
            events: list[Event] = []
        else:
            events = self._frames(self._reader.feed(data))
            if self._reader.damage is not None:
                if self._reader.overflowed:
                    self._stop("one event", self._limit)
                self._over = True
        if self._fed > self._ceiling:
            self._stop("an answer", self._ceiling)
        return events

    def close(self) -> list[Event]:
        """The events of the end. Nothing may be fed after it."""
        events: list[Event] = []
        if self._document is not None:
            if self._cut is None:
                events = self._close_document(b"".join(self._document))
        else:
            if not self._over:
                self._tail = self._interpreter.stage == "closing"
                events = self._frames(self._reader.close())
            events += self._guard(self._interpreter.end, self._done)
            self._mind_damage()
        end = self._cut or self._finished
        if end is None:
            end = Failed("the stream ended before it began", "empty", "interrupted")
        return [*events, *self._surrogates.flush(), *self._unsaid(), self._ending(end)]

    def _mind_damage(self) -> None:
        """If framing could not be read, that is why an answer has no end."""
        damage = None if self._reader.overflowed else self._reader.damage
        end = self._finished
        if damage is not None and not (isinstance(end, Failed) and end.status == "error"):
            self._finished = Failed(f"the stream is damaged: {damage}", "damaged")

    def _look(self, data: bytes) -> bytes:
        """Decide between a stream and a document by the first byte that is not blank."""
        data = self._opening + data
        if BOM.startswith(data):
            self._opening = data
            return b""
        start = data.removeprefix(BOM).lstrip()
        self._opening, self._looked = b"", bool(start)
        if start[:1] in (b"{", b"["):
            self._document = []
        elif start[:1] == b"<":
            self._cut = Failed("the endpoint sent a web page instead of a response", "unreadable")
            self._over = True
        return start

    def _hold(self, document: list[bytes], data: bytes) -> None:
        """Store a chunk of a document. Whether it is complete is tested rarely, because each test
        costs what arrived so far.
        """
        document.append(data)
        self._size += len(data)
        if data.strip(_BLANKS):
            self._parsed = None
        if self._size > self._limit:
            self._stop("a document", self._limit)
            document.clear()
        elif self._size >= 2 * self._tried and data.rstrip()[-1:] in (b"}", b"]"):
            self._tried = self._size
            try:
                self._parsed = Parsed([decode_json(b"".join(document))])
            except (DecodeError, UnicodeDecodeError):
                return
            self._whole_document = True

    def _stop(self, what: str, limit: int) -> None:
        """Stop reading: the input is longer than any answer. One that has given its stop reason is
        still complete.
        """
        if self.stage == "open":
            most = f"{limit // 2**20} MiB" if limit >= 2**20 else f"{limit:,} bytes"
            text = f"the endpoint sent {what} of more than {most}, which is the limit"
            self._cut = Failed(text, OVERSIZED)
        self._over = True

    def _frames(self, frames: list[Frame]) -> list[Event]:
        """The events of these frames; ordinary frames are processed together."""
        events: list[Event] = []
        fresh: list[Event] = []
        interpreter, surrogates = self._interpreter, self._surrogates
        take, odd = interpreter.take, surrogates.needed
        for event, data in frames:
            try:
                value = decode_short(data) if len(data) <= TOO_SHORT else decode_json(data)
            except (DecodeError, UnicodeDecodeError):
                events += self._set_aside(fresh)
                events += self._odd_frame(event, data)
                fresh, odd = [], surrogates.needed
                if self._done and not self._reads_on:
                    self._over = True
                    break
            else:
                try:
                    fresh += surrogates.mend(take(event, value)) if odd else take(event, value)
                except _UNEXPECTED as error:
                    events += self._set_aside(fresh)
                    events += self._damage(error, value)
                    fresh = []
            if interpreter.stage == "over" and not self._reads_on:
                self._over = True
                break
        fresh = self._set_aside(fresh)
        return events + fresh if events else fresh

    def _odd_frame(self, event: str | None, data: bytes) -> list[Event]:
        """A frame that is not one JSON value: the end of the stream, or something to correct."""
        said = data.strip()
        if said == _DONE:
            self._done = True
            return []
        if self._tail and _DONE.startswith(said):
            return []  # only its end was cut
        if data.lstrip().startswith(b":"):  # a comment that a proxy passed on as data
            self._reader.comments += 1
            return []
        parsed = parse_payload(data)
        self._surrogates.needed |= parsed.odd
        self._done = self._done or parsed.done
        events = self._mended(parsed.problem)
        for value in parsed.values:
            events += self._guard(self._interpreter.take, event, value)
            if self._interpreter.stage == "over" and not self._reads_on:
                return events
        if parsed.lost:
            if not self._tail:
                self._lost = parsed.lost
            events += self._warn(Warned("unreadable", f"not JSON: {_shorten(parsed.lost)}"))
        return events

    def _close_document(self, body: bytes) -> list[Event]:
        parsed = self._parsed or parse_payload(body)
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
        """A warning about a correction; a proxy that joins events does so all the time."""
        if problem is None or (self._glued and problem.endswith(GLUED)):
            return []
        self._glued = self._glued or problem.endswith(GLUED)
        return self._warn(Warned("stream", problem))

    def _guard(self, step: Any, *arguments: Any) -> list[Event]:
        """Run a step of the interpreter; an unexpected structure is damage, not a crash."""
        try:
            return self._set_aside(self._surrogates.mend(step(*arguments)))
        except _UNEXPECTED as error:
            return self._damage(error, arguments[-1])

    def _damage(self, error: Exception, value: Any) -> list[Event]:
        self._lost = repr(value)[:200].encode("utf-8", "replace")
        said = f"unexpected shape ({error}): {_shorten(self._lost)}"
        return self._warn(Warned("unreadable", said))

    def _warn(self, warned: Warned) -> list[Event]:
        """The warning, unless there were many: a faulty server repeats its fault."""
        self._warnings += 1
        return [warned] if self._warnings <= MOST_WARNINGS else []

    def _unsaid(self) -> list[Event]:
        more = self._warnings - MOST_WARNINGS
        return [Warned("warnings", f"{more:,} more warnings of this kind")] if more > 0 else []

    def _set_aside(self, events: list[Event]) -> list[Event]:
        """Remember the end, which is reported last; a failure takes precedence over a regular
        end.
        """
        if _ASIDE.isdisjoint(map(type, events)):
            return events
        kept: list[Event] = []
        for event in events:
            if isinstance(event, Warned):
                kept += self._warn(event)
            elif isinstance(event, Failed):
                self._finished = event
            elif not isinstance(event, Finished):
                kept.append(event)
            elif self._finished is None:
                self._finished = event
        return kept

    def _ending(self, end: Finished | Failed) -> Event:
        if isinstance(end, Finished) and self._lost is not None:
            text = f"part of the answer could not be read: {_shorten(self._lost)}"
            return Failed(text, "damaged")
        return cleaned(end) if self._surrogates.needed else end


def _shorten(data: bytes) -> str:
    text = data[:1000].decode("utf-8", "replace")
    return text if len(text) <= 200 else text[:200] + " …"
