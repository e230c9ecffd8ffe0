"""The gateway without HTTP: it takes a client's request and returns an answer in the client's
dialect."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from mull.gateway.anchors import identify, is_proof
from mull.gateway.attach import keys_of, without_carriers
from mull.gateway.cooldown import Cooldowns
from mull.gateway.drafts import Drafts, Recalled
from mull.gateway.envelope import Envelopes
from mull.gateway.http import TooLarge, aside
from mull.gateway.job import Job
from mull.gateway.loading import load_all
from mull.gateway.memory import OK, StoreUnavailable
from mull.gateway.observing import Observer
from mull.gateway.record import Kept, Refused, kept_from, kept_to
from mull.gateway.relay import Client, Relay
from mull.gateway.routes import Offer, Routes
from mull.gateway.servers import Servers
from mull.gateway.tracing import Tracing
from mull.logs import log_warning
from mull.neutral.asked import Asked
from mull.neutral.errors import TooLongError, UnknownModel
from mull.neutral.request import Note
from mull.policy.prepare import prepare

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.gateway.accounts import Accounts
    from mull.gateway.memory import Memory

__all__ = ["Gateway"]

_Operation: TypeAlias = Literal["read", "write"]

MOST = {"messages": 20_000, "parts of messages": 50_000, "tools": 5_000}
"""The limits of one request. A part is a text, an image, a tool call or its result."""
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
        self.servers: Servers = Servers(engine)
        self._agreeing: asyncio.Task[None] | None = None

    def renew(self, engine: Engine, routes: Routes) -> Engine:
        """Use this engine and these routes for later requests; return the previous engine."""
        before, self.engine, self.routes = self.engine, engine, routes
        self.servers.close()
        self.servers = Servers(engine)
        return before

    def offer(self, client: Client, name: str | None) -> Offer:
        """The routes of a name that a client may use: all of them if it may use the name itself,
        otherwise those whose own model it may use. Fallbacks are no way around its limits.

        Raises:
            RefusedError: the client may use none of them.
            LocalError: no model is served under this name.
        """
        accounts, scope = self.accounts, client.scope
        if accounts is None or not accounts.restricts(scope):
            return self.routes.offer(name)
        try:
            offer = self.routes.offer(name)
        except UnknownModel:  # its text names models that are not this client's
            raise accounts.unknown(scope, name or "") from None
        served = self.routes.served_as(name)
        if not accounts.allows(scope, (served,)):
            offer = offer.only(lambda route: accounts.allows(scope, route.names))
        if next(offer.routes, None) is None:
            raise accounts.forbidden(scope, served)
        return offer

    async def job(
        self,
        client: Client,
        asked: Asked,
        body: bytes = b"",
        kind: type[Job] = Job,
        answer_id: str | None = None,
        size: int = 0,
    ) -> Job:
        """Prepare a client's request for the model that it names; `body` is the request as
        received, and `size` the bytes of its conversation if that is larger. The answer gets a new
        id unless one is given.

        Raises:
            TooLarge: the request has too many messages, parts or tools.
            LocalError: the request cannot be sent as it is.
        """
        offer = self.offer(client, asked.model)
        if await self.servers.know(offer.routes):
            offer = self.offer(client, asked.model)
        check_counts(asked)
        size = max(len(body), size)
        unseal = cache(partial(self.envelopes.open, client.scope))
        identity = identify(asked, client.session)
        keys = await aside(size, keys_of, asked.messages, unseal, identity)
        wanted = dict.fromkeys(key for some in keys.of_each for key in (*some.row, *some.own))
        stored, notes = await self.find(client.scope, wanted) if wanted else ({}, ())
        if not notes and self.memory.health()["store"] != OK:
            notes = (_UNWRITTEN,)
        if notes:  # nobody knows whether another answer should have the same key
            stored = {key: data for key, data in stored.items() if is_proof(key)}
        recalled = Recalled(keys, _readable(stored), notes, is_whole=_UNREAD not in notes)
        drafts = Drafts(client, asked, offer, recalled, unseal)
        return await aside(size, kind, self, client, asked, drafts, body, answer_id, size)

    async def find(
        self, scope: str, keys: Iterable[str]
    ) -> tuple[Mapping[str, bytes], tuple[Note, ...]]:
        """The stored records, with a note if the store cannot be read."""
        with self._store("read") as access:
            return await self.memory.find(scope, keys), ()
        return access.found, (_UNREAD,)

    def _store(self, operation: _Operation) -> _StoreAccess:
        return _StoreAccess(operation, self.store_failures)

    async def count(self, client: Client, asked: Asked, body: bytes) -> int:
        """The number of tokens in the request, by the model's own counter.

        Raises:
            LocalError: the request cannot be sent as it is.
        """
        try:
            job = await self.job(client, asked, body)
        except TooLongError as error:  # clients count to find out
            return int(error.overflow.held)
        made, target = job.prepared.made, job.prepared.target
        counter = self.engine.counter_for(target)
        # in a thread: a local server may be the one that counts
        counted = await asyncio.to_thread(
            prepare, made.log, made.snapshot, target, made.options, counter=counter
        )
        return counted.estimate

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
        self.servers.close()
        if self._agreeing is not None:
            self._agreeing.cancel()
        if self.accounts is not None:
            await self.accounts.close()
        await self.memory.close()
        await self.engine.close()

    async def forget(self, client: Client, refused: Iterable[Refused]) -> None:
        """Remove the carriers of records that hold some which the upstream rejected. Without their
        records, the answers would be taken for others that look alike."""
        for keys, kept in refused:
            bare = replace(kept, blocks=tuple(without_carriers(kept.blocks, thoughts=True)))
            with self._store("write"):
                await self.memory.forget(client.scope, keys)
            with self._store("write"):
                await self.memory.keep(client.scope, keys, kept_to(bare))

    async def remember(self, job: Job, relay: Relay, *, is_whole: bool = True) -> tuple[Note, ...]:
        """Store an answer, so that it is found when the client sends it back; return a note if it
        cannot be stored. One that broke off is stored because its client may have all of its text:
        it must not be taken for another that says the same. It proves nothing by its ids."""
        keys, kept = relay.keep(job.past)
        if not is_whole:
            keys = [key for key in keys if not is_proof(key)]
        with self._store("write"):
            await self.memory.keep(job.client.scope, keys, kept_to(kept))
            return ()
        return (_UNWRITTEN,)


def check_counts(asked: Asked) -> None:
    """Check that a request has no more messages, parts and tools than any conversation has: each
    costs time that other clients wait for.

    Raises:
        TooLarge: it has more.
    """
    counts = {
        "messages": len(asked.messages),
        "parts of messages": sum(len(message.blocks) for message in asked.messages),
        "tools": len(asked.tools) + len(asked.hosted_tools) + len(asked.changed_tools),
    }
    for what, count in counts.items():
        if count > MOST[what]:
            raise TooLarge(f"the request has {count:,} {what}; the limit is {MOST[what]:,}")


def _readable(stored: Mapping[str, bytes]) -> dict[str, Kept | None]:
    """The records, each read once; None where there are several."""
    read = cache(kept_from)
    found = {key: read(data) if data else None for key, data in stored.items()}
    return {key: kept for key, kept in found.items() if kept is not None or not stored[key]}
