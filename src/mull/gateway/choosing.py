"""In which order a request tries the targets of a name.

A conversation goes back to where its reasoning came from: nobody else can read it. Without any, it
goes by the hash of its beginning, so that all of its requests meet the same prompt cache, and so
that many conversations spread by weight. The same hash says who is next when a target fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar

from mull.gateway.attach import past_of
from mull.neutral.messages import Message, Origin

__all__ = ["Candidate", "beginning_of", "in_order", "origin_of", "spread"]

_HASHED = 1 << 64


class Candidate(Protocol):
    """What is to be known of a target here."""

    @property
    def place(self) -> str:
        """What tells it from all others."""

    @property
    def weight(self) -> float:
        """Its share."""

    @property
    def origin(self) -> Origin:
        """The stamp of its answers."""


C = TypeVar("C", bound=Candidate)


def beginning_of(scope: str, messages: Sequence[Message]) -> str:
    """The hash of what stays at the beginning of a conversation for as long as it lasts. Clients
    change their system prompts from request to request; what the user said first stays."""
    first = next((message for message in messages if message.role == "user"), None)
    return f"{scope} {past_of([first] if first else []).key(Message(role='assistant'))}"


def origin_of(messages: Sequence[Message]) -> Origin | None:
    """Where the latest answer came from whose origin is known."""
    answers = (message.origin for message in reversed(messages) if message.role == "assistant")
    return next((origin for origin in answers if origin is not None), None)


def spread(candidates: Sequence[C], beginning: str) -> list[C]:
    """The candidates by weighted rendezvous hashing: each is first for its share of all beginnings,
    and where one is taken away the others keep their order."""
    return sorted(candidates, key=lambda one: _score(one, beginning))


def _score(candidate: Candidate, beginning: str) -> float:
    hashed = blake2b(f"{beginning}\0{candidate.place}".encode(), digest_size=8).digest()
    drawn = (int.from_bytes(hashed) + 1) / (_HASHED + 1)
    return -math.log(drawn) / candidate.weight


def in_order(
    targets: Sequence[C],
    fallbacks: Sequence[Sequence[C]],
    beginning: str,
    origin: Origin | None,
    *,
    in_turn: bool,
) -> list[C]:
    """All candidates, best first.

    `in_turn` says that the request continues an answer with results of its calls: then also a
    fallback that gave this answer goes on with it.
    """
    ahead = spread(targets, beginning)
    behind = [one for group in fallbacks for one in spread(group, beginning)]
    among = [*ahead, *behind] if in_turn else ahead
    own = [one for one in among if origin is not None and one.origin == origin]
    by_place: dict[str, C] = {}
    for one in (*own[:1], *ahead, *behind):
        by_place.setdefault(one.place, one)
    return list(by_place.values())
