"""Which codec speaks which dialect. Loaded one at a time, when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import NamedTuple

from mull.dialects.decoder import Decoder, Interpreter
from mull.dialects.replay import Replay, Seal
from mull.neutral.blocks import Block, Wire
from mull.neutral.events import Event
from mull.neutral.messages import Dialect
from mull.neutral.request import Request, WireRequest
from mull.neutral.target import Target

__all__ = [
    "PACKAGES",
    "Codec",
    "codec",
    "decode_response",
    "decoder",
    "encode_request",
    "replay",
    "seals",
]

PACKAGES: dict[Dialect, str] = {
    "openai-chat": "mull.dialects.openai_chat",
    "openai-responses": "mull.dialects.openai_responses",
    "anthropic": "mull.dialects.anthropic",
    "gemini": "mull.dialects.gemini",
}


class Codec(NamedTuple):
    """One dialect as a client speaks it: requests out, answers in."""

    encode_request: Callable[[Request, Target], WireRequest]
    interpreter: Callable[[Target, str | None], Interpreter]


def codec(dialect: Dialect) -> Codec:
    """The client's side of a dialect."""
    package = PACKAGES[dialect]
    encode = import_module(f"{package}.encode")
    decode = import_module(f"{package}.decode")
    return Codec(encode.encode_request, decode.ChunkInterpreter)


@cache
def replay(dialect: Dialect) -> Replay:
    """How answers go back in a dialect."""
    found: Replay = import_module(f"{PACKAGES[dialect]}.replay").REPLAY
    return found


def seals(block: Block) -> Iterator[Seal]:
    """The carriers in a block's wire, as the dialect that wrote it finds them."""
    wire: Wire | None = getattr(block, "wire", None)
    if wire is not None:
        for dialect in PACKAGES:
            if wire.dialect in (None, dialect):
                yield from replay(dialect).seals(block)


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
