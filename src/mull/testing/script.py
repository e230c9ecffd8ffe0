"""What a scripted model does in one answer: it thinks, speaks and calls tools, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from mull.neutral.blocks import Value

__all__ = ["Act", "Call", "Say", "Think", "calls_in", "said_in", "thoughts_in"]


class Think(Value, frozen=True):
    """A thought. A hidden one is sent without its text, where the provider has a form for that:
    `redacted_thinking`, a reasoning item without a summary, an encrypted detail."""

    text: str
    hidden: bool = False


class Say(Value, frozen=True):
    """Words for the user."""

    text: str


class Call(Value, frozen=True):
    """A tool call; several in one answer are parallel."""

    name: str
    input: dict[str, Any] = {}


Act: TypeAlias = Think | Say | Call


def thoughts_in(acts: Sequence[Act]) -> list[Think]:
    """The thoughts of an answer."""
    return [act for act in acts if isinstance(act, Think)]


def said_in(acts: Sequence[Act]) -> str:
    """All that is said in an answer, as one text."""
    return "".join(act.text for act in acts if isinstance(act, Say))


def calls_in(acts: Sequence[Act]) -> list[Call]:
    """The calls of an answer."""
    return [act for act in acts if isinstance(act, Call)]
