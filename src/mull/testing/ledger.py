"""What a provider has issued: every answer as sent, and the place of each carrier and id.

Carriers are keyed hashes and new each time, so nobody can guess or forge one. The rules of replay
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
    """What a provider stores of an exchange: everything the model was given, and the document that
    answered it. `fixed` are the fields that a continuation may not change.
    """

    id: str
    given: Sequence[Piece]
    document: Mapping[str, Any]
    fixed: Mapping[str, Any] = {}


class Issued(Value, frozen=True):
    """One answer: the pieces that a client sends back (blocks, parts, items, or one message).

    `marks` are the places of each id and carrier in `pieces`; `carriers` are those with reasoning,
    in wire order. `prefix` is a hash of the answer's context, if the provider binds its thinking to
    that; `kept` is what it stores, if it is asked to.
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
        """A new carrier for thinking."""
        self._sealed += 1
        told = "\0".join((str(self._sealed), model, text)).encode("utf-8", "surrogatepass")
        return b64encode(hmac.digest(self._key, told, "sha512")).decode()

    def name(self, prefix: str) -> str:
        """A new id."""
        self._sealed += 1
        told = hmac.digest(self._key, f"{self._sealed}".encode(), "sha256")
        return f"{prefix}{told.hex()[:24]}"

    def record(self, issued: Issued) -> None:
        """Add an answer that is being sent."""
        self.answers.append(issued)
        if issued.kept is not None:
            self._stored[issued.kept.id] = issued
        for mark, at in issued.marks.items():
            self._places[mark] = Trace(issued, at)

    def find(self, mark: object) -> Trace | None:
        """Where an id or carrier was issued; None if it is not this provider's."""
        return self._places.get(mark) if isinstance(mark, str) else None

    def stored(self, name: object) -> Issued | None:
        """The answer with this id, if it was stored and not deleted."""
        return self._stored.get(name) if isinstance(name, str) else None

    def is_stored(self, place: Trace) -> bool:
        """Whether a piece can be referred to by its id alone."""
        kept = place.issued.kept
        return kept is not None and kept.id in self._stored

    def delete(self, name: str) -> bool:
        """Delete a stored answer; returns whether it was stored."""
        return self._stored.pop(name, None) is not None

    @property
    def carriers(self) -> Iterator[str]:
        """Every carrier of reasoning, in the order they were sent."""
        return (carrier for issued in self.answers for carrier in issued.carriers)
