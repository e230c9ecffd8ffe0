"""The gateway without HTTP: it takes a client's request and returns an answer in the client's
dialect."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from mull.gateway.attach import keys_of
from mull.gateway.cooldown import Cooldowns
from mull.gateway.drafts import Drafts, Recalled
from mull.gateway.envelope import Envelopes
from mull.gateway.job import Job
from mull.gateway.loading import load_all
from mull.gateway.memory import OK, StoreUnavailable
from mull.gateway.observing import Observer
from mull.gateway.record import Kept, kept_from, kept_to
from mull.gateway.relay import Client, Relay
from mull.gateway.routes import Routes
from mull.gateway.tracing import Tracing
from mull.logs import log_warning
from mull.neutral.asked import Asked
from mull.neutral.request import Note
from mull.policy.prepare import prepare

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.accounts import Accounts
    from mull.gateway.memory import Memory

__all__ = ["Gateway"]

_Operation: TypeAlias = Literal["read", "write"]

_AGREE_AGAIN = 1.0
_UNREAD = Note(
    "store",
    "the gateway cannot read its store: reasoning that this client dropped may be missing",
    warning=True,
)
_UNWRITTEN = Note(
    "store",
    "the gateway cannot write to its store: reasoning of this answer may be missing later",
    warning=True,
)


class _StoreAccess:
    """`with _StoreAccess(…)`: counts and logs an error of the store instead of raising it, because
    no request fails for one: envelopes may still hold the reasoning. `found` has the records that
    are known without the store."""

    def __init__(self, operation: _Operation, failures: Counter[str]) -> None:
        self._operation = operation
        self._failures = failures
        self.found: Mapping[str, bytes] = {}

    def __enter__(self) -> _StoreAccess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._failures[self._operation] += 1
        if isinstance(error, StoreUnavailable):
            self.found = error.found
        else:
            verb = "read" if self._operation == "read" else "write to"
            log_warning(f"the gateway cannot {verb} its store: {error!r:.200}")
        return True


class Gateway:
    """Passes clients' requests to models. There is one for each process."""

    def __init__(
        self,
        engine: Engine,
        routes: Routes,
        memory: Memory,
        envelopes: Envelopes,
        observers: Sequence[Observer] = (),
        accounts: Accounts | None = None,
        cooldowns: Cooldowns | None = None,
    ) -> None:
        self.engine: Engine = engine
        self.routes: Routes = routes
        self.memory = memory
        self.envelopes = envelopes
        self.tracing: Tracing = Tracing()
        counting = () if accounts is None else (accounts,)
        self.observers: tuple[Observer, ...] = (*counting, self.tracing, *observers)
        self.accounts = accounts
        self.store_failures: Counter[str] = Counter()
        self.cooldowns: Cooldowns = cooldowns or Cooldowns()
        self._agreeing: asyncio.Task[None] | None = None

    def renew(self, engine: Engine, routes: Routes) -> Engine:
        """Use this engine and these routes for later requests; return the previous engine."""
        before, self.engine, self.routes = self.engine, engine, routes
        return before

    def allows(self, client: Client, name: str) -> bool:
        """Whether a client may use the model served under this name."""
        if self.accounts is None or not self.accounts.restricts(client.scope):
            return True
        return self.accounts.allows(client.scope, self._names(name))

    def check_model(self, client: Client, name: str | None) -> None:
        """Check that a client may use the model served under this name.

        Raises:
            RefusedError: the client may not use it.
            LocalError: no model is served under this name.
        """
        if self.accounts is not None and self.accounts.restricts(client.scope):
            self.accounts.check_model(client.scope, self._names(name))

    def _names(self, name: str | None) -> tuple[str, str]:
        """The names of a model: the one it is served under, and its own."""
        target = self.routes.find(name).target
        return self.routes.served_as(name), f"{target.provider}/{target.model}"

    async def job(
        self, client: Client, asked: Asked, body: bytes = b"", kind: type[Job] = Job
    ) -> Job:
        """Prepare a client's request for the model that it names; `body` is the request as
        received.

        Raises:
            LocalError: the request cannot be sent as it is.
        """
        self.check_model(client, asked.model)
        offer = self.routes.offer(asked.model)
        keys = keys_of(asked.messages)
        wanted = dict.fromkeys(key for some in keys.of_each for key in some)
        stored, notes = await self.find(client.scope, wanted) if wanted else ({}, ())
        if not notes and self.memory.health()["store"] != OK:
            notes = (_UNWRITTEN,)
        unseal = partial(self.envelopes.open, client.scope)
        recalled = Recalled(keys, _readable(stored), notes, is_whole=_UNREAD not in notes)
        drafts = Drafts(client, asked, offer, recalled, unseal)
        return kind(self, client, asked, drafts, body)

    async def find(
        self, scope: str, keys: Iterable[str]
    ) -> tuple[Mapping[str, bytes], tuple[Note, ...]]:
        """The stored records, with a note if the store cannot be read."""
        with self._store("read") as access:
            return await self.memory.find(scope, keys), ()
        return access.found, (_UNREAD,)

    def _store(self, operation: _Operation) -> _StoreAccess:
        return _StoreAccess(operation, self.store_failures)

    async def count(self, client: Client, asked: Asked) -> int:
        """The number of tokens in the request, by the model's own counter.

        Raises:
            LocalError: the request cannot be sent as it is.
        """
        job = await self.job(client, asked)
        counter = self.engine.counter_for(job.prepared.target)
        made = job.prepared.made
        log, target = made.log, job.prepared.target
        return prepare(log, made.snapshot, target, made.options, counter=counter).estimate

    async def open(self) -> None:
        """Import what requests need, and agree with the other gateways of this store on one key for
        envelopes, so that each can open those of the others. While the store is unavailable, each
        uses its own key."""
        load_all()
        if not await self._agree():
            self._agreeing = asyncio.get_running_loop().create_task(self._agree_later())

    async def _agree(self) -> bool:
        with self._store("read"):
            self.envelopes.adopt(await self.memory.agree(self.envelopes.key))
            return True
        return False

    async def _agree_later(self) -> None:
        while True:
            await asyncio.sleep(_AGREE_AGAIN)
            if await self._agree():
                return

    async def close(self) -> None:
        """Close the store, the accounts and the engine."""
        if self._agreeing is not None:
            self._agreeing.cancel()
        if self.accounts is not None:
            await self.accounts.close()
        await self.memory.close()
        await self.engine.close()

    async def forget(self, client: Client, keys: Sequence[str]) -> None:
        """Remove records that hold carriers which the upstream rejected."""
        if keys:
            with self._store("write"):
                await self.memory.forget(client.scope, keys)

    async def remember(self, job: Job, relay: Relay) -> tuple[Note, ...]:
        """Store an answer, so that it is found when the client sends it back; return a note if it
        cannot be stored."""
        keys, kept = relay.keep(job.past)
        with self._store("write"):
            await self.memory.keep(job.client.scope, [*keys, *job.keys], kept_to(kept))
            return ()
        return (_UNWRITTEN,)


def _readable(stored: Mapping[str, bytes]) -> dict[str, Kept]:
    return {key: kept for key, data in stored.items() if (kept := kept_from(data)) is not None}
