"""The server side of the dialects: it decodes requests and encodes answers and errors.

Clients do not need this module and do not import it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from mull.dialects.foreign import Conversation
from mull.dialects.registry import DIALECTS, codec
from mull.dialects.traits import TRAITS
from mull.dialects.writer import About, AnswerWriter
from mull.neutral.asked import Asked
from mull.neutral.assemble import tell
from mull.neutral.events import Failed
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import Note
from mull.neutral.target import Target

__all__ = [
    "Document",
    "answer_writer",
    "bodies",
    "control_headers",
    "decode_request",
    "read_history",
    "recognised",
    "write_answer",
    "write_failure",
]


class Document(NamedTuple):
    """An answer as one document, and notes about what it could not contain."""

    body: bytes
    notes: tuple[Note, ...]


def answer_writer(dialect: Dialect, about: About | None = None) -> AnswerWriter:
    """A writer of one answer in this dialect."""
    about = about or About()
    statuses = codec(about.source or dialect).answer.STATUSES
    return codec(dialect).answer.Writer(about, statuses)


def write_answer(message: Message, dialect: Dialect, about: About | None = None) -> Document:
    """A complete answer in this dialect, as one document."""
    about = about or About()
    if about.model is None and message.origin is not None:
        about = replace(about, model=message.origin.model)
    stream = answer_writer(dialect, about)
    for event in tell(message):  # a stream and a document leave out the same
        stream.feed(event)
    notes = stream.notes
    if message.status in ("error", "interrupted") and not stream.DOCUMENT_FAILS:
        notes += (
            Note("answer", "that the answer broke off: only a stream can express it here", True),
        )
    return Document(codec(dialect).answer.write_document(message, about), notes)


def write_failure(
    failed: Failed, dialect: Dialect, status: int | None = None, source: Dialect | None = None
) -> tuple[int, bytes]:
    """The HTTP status and the body for a failure before any answer.

    `status` is the status that the failure came with. Without it, the status follows from the
    failure's code as `source`, the dialect that it was read from, defines it.
    """
    if status is None:
        status = codec(source or dialect).answer.STATUSES.status(failed.code) or 500
    return status, codec(dialect).answer.write_error(failed, status)


def bodies() -> Iterator[tuple[Dialect, str, str | None]]:
    """The field of each dialect's requests that holds the messages, and the one that holds the
    system prompt if that is separate.
    """
    for dialect in DIALECTS:
        yield dialect, *codec(dialect).history.BODY


def recognised(messages: Sequence[Mapping[str, Any]], *, has_system: bool) -> Dialect:
    """The dialect of a list of messages: by features that only one dialect has, otherwise by
    whether there is a separate system prompt.
    """
    for dialect in reversed(DIALECTS):  # many clients mix in features of the first
        if any(map(codec(dialect).history.is_own, messages)):
            return dialect
    beside = "system" if has_system else None
    return next(dialect for dialect, *body in bodies() if body == ["messages", beside])


def read_history(
    dialect: Dialect, messages: Sequence[Any], system: Any, written_by: Target | None = None
) -> Conversation:
    """The conversation in a list of this dialect's messages; `written_by` is the target that wrote
    the answers.

    Raises:
        ConfigError: the list is invalid; the message says where and why.
    """
    return codec(dialect).history.read_history(messages, system, written_by)


def decode_request(
    dialect: Dialect, body: bytes, path: str = "", headers: Mapping[str, str] | None = None
) -> Asked:
    """The decoded request of a client in this dialect.

    The model may be in the path. Header names are in lower case.

    Raises:
        ConfigError: it is not a request of this dialect; the message says where and why.
    """
    asked = codec(dialect).asked.decode_request(body, path, headers or {})
    return replace(asked, headers=control_headers(headers, dialect)) if headers else asked


def control_headers(headers: Mapping[str, str], dialect: Dialect) -> dict[str, str]:
    """The headers by which a client controls the model; no others are ever passed on."""
    return {name: headers[name] for name in TRAITS[dialect].headers if name in headers}
