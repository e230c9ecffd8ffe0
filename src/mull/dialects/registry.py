"""Finds the codec of a dialect by its name. Each is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from mull.dialects.body import with_extra
from mull.dialects.decoder import Decoder, FrameReader, Interpreter
from mull.dialects.replay import Replay, Seal
from mull.dialects.traits import DIALECTS, package_of
from mull.neutral.blocks import Block, Wire
from mull.neutral.events import Event
from mull.neutral.messages import Dialect
from mull.neutral.request import Request, WireRequest
from mull.neutral.target import Target

__all__ = [
    "DIALECTS",
    "Codec",
    "codec",
    "decode_response",
    "decoder",
    "encode_request",
    "module_of",
    "replay",
    "seals",
]


class Codec(NamedTuple):
    """One dialect from the client's side: requests out, answers in, streams split by its
    framing.
    """

    encode_request: Callable[[Request, Target], WireRequest]
    interpreter: Callable[[Target, str | None], Interpreter]
    framing: Callable[[], FrameReader]


@cache
def module_of(dialect: Dialect, name: str) -> ModuleType:
    """A module of a dialect's package."""
    return import_module(f"{package_of(dialect)}.{name}")


@cache
def codec(dialect: Dialect) -> Codec:
    """The client's side of a dialect."""
    decode = module_of(dialect, "decode")
    encode = module_of(dialect, "encode")
    return Codec(encode.encode_request, decode.ChunkInterpreter, decode.FRAMING)


@cache
def replay(dialect: Dialect) -> Replay:
    """How answers are sent back in a dialect."""
    found: Replay = module_of(dialect, "replay").REPLAY
    return found


def seals(block: Block) -> Iterator[Seal]:
    """The carriers in a block's wire, as the dialect that wrote it finds them."""
    wire: Wire | None = getattr(block, "wire", None)
    if wire is not None:
        for dialect in DIALECTS:
            if wire.dialect in (None, dialect):
                yield from replay(dialect).seals(block)


def encode_request(request: Request, target: Target) -> WireRequest:
    """The request in the target's dialect, without any key."""
    wire = codec(target.dialect).encode_request(request, target)
    return wire if not request.extra_body else with_extra(wire, request.extra_body)


def decoder(target: Target, field_name: str | None = None, *, reads_on: bool = True) -> Decoder:
    """A decoder for one answer of the target; `field_name` is the only reasoning field to read.

    Complete input is read to its end; input from an open connection is not read beyond the answer.
    """
    spoken = codec(target.dialect)
    interpreter = spoken.interpreter(target, field_name)
    return Decoder(interpreter, reader=spoken.framing(), reads_on=reads_on)


def decode_response(body: bytes, target: Target, field_name: str | None = None) -> list[Event]:
    """All events of a complete answer."""
    one = decoder(target, field_name)
    return [*one.feed(body), *one.close()]
