"""The gateway without its HTTP: a client's request in, an answer in the client's dialect out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, Container, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.dialects.serving import answer_writer, write_answer
from mull.dialects.traits import TRAITS
from mull.dialects.writer import About
from mull.gateway.anchors import Past
from mull.gateway.attach import Attached, Unknown, attach, keys_of, past_of
from mull.gateway.envelope import Envelopes
from mull.gateway.ids import mint_answer_id
from mull.gateway.notes import worth_telling
from mull.gateway.observing import Observed, Observer
from mull.gateway.preparing import prepare_for
from mull.gateway.record import kept_from, kept_to
from mull.gateway.relay import Client, Relay
from mull.gateway.routes import Route, Routes
from mull.gateway.tracing import Tracing
from mull.gateway.wishes import wishes_of
from mull.logs import log_warning
from mull.neutral.asked import Asked
from mull.neutral.assemble import Assembler
from mull.neutral.events import Event, Failed, Finished
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import WireRequest
from mull.policy.heal.lessons import fingerprints
from mull.policy.prepare import Prepared, prepare
from mull.policy.view.calls import names_on_wire

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.dialects.writer import AnswerWriter
    from mull.gateway.accounts import Accounts
    from mull.gateway.memory import Memory

__all__ = ["Gateway", "Job", "as_error"]

_OPTIONS = ExchangeOptions(retry=RetryRules(attempts=1))
"""Clients ask again themselves, and know better how long they want to wait."""


class Job:
    """One request of a client, ready to be sent, and its answer. `keys` are some that the answer
    is to be found by beside its own."""

    def __init__(
        self,
        gateway: Gateway,
        client: Client,
        asked: Asked,
        route: Route,
        prepared: Prepared,
        attached: Attached,
        body: bytes = b"",
    ) -> None:
        self.client = client
        self.asked = asked
        self.body = body
        self.route = route
        self.prepared = prepared
        self.notes = worth_telling((*attached.notes, *prepared.notes), asked, client.dialect)
        self.id = mint_answer_id(client.dialect)
        self.began = time.monotonic()
        self.keys: tuple[str, ...] = ()
        self._gateway = gateway
        self._attached = attached
        self._refused: list[str] = []
        self._relay = self._relay_for(prepared)

    def _relay_for(self, prepared: Prepared) -> Relay:
        """Who tells the client of this request's answer."""
        tools, target = prepared.made.options.tools, prepared.target
        renamed = names_on_wire((tool.name for tool in tools), target.dialect)
        names = {wire: own for own, wire in renamed.items()}
        return Relay(self.client, target.origin, self._gateway.envelopes, names)

    def about(self, *, as_list: bool = False) -> About:
        """What the client's writer needs to know."""
        return About(
            source=self.prepared.target.dialect,
            id=self.id,
            model=self.asked.model or self.prepared.target.name,
            created=int(time.time()),
            usage=self.asked.stream_usage,
            as_list=as_list,
            free_text=frozenset(tool.name for tool in self.asked.tools if tool.free_text),
            tools={tool.name: tool.wire for tool in self.asked.tools if tool.wire is not None},
        )

    def writer(self, *, as_list: bool = False) -> AnswerWriter:
        """The writer of the client's dialect."""
        return answer_writer(self.client.dialect, self.about(as_list=as_list))

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """The answer as the client hears it, batch by batch. Its last events come when it is
        stored.

        Raises:
            RemoteError: the upstream refused or could not be reached before it said anything, or
                a limit of the client is reached.
        """
        if self._gateway.accounts is not None:
            await self._gateway.accounts.admit(self)
        options = replace(_OPTIONS, sending=self._sent)
        with Observed(self._gateway.observers, self) as observed:
            way = self._gateway.tracing.along(self, self.route.way)
            send = self._gateway.engine.sender(way, options)
            async with aclosing(send(self.prepared)) as batches:
                async for batch in batches:
                    if self._refused:
                        await self._gateway.forget(self.client, self._refused)
                        self._refused = []
                    told = self._relay.told(batch)
                    if not told:
                        continue
                    if isinstance(told[-1], Finished):
                        await self._gateway.remember(self, self._relay)
                    observed.heard(told)
                    yield told

    def _sent(self, prepared: Prepared, wire: WireRequest) -> None:
        """The request goes out as it is here: perhaps repaired, and then perhaps to another API of
        the same provider."""
        if prepared.target.origin != self.prepared.target.origin:
            self._relay = self._relay_for(prepared)
        if len(prepared.target.refused) > len(self.prepared.target.refused):
            self._refused = self._records_of(prepared.target.refused)
        self.prepared = prepared
        news = worth_telling((*prepared.notes, *wire.notes), self.asked, self.client.dialect)
        self.notes = tuple(dict.fromkeys((*self.notes, *news)))

    def _records_of(self, refused: Container[str]) -> list[str]:
        """Keys of the records that hold carriers with these fingerprints."""
        return [
            key
            for key, kept in self._attached.records.items()
            if any(name in refused for block in kept.blocks for name in fingerprints(block))
        ]

    async def settle(self, writer: AnswerWriter) -> None:
        """Called when the end of the answer is written, before it goes to the client."""

    async def whole(self) -> Message:
        """The answer in one piece.

        Raises:
            RemoteError: there is none.
        """
        folded = Assembler(self.prepared.target.origin)
        async for events in self.events():
            folded.add_all(events)
            if isinstance(events[-1], Failed) and not folded.blocks():
                raise as_error(events[-1])
        return folded.message()

    async def document(self) -> bytes:
        """The answer as one document of the client's dialect.

        Raises:
            RemoteError: there is none.
        """
        return write_answer(await self.whole(), self.client.dialect, self.about()).body


class Gateway:
    """Takes requests of clients to models. One for a process."""

    def __init__(
        self,
        engine: Engine,
        routes: Routes,
        memory: Memory,
        envelopes: Envelopes,
        observers: Sequence[Observer] = (),
        accounts: Accounts | None = None,
    ) -> None:
        self.engine = engine
        self.routes = routes
        self.memory = memory
        self.envelopes = envelopes
        self.tracing = Tracing()
        counting = () if accounts is None else (accounts,)
        self.observers: tuple[Observer, ...] = (*counting, self.tracing, *observers)
        self.accounts = accounts
        self.store_failures: Counter[str] = Counter()

    def allows(self, client: Client, name: str) -> bool:
        """Whether a client may use what is served under this name."""
        if self.accounts is None or not self.accounts.restricts(client.scope):
            return True
        return self.accounts.allows(client.scope, self._names(name))

    def check_model(self, client: Client, name: str | None) -> None:
        """Check that a client may use what is served under this name.

        Raises:
            RefusedError: it may not.
            LocalError: nothing is served under it.
        """
        if self.accounts is not None and self.accounts.restricts(client.scope):
            self.accounts.check_model(client.scope, self._names(name))

    def _names(self, name: str | None) -> tuple[str, str]:
        """What a model goes by: the name that it is served under, and its own."""
        target = self.routes.find(name).target
        return self.routes.served_as(name), f"{target.provider}/{target.model}"

    async def job(
        self, client: Client, asked: Asked, body: bytes = b"", kind: type[Job] = Job
    ) -> Job:
        """Prepare a client's request for the model that it asks for; `body` is how it came.

        Raises:
            LocalError: it cannot be sent as it is.
        """
        self.check_model(client, asked.model)
        route = self.routes.find(asked.model)
        attached = await self._attached(client, asked.messages, route.target.dialect)
        wishes = wishes_of(asked, client.dialect, route.target)
        prepared, left_out = prepare_for(route, attached.messages, wishes)
        attached = attached._replace(notes=(*attached.notes, *wishes.notes, *left_out))
        return kind(self, client, asked, route, prepared, attached, body)

    async def _attached(
        self, client: Client, messages: Sequence[Message], upstream: Dialect
    ) -> Attached:
        keys = keys_of(messages)
        wanted = dict.fromkeys(key for some in keys for key in some)
        stored = await self.find(client.scope, wanted) if wanted else {}
        unknown: Unknown = "readable" if TRAITS[upstream].takes == "fields" else "bare"
        if stored is None and client.dialect == upstream:
            unknown = "trusted"
        found = {key: kept for key, data in (stored or {}).items() if (kept := kept_from(data))}
        unseal = partial(self.envelopes.open, client.scope)
        return attach(messages, keys, found, unseal, unknown)

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes] | None:
        """The records; None where the store cannot be asked."""
        try:
            return await self.memory.find(scope, keys)
        except Exception as error:  # envelopes may still hold it; a request never fails for this
            self.store_failures["read"] += 1
            log_warning(f"the gateway's store cannot be read: {error!r:.200}")
            return None

    async def count(self, client: Client, asked: Asked) -> int:
        """How many tokens the request would hold, by the model's own counter.

        Raises:
            LocalError: it cannot be sent as it is.
        """
        job = await self.job(client, asked)
        counter = self.engine.counter_for(job.prepared.target)
        made = job.prepared.made
        log, target = made.log, job.prepared.target
        return prepare(log, made.snapshot, target, made.options, counter=counter).estimate

    async def close(self) -> None:
        """End what is kept open."""
        if self.accounts is not None:
            await self.accounts.close()
        await self.memory.close()
        await self.engine.close()

    async def forget(self, client: Client, keys: Sequence[str]) -> None:
        """Remove records of which the upstream would not take something back."""
        try:
            if keys:
                await self.memory.forget(client.scope, keys)
        except Exception as error:
            log_warning(f"the gateway's store cannot be written: {error!r:.200}")

    async def remember(self, job: Job, relay: Relay) -> None:
        """Store an answer, so that it is found when it comes back."""
        past: Past = past_of(job.asked.messages)
        keys, kept = relay.keep(past)
        try:
            await self.memory.keep(job.client.scope, [*keys, *job.keys], kept_to(kept))
        except Exception as error:
            self.store_failures["write"] += 1
            log_warning(f"the gateway's store cannot be written: {error!r:.200}")


def as_error(failed: Failed) -> Exception:
    """A failure before there was an answer, to be raised."""
    from mull.neutral.errors import RefusedError

    status = int(failed.code) if failed.code and failed.code.isdecimal() else 502
    return RefusedError(failed.text, status=status, text=failed.text, code=failed.code)
