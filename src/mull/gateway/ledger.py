"""The ledger: client tokens and the usage of each client, shared by all gateways of a team.

A ledger holds sums, not single requests: one row for each day, client and model, and one row for
each second of the last minute. All gateways on one store use the same ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import add
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
"""Seconds that limits per minute cover."""
KEEP_SECONDS = 2 * WINDOW
"""How many seconds the rows for single seconds are kept: longer than any limit needs them."""
KEEP_DAYS = 400
"""How many days usage is kept."""


class Tally(Value, frozen=True):
    """The total usage of one or more requests."""

    requests: int = 0
    """How many requests there were, with or without an answer."""
    errors: int = 0
    """How many were refused or broke off; those that the client abandoned are not counted."""
    estimated: int = 0
    """How many have counts that mull estimated, because the provider did not report them all."""
    unpriced: int = 0
    """How many have an unknown cost."""
    input: int = 0
    """The input tokens, cached ones included."""
    cached: int = 0
    """The part of `input` that was read from a cache."""
    output: int = 0
    """The output tokens, reasoning included."""
    reasoning: int = 0
    """The part of `output` that was reasoning."""
    nanodollars: int = 0
    """The known cost, in billionths of a dollar."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))

    @property
    def tokens(self) -> int:
        """The tokens that count against limits."""
        return self.input + self.output

    @property
    def dollars(self) -> float:
        """The cost, as far as it is known."""
        return self.nanodollars / 1e9


class Entry(Value, frozen=True):
    """The usage of requests that began at one time: `at`, in seconds since 1970. `client` is the
    scope of a client, here and everywhere in a ledger: a new client of the same name begins
    with nothing used."""

    client: str
    model: str
    at: float
    tally: Tally


class Second(NamedTuple):
    """The usage of requests that began within one second."""

    at: int
    requests: int
    tokens: int


class Spent(Value, frozen=True):
    """The usage of a client: in each second of the last minute, today and this month."""

    recent: tuple[Second, ...] = ()
    day: Tally = Tally()
    month: Tally = Tally()

    def of(self, period: Period) -> Tally:
        """The usage in the current period."""
        return self.day if period == "day" else self.month


class UsageRow(NamedTuple):
    """A client's usage of a model on one day, such as `2026-11-16`."""

    day: str
    client: str
    model: str
    tally: Tally


class Ledger(Protocol):
    """What every ledger can do. Any method may raise an exception of the underlying store. Nothing
    has changed in that case, except perhaps after `add`."""

    async def tokens(self) -> Sequence[ClientToken]:
        """All tokens, sorted by name, including revoked and expired ones."""

    async def put_token(self, token: ClientToken, *, new: bool) -> bool:
        """Store a token. A new token needs a name that no other token has; otherwise a token of
        this name must exist. If not, nothing changes and the result is False."""

    async def remove_token(self, name: str) -> bool:
        """Delete a token, but not the usage of its client. Returns whether the token existed."""

    async def add(self, batch: str, entries: Sequence[Entry]) -> None:
        """Add usage. A batch id that was added before changes nothing, so a batch can be added
        again when it is not known whether the first attempt succeeded."""

    async def spent(self, client: str, now: float) -> Spent:
        """The usage that counts against a client's limits."""

    async def usage(self, since: str, until: str) -> Sequence[UsageRow]:
        """All rows from the first to the last of these days, sorted by day, client and model."""

    async def close(self) -> None:
        """Close files and connections."""


def day_of(at: float) -> str:
    """The day of a time, in UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def earliest_day(now: float) -> str:
    """The first day whose usage is kept."""
    return (datetime.fromtimestamp(now, UTC) - timedelta(days=KEEP_DAYS)).strftime("%Y-%m-%d")
