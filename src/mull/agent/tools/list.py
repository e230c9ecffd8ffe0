"""`list`: the content of a folder, or the files below it that match a pattern."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta, Struct

from mull.agent.tools.builtin import LOOKING, BuiltinTool, Plan, in_thread, path_subject
from mull.agent.tools.nearest import check_folder
from mull.agent.tools.output import MOST
from mull.agent.tools.shown import one_line, shown_name
from mull.agent.tools.tool import Outcome, Preview, ToolFailure
from mull.agent.tools.walk import PASSED_OVER, Entry, entries, walk
from mull.agent.tools.workspace import Located
from mull.policy.allowance import room
from mull.policy.globs import expand_braces, path_matches

__all__ = ["List", "fits"]

_MOST = 1000
_USUAL = 200


class ListArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to list."""

    path: Annotated[str, Meta(description="a folder, relative to the working folder")] = "."
    pattern: Annotated[
        str | None,
        Meta(
            description="such as *.py or src/**/*.ts: list all matching files below; without a "
            "slash it is matched against file names only"
        ),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=_MOST, description="how many to list")] = _USUAL


class List(BuiltinTool[ListArguments]):
    """Lists files."""

    name = "list"
    description = (
        "List a folder of the working folder, or with a pattern all matching files "
        "below it. Folders end in a slash. With a pattern, files ignored by .gitignore "
        "are left out."
    )
    arguments = ListArguments

    def plan(self, given: ListArguments) -> Plan:
        """The folder, or what matches the pattern below it."""
        place = self.workspace.locate(given.path, to_read=True)
        wanted = f" {one_line(given.pattern)} in" if given.pattern else ""
        work = in_thread(lambda left, tokens: self._list(place, given, left, tokens))
        return Plan(path_subject(place), Preview(f"list{wanted} {place.name}"), work)

    def _list(
        self, place: Located, given: ListArguments, left: threading.Event, tokens: int | None
    ) -> Outcome:
        self.workspace.check()
        check_folder(place)
        return Outcome(_listed(place, given, left, room(tokens, MOST)))


def fits(pattern: str, path: str) -> bool:
    """Whether a path matches; a pattern without a slash is matched against the file name.

    Raises:
        ToolFailure: the pattern has too many braces.
    """
    try:
        patterns = expand_braces(pattern.removeprefix("./"))
    except ValueError as error:
        raise ToolFailure(f"{one_line(pattern)}: {error}") from None
    name = path.rpartition("/")[2]
    return any(path_matches(one, path if "/" in one else name) for one in patterns)


def _listed(place: Located, given: ListArguments, left: threading.Event, room: int) -> str:
    start = str(place.path)
    until = time.monotonic() + LOOKING

    def is_late() -> bool:
        return time.monotonic() > until

    if given.pattern is None:
        every = entries(start)
        hidden = [entry.path for entry in every if entry.path in PASSED_OVER]
        found: Iterable[Entry] = (entry for entry in every if entry.path not in PASSED_OVER)
        note = [f"[not listed: {', '.join(hidden)}]"] if hidden else []
    else:
        pattern, note = given.pattern, []
        found = (
            entry
            for entry in walk(start, gone=lambda: left.is_set() or is_late())
            if not entry.is_folder and fits(pattern, entry.path)
        )
    rows: list[str] = []
    more = 0
    for entry in found:
        row = _row(entry, start, place.name) if not more and len(rows) < given.limit else ""
        size = len(row.encode("utf-8", "replace")) + 1
        if row and (size <= room or not rows):
            rows.append(row)
            room -= size
        else:
            more += 1
    if given.pattern is not None and is_late():
        note = [f"[stopped after {LOOKING} seconds; the listing is incomplete: list a subfolder]"]
    if more:
        whole = f"{more:,} more, {len(rows) + more:,} in all"
        note = [f"[{whole}: list a subfolder, or use a narrower pattern]", *note]
    if not rows:
        rows = [f"nothing in {place.name}" + (" fits" if given.pattern else "")]
    return "\n".join([*rows, *note])


def _row(entry: Entry, start: str, folder: str) -> str:
    name = shown_name(entry.path if folder == "." else f"{folder}/{entry.path}")
    if entry.is_link:
        with contextlib.suppress(OSError):
            return f"{name} -> {shown_name(os.readlink(os.path.join(start, entry.path)))}"
    return f"{name}/" if entry.is_folder else name
