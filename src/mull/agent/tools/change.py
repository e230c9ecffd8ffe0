"""`edit` and `write`: a file is changed as it was shown, whole or not at all.

What a file is to hold is worked out once, when the call is prepared, and written only if the file
is still the one that the difference was shown against. An edit replaces exact text and keeps every
other byte. Ends of lines are the file's own: the model writes `\\n`, whatever the file has. A text
that is not found is answered with what comes closest to it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Annotated, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread, path_subject
from mull.agent.tools.compare import Diff, diff, not_found
from mull.agent.tools.shown import plural
from mull.agent.tools.text import HEAD, Encoding, decode, describe, encode, encoding_of
from mull.agent.tools.tool import Outcome, Preview, ToolFailure
from mull.agent.tools.workspace import Located, read_whole, replace_file

__all__ = ["Edit", "Write"]

_LARGEST = 32 << 20
"""Files above this many bytes are not changed by tools."""
_MOST_NAMED = 10

A = TypeVar("A", bound=Struct)


class _Change(NamedTuple):
    """What a file is to hold, the difference for a person, and what the model is told then."""

    data: bytes
    title: str
    difference: Diff
    done: str


class _Changing(BuiltinTool[A], Generic[A]):
    """A tool that gives a file another content."""

    changes = True

    def planned(self, place: Located, change: Callable[[bytes | None], _Change]) -> Plan:
        """What `change` makes of the file as it is now, and writing just that."""
        before = read_whole(place, _LARGEST)
        made = change(before)

        def write(left: threading.Event) -> Outcome:
            with self.workspace.changing:
                if read_whole(place, _LARGEST) != before:
                    raise ToolFailure(
                        f"{place.name} has changed since this {self.name} was prepared, and stays"
                        " as it is now: read it again"
                    )
                if left.is_set():  # who asked for it has gone
                    raise ToolFailure("nothing was written")
                if made.data != before:
                    replace_file(place, made.data)
            return Outcome(made.done)

        preview = Preview(made.title, made.difference.text, "diff")
        return Plan(path_subject(place), preview, in_thread(write))


class EditArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to replace by what."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    old: Annotated[str, Meta(description="text of the file, exactly as it is there")]
    new: Annotated[str, Meta(description="what stands there afterwards")]
    replace_all: Annotated[bool, Meta(description="replace every place, not just one")] = False


class Edit(_Changing[EditArguments]):
    """Edits files."""

    name = "edit"
    description = (
        "Replace text in a file of the working folder. `old` must stand in the file exactly once,"
        " with its indentation and without line numbers: take in lines around it if need be. Set"
        " replace_all to replace every place."
    )
    arguments = EditArguments

    def plan(self, given: EditArguments) -> Plan:
        """The file with the text replaced."""
        place = self.workspace.locate(given.path)
        if not given.old:
            raise ToolFailure("old is empty: give the text to replace, or use write")
        if given.old.replace("\r\n", "\n") == given.new.replace("\r\n", "\n"):
            raise ToolFailure("old and new are the same: nothing would change")
        _encoded(given.new, "new")
        may_quote = self.may_be_read(path_subject(place))
        return self.planned(place, lambda before: _edited(place.name, before, given, may_quote))


class WriteArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to write."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    content: Annotated[str, Meta(description="all that the file is to hold")]


class Write(_Changing[WriteArguments]):
    """Writes files."""

    name = "write"
    description = (
        "Write a whole file of the working folder: a new one, or one whose old content is"
        " replaced. Missing folders are made. To change part of a file use edit."
    )
    arguments = WriteArguments

    def plan(self, given: WriteArguments) -> Plan:
        """The file with this content."""
        if given.path.endswith("/"):
            raise ToolFailure(f"{given.path} names a folder: name the file in it")
        place = self.workspace.locate(given.path)
        data = _encoded(given.content, "the content")
        return self.planned(place, lambda before: _written(place.name, before, given.content, data))


def _encoded(text: str, what: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolFailure(f"{what} holds half a character (a lone surrogate)") from None


def _written(name: str, before: bytes | None, content: str, data: bytes) -> _Change:
    difference = _difference(name, before, content)
    new = ", new" if before is None else ""
    lines = plural(len(content.splitlines()), "line")
    done = f"{'replaced' if new == '' else 'created'} {name}: {lines}, {plural(len(data), 'byte')}"
    if data == before:
        done = f"{name} holds exactly this already"
    return _Change(data, f"write {name} {difference.counts}{new}", difference, done)


def _difference(name: str, before: bytes | None, content: str) -> Diff:
    if before is None:
        return diff("", content, name)
    encoding = encoding_of(before[:HEAD])
    try:
        if encoding is not None:
            return diff(decode(before, encoding), content, name)
    except UnicodeDecodeError:
        pass
    lost = f"replaces {describe(before[:HEAD], len(before))}"
    return Diff(lost, len(content.splitlines()), 0)


def _edited(name: str, before: bytes | None, given: EditArguments, may_quote: bool) -> _Change:
    if before is None:
        raise ToolFailure(f"{name} does not exist: write makes new files")
    text, encoding = _text(before, name)
    old = given.old.replace("\r\n", "\n")
    found = list(re.finditer(r"\r?\n".join(map(re.escape, old.split("\n"))), text))
    if not found:
        raise ToolFailure(not_found(old, text, name) if may_quote else f"old is not in {name}")
    where = _named(_line_numbers(text, found))
    if len(found) > 1 and not given.replace_all:
        raise ToolFailure(
            f"old stands {len(found)} times in {name}, at {where}: take in lines around the one"
            " you mean, or set replace_all"
        )
    if not given.new.isascii() and any("\udc80" <= char <= "\udcff" for char in text):
        raise ToolFailure(f"{name} is not UTF-8: only plain ASCII text can be put into it")
    after = _replaced(text, found, given.new)
    change = diff(text, after, name)
    done = f"edited {name} {change.counts} at {where}"
    return _Change(encode(after, encoding), f"edit {name} {change.counts}", change, done)


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
