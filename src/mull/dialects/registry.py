"""Finds the codec of a dialect by its name. Each is imported on first use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from mull.dialects.body import with_extra
from mull.dialects.decoder import Decoder
from mull.dialects.replay import Replay, Seal
from mull.dialects.traits import DIALECTS, package_of
from mull.neutral.blocks import Block, Wire
from mull.neutral.events import Event
from mull.neutral.messages import Dialect
from mull.neutral.request import Request, WireRequest
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.dialects.decoder import Interpreter

__all__ = [
    "DIALECTS",
    "decode_response",
    "decoder",
    "encode_request",
    "interpreter_of",
    "load_decoder",
    "module_of",
    "replay",
    "seals",
]


@cache
def module_of(dialect: Dialect, name: str) -> ModuleType:
    """A module of a dialect's package."""
    return import_module(f"{package_of(dialect)}.{name}")


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
    wire: WireRequest = module_of(target.dialect, "encode").encode_request(request, target)
    return wire if not request.extra_body else with_extra(wire, request.extra_body)


def decoder(target: Target, field_name: str | None = None, *, reads_on: bool = True) -> Decoder:
    """A decoder for one answer of the target; `field_name` is the only reasoning field to read.

    Complete input is read to its end; input from an open connection is not read beyond the answer.
    """
    framing = load_decoder(target.dialect).FRAMING()
    return Decoder(interpreter_of(target, field_name), reader=framing, reads_on=reads_on)


def interpreter_of(target: Target, field_name: str | None = None) -> Interpreter:
    """What reads the chunks of one answer of the target."""
    found: Interpreter = load_decoder(target.dialect).ChunkInterpreter(target, field_name)
    return found


def load_decoder(dialect: Dialect) -> ModuleType:
    """What reads the answers of a dialect, imported if it was not used before."""
    return module_of(dialect, "decode")


def decode_response(body: bytes, target: Target, field_name: str | None = None) -> list[Event]:
    """All events of a complete answer."""
    one = decoder(target, field_name)
    return [*one.feed(body), *one.close()]
