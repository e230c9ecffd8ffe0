"""Server-sent events from bytes, however they are split.

Rule 1: only CR, LF and CRLF end a line, also when they are split across chunks; a line is processed
when it is complete, so split characters do not matter. Rule 2: comments carry no data but show that
the other side is alive. Rule 3: faults of servers and proxies are corrected if nothing is lost (a
missing blank line, joined lines or frames) and reported; one bad event must not take a good one
with it.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Struct

from mull.neutral.nesting import TOO_SHORT, shallow
from mull.neutral.patterns import pattern

if TYPE_CHECKING:
    from json import JSONDecoder

__all__ = [
    "BOM",
    "GLUED",
    "LINE_LIMIT",
    "Frame",
    "Parsed",
    "SseReader",
    "decode_json",
    "decode_short",
    "parse_payload",
]

LINE_LIMIT = 64 * 1024 * 1024
"""Maximum bytes of one event; a server that sends more without an end is not sending events."""
BOM = b"\xef\xbb\xbf"
decode_short = msgspec.json.Decoder().decode
"""`decode_json` of data that is too short to be nested too deeply."""
GLUED = "several events in one frame were separated"
"""What is reported about such a frame, after their number."""
_BEFORE = pattern(r"(?:[ \t\r\n]+|data:|\[DONE\])*")
_BETWEEN = pattern(r"(?:[ \t\r\n]+|data:|\[DONE\]|(?:event:|id:|retry:|: )[^\n{]*)*")
_BOUNDARY = pattern(r"\s*(?:$|\{|data:|event:|\[DONE\])")
_LATER = pattern(r"data:[ \t]*(?=[{\[])|\{")
_TRIES = 1_000
"""Maximum positions in one frame at which a good event is searched for after a bad one."""
_MOST_NAMES = 100
"""Maximum event names that are cached, so that a server cannot make the cache grow forever."""
_GLUED_DATA = pattern(rb"data: ?(?=\{|\[DONE\])")


def decode_json(data: bytes) -> Any:
    """Any JSON value; the only decoder for foreign JSON. What is nested too deeply becomes text.

    Raises:
        msgspec.DecodeError: it is not JSON.
        UnicodeDecodeError: it is not UTF-8.
    """
    return decode_short(data if len(data) <= TOO_SHORT else shallow(data))


Frame: TypeAlias = tuple[str | None, bytes]
"""One event: its name, if it has one, and its data."""


class SseReader:
    """Splits a stream of bytes into frames.

    Nearly all servers end lines with LF or CRLF; then whole frames are split at their blank lines
    at once. The first CR without LF switches permanently to reading line by line.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._rest: list[bytes] = []
        self._held = 0
        self._waiting = 0
        self._by_lines = False
        self._open_cr = False
        self._after_cr = False
        self._at_start = True
        self._event: str | None = None
        self._next: str | None = None
        self._data: list[bytes] = []
        self._names: dict[bytes, str] = {}
        self._heads: dict[bytes, str | None] = {}
        self.comments = 0
        self.overflowed = False
        self.damage: str | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames completed by these bytes."""
        if self.overflowed or not chunk:
            return []
        if not self._by_lines and (self._open_cr or b"\r" in chunk):
            chunk = self._without_cr(chunk)
            if not chunk:
                return []
        if self._by_lines:
            return self._feed_lines(chunk)
        if self._rest:
            if not self._ends_frame(chunk):
                self._hold(chunk)
                return []
            chunk = self._take_rest(chunk)
        wholes = chunk.split(b"\n\n")
        if rest := wholes.pop():
            self._hold(rest)
        frames: list[Frame] = []
        heads = self._heads
        for whole in wholes:
            head, _, data = whole.partition(b"data: ")
            if head in heads and data and b"\n" not in data:
                frames.append((heads[head], data))
            else:
                frames += self._cut(whole, head, data)
        return frames

    def close(self) -> list[Frame]:
        """The last frame, if the stream ended without its blank line."""
        return self._read([*self._take_rest(b"").splitlines(), b""])

    def _ends_frame(self, chunk: bytes) -> bool:
        """Whether the chunk contains a blank line; what is held has none, but may start one."""
        if b"\n\n" in chunk:
            return True
        return chunk.startswith(b"\n") and self._rest[-1].endswith(b"\n")

    def _without_cr(self, chunk: bytes) -> bytes:
        """The chunk with LF for CRLF; a CR at its end waits for what follows."""
        if self._open_cr:
            chunk = b"\r" + chunk
        self._open_cr = chunk.endswith(b"\r")
        plain = chunk[: -1 if self._open_cr else None].replace(b"\r\n", b"\n")
        if b"\r" not in plain:
            return plain
        self._by_lines, self._open_cr = True, False
        return chunk

    def _cut(self, whole: bytes, head: bytes, data: bytes) -> list[Frame]:
        """A frame with an unknown line before its data, most often a name, or with several."""
        is_name = head.startswith(b"event: ") and head.find(b"\n") == len(head) - 1
        if self._at_start or not is_name or b"data:" in head or not data or b"\n" in data:
            return self._read([*whole.split(b"\n"), b""])
        name = self._name(head[7:-1])
        if len(self._heads) < _MOST_NAMES:
            self._heads[head] = name
        return [(name, data)]

    def _name(self, name: bytes) -> str:
        """Names repeat, so each is decoded once."""
        known = self._names.get(name)
        if known is None:
            known = name.strip().decode("utf-8", "replace")
            if len(self._names) < _MOST_NAMES:
                self._names[name] = known
        return known

    def _feed_lines(self, chunk: bytes) -> list[Frame]:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return []
        self._after_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._hold(chunk)
            return []
        chunk = self._take_rest(chunk)
        lines = chunk.splitlines()
        if chunk[-1] not in b"\r\n":
            self._hold(lines.pop())
        return self._read(lines)

    def _take_rest(self, chunk: bytes) -> bytes:
        if not self._rest:
            return chunk
        whole = b"".join((*self._rest, chunk))
        self._rest.clear()
        self._held = 0
        return whole

    def _hold(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._held += len(piece)
        if self._held > self._limit:
            self._overflow()
            self._rest.clear()

    def _overflow(self) -> None:
        self.overflowed, self.damage = True, "an unterminated event"

    def _read(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        for line in lines:
            if self._at_start:
                line = line.removeprefix(BOM)
                self._at_start = False
                self._heads[b""] = None
            if line.startswith(b"data:"):
                if self._next is not None:
                    frames += self._end(self._event, self._next)
                self._add(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                frames += self._end(self._next or self._event)
            elif line.startswith((b"{", b"data")):
                # A bare object (an error in the stream) or a `data` without a colon.
                self._add(line.removeprefix(b"data"))
            elif glued := _GLUED_DATA.search(line):
                frames += self._read_glued(line, glued.start())
            elif line.startswith(b":"):
                self.comments += 1
            elif line.startswith(b"event:"):
                self._begin(line[6:])
        return frames

    def _read_glued(self, line: bytes, at: int) -> list[Frame]:
        """A line that lost its end, so that it contains a line of data."""
        before = line[:at].strip()
        if before == b":":  # that one became a comment
            self.comments += 1
            return []
        return self._read([*([before] if before else []), line[at:]])

    def _begin(self, name: bytes) -> None:
        """The name of this event, or of the next if the blank line between them is missing."""
        if self._data:
            self._next = self._name(name)
        else:
            self._event = self._name(name)

    def _end(self, name: str | None, following: str | None = None) -> list[Frame]:
        """The frame that ends here, if it has data; `following` is the name of the next."""
        data = b"\n".join(self._data)
        frames: list[Frame] = [(name, data)] if self._data else []
        self._data.clear()
        self._waiting = 0
        self._event, self._next = following, None
        return frames

    def _add(self, data: bytes) -> None:
        self._waiting += len(data)
        if self._waiting > self._limit:
            self._overflow()
            self._data.clear()
        else:
            self._data.append(data)


class Parsed(Struct, frozen=True):
    """The JSON values of one frame. `problem` says what was corrected, `lost` what could not be;
    `odd` warns that text may contain lone surrogates; `done` that the end of the stream was joined
    to it.
    """

    values: list[Any]
    problem: str | None = None
    lost: bytes = b""
    odd: bool = False
    done: bool = False


def parse_payload(data: bytes) -> Parsed:
    """The JSON of a frame's data; several joined values are separated."""
    data = shallow(data)
    try:
        return Parsed([decode_short(data)])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _recover(data)


def _recover(data: bytes) -> Parsed:
    text = data.decode("utf-8", "replace")
    problem = "invalid UTF-8 was replaced" if "\ufffd" in text else None
    values, lost, at, done, tries = list[Any](), list[str](), 0, False, _TRIES
    while between := (_BETWEEN if values else _BEFORE).match(text, at):
        at, done = between.end(), "[DONE]" in between[0]
        if done or at == len(text):
            break
        found = _value(text, at)
        if found is None:
            later, tries = _later(text, at, tries)
            lost.append(text[at:later])
            at = later
        else:
            values.append(found[0])
            at = found[1]
    if lost:
        unread = "".join(lost).encode("utf-8", "replace")
        return Parsed(values, problem, unread, odd=True, done=done)
    if len(values) + done > 1:
        problem = f"{len(values) + done} {GLUED}"
    return Parsed(values, problem, odd=True, done=done)


@cache  # most streams have no such frame, and `json` is expensive to import
def _decoder() -> JSONDecoder:
    from json import JSONDecoder

    return JSONDecoder()


def _value(text: str, at: int) -> tuple[Any, int] | None:
    try:
        return _decoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _later(text: str, at: int, tries: int) -> tuple[int, int]:
    """Where a good event starts after a bad one, or the end of the text; and the remaining
    attempts.
    """
    for place in itertools.islice(_LATER.finditer(text, at + 1), tries):
        tries -= 1
        found = _value(text, place.end() - (place[0] == "{"))
        if found is not None and _BOUNDARY.match(text, found[1]):
            return place.start(), tries
    return len(text), tries
