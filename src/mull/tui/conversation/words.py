"""What is said to a person about events and ends of an answer that are not part of its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mull.neutral.events import (
    Compressed,
    Event,
    Failed,
    Healed,
    Hurried,
    Nudged,
    Retrying,
    Warned,
)
from mull.neutral.messages import Status

__all__ = ["ENDINGS", "Remark", "remark"]

ENDINGS: Mapping[Status, str] = {
    "interrupted": "Stopped; what came is kept.",
    "truncated": "The answer is cut off at its limit of tokens.",
    "truncated_in_reasoning": "The limit was reached before the thought was over: no answer.",
    "no_answer": "The model thought but gave no answer.",
    "error": "The answer broke off; what came is kept.",
}


class Remark(NamedTuple):
    """A line for a person, and the role of the theme it is drawn in."""

    role: str
    text: str


def remark(event: Event) -> Remark | None:
    """What an event is worth saying, if anything."""
    match event:
        case Warned():
            return Remark("warning", event.text)
        case Failed():
            return Remark("error", event.text)
        case Retrying(attempt=2):  # further tries are counted down, not written one by one
            return Remark("note", f"{event.reason}; retrying")
        case Healed():
            return Remark("note", f"The endpoint refused ({event.reason}): {event.change}")
        case Nudged():
            return Remark("note", f"No answer yet: asked once more ({event.attempt}/{event.most})")
        case Hurried():
            return Remark("note", event.text)
        case Compressed():
            return Remark("note" if event.ok else "warning", event.text)
    return None
