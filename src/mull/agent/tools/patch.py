"""Patches in the format that codex taught its models: files to add, update, move and delete.

Parses text into values and locates hunks in a text: nothing here touches a file. A hunk is found by
its lines, not by numbers; if they do not match exactly, trailing and then surrounding spaces are
ignored.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

from mull.agent.tools.replace import usual_break, with_breaks
from mull.agent.tools.shown import one_line
from mull.agent.tools.tool import ToolFailure
from mull.neutral.patterns import pattern

__all__ = ["FilePatch", "Hunk", "apply_hunks", "parse_patch"]

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FILE = pattern(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVE = "*** Move to: "
_SHOWN = 5
_LAST = "*** End of File"
_CLOSENESS: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip)

Act: TypeAlias = Literal["add", "update", "delete"]
_ACTS: dict[str, Act] = {"Add": "add", "Update": "update", "Delete": "delete"}


class Hunk(NamedTuple):
    """Lines with their signs: space stays, - is removed, + is added. `after` names lines before
    them.
    """

    after: list[str]
    lines: list[tuple[str, str]]
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines as they are in the file before."""
        return [text for sign, text in self.lines if sign != "+"]


class FilePatch(NamedTuple):
    """The changes to one file."""

    act: Act
    path: str
    content: str = ""
    hunks: tuple[Hunk, ...] = ()
    move_to: str | None = None


def parse_patch(text: str) -> list[FilePatch]:
    """The files of a patch, in order.

    Raises:
        ToolFailure: it is not a patch; says where.
    """
    lines = with_breaks(text, "\n").strip("\n").split("\n")
    begin = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), None)
    if begin is None:
        raise ToolFailure(f"the patch does not start with {_BEGIN!r}")
    end = next((at for at, line in enumerate(lines) if line.strip() == _END), len(lines))
    files = [_file(head, body) for head, body in _sections(lines[begin + 1 : end])]
    if not files:
        raise ToolFailure("the patch names no file: use *** Update File: PATH")
    return files


def apply_hunks(text: str, hunks: Sequence[Hunk], name: str, *, may_quote: bool) -> str:
    """The text after all hunks; unchanged lines keep every byte.

    Raises:
        ToolFailure: the lines of a hunk are not there.
    """
    lines = text.removesuffix("\n").split("\n") if text else []
    looks = tuple(_Look(lines, plain) for plain in _CLOSENESS)
    ending = "\r" if usual_break(text) == "\r\n" else ""
    made: list[str] = []
    done = 0
    for number, hunk in enumerate(hunks, 1):
        start = _find(looks, len(lines), hunk, done)
        if start is None:
            raise ToolFailure(_not_there(hunk, number, name, may_quote=may_quote))
        made += lines[done:start]
        done = start
        for sign, line in hunk.lines:
            if sign == "+":
                made.append(line + ending)
            else:
                made += [lines[done]] if sign == " " else []
                done += 1
    made += lines[done:]
    closed = "\n" if made and (not text or text.endswith("\n")) else ""
    return "\n".join(made) + closed


def _sections(lines: Sequence[str]) -> Iterator[tuple[re.Match[str], list[str]]]:
    head: re.Match[str] | None = None
    body: list[str] = []
    for line in lines:
        found = _FILE.fullmatch(line.rstrip())
        if found is None:
            if head is None and line.strip():
                raise ToolFailure(f"the patch names no file before {one_line(line)!r}")
            body.append(line)
            continue
        if head is not None:
            yield head, body
        head, body = found, []
    if head is not None:
        yield head, body


def _file(head: re.Match[str], body: list[str]) -> FilePatch:
    act, path = _ACTS[head[1]], head[2].strip()
    if act == "delete":
        return FilePatch(act, path)
    if act == "add":
        content = "".join(f"{_added(line, path)}\n" for line in body if line)
        return FilePatch(act, path, content)
    move_to = None
    if body and body[0].startswith(_MOVE):
        move_to = body.pop(0).removeprefix(_MOVE).strip()
    hunks = tuple(_hunks(body, path))
    if not hunks and move_to is None:
        raise ToolFailure(f"the patch does not say what to change in {path}")
    return FilePatch(act, path, hunks=hunks, move_to=move_to)


def _added(line: str, path: str) -> str:
    if not line.startswith("+"):
        raise ToolFailure(
            f"a line of the new file {path} does not start with +: {one_line(line)!r}"
        )
    return line[1:]


def _hunks(body: list[str], path: str) -> Iterator[Hunk]:
    after: list[str] = []
    lines: list[tuple[str, str]] = []
    for line in body:
        if line.startswith("@@"):
            if lines:
                yield Hunk(after, lines)
                after, lines = [], []
            if name := line[2:].strip():
                after.append(name)
        elif line.rstrip() == _LAST:
            if lines:
                yield Hunk(after, lines, at_end=True)
            after, lines = [], []
        elif line[:1] in ("", " ", "-", "+"):
            lines.append((line[:1] or " ", line[1:]))
        else:
            raise ToolFailure(
                f"a line in the patch of {path} starts with neither space, - nor +: "
                f"{one_line(line)!r}"
            )
    if lines:
        yield Hunk(after, lines)


class _Look:
    """A file's lines with some spaces ignored, to find others in."""

    def __init__(self, lines: Sequence[str], plain: Callable[[str], str]) -> None:
        self._plain = plain
        shown = [plain(line.removesuffix("\r")) for line in lines]
        self._text = "\n" + "".join(f"{line}\n" for line in shown)
        self._starts = [0, *accumulate(len(line) + 1 for line in shown)]

    def place(self, wanted: Sequence[str], first: int) -> int | None:
        """The number of the line at which they start, searching forward."""
        sought = "\n" + "".join(f"{self._plain(line)}\n" for line in wanted)
        at = self._text.find(sought, self._starts[first])
        return None if at < 0 else bisect_left(self._starts, at)


def _find(looks: Sequence[_Look], count: int, hunk: Hunk, first: int) -> int | None:
    """Where the hunk's lines start; lines that are only added follow those named, or come last."""
    for name in hunk.after:
        named = _place(looks, (name,), first)
        first = first if named is None else named + 1
    old = hunk.old
    if not old:
        return first if hunk.after else count
    if hunk.at_end and len(old) <= count - first:
        at = _place(looks, old, count - len(old))
        if at is not None:
            return at
    return _place(looks, old, first)


def _place(looks: Sequence[_Look], wanted: Sequence[str], first: int) -> int | None:
    found = (look.place(wanted, first) for look in looks)
    return next((at for at in found if at is not None), None)


def _not_there(hunk: Hunk, number: int, name: str, *, may_quote: bool) -> str:
    said = f"part {number} of the patch does not match {name}"
    if not may_quote:
        return said
    shown = "\n".join(hunk.old[:_SHOWN])
    return f"{said}: the file does not contain these lines in this order; read it again\n{shown}"
