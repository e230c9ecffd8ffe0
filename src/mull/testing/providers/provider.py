"""What every played provider does: read a request, judge it, write an answer, refuse."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from mull.neutral.blocks import Value
from mull.testing.ledger import Issued, Ledger
from mull.testing.script import Act, Think

__all__ = ["Asked", "Provider", "Written", "cut", "named_event", "tokens"]


class Asked(Value, frozen=True):
    """A request as its provider understands it."""

    body: Mapping[str, Any]
    model: str
    streams: bool


class Written(Value, frozen=True):
    """An answer: what is kept of it, and both forms in which it can go out."""

    issued: Issued
    whole: Mapping[str, Any]
    events: Sequence[Any]


class Provider(ABC):
    """One provider's rules and wire format. It keeps nothing: what was issued is in the ledger."""

    name: ClassVar[str]

    @abstractmethod
    def read(self, path: str, body: Mapping[str, Any]) -> Asked | None:
        """What is asked for; None where the path is not one of this provider."""

    @abstractmethod
    def refusal(self, asked: Asked, ledger: Ledger) -> str | None:
        """Why the request is refused, in the provider's words."""

    @abstractmethod
    def write(self, acts: Sequence[Act], asked: Asked, ledger: Ledger) -> Written:
        """The answer, with fresh ids and carriers."""

    @abstractmethod
    def error(self, reason: str) -> tuple[int, Mapping[str, Any]]:
        """The status and body of a refusal."""

    @abstractmethod
    def carriers(self, body: Mapping[str, Any]) -> list[str]:
        """The reasoning that a request brings back, in order."""


def cut(text: str) -> list[str]:
    """The text in three pieces or fewer, as deltas bring it."""
    size = max(1, -(-len(text) // 3))
    return [text[at : at + size] for at in range(0, len(text), size)]


def named_event(event: Mapping[str, Any]) -> bytes:
    """A server-sent event that also has its type as its name."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))


def tokens(*given: Any) -> int:
    """About as many tokens as these values have; thoughts count by their text."""
    texts = (one.text if isinstance(one, Think) else one for one in given)
    return sum(-(-len(msgspec.json.encode(text)) // 4) for text in texts)
