"""Replaces exact text, in several places at once, with the text's own line endings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from mull.agent.tools.compare import not_found
from mull.agent.tools.tool import ToolFailure

__all__ = [
    "Everywhere",
    "New",
    "Old",
    "Replaced",
    "Replacement",
    "replace_all",
    "usual_break",
    "with_breaks",
]

_MOST_NAMED = 10


Old: TypeAlias = Annotated[str, Meta(description="text from the file, exactly as it is there")]
New: TypeAlias = Annotated[str, Meta(description="the text to replace it with")]
Everywhere: TypeAlias = Annotated[bool, Meta(description="replace every occurrence, not just one")]


class Replacement(Struct, kw_only=True, forbid_unknown_fields=True):
    """One text instead of another."""

    old: Old
    new: New
    replace_all: Everywhere = False


class Replaced(NamedTuple):
    """The text afterwards, and where it was changed: `line 3`, `lines 3, 10`."""

    text: str
    where: str


def replace_all(
    text: str, wanted: Sequence[Replacement], name: str, *, may_quote: bool
) -> Replaced:
    """Apply one replacement after the other; `name` is the name of the text.

    Raises:
        ToolFailure: one of them fails, so none is applied. The closest match is quoted if that is
            allowed.
    """
    lines: list[int] = []
    for number, one in enumerate(wanted, 1):
        try:
            found = _find(text, one, name, may_quote=may_quote)
        except ToolFailure as failure:
            if len(wanted) == 1:
                raise
            said = f"edit {number} of {len(wanted)}: {failure}"
            raise ToolFailure(f"{said}\nNone of the {len(wanted)} edits was made.") from None
        lines += _line_numbers(text, found)
        text = _replaced(text, found, one.new)
    return Replaced(text, _named(lines))


def usual_break(text: str) -> str:
    """The most frequent line ending."""
    return "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"


def with_breaks(text: str, end: str) -> str:
    """The text with this line ending."""
    return text.replace("\r\n", "\n").replace("\n", end)


def _find(text: str, one: Replacement, name: str, *, may_quote: bool) -> list[re.Match[str]]:
    old, new = with_breaks(one.old, "\n"), with_breaks(one.new, "\n")
    if not old:
        raise ToolFailure("old is empty: give the text to replace, or use write")
    if old == new:
        raise ToolFailure("old and new are the same: nothing would change")
    found = list(re.finditer(r"\r?\n".join(map(re.escape, old.split("\n"))), text))
    if not found:
        raise ToolFailure(not_found(old, text, name) if may_quote else f"old is not in {name}")
    if len(found) > 1 and not one.replace_all:
        where = _named(_line_numbers(text, found))
        raise ToolFailure(
            f"old occurs {len(found)} times in {name}, at {where}: include lines "
            "around the one you mean, or set replace_all"
        )
    return found


def _replaced(text: str, found: list[re.Match[str]], new: str) -> str:
    usual = usual_break(text)
    pieces: list[str] = []
    at = 0
    for match in found:
        own = usual_break(match.group()) if "\n" in match.group() else usual
        pieces += [text[at : match.start()], with_breaks(new, own)]
        at = match.end()
    return "".join([*pieces, text[at:]])


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
