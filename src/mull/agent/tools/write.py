"""`write`: a whole file, new or in place of the old one, written whole or not at all."""

from __future__ import annotations

import threading
from typing import Annotated

from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Outcome, in_thread, path_subject
from mull.agent.tools.confined import read_whole, replace_file
from mull.agent.tools.diff import Diff, diff
from mull.agent.tools.shown import plural
from mull.agent.tools.text import HEAD, decode, describe, encoding_of
from mull.agent.tools.tool import Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Located
from mull.policy.approval import Subject

__all__ = ["LARGEST", "Write"]

LARGEST = 32 << 20
"""Files above this many bytes are not changed by tools."""


class WriteArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to write."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    content: Annotated[str, Meta(description="all that the file is to hold")]


class Write(BuiltinTool[WriteArguments]):
    """Writes files."""

    name = "write"
    description = (
        "Write a whole file of the working folder: a new one, or one whose old content is"
        " replaced. Missing folders are made. To change part of a file use edit."
    )
    arguments = WriteArguments
    changes = True

    def about(self, given: WriteArguments) -> Subject:
        """The file."""
        return path_subject(self._place(given))

    def show(self, given: WriteArguments) -> Preview:
        """What becomes of the file's lines."""
        place = self._place(given)
        before = read_whole(place, LARGEST)
        change = _change(place.name, before, given.content)
        new = ", new" if before is None else ""
        return Preview(f"write {place.name} {change.counts}{new}", change.text, "diff")

    async def work(self, given: WriteArguments, context: ToolContext) -> Outcome:
        """Write it."""
        return await in_thread(lambda left: self._write(given, left))

    def _write(self, given: WriteArguments, left: threading.Event) -> Outcome:
        place = self._place(given)
        data = _bytes(given.content)
        with self.workspace.changing:
            before = read_whole(place, LARGEST)
            if before == data:
                return Outcome(f"{place.name} holds exactly this already")
            if left.is_set():  # who asked for it has gone
                return Outcome("not written", failed=True)
            replace_file(place, data)
        done = "created" if before is None else "replaced"
        lines = plural(len(given.content.splitlines()), "line")
        return Outcome(f"{done} {place.name}: {lines}, {plural(len(data), 'byte')}")

    def _place(self, given: WriteArguments) -> Located:
        if given.path.endswith("/"):
            raise ToolFailure(f"{given.path} names a folder: name the file in it")
        return self.workspace.locate(given.path)


def _bytes(content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise ToolFailure("the content holds half a character (a lone surrogate)") from None


def _change(name: str, before: bytes | None, content: str) -> Diff:
    if before is None:
        return diff("", content, name)
    encoding = encoding_of(before[:HEAD])
    if encoding is None:
        lines = len(content.splitlines())
        return Diff(f"replaces {describe(before[:HEAD], len(before))}", lines, 0)
    try:
        return diff(decode(before, encoding), content, name)
    except UnicodeDecodeError:
        return Diff(f"replaces {describe(before[:HEAD], len(before))}", 0, 0)
