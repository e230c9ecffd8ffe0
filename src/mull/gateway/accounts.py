"""Enforces the limits of clients and records what each request used.

A request is admitted if its input fits in what the client has left. Then its input and an answer of
the length that this model's answers to this client usually have are reserved, more if the answer
turns out longer; when it ends, the reservation is replaced by the actual usage. That is written to
the ledger at once, in one batch with everything that ended during the previous write, and counted
in memory until then. A client can therefore exceed a limit by one answer, and by what answers in
progress are longer than usual. Several gateways on one ledger exceed it also by what the others
have admitted and not written yet: requests in flight, and the last tenth of a second.

If the ledger fails, limits are checked against the last usage read from it, and new usage is
written once the ledger works again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from mull.dialects.registry import codec
from mull.dialects.surface import surface_of
from mull.gateway.keyring import Keyring
from mull.gateway.labels import ModelNames
from mull.gateway.ledger import Entry, Ledger, Spent, Tally, day_of
from mull.gateway.limits import Demand, ExceededLimit, Use, find_exceeded
from mull.gateway.metering import Answers, Meter, expected, is_priced, tally_of
from mull.gateway.tokens import Limits
from mull.logs import log_warning
from mull.neutral.errors import RefusedError, UnknownModel
from mull.neutral.request import Note
from mull.settings.words import join_or, quote

if TYPE_CHECKING:
    from mull.gateway.job import Job
    from mull.gateway.metrics import Metrics
    from mull.gateway.observing import Outcome
    from mull.neutral.events import Event
    from mull.neutral.messages import Dialect
    from mull.policy.prepare import Prepared

__all__ = ["Accounts"]

_BATCH_SECONDS, _RETRY_SECONDS = 0.1, 2.0
"""Seconds during which finished requests are collected for one write, and the pause before a failed
write is retried."""
_WRITE_PATIENCE = 5.0
_MOST_PENDING = 10_000
_TOO_MANY = 429


class _Open(NamedTuple):
    """An admitted request that has not ended. `likely` is the expected length of its answer."""

    client: str
    at: float
    likely: int
    meter: Meter

    def use(self, prepared: Prepared) -> Use:
        """What counts against the client's limits until the actual usage is known."""
        return Use(self.at, 1, *expected(prepared, max(self.likely, self.meter.output)))


class _Waiting(NamedTuple):
    """A request waiting to be admitted. `decided` receives the limit it would exceed, or None."""

    job: Job
    demand: Demand
    decided: asyncio.Future[ExceededLimit | None]


class Accounts:
    """The usage and limits of all clients. Observes the requests that `admit` let through."""

    def __init__(
        self,
        ledger: Ledger,
        keyring: Keyring,
        clock: Callable[[], float] = time.time,
        *,
        patience: float = 1.0,
        metrics: Metrics | None = None,
    ) -> None:
        self._ledger = ledger
        self._keyring = keyring
        self._clock = clock
        self._patience = patience
        self._metrics = metrics
        self._names = ModelNames()
        self._answers = Answers()
        self._open: dict[Job, _Open] = {}
        self._waiting: dict[str, list[_Waiting]] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._pending: dict[tuple[str, str, int], Tally] = {}
        self._pending_limit = _MOST_PENDING
        self._writing: tuple[str, Sequence[Entry]] | None = None
        self._known: dict[str, tuple[Spent, float]] = {}
        self._settling = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._failed_at = -float("inf")
        self._failing = False

    def restricts(self, client: str) -> bool:
        """Whether a client may use only some models."""
        token = self._keyring.of(client)
        return token is not None and bool(token.limits.models)

    def allows(self, client: str, names: Iterable[str]) -> bool:
        """Whether a client may use a model with these names."""
        token = self._keyring.of(client)
        return token is None or token.limits.allows(names)

    def forbidden(self, client: str, name: str) -> RefusedError:
        """The error for a model that a client's token does not allow."""
        text = f"this token may not use {quote(name)}; it may use {self._allowed(client)}"
        return RefusedError(text, status=403, text=text)

    def unknown(self, client: str, name: str) -> UnknownModel:
        """The error for a model that does not exist, for a client that may use only some."""
        allowed = self._allowed(client)
        return UnknownModel(f"no model named {quote(name[:200])} is served here: use {allowed}")

    def _allowed(self, client: str) -> str:
        token = self._keyring.of(client)
        return join_or(token.limits.models if token is not None else ())

    async def admit(self, job: Job) -> None:
        """Reserve the estimated usage of a request.

        Raises:
            RefusedError: the request would exceed a limit of its client.
        """
        client = job.client.scope
        token = self._keyring.of(client)
        if token is None or not token.limits.bounded:
            self._reserve(job)
            return
        demand = expected(job.prepared, 0)
        waiting = _Waiting(job, demand, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(client, []).append(waiting)
        if len(self._waiting[client]) == 1:
            task = asyncio.get_running_loop().create_task(self._decide(client))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)
        try:
            exceeded = await waiting.decided
        except asyncio.CancelledError:
            self._open.pop(job, None)
            raise
        if exceeded is not None:
            if self._metrics is not None:
                self._metrics.limited(exceeded.limit)
            raise _refusal(exceeded, job.client.dialect)
        if token.limits.dollars and not is_priced(job.prepared):
            text = (
                f"the price of {job.prepared.target.name} is unknown: this request does not count"
                " against the dollar budget"
            )
            job.notes = (*job.notes, Note("budget", text, warning=True))

    def _reserve(self, job: Job) -> _Open:
        client, model = job.client.scope, self._names.of(job.prepared.target)
        likely = self._answers.likely(client, model)
        self._open[job] = made = _Open(client, self._clock(), likely, Meter())
        return made

    async def _decide(self, client: str) -> None:
        """Admit or refuse all waiting requests of a client with one read of the ledger. No batch is
        written during that read, so usage is counted either in the ledger or here, never in both.
        If the ledger does not respond in time, the last usage read from it is used."""
        if abs(self._clock() - self._failed_at) < _RETRY_SECONDS:
            self._settle_waiting(client, self._last_spent(client))
            return
        try:
            async with asyncio.timeout(self._patience), self._settling:
                now = self._clock()
                spent = await self._ledger.spent(client, now)
                self._known[client] = spent, now
                self._settle_waiting(client, spent)
        except Exception as error:
            self._fail(error)
            self._settle_waiting(client, self._last_spent(client))

    def _settle_waiting(self, client: str, spent: Spent) -> None:
        now, token = self._clock(), self._keyring.of(client)
        limits = token.limits if token is not None else Limits()
        unsettled = list(self._unsettled(client))
        for job, demand, decided in self._waiting.pop(client, ()):
            if decided.done():  # the client has disconnected
                continue
            exceeded = find_exceeded(limits, spent, unsettled, demand, now)
            if exceeded is None:
                unsettled.append(self._reserve(job).use(job.prepared))
            decided.set_result(exceeded)

    def _last_spent(self, client: str) -> Spent:
        """A client's usage when the ledger was last read, without periods that have ended since."""
        today = day_of(self._clock())
        spent, then = self._known.get(client, (Spent(), 0.0))
        if day_of(then) == today:
            return spent
        return Spent(month=spent.month if day_of(then)[:7] == today[:7] else Tally())

    def _unsettled(self, client: str) -> Iterator[Use]:
        """A client's usage that the ledger does not include yet."""
        for job, request in self._open.items():
            if request.client == client:
                yield request.use(job.prepared)
        written = self._writing[1] if self._writing is not None else ()
        for entry in (*written, *self._entries()):
            if entry.client == client:
                tally = entry.tally
                yield Use(entry.at, tally.requests, tally.tokens, tally.nanodollars)

    def began(self, job: Job) -> None:
        """Start to count a request, even if it did not pass `admit`."""
        if job not in self._open:
            self._open[job] = _Open(job.client.scope, self._clock(), 0, Meter())

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """Measure a part of the response."""
        self._open[job].meter.add(events)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Replace the reservation by the actual usage."""
        request = self._open.pop(job)
        model = self._names.of(job.prepared.target)
        key = request.client, model, int(request.at)
        tally = tally_of(outcome, job.prepared, request.meter)
        if outcome.ending != "refused":
            self._answers.add(request.client, model, tally.output)
        if self._metrics is not None:
            self._metrics.used(model, tally)
        self._pending[key] = self._pending.get(key, Tally()) + tally
        if len(self._pending) > self._pending_limit:
            self._merge_by_hour()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write())

    def _merge_by_hour(self) -> None:
        """Merge unwritten usage by the hour to save memory: after a long wait only its day
        matters."""
        merged: dict[tuple[str, str, int], Tally] = {}
        for (client, model, at), tally in self._pending.items():
            key = client, model, at - at % 3_600
            merged[key] = merged.get(key, Tally()) + tally
        self._pending = merged
        self._pending_limit = max(_MOST_PENDING, 2 * len(merged))

    def _entries(self) -> list[Entry]:
        return [Entry(*key, tally) for key, tally in self._pending.items()]

    async def _write(self) -> None:
        """Write until nothing is pending. A failed batch keeps its id when it is retried, because
        the ledger may have stored it already."""
        while self._pending or self._writing:
            await asyncio.sleep(_BATCH_SECONDS)
            try:
                await self._write_batch()
            except Exception as error:
                self._fail(error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _write_batch(self) -> None:
        async with self._settling:
            if self._writing is None:
                self._writing = token_hex(16), self._entries()
                self._pending = {}
            async with asyncio.timeout(_WRITE_PATIENCE):
                await self._ledger.add(*self._writing)
            self._writing = None
        self._failing = False

    def _fail(self, error: BaseException) -> None:
        self._failed_at = self._clock()
        if not self._failing:
            self._failing = True
            log_warning(
                f"the gateway's ledger failed ({error!r:.200}): limits are checked against the last"
                " known usage, and new usage is written once the ledger works again"
            )

    async def close(self) -> None:
        """Write the usage of finished requests, and close the ledger."""
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()
            await asyncio.wait({self._writer})
        try:
            while self._pending or self._writing:
                await self._write_batch()
        except Exception as error:
            log_warning(f"the usage of the last requests could not be written: {error!r:.200}")
        await self._ledger.close()


def _refusal(exceeded: ExceededLimit, dialect: Dialect) -> RefusedError:
    """The error for an exceeded limit in the client's dialect, which may distinguish an exhausted
    budget from too many requests."""
    status, code, headers = _TOO_MANY, None, {}
    if exceeded.of_budget:
        surface = surface_of(dialect)
        status = surface.budget_status if surface is not None else _TOO_MANY
        statuses = codec(dialect).answer.STATUSES
        word = statuses.word(402)
        code = word if statuses.status(word) == 402 else None
    if exceeded.of_budget or exceeded.seconds is None:
        headers = {"x-should-retry": "false"}
    return RefusedError(
        exceeded.text,
        status=status,
        text=exceeded.text,
        code=code,
        headers=headers,
        retry_after=exceeded.seconds,
    )
