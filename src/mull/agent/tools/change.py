"""`edit` and `write`: files are changed exactly as shown, all of them or none.

The new content is computed when the call is prepared, and written only if the file is still the one
that the diff was shown for: its place and content are the call's pin. An edit replaces exact text
and keeps every other byte. Encoding and line endings are the file's own: the model writes `\\n`,
whatever the file has. For text that is not found, the closest match is returned.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Generic, NamedTuple, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from mull.agent.sandbox import own_code
from mull.agent.tools.builtin import BuiltinTool, Plan, in_thread, path_subject
from mull.agent.tools.compare import Diff, diff
from mull.agent.tools.files import (
    check_writable,
    hard_links,
    is_read_only,
    mode_of,
    read_whole,
    remove_file,
    replace_file,
)
from mull.agent.tools.nearest import missing
from mull.agent.tools.patch import FilePatch, apply_hunks, parse_patch
from mull.agent.tools.replace import (
    Everywhere,
    New,
    Old,
    Replacement,
    replace_all,
    usual_break,
    with_breaks,
)
from mull.agent.tools.shown import plural, shown_name
from mull.agent.tools.states import look_at
from mull.agent.tools.text import BEYOND_ASCII, Encoding, decode, describe, encode, encoding_of
from mull.agent.tools.tool import Outcome, Preview, ToolFailure
from mull.agent.tools.workspace import Located
from mull.policy.approval import Asked, Subject
from mull.store.paths import config_dir, data_dir

__all__ = ["Edit", "Write"]

_LARGEST = 32 << 20
"""Files above this many bytes are not changed by tools."""
_MOST_FILES = 30
"""Maximum files of one patch: the user has to see each."""

A = TypeVar("A", bound=Struct)


class _Change(NamedTuple):
    """A change of one file."""

    place: Located
    """Where the file is."""
    tool: str
    """The tool whose rules decide on it, `edit` or `write`."""
    before: bytes | None
    """The old content; None if there is no file."""
    after: bytes | None
    """The new content; None deletes the file."""
    title: str
    """What it does, in one line for the user."""
    difference: Diff
    """The diff for the user."""
    done: str
    """What the model is told once it is done."""
    mode: int | None = None
    """The permissions of a new file; None is the usual ones."""

    @property
    def asked(self) -> Asked:
        """What rules are matched against. They must explicitly name a file that is read-only, has
        hard links, or belongs to mull.
        """
        subject = path_subject(self.place)
        is_special = is_read_only(self.place) or hard_links(self.place) > 1
        guarded = (self.before is not None and is_special) or _is_run_later(self.place)
        return Asked(self.tool, True, Subject("path", subject.text, subject.full, guarded))

    @property
    def remarks(self) -> list[str]:
        """What the user must know about the file beside the diff."""
        links = hard_links(self.place) if self.after is not None else 1
        return [
            *(["read-only"] if self.before is not None and is_read_only(self.place) else []),
            *([f"{links} hard links"] if links > 1 else []),
        ]

    @property
    def pin(self) -> str:
        """The file that was read, and its content."""
        held = "-" if self.before is None else hashlib.sha256(self.before).hexdigest()
        return f"{held} {shown_name(self.place.path)}"

    def check(self) -> None:
        """Raises ToolFailure if it cannot be written, or has changed since."""
        if read_whole(self.place, _LARGEST) != self.before:
            raise ToolFailure(
                f"{self.place.name} has changed since this {self.tool} was prepared, "
                "and was left as it is: read it again"
            )

    def make(self) -> None:
        """Apply it."""
        _put(self.place, self.before, self.after, self.mode)

    def undo(self) -> None:
        """Revert it."""
        _put(self.place, self.after, self.before)


def _is_run_later(place: Located) -> bool:
    """Whether it is one of mull's own files, code that it may still load, or a hook of git."""
    from mull.agent.sandbox.territory import git_parts  # few calls change anything

    own = (*map(os.path.realpath, (config_dir(), data_dir())), *own_code(place.root))
    guarded = (*own, *git_parts(f"{place.root}/.git"))
    return any(place.path.is_relative_to(path) for path in guarded)


def _put(
    place: Located, before: bytes | None, after: bytes | None, mode: int | None = None
) -> None:
    if after is None:
        remove_file(place)
    elif after != before:
        replace_file(place, after, mode)


class _Changing(BuiltinTool[A], Generic[A]):
    """A tool that changes the content of files."""

    changes = True

    def planned(self, *changes: _Change) -> Plan:
        """Apply these changes, all of them or none."""
        asked = [change.asked for change in changes]
        for change in changes:
            check_writable(change.place)

        def write(left: threading.Event, tokens: int | None) -> Outcome:
            with self.workspace.changing:
                for change in changes:
                    change.check()
                if left.is_set():  # the caller has gone
                    raise ToolFailure("nothing was written")
                paths = [str(change.place.path) for change in changes]
                before = [look_at(path) for path in paths]
                _make(changes)
                if self.workspace.keeper is not None:
                    after = [look_at(path) for path in paths]
                    self.workspace.keeper.keep(zip(paths, before, after, strict=True))
            return Outcome("\n".join(change.done for change in changes if change.done))

        titles = [", ".join((change.title, *change.remarks)) for change in changes]
        diffs = [change.difference.text for change in changes]
        detail = "\n".join(filter(None, (*(titles if len(titles) > 1 else ()), *diffs)))
        first, *others = asked
        preview = Preview(_joined(titles), detail, "diff")
        pin = "\n".join(change.pin for change in changes)
        return Plan(first.subject, preview, in_thread(write), tuple(others), first.tool, pin)


def _make(changes: Sequence[_Change]) -> None:
    made: list[_Change] = []
    try:
        for change in sorted(changes, key=lambda change: change.after is None):
            change.make()  # deletions come last: a deleted file cannot be restored exactly
            made.append(change)
    except ToolFailure:
        for change in reversed(made):
            change.undo()
        raise


def _joined(titles: Sequence[str]) -> str:
    others = len(titles) - 1
    return titles[0] if not others else f"{titles[0]} and {plural(others, 'more change')}"


class EditArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to replace with what: one text, or several."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    old: Old | UnsetType = UNSET
    new: New | UnsetType = UNSET
    replace_all: Everywhere = False
    edits: Annotated[
        list[Replacement],
        Meta(description="several replacements in this file, applied in order, all or none"),
    ] = field(default_factory=list)

    @property
    def wanted(self) -> list[Replacement]:
        """All replacements.

        Raises:
            ToolFailure: both forms are used, or neither.
        """
        if self.edits:
            if self.old or self.new:
                raise ToolFailure("give old and new, or edits, not both")
            return self.edits
        if isinstance(self.old, UnsetType) or isinstance(self.new, UnsetType):
            lacking = "old" if isinstance(self.old, UnsetType) else "new"
            raise ToolFailure(f"{lacking} is missing: give old and new, or edits")
        return [Replacement(old=self.old, new=self.new, replace_all=self.replace_all)]


class PatchArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """A patch of any number of files."""

    patch: str


class Edit(_Changing[EditArguments]):
    """Edits files."""

    name = "edit"
    description = (
        "Replace text in a file of the working folder. `old` must occur in the file "
        "exactly once, with its indentation and without line numbers: include "
        "surrounding lines if necessary. Set replace_all to replace every occurrence. "
        "For several places in one file use edits."
    )
    arguments = EditArguments
    unlisted = {"patch": PatchArguments}

    def plan(self, given: EditArguments | PatchArguments) -> Plan:
        """The file with the text replaced, or what a patch makes of several files."""
        if isinstance(given, PatchArguments):
            return self.planned(*self._patched(given.patch))
        wanted = given.wanted
        for one in wanted:
            _check_encodable(one.new, "new")
        place = self.workspace.locate(given.path)
        before = read_whole(place, _LARGEST)
        if before is None:
            raise ToolFailure(f"{missing(place)}; write creates new files")
        text, encoding = _text(before, place.name)
        after, where = replace_all(text, wanted, place.name, may_quote=self._may_quote(place))
        return self.planned(_edited(place, before, text, after, encoding, where))

    def _patched(self, patch: str) -> list[_Change]:
        _check_encodable(patch, "the patch")
        files = parse_patch(patch)
        if len(files) > _MOST_FILES:
            raise ToolFailure(f"the patch names more than {_MOST_FILES} files")
        changes = [change for file in files for change in self._patched_file(file)]
        seen: set[Path] = set()
        for change in changes:
            if change.place.path in seen:
                raise ToolFailure(
                    f"the patch names {change.place.name} twice: combine both under one header"
                )
            seen.add(change.place.path)
        return changes

    def _patched_file(self, file: FilePatch) -> list[_Change]:
        place = self.workspace.locate(file.path)
        before = read_whole(place, _LARGEST)
        if file.act == "add":
            if before is not None:
                raise ToolFailure(f"{place.name} already exists: the patch would add it")
            return [_written(place, None, file.content)]
        if before is None:
            raise ToolFailure(missing(place))
        if file.act == "delete":
            return [_deleted(place, before)]
        text, encoding = _text(before, place.name)
        after = apply_hunks(text, file.hunks, place.name, may_quote=self._may_quote(place))
        change = _edited(place, before, text, after, encoding, "")
        if file.move_to is None:
            return [change]
        new = self.workspace.locate(file.move_to)
        if read_whole(new, _LARGEST) is not None:
            raise ToolFailure(f"{new.name} already exists: the patch would move a file there")
        moved = change._replace(
            place=new, tool="write", before=None, title=f"move {place.name} to {new.name}",
            done=f"moved {place.name} to {new.name}", mode=mode_of(place),
        )  # fmt: skip
        gone = _deleted(place, before)
        return [moved, gone._replace(difference=Diff("", 0, 0), done="")]

    def _may_quote(self, place: Located) -> bool:
        return self.may_be_read(path_subject(place))


class WriteArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to write."""

    path: Annotated[str, Meta(description="the file, relative to the working folder")]
    content: Annotated[str, Meta(description="the complete new content of the file")]


class Write(_Changing[WriteArguments]):
    """Writes files."""

    name = "write"
    description = (
        "Write a whole file of the working folder: a new one, or one whose content is "
        "replaced. Missing folders are created. To change part of a file use edit."
    )
    arguments = WriteArguments

    def plan(self, given: WriteArguments) -> Plan:
        """The file with this content."""
        if given.path.endswith("/"):
            raise ToolFailure(f"{given.path} is a folder: give a file in it")
        place = self.workspace.locate(given.path)
        _check_encodable(given.content, "the content")
        return self.planned(_written(place, read_whole(place, _LARGEST), given.content))


def _check_encodable(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolFailure(f"{what} contains half a character (a lone surrogate)") from None


def _text(data: bytes, name: str) -> tuple[str, Encoding]:
    encoding = encoding_of(data)
    try:
        if encoding is not None:
            return decode(data, encoding), encoding
    except UnicodeDecodeError:
        pass
    raise ToolFailure(f"{name} is {describe(data, len(data))}: it cannot be edited as text")


def _edited(
    place: Located, before: bytes, text: str, after: str, encoding: Encoding, where: str
) -> _Change:
    name = place.name
    if not encoding.is_sure and _foreign(after) > _foreign(text):
        raise ToolFailure(f"{name} is not UTF-8: only ASCII text can be written into it")
    try:
        data = encode(after, encoding)
    except UnicodeEncodeError as error:
        odd = after[error.start]
        raise ToolFailure(
            f"{name} is {encoding.codec} text, which cannot represent {odd!r}: use "
            "characters it can"
        ) from None
    change = diff(text, after, name)
    done = f"edited {name} {change.counts}{f' at {where}' if where else ''}"
    return _Change(place, "edit", before, data, f"edit {name} {change.counts}", change, done)


def _foreign(text: str) -> int:
    return len(BEYOND_ASCII.findall(text))


def _deleted(place: Located, before: bytes) -> _Change:
    name = place.name
    try:
        change = diff(_text(before, name)[0], "", name)
    except ToolFailure:
        change = Diff(f"deletes {name}: {describe(before, len(before))}", 0, 0)
    return _Change(place, "edit", before, None, f"delete {name}", change, f"deleted {name}")


def _written(place: Located, before: bytes | None, content: str) -> _Change:
    name = place.name
    data, difference, kept = _as_before(name, before, content)
    new = ", new" if before is None else ""
    lines = plural(len(content.splitlines()), "line")
    done = f"{'replaced' if new == '' else 'created'} {name}: {lines}, {plural(len(data), 'byte')}"
    if data == before:
        done = f"{name} already has exactly this content"
    title = f"write {name} {difference.counts}{new}{kept.replace(';', ',')}"
    return _Change(place, "write", before, data, title, difference, done + kept)


def _as_before(name: str, before: bytes | None, content: str) -> tuple[bytes, Diff, str]:
    """The content in the encoding and with the line endings of the file, and a remark if that is
    not what the model would expect.
    """
    if before is None:
        return content.encode(), diff("", content, name), ""
    try:
        text, encoding = _text(before, name)
    except ToolFailure:
        new = diff("", content, name)
        lost = f"replaces {describe(before, len(before))}"
        return content.encode(), new._replace(text=f"{lost}\n{new.text}"), ""
    told: list[str] = []
    if "\r\n" not in content and usual_break(text) == "\r\n":
        content = with_breaks(content, "\r\n")
        told.append("its CRLF line ends are kept")
    difference = diff(text, content, name)
    if not encoding.is_sure:
        return content.encode(), difference, _told([*told, "it is now UTF-8"])
    try:
        data = encode(content.removeprefix("\ufeff") if encoding.mark else content, encoding)
    except UnicodeEncodeError:
        return (
            content.encode(),
            difference,
            _told([*told, f"now UTF-8 instead of {encoding.codec}"]),
        )
    if encoding.note:
        told.append(f"its encoding {encoding.codec} is kept")
    return data, difference, _told(told)


def _told(told: list[str]) -> str:
    return f"; {', '.join(told)}" if told else ""
