"""`read`: a file's lines with their numbers, a page at a time; an image as an image.

A file is never read into memory completely, and neither is a line: what does not fit on the page is
skipped.
"""

from __future__ import annotations

import base64
import codecs
import os
import threading
import time
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, BinaryIO, NamedTuple

from msgspec import Meta, Struct

from mull.agent.tools.builtin import LOOKING, BuiltinTool, Plan, in_thread, path_subject
from mull.agent.tools.files import open_to_read
from mull.agent.tools.nearest import check_file
from mull.agent.tools.shown import plural
from mull.agent.tools.text import HEAD, JUDGED, Encoding, describe, encoding_of, image_type
from mull.agent.tools.tool import Outcome, Preview, ToolFailure
from mull.agent.tools.workspace import Located
from mull.neutral.blocks import MediaBlock
from mull.policy.allowance import room

__all__ = ["Read"]

_MOST_LINES = 2000
_MOST_BYTES = 60_000
_LONGEST_LINE = 2000
_LARGEST_IMAGE = 4 << 20
_LARGEST_COUNTED = 64 << 20
_CHUNK = 1 << 18


class ReadArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to read."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    offset: Annotated[int, Meta(ge=1, description="the first line to read")] = 1
    limit: Annotated[int, Meta(ge=1, le=_MOST_LINES, description="how many lines")] = _MOST_LINES


class Line(NamedTuple):
    """A line as far as it is kept, and how many of its characters are not."""

    text: str
    dropped: int = 0


class Read(BuiltinTool[ReadArguments]):
    """Reads files."""

    name = "read"
    description = (
        "Read a file of the working folder. Lines are shown with their numbers, which "
        "are not part of the file. A long file is shown in pages: continue with "
        "offset. Images are shown."
    )
    arguments = ReadArguments

    def plan(self, given: ReadArguments) -> Plan:
        """One page of the file."""
        place = self.workspace.locate(given.path, to_read=True)
        start = f" from line {given.offset:,}" if given.offset > 1 else ""
        check_file(place)
        work = in_thread(lambda left, tokens: _read(place, given, left, tokens))
        return Plan(path_subject(place), Preview(f"read {place.name}{start}"), work)


def _read(
    place: Located, given: ReadArguments, left: threading.Event, tokens: int | None
) -> Outcome:
    with os.fdopen(open_to_read(place), "rb", buffering=0) as file:
        head = file.read(HEAD)
        size = os.fstat(file.fileno()).st_size
        if encoding_of(head, is_cut=size > HEAD) is not None:
            head += _read_up_to(file, JUDGED - len(head))
            encoding = encoding_of(head, is_cut=size > len(head)) or Encoding("utf-8")
            lines = _lines_from(_chunks(file, head, encoding, left), given.offset)
            page = _Page(place.name, given, room(tokens, _MOST_BYTES))
            return Outcome(page.text(lines, encoding, counts=size <= _LARGEST_COUNTED))
        kind = image_type(head)
        if kind is None or size > _LARGEST_IMAGE:
            return Outcome(f"{place.name} is {describe(head, size)}: it cannot be shown as text")
        data = base64.b64encode(head + _read_up_to(file, _LARGEST_IMAGE)).decode()
        media = MediaBlock(media_type=kind, data=data, name=place.name)
        return Outcome(f"{place.name} is {describe(head, size)}", media=(media,))


def _read_up_to(file: BinaryIO, most: int) -> bytes:
    """That many bytes, or all that are left: one read may return less."""
    pieces: list[bytes] = []
    while most > 0 and (data := file.read(min(most, _CHUNK))):
        pieces.append(data)
        most -= len(data)
    return b"".join(pieces)


def _chunks(
    file: BinaryIO, head: bytes, encoding: Encoding, left: threading.Event
) -> Iterator[str]:
    """The text in chunks, with line endings as `\\n`."""
    decoder = codecs.getincrementaldecoder(encoding.codec)(errors="replace")
    yield decoder.decode(head[len(encoding.mark) :])
    until = time.monotonic() + LOOKING
    while not left.is_set() and (data := file.read(_CHUNK)):
        if time.monotonic() > until:
            raise ToolFailure(
                f"stopped after {LOOKING} seconds: that line is too far into the file "
                "for read, use a command"
            )
        yield decoder.decode(data)
    yield decoder.decode(b"", True)


def _lines_from(chunks: Iterator[str], first: int) -> Iterator[Line]:
    """The lines from the first wanted one; those before it are only counted."""
    to_pass = first - 1
    is_open = False
    for chunk in chunks:
        breaks = chunk.count("\n")
        if breaks < to_pass:
            to_pass -= breaks
            is_open = not chunk.endswith("\n") if chunk else is_open
            continue
        at = 0
        for _ in range(to_pass):
            at = chunk.index("\n", at) + 1
        yield from _lines(chain((chunk[at:],), chunks))
        return
    there = plural(first - 1 - to_pass + is_open, "line")
    raise ToolFailure(f"there is no line {first:,}: the file has {there}")


def _lines(chunks: Iterator[str]) -> Iterator[Line]:
    kept, dropped = "", 0
    for chunk in chunks:
        *whole, rest = chunk.split("\n")
        for part in whole:
            yield _line(kept + part, dropped)
            kept, dropped = "", 0
        kept += rest
        if len(kept) > _LONGEST_LINE:
            dropped += len(kept) - _LONGEST_LINE
            kept = kept[:_LONGEST_LINE]
    if kept:
        yield _line(kept, dropped)


def _line(text: str, dropped: int) -> Line:
    text = text.removesuffix("\r")
    return Line(text[:_LONGEST_LINE], dropped + max(0, len(text) - _LONGEST_LINE))


class _Page:
    """As many lines as requested and as fit, and the total."""

    def __init__(self, name: str, given: ReadArguments, room: int) -> None:
        self._name = name
        self._given = given
        self._room = room
        self._rows: list[str] = []

    def text(self, lines: Iterator[Line], encoding: Encoding, *, counts: bool) -> str:
        """The page. With `counts`, the file is read to its end to determine its length."""
        first, next_line = self._given.offset, self._given.offset
        over: Line | None = None
        for line in lines:
            if not self._takes(next_line, line):
                over = line
                break
            next_line += 1
        if next_line == first:
            if first > 1:
                there = plural(first - 1, "line")
                raise ToolFailure(f"{self._name} has {there}: there is no line {first}")
            return f"{self._name} is empty"
        notes = [encoding.note] if encoding.note else []
        if over is not None:
            whole = f" of {next_line + sum(1 for _ in lines):,}" if counts else ""
            notes.append(
                f"lines {first:,}–{next_line - 1:,}{whole}: continue with offset={next_line}"
            )
        return "\n".join([*self._rows, *(f"[{note}]" for note in notes)])

    def _takes(self, number: int, line: Line) -> bool:
        if len(self._rows) == self._given.limit:
            return False
        row = _row(number, line)
        size = len(row) if row.isascii() else len(row.encode("utf-8", "replace"))
        if self._rows and size > self._room:
            return False
        if not self._rows and size > self._room:  # at least one line, or continuing would not help
            kept = line.text[: max(self._room // 2, 1)]
            row = _row(number, Line(kept, line.dropped + len(line.text) - len(kept)))
        self._rows.append(row)
        self._room -= size + 1
        return True


def _row(number: int, line: Line) -> str:
    cut = f" [{plural(line.dropped, 'character')} more]" if line.dropped else ""
    return f"{number:>6}\t{line.text}{cut}"
