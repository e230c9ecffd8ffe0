"""Holds clients to their limits and records what each request used.

A request is reserved before it is sent, as it is estimated, and settled when it has ended. What has
ended is written to the ledger at once, together with all that ended while the last write went on;
until it is written it counts here. So a gateway alone never admits more than the limits allow by
its estimates, and several on one ledger exceed them by no more than is in flight.

If the ledger fails, requests go on by what it said last, and what they use is written when it
works again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple

from mull.dialects.serving import server_codec
from mull.dialects.surface import surface_of
from mull.gateway.keyring import Keyring
from mull.gateway.labels import ModelNames
from mull.gateway.ledger import Entry, Ledger, Spent, Tally, day_of
from mull.gateway.limits import Demand, Lack, Use, find_lack
from mull.gateway.metering import Meter, expected, is_priced, tally_of
from mull.gateway.tokens import Limits
from mull.logs import log_warning
from mull.neutral.errors import RefusedError
from mull.neutral.request import Note
from mull.settings.words import join_or, quote

if TYPE_CHECKING:
    from mull.gateway.metrics import Metrics
    from mull.gateway.observing import Outcome
    from mull.gateway.service import Job
    from mull.neutral.events import Event
    from mull.neutral.messages import Dialect

__all__ = ["Accounts"]

_GATHER, _PAUSE = 0.1, 2.0
"""Seconds in which what ends is written together, and after which a failed write is repeated."""
_WRITE_PATIENCE = 5.0
_MOST_PENDING = 10_000
_TOO_MANY = 429


class _Open(NamedTuple):
    """A request that was admitted and has not ended."""

    client: str
    at: float
    demand: Demand
    meter: Meter


class _Waiting(NamedTuple):
    """A request that wants to be admitted, and what it lacks, once that is known."""

    job: Job
    demand: Demand
    decided: asyncio.Future[Lack | None]


class Accounts:
    """Of all clients. An observer of requests, which `admit` has let go out."""

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
        self._open: dict[Job, _Open] = {}
        self._waiting: dict[str, list[_Waiting]] = {}
        self._deciding: set[asyncio.Task[None]] = set()
        self._pending: dict[tuple[str, str, int], Tally] = {}
        self._most_pending = _MOST_PENDING
        self._writing: tuple[str, Sequence[Entry]] | None = None
        self._known: dict[str, tuple[Spent, float]] = {}
        self._settling = asyncio.Lock()
        self._writer: asyncio.Task[None] | None = None
        self._failed_at = -float("inf")
        self._failing = False

    def restricts(self, client: str) -> bool:
        """Whether a client may use only some models."""
        token = self._keyring.named(client)
        return token is not None and bool(token.limits.models)

    def allows(self, client: str, names: Iterable[str]) -> bool:
        """Whether a client may use a model that goes by these names."""
        token = self._keyring.named(client)
        return token is None or token.limits.allows(names)

    def check_model(self, client: str, names: Sequence[str]) -> None:
        """Check that a client may use a model that goes by these names.

        Raises:
            RefusedError: it may not.
        """
        token = self._keyring.named(client)
        if token is not None and not token.limits.allows(names):
            allowed = join_or(token.limits.models)
            text = f"this token may not use {quote(names[0])}: it may use {allowed}"
            raise RefusedError(text, status=403, text=text)

    async def admit(self, job: Job) -> None:
        """Reserve what a request will use.

        Raises:
            RefusedError: it would exceed a limit of its client.
        """
        client, demand = job.client.scope, expected(job.prepared)
        token = self._keyring.named(client)
        if token is None or not token.limits.bounded:
            self._reserve(job, demand)
            return
        waiting = _Waiting(job, demand, asyncio.get_running_loop().create_future())
        self._waiting.setdefault(client, []).append(waiting)
        if len(self._waiting[client]) == 1:
            task = asyncio.get_running_loop().create_task(self._decide(client))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)
        try:
            lack = await waiting.decided
        except asyncio.CancelledError:
            self._open.pop(job, None)
            raise
        if lack is not None:
            if self._metrics is not None:
                self._metrics.limited(lack.limit)
            raise _refusal(lack, job.client.dialect)
        if token.limits.dollars and not is_priced(job.prepared):
            text = f"no price of {job.prepared.target.name} is known: it is not counted"
            job.notes = (*job.notes, Note("budget", text, warning=True))

    def _reserve(self, job: Job, demand: Demand) -> None:
        self._open[job] = _Open(job.client.scope, self._clock(), demand, Meter())

    async def _decide(self, client: str) -> None:
        """Admit or refuse the requests of a client that wait, by one look at the ledger. Nothing is
        written meanwhile: what counts there does not count here, and the other way round. Where
        the ledger does not answer in time, what it held last has to do."""
        if abs(self._clock() - self._failed_at) < _PAUSE:
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
        now, token = self._clock(), self._keyring.named(client)
        limits = token.limits if token is not None else Limits()
        unsettled = list(self._unsettled(client))
        for job, demand, decided in self._waiting.pop(client, ()):
            if decided.done():  # the client is gone
                continue
            lack = find_lack(limits, spent, unsettled, demand, now)
            if lack is None:
                self._reserve(job, demand)
                unsettled.append(Use(now, 1, *demand))
            decided.set_result(lack)

    def _last_spent(self, client: str) -> Spent:
        """What the ledger held of a client when it was last asked."""
        today = day_of(self._clock())
        spent, then = self._known.get(client, (Spent(), 0.0))
        if day_of(then) == today:
            return spent
        return Spent(month=spent.month if day_of(then)[:7] == today[:7] else Tally())

    def _unsettled(self, client: str) -> Iterator[Use]:
        for one in self._open.values():
            if one.client == client:
                yield Use(one.at, 1, *one.demand)
        written = self._writing[1] if self._writing is not None else ()
        for entry in (*written, *self._entries()):
            if entry.client == client:
                tally = entry.tally
                yield Use(entry.at, tally.requests, tally.tokens, tally.nanodollars)

    def began(self, job: Job) -> None:
        """It goes out; one that nobody admitted is counted all the same."""
        if job not in self._open:
            self._open[job] = _Open(job.client.scope, self._clock(), Demand(0, 0), Meter())

    def heard(self, job: Job, events: Sequence[Event]) -> None:
        """It is answered."""
        self._open[job].meter.add(events)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """It is over: settle it."""
        one = self._open.pop(job)
        model = self._names.of(job.prepared.target)
        key = one.client, model, int(one.at)
        tally = tally_of(outcome, job.prepared, one.meter)
        if self._metrics is not None:
            self._metrics.used(model, tally)
        self._pending[key] = self._pending.get(key, Tally()) + tally
        if len(self._pending) > self._most_pending:
            self._coarsen()
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._write())

    def _coarsen(self) -> None:
        """Have what waits for long take less room: only its day matters by now."""
        coarse: dict[tuple[str, str, int], Tally] = {}
        for (client, model, at), tally in self._pending.items():
            key = client, model, at - at % 3_600
            coarse[key] = coarse.get(key, Tally()) + tally
        self._pending = coarse
        self._most_pending = max(_MOST_PENDING, 2 * len(coarse))

    def _entries(self) -> list[Entry]:
        return [Entry(*key, tally) for key, tally in self._pending.items()]

    async def _write(self) -> None:
        """Write until nothing waits; a batch that may have been written is written again under its
        id."""
        while self._pending or self._writing:
            await asyncio.sleep(_GATHER)
            try:
                await self._write_batch()
            except Exception as error:
                self._fail(error)
                await asyncio.sleep(_PAUSE)

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
                f"the gateway's ledger fails ({error!r:.200}): limits hold by what is known, and"
                " usage is written when it works again"
            )

    async def close(self) -> None:
        """Write what has ended, and close the ledger."""
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()
            await asyncio.wait({self._writer})
        try:
            while self._pending or self._writing:
                await self._write_batch()
        except Exception as error:
            log_warning(f"usage of the last requests could not be written: {error!r:.200}")
        await self._ledger.close()


def _refusal(lack: Lack, dialect: Dialect) -> RefusedError:
    """The lack as the client's dialect says it: a used-up budget apart from too many requests."""
    status, code, headers = _TOO_MANY, None, {}
    if lack.of_budget:
        surface = surface_of(dialect)
        status = surface.budget_status if surface is not None else _TOO_MANY
        statuses = server_codec(dialect).statuses
        word = statuses.word(402)
        code = word if statuses.status(word) == 402 else None
    if lack.of_budget or lack.seconds is None:
        headers = {"x-should-retry": "false"}
    return RefusedError(
        lack.text,
        status=status,
        text=lack.text,
        code=code,
        headers=headers,
        retry_after=lack.seconds,
    )
