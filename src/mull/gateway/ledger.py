"""What a team's gateways share beside answers: client tokens, and what each client used.

A ledger holds sums, not requests: one row for a day, a client and a model, and for the last minute
one for each second. All gateways of one store use one ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from msgspec.structs import astuple

from mull.gateway.tokens import ClientToken, Period
from mull.neutral.blocks import Value

__all__ = [
    "KEEP_DAYS",
    "KEEP_SECONDS",
    "WINDOW",
    "Entry",
    "Ledger",
    "Second",
    "Spent",
    "Tally",
    "UsageRow",
    "day_of",
    "earliest_day",
]

WINDOW = 60
"""Seconds that limits per minute look back."""
KEEP_SECONDS = 2 * WINDOW
"""How long rows of seconds are kept, and a little longer than anybody asks for them."""
KEEP_DAYS = 400
"""How long usage is kept."""


class Tally(Value, frozen=True):
    """What requests used together.

    `cached` is the part of `input` that was read from a cache, `reasoning` the part of `output`
    that was reasoning. `errors` counts requests without a whole answer, `estimated` those whose
    counts the provider did not report, `unpriced` those whose cost is not known.
    """

    requests: int = 0
    errors: int = 0
    estimated: int = 0
    unpriced: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0
    nanodollars: int = 0

    def __add__(self, other: Tally) -> Tally:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Tally(*(one + another for one, another in pairs))

    @property
    def tokens(self) -> int:
        """What counts against limits of tokens."""
        return self.input + self.output

    @property
    def dollars(self) -> float:
        """The cost, as far as it is known."""
        return self.nanodollars / 1e9


class Entry(Value, frozen=True):
    """What one request used. `at` is when it began, in seconds since 1970."""

    client: str
    model: str
    at: float
    tally: Tally


class Second(NamedTuple):
    """What requests used that began in one second."""

    at: int
    requests: int
    tokens: int


class Spent(Value, frozen=True):
    """What a client has used: in each of the last seconds, this day and this month."""

    recent: tuple[Second, ...] = ()
    day: Tally = Tally()
    month: Tally = Tally()

    def of(self, period: Period) -> Tally:
        """What was used in the period until now."""
        return self.day if period == "day" else self.month


class UsageRow(NamedTuple):
    """What a client used of a model on a day, such as `2026-11-16`."""

    day: str
    client: str
    model: str
    tally: Tally


class Ledger(Protocol):
    """Any method may fail with whatever its store fails with; nothing was changed then, except
    perhaps by `add`."""

    async def tokens(self) -> Sequence[ClientToken]:
        """All tokens, by name; those revoked and expired too."""

    async def put_token(self, token: ClientToken, *, new: bool) -> bool:
        """Store a token. False, and nothing is changed, where the name is taken already although
        the token is new, or is not there although it is not."""

    async def remove_token(self, name: str) -> bool:
        """Forget a token; whether there was one. What its client used stays."""

    async def add(self, batch: str, entries: Sequence[Entry]) -> None:
        """Add what requests used. A batch that was added before changes nothing: when it is not
        known whether adding has worked, it is done again."""

    async def spent(self, client: str, now: float) -> Spent:
        """What a client has used of its limits."""

    async def usage(self, since: str, until: str) -> Sequence[UsageRow]:
        """All rows of these days, the first and the last included, in order of day, client and
        model."""

    async def close(self) -> None:
        """End what is kept open."""


def day_of(at: float) -> str:
    """The day of a time, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def earliest_day(now: float) -> str:
    """The first day whose usage is kept."""
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=KEEP_DAYS)).strftime("%Y-%m-%d")
