"""What can go wrong in the transmission of a response, at any position, as functions on bytes.

A response on the wire is cut into pieces: its bytes, its server's chunks, or the events of its
stream. A fault happens before one piece, or to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from mull.neutral.blocks import Value
from mull.testing.server import CUT, RESET, STALL, Pause, Step

__all__ = ["KINDS", "Fault", "Kind", "Response", "Unit", "inflict"]

Kind: TypeAlias = Literal[
    "cut", "reset", "stall", "delay", "throttle", "corrupt", "drop", "duplicate", "reorder"
]
Unit: TypeAlias = Literal["byte", "chunk", "event"]

_EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r|\Z)", re.DOTALL)


class Fault(Value, frozen=True):
    """One fault.

    Before the piece `at` the connection is closed (`cut`), reset (`reset`) or silent: until the
    client disconnects (`stall`) or for some `seconds` (`delay`); or from there on single bytes
    arrive (`throttle`), that many seconds apart. The piece itself is altered (`corrupt`: one bit in
    its middle), left out (`drop`), sent twice (`duplicate`) or after the next one (`reorder`).

    With bytes, position 0 is the first of the response's head. With chunks and events, piece 0 is
    the head, and the last one is what ends the body.
    """

    kind: Kind
    at: int = 0
    unit: Unit = "byte"
    seconds: float = 0.0


class Response(Value, frozen=True):
    """A response as received from its server: the head, and the body in its chunks."""

    head: bytes
    chunks: Sequence[bytes]
    chunked: bool = True

    @property
    def body(self) -> bytes:
        """The body without its framing."""
        return b"".join(self.chunks)

    @property
    def events(self) -> list[bytes]:
        """The body split after each event of a stream; a document is one event."""
        return [found for found in _EVENT.findall(self.body) if found]

    def pieces(self, unit: Unit) -> list[bytes]:
        """The response on the wire, in pieces; together they are all of it."""
        if unit == "byte":
            whole = b"".join(self.pieces("chunk"))
            return [whole[at : at + 1] for at in range(len(whole))]
        parts = self.chunks if unit == "chunk" else self.events
        end = [b"0\r\n\r\n"] if self.chunked else []
        return [self.head, *map(self._framed, parts), *end]

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked else data


def inflict(response: Response, fault: Fault | None) -> list[Step]:
    """The steps by which a server sends the response with this fault.

    A position after the end is the end: the response is complete, and then the fault happens.
    """
    pieces = response.pieces(fault.unit if fault else "chunk")
    if fault is None:
        return [*pieces]
    at = min(fault.at, len(pieces))
    return [*_ACTIONS[fault.kind](pieces, at, fault)]


def _ended(pieces: Sequence[bytes], at: int, fault: Fault) -> Iterator[Step]:
    yield b"".join(pieces[:at])
    yield RESET if fault.kind == "reset" else CUT


def _silent(pieces: Sequence[bytes], at: int, fault: Fault) -> Iterator[Step]:
    yield b"".join(pieces[:at])
    yield STALL if fault.kind == "stall" else Pause(fault.seconds)
    yield b"".join(pieces[at:])


def _slow(pieces: Sequence[bytes], at: int, fault: Fault) -> Iterator[Step]:
    yield b"".join(pieces[:at])
    rest = b"".join(pieces[at:])
    for index in range(len(rest)):
        yield rest[index : index + 1]
        yield Pause(fault.seconds)


def _altered(pieces: Sequence[bytes], at: int, fault: Fault) -> Iterator[Step]:
    changed = list(pieces)
    here = changed[at : at + 1]
    match fault.kind:
        case "corrupt":
            changed[at : at + 1] = [_flipped(piece) for piece in here]
        case "drop":
            del changed[at : at + 1]
        case "duplicate":
            changed[at:at] = here
        case _:
            changed[at : at + 2] = reversed(changed[at : at + 2])
    yield b"".join(changed)


def _flipped(piece: bytes) -> bytes:
    middle = len(piece) // 2
    return piece[:middle] + bytes([piece[middle] ^ 1]) + piece[middle + 1 :]


_Action: TypeAlias = Callable[[Sequence[bytes], int, Fault], Iterator[Step]]
_ACTIONS: Mapping[Kind, _Action] = {
    "cut": _ended,
    "reset": _ended,
    "stall": _silent,
    "delay": _silent,
    "throttle": _slow,
    "corrupt": _altered,
    "drop": _altered,
    "duplicate": _altered,
    "reorder": _altered,
}
KINDS: tuple[Kind, ...] = tuple(_ACTIONS)
