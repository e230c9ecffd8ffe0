"""What the user is told about events and endings that are not part of the answer's text."""

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

__all__ = ["ENDINGS", "STOPPED_EARLY", "Remark", "remark"]

ENDINGS: Mapping[Status, str] = {
    "interrupted": "Interrupted; what arrived is kept.",
    "truncated": "The answer was cut off at its token limit.",
    "truncated_in_reasoning": "The token limit was reached during thinking: there is no answer.",
    "no_answer": "The model gave no answer.",
    "error": "The answer broke off; what arrived is kept.",
}
STOPPED_EARLY = "Interrupted; nothing had arrived."


class Remark(NamedTuple):
    """A line for the user, and the theme role it is drawn in."""

    role: str
    text: str


def remark(event: Event) -> Remark | None:
    """The remark for an event, if it deserves one."""
    match event:
        case Warned():
            return Remark("warning", event.text)
        case Failed():
            return Remark("error", event.text)
        case Retrying(attempt=2):  # later attempts are counted down, not written one by one
            return Remark("note", f"{event.reason}; retrying")
        case Healed():
            return Remark(
                "note", f"The endpoint rejected the request ({event.reason}): {event.change}"
            )
        case Nudged():
            return Remark("note", f"Turn not finished: asking again ({event.attempt}/{event.most})")
        case Hurried():
            return Remark("note", event.text)
        case Compressed():
            return Remark("note" if event.ok else "warning", event.text)
    return None
