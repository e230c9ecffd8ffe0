"""Finds the codec of a dialect by its name, and uses it as a client does.

The type checker sees the `CODEC` of each package, with all its parts. The program imports a part
when it first needs it: a question needs three of the seven.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from mull.dialects.body import with_extra
from mull.dialects.decoder import Decoder
from mull.dialects.replay import Replay, Seal
from mull.dialects.traits import DIALECTS, package_of
from mull.neutral.blocks import Block, ThinkingBlock, Wire
from mull.neutral.events import Event
from mull.neutral.messages import Dialect
from mull.neutral.request import Request, WireRequest
from mull.neutral.target import Target

__all__ = [
    "DIALECTS",
    "codec",
    "decode_response",
    "decoder",
    "encode_request",
    "interpreter_of",
    "is_sealed",
    "replay",
    "seals",
]

if TYPE_CHECKING:
    from typing import assert_never

    from mull.dialects import anthropic, bedrock_converse, gemini, openai_chat, openai_responses
    from mull.dialects.codec import Codec
    from mull.dialects.decoder import Interpreter

    def codec(dialect: Dialect) -> Codec:
        """The codec of a dialect."""
        match dialect:
            case "openai-chat":
                return openai_chat.CODEC
            case "openai-responses":
                return openai_responses.CODEC
            case "anthropic":
                return anthropic.CODEC
            case "gemini":
                return gemini.CODEC
            case "bedrock-converse":
                return bedrock_converse.CODEC
            case _:
                assert_never(dialect)

else:

    @cache
    def codec(dialect: Dialect) -> Codec:
        """The codec of a dialect. Its parts are imported on first use."""
        return _Late(package_of(dialect))


class _Late:
    """The parts of a package, each imported when it is first asked for."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, name: str) -> ModuleType | None:
        full = f"{self._package}.{name}"
        part = import_module(full) if find_spec(full) is not None else None
        setattr(self, name, part)
        return part


def replay(dialect: Dialect) -> Replay:
    """How answers are sent back in a dialect."""
    return codec(dialect).replay.REPLAY


def seals(block: Block) -> Iterator[Seal]:
    """The carriers in a block's wire, as the dialect that wrote it finds them."""
    wire: Wire | None = getattr(block, "wire", None)
    if wire is not None:
        for dialect in DIALECTS:
            if wire.dialect in (None, dialect):
                yield from replay(dialect).seals(block)


def is_sealed(thought: ThinkingBlock) -> bool:
    """Whether its maker signed or encrypted a thought."""
    own = thought.signature or thought.encrypted or thought.redacted
    return bool(own) or next(seals(thought), None) is not None


def encode_request(request: Request, target: Target) -> WireRequest:
    """The request in the target's dialect, without any key."""
    wire = codec(target.dialect).encode.encode_request(request, target)
    return wire if not request.extra_body else with_extra(wire, request.extra_body)


def decoder(target: Target, field_name: str | None = None, *, reads_on: bool = True) -> Decoder:
    """A decoder for one answer of the target; `field_name` is the only reasoning field to read.

    Complete input is read to its end; input from an open connection is not read beyond the answer.
    """
    framing = codec(target.dialect).decode.FRAMING()
    return Decoder(interpreter_of(target, field_name), reader=framing, reads_on=reads_on)


def interpreter_of(target: Target, field_name: str | None = None) -> Interpreter:
    """What reads the chunks of one answer of the target."""
    return codec(target.dialect).decode.ChunkInterpreter(target, field_name)


def decode_response(body: bytes, target: Target, field_name: str | None = None) -> list[Event]:
    """All events of a complete answer."""
    one = decoder(target, field_name)
    return [*one.feed(body), *one.close()]
