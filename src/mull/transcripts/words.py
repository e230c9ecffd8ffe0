"""How numbers, times and states are said in every document made for people.

What nobody told is "unknown" here, never 0, and a sum that lacks some of its parts is "≥".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from mull.history.log import Entry
from mull.neutral.blocks import MediaBlock, ThinkingBlock, Value
from mull.neutral.messages import Status

__all__ = [
    "STATUS_WORDS",
    "Total",
    "count",
    "describe_media",
    "duration",
    "moment",
    "short_count",
    "speaker",
    "thought_line",
    "total",
    "without_text",
]

UNKNOWN = "unknown"

STATUS_WORDS: dict[Status, str] = {
    "interrupted": "Interrupted: the answer broke off here.",
    "truncated": "Cut off: the output token limit was reached.",
    "truncated_in_reasoning": "Cut off while thinking: the limit was reached before an answer.",
    "no_answer": "The model gave no answer.",
    "error": "The answer ended with an error.",
}
"""What a person is told of an answer that is not complete."""


class Total(Value, frozen=True):
    """A sum of what is known; `whole` says that nothing is missing."""

    known: float
    whole: bool
    any: bool

    def say(self, form: Callable[[float], str] | None = None) -> str:
        """The sum in words."""
        if not self.any:
            return UNKNOWN
        said = (form or count)(self.known)
        return said if self.whole else f"≥ {said}"


def total(values: Iterable[float | None]) -> Total:
    """What the values add up to, as far as they are known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return Total(sum(known), len(known) == len(found), bool(known))


def count(number: float | None) -> str:
    """`12,345`."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def short_count(number: float) -> str:
    """`950`, `12.3k`, `1.2M`: for axes."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            said = f"{number / size:.1f}".removesuffix(".0")
            return f"{said}{letter}"
    return f"{number:.0f}"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def moment(at: float | None) -> str:
    """`2026-11-15 09:03 UTC`; nothing where it is not known."""
    if at is None:
        return ""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return ""


def speaker(entry: Entry, known_as: str | None = None) -> str:
    """Who says a message."""
    if entry.own:
        return "mull"
    message = entry.message
    match message.role:
        case "user":
            return "You"
        case "system":
            return "System"
        case "tool":
            return "Tools"
        case "assistant":
            if message.origin is not None:
                return message.origin.model
            return (known_as or "").rpartition("/")[2] or "Assistant"


def thought_line(seconds: float | None, tokens: int | None) -> str:
    """`Thought for 12 s · 340 tokens`, as far as it is known."""
    line = "Thought" if not seconds else f"Thought for {duration(seconds)}"
    if not tokens:
        return line
    return f"{line} · {tokens:,} token{'' if tokens == 1 else 's'}"


def without_text(block: ThinkingBlock) -> str | None:
    """Why a thought cannot be read; None where it can, or where there is nothing of it."""
    if block.thought.strip():
        return None
    if block.redacted:
        return "The provider sent this thinking redacted: only it can read it."
    if block.encrypted:
        return "The provider sent this thinking encrypted: only it can read it."
    if block.signature:
        return "The provider sent only a signature, no text."
    return "The provider sent only data of its own, no text." if block.wire else None


def describe_media(block: MediaBlock) -> str:
    """`image/png, 12 kB, diagram.png`."""
    size = []
    if block.data is not None:
        held = len(block.data) * 3 // 4
        size = [f"{held / 1000:,.0f} kB" if held >= 1000 else f"{held} bytes"]
    return ", ".join([block.media_type, *size, *([block.name] if block.name else [])])
