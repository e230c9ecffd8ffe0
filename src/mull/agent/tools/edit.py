"""`edit`: exact replacement in a file. All that is not replaced keeps its bytes.

The old text must stand in the file once, unless every place is meant. Ends of lines are the
file's own: the model writes `\\n`, whatever the file has. A text that is not found is answered
with what comes closest to it.
"""

from __future__ import annotations

import re
import threading
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Outcome, in_thread, path_subject
from mull.agent.tools.confined import read_whole, replace_file
from mull.agent.tools.diff import Diff, diff
from mull.agent.tools.nearest import not_found
from mull.agent.tools.text import HEAD, Encoding, decode, describe, encode, encoding_of
from mull.agent.tools.tool import Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Located
from mull.agent.tools.write import LARGEST
from mull.policy.approval import Subject

__all__ = ["Edit"]

_MOST_NAMED = 10


class EditArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to replace by what."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    old: Annotated[str, Meta(description="text of the file, exactly as it is there")]
    new: Annotated[str, Meta(description="what stands there afterwards")]
    replace_all: Annotated[bool, Meta(description="replace every place, not just one")] = False


class Edited(NamedTuple):
    """A file after the replacement."""

    data: bytes
    change: Diff
    lines: list[int]


class Edit(BuiltinTool[EditArguments]):
    """Edits files."""

    name = "edit"
    description = (
        "Replace text in a file of the working folder. `old` must stand in the file exactly once,"
        " with its indentation and without line numbers: take in lines around it if need be. Set"
        " replace_all to replace every place."
    )
    arguments = EditArguments
    changes = True

    def about(self, given: EditArguments) -> Subject:
        """The file."""
        return path_subject(self._place(given))

    def show(self, given: EditArguments) -> Preview:
        """The difference that it makes."""
        place = self._place(given)
        change = _edited(place, given).change
        return Preview(f"edit {place.name} {change.counts}", change.text, "diff")

    async def work(self, given: EditArguments, context: ToolContext) -> Outcome:
        """Replace it."""
        return await in_thread(lambda left: self._edit(given, left))

    def _edit(self, given: EditArguments, left: threading.Event) -> Outcome:
        place = self._place(given)
        with self.workspace.changing:
            edited = _edited(place, given)
            if left.is_set():  # who asked for it has gone
                return Outcome("not edited", failed=True)
            replace_file(place, edited.data)
        where = _named(edited.lines)
        return Outcome(f"edited {place.name} {edited.change.counts} at {where}")

    def _place(self, given: EditArguments) -> Located:
        return self.workspace.locate(given.path)


def _edited(place: Located, given: EditArguments) -> Edited:
    data = read_whole(place, LARGEST)
    if data is None:
        raise ToolFailure(f"{place.name} does not exist: write makes new files")
    text, encoding = _text(data, place.name)
    old = given.old.replace("\r\n", "\n")
    if not old:
        raise ToolFailure("old is empty: give the text to replace, or use write")
    if old == given.new.replace("\r\n", "\n"):
        raise ToolFailure("old and new are the same: nothing would change")
    found = list(re.finditer(r"\r?\n".join(map(re.escape, old.split("\n"))), text))
    if not found:
        raise ToolFailure(not_found(old, text, place.name))
    lines = _line_numbers(text, found)
    if len(found) > 1 and not given.replace_all:
        raise ToolFailure(
            f"old stands {len(found)} times in {place.name}, at {_named(lines)}: take in lines"
            " around the one you mean, or set replace_all"
        )
    _check_new(given.new, text, place.name)
    after = _replaced(text, found, given.new)
    return Edited(encode(after, encoding), diff(text, after, place.name), lines)


def _text(data: bytes, name: str) -> tuple[str, Encoding]:
    encoding = encoding_of(data[:HEAD])
    try:
        if encoding is not None:
            return decode(data, encoding), encoding
    except UnicodeDecodeError:
        pass
    raise ToolFailure(f"{name} is {describe(data[:HEAD], len(data))}: it cannot be edited as text")


def _replaced(text: str, found: list[re.Match[str]], new: str) -> str:
    usual = _usual_break(text)
    new = new.replace("\r\n", "\n")
    pieces: list[str] = []
    at = 0
    for match in found:
        own = _usual_break(match.group()) if "\n" in match.group() else usual
        pieces += [text[at : match.start()], new.replace("\n", own)]
        at = match.end()
    return "".join([*pieces, text[at:]])


def _usual_break(text: str) -> str:
    """The end of a line that most lines have."""
    dos = text.count("\r\n")
    return "\r\n" if dos * 2 > text.count("\n") else "\n"


def _line_numbers(text: str, found: list[re.Match[str]]) -> list[int]:
    numbers: list[int] = []
    line, at = 1, 0
    for match in found:
        line += text.count("\n", at, match.start())
        at = match.start()
        numbers.append(line)
    return numbers


def _named(lines: list[int]) -> str:
    if len(lines) == 1:
        return f"line {lines[0]}"
    shown = ", ".join(str(line) for line in lines[:_MOST_NAMED])
    more = f" and {len(lines) - _MOST_NAMED} more" if len(lines) > _MOST_NAMED else ""
    return f"lines {shown}{more}"


def _check_new(new: str, before: str, name: str) -> None:
    """Refuse what could not be put into the file without breaking its encoding."""
    try:
        new.encode()
    except UnicodeEncodeError:
        raise ToolFailure("new holds half a character (a lone surrogate)") from None
    if not new.isascii() and any("\udc80" <= char <= "\udcff" for char in before):
        raise ToolFailure(f"{name} is not UTF-8: only plain ASCII text can be put into it")
