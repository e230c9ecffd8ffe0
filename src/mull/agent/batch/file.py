"""The file of a batch: one line for each answer, written as soon as it is there.

The first line says which model and options the batch has. A line is written whole and at once, so
that a process that is killed leaves at most the beginning of one: it is cut off, and its item asked
again. Only one process writes a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from mull.agent.batch.items import Item
from mull.agent.results import Result
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError, MisfitError, MullError, RefusedError, UnwritableError
from mull.neutral.former import Reader
from mull.neutral.messages import Message, Status
from mull.neutral.request import Note
from mull.neutral.usage import Usage
from mull.settings.registry import REGISTRY
from mull.store.locks import FileLock

__all__ = ["BatchFile", "SubmissionLine", "outcome_json"]

VERSION = 2
"""The first version did not record the user's settings."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_SUBMISSIONS: TypeAlias = Literal["submitting", "submitted", "collected"]


class _Head(Struct):
    """What every line has, as far as it is needed to find it again."""

    type: Literal["batch", "result"] | _SUBMISSIONS
    """What the line holds: the head of the file, a result, or a step of a submission."""
    id: str = ""
    """The id of the item that a result belongs to; empty in other lines."""
    hash: str = ""
    """The hash of that item's content: an item that has changed since is asked again."""
    version: int = 1
    """The version of the format, in the head of the file."""
    model: str | None = None
    """The model of the whole batch, in the head of the file."""
    options: dict[str, Any] = {}
    """The options of the whole batch, in the head of the file: a batch with others has another
    file.
    """
    error: msgspec.Raw = msgspec.Raw(b"")
    """The JSON of why a result has no answer; empty if it has one."""
    result: msgspec.Raw = msgspec.Raw(b"")
    """The JSON of the answer; empty if there is none."""


class _ErrorHead(Struct):
    type: str = ""


class SubmissionLine(Struct):
    """What was handed to a provider: about to be (`submitting`, with its items), under which id
    (`submitted`), or nothing is left to collect (`collected`).
    """

    type: _SUBMISSIONS
    token: str
    at: float = 0.0
    batch: str | None = None
    items: list[tuple[str, str, int]] = []


class _Answer(Value, frozen=True):
    """A result as it is stored. Text, thinking and value are in the messages too, and stand here
    for those who read the file.
    """

    text: str
    """The text of the last answer."""
    thinking: str
    """The readable thinking of all answers of the turn."""
    status: Status
    """How the last answer ended."""
    model: str
    """The model that answered, as `provider/model`."""
    messages: tuple[Message, ...]
    """All messages that the turn added."""
    value: Any = None
    """The answer to a question with a `schema`; None without one."""
    usage: Usage | None = None
    """The token counts of all requests of the turn; None if unknown."""
    cost: float | None = None
    """Their price in dollars; None if unknown."""
    request_id: str | None = None
    """The provider's id of the last request."""
    seconds: float | None = None
    """How long the turn took; None in a batch at a provider."""
    first_seconds: float | None = None
    """When the first piece of the first answer came; None if unknown."""
    notes: tuple[Note, ...] = ()
    """What mull changed or left out, and why."""


class _Line(Value, frozen=True):
    result: _Answer
    type: str = ""
    id: str = ""
    hash: str = ""
    index: int = 0
    error: Any = None


@cache
def _read_line() -> Reader[_Line]:
    return Reader(_Line)


_encode = msgspec.json.Encoder().encode


class BatchFile:
    """The results of a batch on disk. Close it to let others write it. With `misfits`, an answer
    that does not match its schema is one.

    Raises:
        LocalError: it belongs to another batch, or another process writes it; says what differs.
        UnwritableError: it cannot be read or written.
    """

    def __init__(
        self, path: Path, model: str, options: Mapping[str, Any], *, misfits: bool = False
    ) -> None:
        self.path = path
        self._misfits = misfits
        self.notes: list[str] = []
        self.submissions: list[SubmissionLine] = []
        self._places: dict[str, tuple[str, int]] = {}
        self._lock = FileLock(path)
        if path.exists() and not path.is_file():
            raise LocalError(f"{path} is not a regular file: choose another for the results")
        try:
            if not self._lock.acquire(wait=False):
                raise LocalError(f"{path} is in use: another process runs this batch")
            self._file: IO[bytes] = open(path, "r+b")  # noqa: SIM115 - closed by close()
        except OSError as error:
            self._lock.release()
            raise UnwritableError(f"cannot open {path}: {error.strerror}") from error
        try:
            self._load(model, options)
        except BaseException:
            self.close()
            raise

    def _load(self, model: str, options: Mapping[str, Any]) -> None:
        is_first, end = True, 0
        for number, (at, line) in enumerate(self._lines(), 1):
            try:
                head = msgspec.json.decode(line, type=_Head)
                if head.type in get_args(_SUBMISSIONS):
                    self.submissions.append(msgspec.json.decode(line, type=SubmissionLine))
            except _UNREADABLE:
                if is_first:
                    raise LocalError(
                        f"{self.path} is not the file of a batch: choose another name for the"
                        " results"
                    ) from None
                if not line.endswith(b"\n"):
                    self.notes.append(
                        f"line {number} of {self.path} was incomplete and is removed: its item is"
                        " asked again"
                    )
                    break
                self.notes.append(f"line {number} of {self.path} is damaged and was set aside")
                end = at + len(line)
                continue
            end = at + len(line)
            if is_first:
                self._check(head, model, options)
                is_first = False
            elif head.type == "result" and self._is_answer(head):
                self._places[head.id] = (head.hash, at)
        self._cut(end)
        if is_first:
            first = {"type": "batch", "version": VERSION, "model": model, "options": dict(options)}
            self.append(first)

    def _is_answer(self, head: _Head) -> bool:
        if not head.error:
            return True
        if not self._misfits or not head.result:
            return False
        try:
            kind = msgspec.json.decode(head.error, type=_ErrorHead).type
        except _UNREADABLE:  # damaged, or of another program
            return False
        return kind == MisfitError.__name__

    def _cut(self, end: int) -> None:
        """Let the file end after its last whole line."""
        self._file.seek(0, os.SEEK_END)
        if self._file.tell() > end:
            self._file.seek(end)
            self._file.truncate()
        self._file.seek(max(0, end - 1))
        if self._file.read(1) not in (b"", b"\n"):
            self._write(b"\n")

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """The lines, each with its place."""
        at = 0
        for line in self._file:
            yield at, line
            at += len(line)

    def _check(self, head: _Head, model: str, options: Mapping[str, Any]) -> None:
        if head.type != "batch" or head.version > VERSION:
            raise LocalError(f"{self.path} is not the file of a batch that this version can read")
        before = {"model": head.model, **head.options}
        now = {"model": model, **options}
        if head.version < 2:
            now = {name: value for name, value in now.items() if name not in REGISTRY}
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                raise LocalError(
                    f"{self.path} has the answers of a batch with another {name}"
                    f" ({before.get(name)!r}, now {now.get(name)!r}): choose another file, or"
                    " delete this one to ask everything again"
                )

    def has(self, id: str, hash: str) -> bool:
        """Whether there is an answer to this item."""
        return self._places.get(id, ("",))[0] == hash

    def find(self, item: Item) -> Result | None:
        """The stored answer to an item; None if it has to be asked."""
        found = self._places.get(item.id)
        if found is None:
            return None
        if found[0] != item.hash:
            self.notes.append(f"item {item.id!r} has changed since {self.path}: it is asked again")
            return None
        try:
            return _result(_read_line()(self._line_at(found[1])).result)
        except _UNREADABLE:
            self.notes.append(f"the answer to {item.id!r} in {self.path} cannot be read")
            return None

    def _line_at(self, at: int) -> bytes:
        self._file.seek(at)
        line = self._file.readline()
        self._file.seek(0, os.SEEK_END)
        return line

    def add(
        self, item: Item, result: Result | None, error: MullError | None, value: Any = None
    ) -> None:
        """Store what came of an item; `value` is that of the result, as JSON data.

        Raises:
            UnwritableError: the disk is full, or the like.
        """
        place = {"type": "result", "id": item.id, "index": item.index, "hash": item.hash}
        self.append({**place, **outcome_json(result, error, value)})

    def append(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        self._write(_encode(line) + b"\n")

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise UnwritableError(
                f"cannot write {self.path}: {error.strerror}. What is in it stays; run the batch"
                " again to go on"
            ) from error

    def close(self) -> None:
        """Let others write it."""
        if self._lock.is_held:
            with suppress(OSError):  # it tries to write once more what was reported already
                self._file.close()
            self._lock.release()


def _stored(result: Result, value: Any) -> _Answer:
    return _Answer(
        text=result.text,
        thinking=result.thinking,
        status=result.status,
        model=result.model,
        messages=result.messages,
        value=value,
        usage=result.usage,
        cost=result.cost,
        request_id=result.request_id,
        seconds=result.seconds,
        first_seconds=result.first_seconds,
        notes=result.notes,
    )


def _result(stored: _Answer) -> Result:
    answers = [message for message in stored.messages if message.role == "assistant"]
    return Result(
        text=stored.text,
        thinking=stored.thinking,
        status=stored.status,
        usage=stored.usage,
        notes=stored.notes,
        message=answers[-1] if answers else Message(role="assistant", status=stored.status),
        messages=stored.messages,
        model=stored.model,
        value=stored.value,
        cost=stored.cost,
        request_id=stored.request_id,
        seconds=stored.seconds,
        first_seconds=stored.first_seconds,
    )


def outcome_json(result: Result | None, error: MullError | None, value: Any) -> dict[str, Any]:
    """What came of an item, for programs; `value` is that of the result, as JSON data."""
    told = {} if result is None else {"result": _stored(result, value)}
    return told if error is None else {**told, "error": _error_json(error)}


def _error_json(error: MullError) -> dict[str, Any]:
    told: dict[str, Any] = {"type": type(error).__name__, "message": str(error)}
    if isinstance(error, RefusedError):
        told |= {"status": error.status, "code": error.code, "request_id": error.request_id}
    return told
