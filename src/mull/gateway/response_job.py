"""The job of a request to the Responses API: it stores its response, and it may compact the
conversation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from mull.dialects.fields import Fields
from mull.dialects.openai_responses.answer import COMPACTION_KEY, Writer
from mull.dialects.openai_responses.asked import read_request
from mull.dialects.openai_responses.state import (
    Item,
    State,
    compacted,
    read_state,
    recent,
    without_thoughts,
)
from mull.dialects.writer import About, AnswerWriter, encode
from mull.gateway.compaction import Compaction, compact, open_summary
from mull.gateway.job import Job
from mull.gateway.relay import Client
from mull.gateway.response_store import ResponseStore, StoredResponse
from mull.gateway.trials import as_error
from mull.neutral.errors import MullError
from mull.neutral.events import Event, Failed, Finished, OpaqueReceived, UsageReported
from mull.neutral.request import Note
from mull.neutral.usage import Usage, add_usage

if TYPE_CHECKING:
    from mull.gateway.memory import Memory
    from mull.gateway.service import Gateway
    from mull.neutral.asked import Asked

__all__ = ["ResponseJob", "Turn", "asked_for"]


class Turn(NamedTuple):
    """One request with the conversation that it continues."""

    body: dict[str, Any]
    """The request as the client sent it."""
    state: State
    """What the request asks of the API's own state: storing, continuing, compacting."""
    input: list[Item]
    """The items of the request itself."""
    items: list[Item]
    """The items of the whole conversation."""
    previous: StoredResponse | None
    """The response that it continues, if it names one."""
    store: ResponseStore
    """Where the response is stored for the client."""
    local: Memory | None
    """Where its responses are stored as well, and looked up first; None for nowhere else."""
    added: int = 0
    """The bytes of what is not in the request but was stored."""


class ResponseJob(Job):
    """A job whose response is stored under its id. It may start with a compaction, consist of
    nothing else, or generate nothing and only store its input for the next request."""

    turn: Turn

    def about(self, *, as_list: bool = False) -> About:
        return replace(super().about(as_list=as_list), echo=self.turn.state.echo)

    async def events(self) -> AsyncGenerator[list[Event], None]:
        state = self.turn.state
        if not state.generate:
            source = _only_end()
        elif state.compacts:
            source = self._compaction()
        elif self._is_too_long():
            source = self._shortened()
        else:
            source = super().events()
        async with aclosing(source) as batches:
            async for events in batches:
                yield events

    def _is_too_long(self) -> bool:
        """Whether to compact the conversation first, for want of a provider that does it."""
        target, most = self.prepared.target, self.turn.state.threshold
        is_own = target.dialect == self.client.dialect and target.compat.hosted_tools
        return most is not None and not is_own and self.prepared.estimate > most

    async def _compaction(self) -> AsyncGenerator[list[Event], None]:
        """A compaction instead of an answer."""
        made = await compact(self._gateway, self, self.id)
        yield [_item(made), *([UsageReported(made.usage)] if made.usage else []), Finished("stop")]

    async def _shortened(self) -> AsyncGenerator[list[Event], None]:
        """A compaction of the conversation before this turn, then the answer."""
        old, new = recent(self.turn.items)
        made = await self._compacted(old)
        if made is None:
            items = self.turn.items
        else:
            yield [_item(made)]
            items = [*old, made.item, *new]
        job = await self._with(items, self.id)
        async with aclosing(job.events()) as batches:
            async for events in batches:
                yield [_with_cost(event, made.usage) if made else event for event in events]

    async def _compacted(self, items: Sequence[Item]) -> Compaction | None:
        """The compaction; None, with a note, if it fails, because the answer must not fail with
        it."""
        try:
            return await compact(self._gateway, await self._with(items), self.id)
        except MullError as error:
            self.notes += (Note("context_management", f"not compacted: {error}", warning=True),)
            return None

    async def _with(self, items: Sequence[Item], answer_id: str | None = None) -> Job:
        """The same request with these items as its conversation, and with this id of its answer."""
        body = self.turn.body
        fields = Fields(body)
        read_state(body, fields)
        room = self.turn.state.threshold
        asked = await self.aside(
            partial(asked_for, self._gateway, self.client, fields, items, room)
        )
        asked = replace(asked, headers=self.asked.headers)
        return await self._gateway.job(
            self.client, asked, self.body, answer_id=answer_id, size=self.size
        )

    async def settle(self, writer: AnswerWriter) -> None:
        """Store the response; without its thinking in the store that also holds its answer."""
        assert isinstance(writer, Writer)
        turn, response = self.turn, writer.response
        before, size = turn.previous.next() if turn.previous else ((), 0)
        full = StoredResponse(response, turn.input, before, size)
        if turn.local is not None:
            await turn.store.keep(full, turn.local)
        if turn.state.store:
            output = without_thoughts(response["output"])
            bare = replace(full, response={**response, "output": output})
            await turn.store.keep(bare, self._gateway.memory)

    async def document(self) -> bytes:
        writer = self.writer()
        assert isinstance(writer, Writer)
        last: Event | None = None
        async with aclosing(self.events()) as batches:
            async for events in batches:
                for last in events:
                    writer.feed(last)
        writer.close()
        if isinstance(last, Finished):
            await self.settle(writer)
        elif isinstance(last, Failed) and not writer.response["output"]:
            raise as_error(last)
        return encode(writer.response)


async def _only_end() -> AsyncGenerator[list[Event], None]:
    yield [Finished("stop")]


def _item(made: Compaction) -> Event:
    return OpaqueReceived(made.item, COMPACTION_KEY)


def _with_cost(event: Event, spent: Usage | None) -> Event:
    """The usage of an answer plus that of the compaction before it."""
    if isinstance(event, UsageReported) and spent is not None:
        return UsageReported(add_usage(event.usage, spent) or event.usage)
    return event


def asked_for(
    gateway: Gateway,
    client: Client,
    fields: Fields,
    items: Sequence[Item],
    room: int | None = None,
) -> Asked:
    """The decoded request with these items as its conversation. `fields` no longer contains the
    fields about state. `room` limits the bytes of the user's messages before a compaction."""
    summary = partial(open_summary, gateway.envelopes, client.scope)
    return read_request(fields, compacted(items, summary, room))
