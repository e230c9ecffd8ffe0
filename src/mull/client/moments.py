"""Times in the headers and bodies of responses, in the many forms that servers write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from mull.neutral.patterns import pattern

__all__ = ["read_moment", "read_number", "read_span"]

_SPAN = pattern(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)")
_SPAN_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def read_number(text: str | None, unit: float = 1.0) -> float | None:
    """A number of at least 0; None if the text is none."""
    try:
        value = float(text) * unit if text is not None else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def read_moment(text: str | None, now: float) -> float | None:
    """Seconds from now until a moment: a count, a span, a date, or seconds since 1970."""
    if text is None:
        return None
    value = read_number(text)
    if value is not None:
        if value > 1e11:
            return value / 1000 - now
        return value - now if value > 1e9 else value
    span = read_span(text)
    return span if span is not None else _date(text, now)


def read_span(text: str) -> float | None:
    """`6m0s`, `1.5s`, `20ms`, `1h2m3s`: spans as Go writes them."""
    text = text.strip().replace(" ", "")
    found = list(_SPAN.finditer(text))
    if not found or "".join(match.group(0) for match in found) != text:
        return None
    return sum(float(match.group(1)) * _SPAN_SECONDS[match.group(2)] for match in found)


def _date(text: str, now: float) -> float | None:
    """RFC 3339, or a date as HTTP writes it."""
    from email.utils import parsedate_to_datetime  # slow to load, and seldom needed

    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text.strip())
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return moment.timestamp() - now
        except (ValueError, OverflowError, TypeError, IndexError):
            continue
    return None
