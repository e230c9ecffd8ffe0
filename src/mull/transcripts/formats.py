"""Our own file formats: the whole transcript, in one JSON object or a record a line.

Both hold the same and lose nothing. What they give back is checked as a log would use it: a
record that speaks of others must speak of records before it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from mull.history.log import Condensed, Entry, Record, Summary, Undone
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.errors import ConfigError
from mull.neutral.former import Reader
from mull.transcripts.transcript import Transcript

__all__ = ["SESSION", "VERSION", "from_json", "from_jsonl", "to_json", "to_jsonl"]

SESSION = "session"
"""The `type` of a document, and of the first of its lines."""
VERSION = 1

_EMPTY = msgspec.structs.asdict(Transcript())
_encode = msgspec.json.Encoder().encode
_record: Reader[Record] = Reader(Record)


class _Document(Transcript, frozen=True, tag_field="type", tag=SESSION, kw_only=True):
    """A transcript that says what it is. All of it is in `version` 1."""

    version: Literal[1]


class _Kind(msgspec.Struct, frozen=True):
    type: Literal["session"]
    version: Annotated[int, msgspec.Meta(ge=1)]


_document: Reader[_Document] = Reader(_Document)
_kind = msgspec.json.Decoder(_Kind).decode


def to_json(transcript: Transcript) -> bytes:
    """The transcript as one JSON object, laid out for reading."""
    return msgspec.json.format(_encode(_document_of(transcript)), indent=2) + b"\n"


def to_jsonl(transcript: Transcript) -> bytes:
    """The transcript as lines: what is known of it first, then each record."""
    header = _document_of(msgspec.structs.replace(transcript, records=()))
    return b"".join(_encode(line) + b"\n" for line in (header, *transcript.records))


def from_json(data: bytes) -> Transcript:
    """The transcript that `to_json` wrote.

    Raises:
        ConfigError: it is not one, or is damaged; says where and why.
    """
    transcript = _read_document(data, "")
    _check(transcript.records, "record {}", first=0)
    return transcript


def from_jsonl(data: bytes) -> Transcript:
    """The transcript that `to_jsonl` wrote.

    Raises:
        ConfigError: it is not one, or is damaged; says in which line and why.
    """
    lines = data.split(b"\n")
    transcript = _read_document(lines[0], "line 1: ")
    records: list[Record] = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            records.append(_read_record(line, number))
        elif any(map(bytes.strip, lines[number:])):
            raise ConfigError(f"line {number} is empty: a record is missing there")
    _check(tuple(records), "line {}", first=2)
    return msgspec.structs.replace(transcript, records=tuple(records))


def _document_of(transcript: Transcript) -> dict[str, Any]:
    held = msgspec.structs.asdict(transcript)
    known = {name: value for name, value in held.items() if value != _EMPTY[name]}
    return {"type": SESSION, "version": VERSION, **known}


def _read_document(data: bytes, where: str) -> Transcript:
    try:
        kind = _kind(data)
        if kind.version > VERSION:
            raise ConfigError(
                f"{where}the file has version {kind.version}, from a newer mull:"
                " upgrade mull to read it"
            )
        held = msgspec.structs.asdict(_document(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{where}not a session: {_reason(error)}") from None
    del held["version"]
    return Transcript(**held)


def _read_record(line: bytes, number: int) -> Record:
    try:
        return _record(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"line {number} is not a record: {_reason(error)}") from None


def _check(records: tuple[Record, ...], name: str, *, first: int) -> None:
    for at, record in enumerate(records):
        problem = _problem(records, at, record)
        if problem:
            raise ConfigError(f"{name.format(at + first)} {problem}")


def _problem(records: tuple[Record, ...], at: int, record: Record) -> str | None:
    match record:
        case Summary() | Undone():
            if not 0 <= record.start <= record.end <= at:
                return f"refers to records {record.start} to {record.end}, which do not precede it"
        case Condensed():
            before = records[record.entry] if 0 <= record.entry < at else None
            blocks = before.message.blocks if isinstance(before, Entry) else ()
            known = 0 <= record.block < len(blocks)
            if not known or not isinstance(blocks[record.block], ThinkingBlock):
                return f"shortens block {record.block} of record {record.entry}: no thought there"
        case Entry():
            pass
    return None


def _reason(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]
