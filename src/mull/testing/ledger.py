"""What a provider has issued: every answer as it went out, and where each carrier and id stands.

Carriers are keyed hashes and new each time, so nobody can guess or make one. The rules of replay
are functions of a request's body and a ledger. It forgets only what a client deletes.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mull.neutral.blocks import Value

__all__ = ["Issued", "Kept", "Ledger", "Piece", "Trace"]

Piece = Mapping[str, Any]


class Kept(Value, frozen=True):
    """What a provider stores of an exchange: all that the model was given, and the document that
    answered it. `fixed` are the fields that a continuation may not change."""

    id: str
    given: Sequence[Piece]
    document: Mapping[str, Any]
    fixed: Mapping[str, Any] = {}


class Issued(Value, frozen=True):
    """One answer: the pieces that a client sends back (blocks, parts, items, or one message).

    `marks` say where in `pieces` each id and carrier stands; `carriers` are those of them that
    hold reasoning, in wire order. `prefix` is a hash of what the answer was given to, where the
    provider binds its thoughts to that; `kept` is what it stores, where it is asked to.
    """

    model: str
    pieces: Sequence[Piece]
    marks: Mapping[str, int]
    carriers: Sequence[str] = ()
    prefix: str | None = None
    kept: Kept | None = None


class Trace(NamedTuple):
    """A piece of an issued answer."""

    issued: Issued
    at: int

    @property
    def piece(self) -> Piece:
        """The piece itself."""
        return self.issued.pieces[self.at]


class Ledger:
    """The answers of one provider, in order."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sealed = 0
        self._places: dict[str, Trace] = {}
        self._stored: dict[str, Issued] = {}
        self.answers: list[Issued] = []

    def seal(self, model: str, text: str) -> str:
        """A carrier for a thought, never given before."""
        self._sealed += 1
        told = "\0".join((str(self._sealed), model, text)).encode("utf-8", "surrogatepass")
        return b64encode(hmac.digest(self._key, told, "sha512")).decode()

    def name(self, prefix: str) -> str:
        """An id, never given before."""
        self._sealed += 1
        told = hmac.digest(self._key, f"{self._sealed}".encode(), "sha256")
        return f"{prefix}{told.hex()[:24]}"

    def record(self, issued: Issued) -> None:
        """Add an answer that goes out now."""
        self.answers.append(issued)
        if issued.kept is not None:
            self._stored[issued.kept.id] = issued
        for mark, at in issued.marks.items():
            self._places[mark] = Trace(issued, at)

    def find(self, mark: object) -> Trace | None:
        """Where an id or carrier was issued; None for what is not this provider's."""
        return self._places.get(mark) if isinstance(mark, str) else None

    def stored(self, name: object) -> Issued | None:
        """The answer with this id, where it was stored and not deleted."""
        return self._stored.get(name) if isinstance(name, str) else None

    def is_stored(self, place: Trace) -> bool:
        """Whether a piece can be named by its id alone."""
        kept = place.issued.kept
        return kept is not None and kept.id in self._stored

    def delete(self, name: str) -> bool:
        """Stop storing an answer; whether it was stored."""
        return self._stored.pop(name, None) is not None

    @property
    def carriers(self) -> Iterator[str]:
        """Every carrier of reasoning, in the order they went out."""
        return (carrier for issued in self.answers for carrier in issued.carriers)
