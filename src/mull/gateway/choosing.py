"""The order in which a request tries the targets behind a model name.

A conversation returns to the target that its reasoning came from, because no other target can read
it. A conversation without reasoning is assigned by a hash of its beginning: all of its requests
reach the same prompt cache, and many conversations are distributed by weight. The same hash
determines the next target when one fails.
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
    """The properties of a target that decide the order."""

    @property
    def place(self) -> str:
        """A text that is unique to this target."""

    @property
    def weight(self) -> float:
        """Its share of the conversations, relative to other targets."""

    @property
    def origin(self) -> Origin:
        """The origin recorded in its answers."""


C = TypeVar("C", bound=Candidate)


def beginning_of(scope: str, messages: Sequence[Message]) -> str:
    """A hash that stays the same for a whole conversation. It covers the first user message only,
    because clients change their system prompts from request to request."""
    first = next((message for message in messages if message.role == "user"), None)
    return f"{scope} {past_of([first] if first else []).turn()}"


def origin_of(messages: Sequence[Message]) -> Origin | None:
    """The origin of the latest answer that has one."""
    answers = (message.origin for message in reversed(messages) if message.role == "assistant")
    return next((origin for origin in answers if origin is not None), None)


def spread(candidates: Sequence[C], beginning: str) -> list[C]:
    """The candidates ordered by weighted rendezvous hashing: each comes first for its share of all
    conversations, and removing one does not change the order of the others."""
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

    `in_turn` means that the request ends with tool results. The target that made the tool calls
    then comes first even if it is a fallback.
    """
    first = spread(targets, beginning)
    last = [one for group in fallbacks for one in spread(group, beginning)]
    among = [*first, *last] if in_turn else first
    own = [one for one in among if origin is not None and one.origin == origin]
    by_place: dict[str, C] = {}
    for one in (*own[:1], *first, *last):
        by_place.setdefault(one.place, one)
    return list(by_place.values())
