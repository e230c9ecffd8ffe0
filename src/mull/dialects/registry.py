"""Which codec speaks which dialect. Loaded one at a time, when first asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from mull.dialects.decoder import Decoder, Interpreter
from mull.dialects.tables import Statuses
from mull.dialects.writer import About, AnswerWriter
from mull.neutral.assemble import tell
from mull.neutral.events import Event, Failed
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import Note, Request, WireRequest
from mull.neutral.target import Target

__all__ = [
    "Codec",
    "Document",
    "ServerCodec",
    "answer_writer",
    "codec",
    "decode_response",
    "decoder",
    "encode_request",
    "server_codec",
    "write_answer",
    "write_failure",
]

_PACKAGES: dict[Dialect, str] = {
    "openai-chat": "mull.dialects.openai_chat",
    "openai-responses": "mull.dialects.openai_responses",
    "anthropic": "mull.dialects.anthropic",
    "gemini": "mull.dialects.gemini",
}


class Codec(NamedTuple):
    """One dialect as a client speaks it: requests out, answers in."""

    encode_request: Callable[[Request, Target], WireRequest]
    interpreter: Callable[[Target, str | None], Interpreter]


class ServerCodec(NamedTuple):
    """One dialect as a server speaks it: answers and errors out."""

    writer: Callable[[About, Statuses], AnswerWriter]
    write_document: Callable[[Message, About], bytes]
    write_error: Callable[[Failed, int], bytes]
    statuses: Statuses


class Document(NamedTuple):
    """An answer as one document, and what could not be part of it."""

    body: bytes
    notes: tuple[Note, ...]


def codec(dialect: Dialect) -> Codec:
    """The client's side of a dialect."""
    package = _PACKAGES[dialect]
    encode = import_module(f"{package}.encode")
    decode = import_module(f"{package}.decode")
    return Codec(encode.encode_request, decode.ChunkInterpreter)


def server_codec(dialect: Dialect) -> ServerCodec:
    """The server's side of a dialect."""
    answer = import_module(f"{_PACKAGES[dialect]}.answer")
    return ServerCodec(answer.Writer, answer.write_document, answer.write_error, answer.STATUSES)


def encode_request(request: Request, target: Target) -> WireRequest:
    """The request in the target's dialect, without any key."""
    return codec(target.dialect).encode_request(request, target)


def decoder(target: Target, field_name: str | None = None) -> Decoder:
    """A decoder for one answer of the target; `field_name` is the only reasoning field to read."""
    return Decoder(codec(target.dialect).interpreter(target, field_name))


def decode_response(body: bytes, target: Target, field_name: str | None = None) -> list[Event]:
    """All events of an answer that is there as a whole."""
    one = decoder(target, field_name)
    return [*one.feed(body), *one.close()]


def answer_writer(dialect: Dialect, about: About | None = None) -> AnswerWriter:
    """A writer of one answer in this dialect."""
    about = about or About()
    statuses = server_codec(about.source or dialect).statuses
    return server_codec(dialect).writer(about, statuses)


def write_answer(message: Message, dialect: Dialect, about: About | None = None) -> Document:
    """A whole answer in this dialect, as one document."""
    about = about or About()
    stream = answer_writer(dialect, about)
    for event in tell(message):  # a stream leaves out what a document does
        stream.feed(event)
    return Document(server_codec(dialect).write_document(message, about), stream.notes)


def write_failure(
    failed: Failed, dialect: Dialect, status: int | None = None, source: Dialect | None = None
) -> tuple[int, bytes]:
    """The HTTP status and the body of a failure before there was an answer.

    `status` is the one it came with; without it, its code says one in the words of `source`, the
    dialect that it was read from.
    """
    if status is None:
        status = server_codec(source or dialect).statuses.status(failed.code) or 500
    return status, server_codec(dialect).write_error(failed, status)
