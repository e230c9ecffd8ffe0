"""The Responses API beyond single answers: conversations that the server holds, stored responses,
and compaction."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from mull.dialects.fields import Fields
from mull.dialects.foreign import as_object
from mull.dialects.openai_responses.answer import COMPACTION_KEY, Writer, write_document
from mull.dialects.openai_responses.asked import read_request
from mull.dialects.openai_responses.closing import write_usage
from mull.dialects.openai_responses.state import (
    Item,
    State,
    compacted,
    listed,
    page_of,
    read_state,
    recent,
    reference_id,
    user_items,
    with_thoughts,
    without_thoughts,
)
from mull.dialects.writer import About, AnswerWriter, encode
from mull.gateway.compaction import Compaction, compact, open_summary
from mull.gateway.http import Receive, Send, give, note_headers, read_body, while_there
from mull.gateway.record import Kept, kept_from
from mull.gateway.relay import Client, Relay
from mull.gateway.service import Job, as_error
from mull.gateway.shelf import Shelf, Stored, answer_key, not_found
from mull.gateway.streaming import Streaming
from mull.neutral.assemble import Assembler, tell
from mull.neutral.errors import ConfigError, MullError
from mull.neutral.events import Event, Failed, Finished, OpaqueReceived, UsageReported
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.usage import Usage, add_usage

if TYPE_CHECKING:
    from mull.gateway.calls import Call
    from mull.gateway.memory import Memory
    from mull.gateway.service import Gateway
    from mull.neutral.asked import Asked

__all__ = ["ResponseJob", "Responses"]

_decode = msgspec.json.Decoder().decode


class Turn(NamedTuple):
    """One request with the conversation that it continues. `input` are its own items, `items`
    those of the conversation with them; `previous` is the response that it continues."""

    body: dict[str, Any]
    state: State
    input: list[Item]
    items: list[Item]
    previous: Stored | None
    shelf: Shelf
    local: Memory | None


class ResponseJob(Job):
    """A job whose response is kept under its id. It may begin with a compaction, consist of one, or
    only prepare the next."""

    turn: Turn

    def about(self, *, as_list: bool = False) -> About:
        return replace(super().about(as_list=as_list), echo=self.turn.state.echo)

    async def events(self) -> AsyncGenerator[list[Event], None]:
        state = self.turn.state
        if not state.generate:
            source = _only_end()
        elif state.compacts:
            source = self._compaction()
        elif state.threshold is not None and self.prepared.estimate > state.threshold:
            source = self._shortened()
        else:
            source = super().events()
        async with aclosing(source) as batches:
            async for events in batches:
                yield events

    async def _compaction(self) -> AsyncGenerator[list[Event], None]:
        """A compaction in the place of an answer."""
        made = await compact(self._gateway, self, self.id)
        yield [_item(made), *([UsageReported(made.usage)] if made.usage else []), Finished("stop")]

    async def _shortened(self) -> AsyncGenerator[list[Event], None]:
        """A compaction of what was said before this turn, then the answer."""
        old, new = recent(self.turn.items)
        made = await self._compacted(old)
        if made is None:
            items = self.turn.items
        else:
            yield [_item(made)]
            items = [*old, made.item, *new]
        asked = _asked(self._gateway, self.client, self.turn.body, items)
        job = await self._gateway.job(self.client, asked, self.body)
        job.keys = self.keys
        async with aclosing(job.events()) as batches:
            async for events in batches:
                yield [_dearer(event, made.usage) if made else event for event in events]

    async def _compacted(self, items: Sequence[Item]) -> Compaction | None:
        """None, with a note, where there is no summary: the answer does not fail for that."""
        try:
            asked = _asked(self._gateway, self.client, self.turn.body, items)
            job = await self._gateway.job(self.client, asked, self.body)
            return await compact(self._gateway, job, self.id)
        except MullError as error:
            self.notes += (Note("context_management", f"not compacted: {error}", warning=True),)
            return None

    async def settle(self, writer: AnswerWriter) -> None:
        """Keep the response; without its thoughts where its answer is kept too."""
        assert isinstance(writer, Writer)
        turn, response = self.turn, writer.response
        before, size = turn.previous.next() if turn.previous else ((), 0)
        full = Stored(response, turn.input, before, size)
        if turn.local is not None:
            await turn.shelf.keep(full, turn.local)
        if turn.state.store:
            output = without_thoughts(response["output"])
            bare = replace(full, response={**response, "output": output})
            await turn.shelf.keep(bare, self._gateway.memory)

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


def _dearer(event: Event, spent: Usage | None) -> Event:
    """The counts of an answer with those of the compaction before it."""
    if isinstance(event, UsageReported) and spent is not None:
        return UsageReported(add_usage(event.usage, spent) or event.usage)
    return event


def _asked(gateway: Gateway, client: Client, body: dict[str, Any], items: Sequence[Item]) -> Asked:
    """What the request asks for, with these items as its conversation."""
    fields = Fields(body)
    read_state(body, fields)
    summary = partial(open_summary, gateway.envelopes, client.scope)
    return read_request(fields, compacted(items, summary))


class Responses:
    """Answers requests to the paths of the Responses API."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def respond(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses`"""
        job = await self._read(call, receive)
        if job.asked.stream:
            await Streaming(job, receive, send, as_list=False).run()
        else:
            document = await while_there(job.document(), receive)
            await give(send, document, note_headers(job.notes))

    async def count(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses/input_tokens`"""
        job = await self._read(call, receive)
        tokens = await self._gateway.count(call.client, job.asked)
        await give(send, call.surface.write_count(tokens))

    async def compact(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses/compact`"""
        job = await self._read(call, receive)
        made = await while_there(compact(self._gateway, job, job.id), receive)
        document = {
            "id": job.id,
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*user_items(job.turn.items, job.id), made.item],
            "usage": write_usage(made.usage or Usage()),
        }
        await give(send, encode(document), note_headers(job.notes))

    async def response(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET` and `DELETE /responses/{id}`"""
        stored = await self._stored(call)
        if call.method == "DELETE":
            await self._shelf(call.client).forget(stored.id)
            gone = {"id": stored.id, "object": "response", "deleted": True}
            await give(send, encode(gone))
            return
        if call.query.get("stream") == ["true"]:
            raise ConfigError("stream: only a response in the background can be streamed again")
        (output,) = await self._outputs(call.client, [stored])
        await give(send, encode({**stored.response, "output": output}))

    async def items(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET /responses/{id}/input_items`"""
        stored = await self._stored(call)
        chain = await self._shelf(call.client).known(stored.id)
        outputs = await self._outputs(call.client, chain[:-1])
        found: list[Item] = []
        for one, output in zip(chain, [*outputs, []], strict=True):
            found += [*listed(one.input, one.id), *output]
        await give(send, encode(page_of(found, call.query)))

    async def cancel(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses/{id}/cancel`"""
        await self._stored(call)
        raise ConfigError("Cannot cancel a synchronous response.")

    async def job(
        self, client: Client, body: dict[str, Any], data: bytes, local: Memory | None = None
    ) -> ResponseJob:
        """The job of a request with this body, which came as `data`. With `local`, responses are
        also kept and found there.

        Raises:
            RefusedError: it continues a response that is not there, or asks for what is not done.
            LocalError: it cannot be sent as it is.
        """
        turn = await self._turn(client, body, local)
        asked = _asked(self._gateway, client, body, turn.items)
        job = await self._gateway.job(client, asked, data, ResponseJob)
        assert isinstance(job, ResponseJob)
        job.turn, job.keys = turn, (answer_key(job.id),)
        return job

    async def _read(self, call: Call, receive: Receive) -> ResponseJob:
        data = await read_body(receive, call.headers)
        return await self.job(call.client, body_of(data), data)

    async def _turn(self, client: Client, body: dict[str, Any], local: Memory | None) -> Turn:
        state = read_state(body, Fields(body))
        shelf = self._shelf(client, local)
        chain = await shelf.chain(state.previous) if state.previous else []
        given = await _resolved(state.items, shelf)
        items = [item for stored in chain for item in stored.items]
        previous = chain[-1] if chain else None
        return Turn(body, state, given, [*items, *given], previous, shelf, local)

    def _shelf(self, client: Client, local: Memory | None = None) -> Shelf:
        here = [local] if local is not None else []
        return Shelf(client.scope, *here, self._gateway.memory)

    async def _stored(self, call: Call) -> Stored:
        name = call.place.name or ""
        stored = await self._shelf(call.client).find(name)
        if stored is None:
            raise not_found("Response", name)
        return stored

    async def _outputs(self, client: Client, responses: Sequence[Stored]) -> list[list[Item]]:
        """The output items of responses, with the thoughts that their answers are kept with."""
        keys = [answer_key(stored.id) for stored in responses if _thinks(stored)]
        found = await self._gateway.find(client.scope, keys) if keys else None
        outputs = []
        for stored in responses:
            data = (found or {}).get(answer_key(stored.id))
            kept = kept_from(data) if data is not None else None
            told = self._told(client, stored, kept) if kept is not None else []
            outputs.append(with_thoughts(stored.response["output"], told))
        return outputs

    def _told(self, client: Client, stored: Stored, kept: Kept) -> list[Item]:
        """The answer as the client was told it."""
        relay = Relay(client, kept.origin, self._gateway.envelopes)
        given = Message(role="assistant", status="complete", origin=kept.origin, blocks=kept.blocks)
        folded = Assembler(kept.origin)
        folded.add_all(relay.told(tell(given)))
        about = About(source=kept.origin.dialect, id=stored.id)
        told: list[Item] = _decode(write_document(folded.message(), about))["output"]
        return told


def _thinks(stored: Stored) -> bool:
    return any(item.get("type") == "reasoning" for item in stored.response["output"])


async def _resolved(items: Sequence[Item], shelf: Shelf) -> list[Item]:
    """The items, with those of earlier responses in the place of references to them.

    Raises:
        RefusedError: there is no such item.
    """
    names = [name for item in items if (name := reference_id(item)) is not None]
    if not names:
        return list(items)
    found = await shelf.items(names)
    for name in names:
        if name not in found:
            raise not_found("Item", name)
    return [item if (name := reference_id(item)) is None else found[name] for item in items]


def body_of(data: bytes) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        ConfigError: it is none.
    """
    try:
        return as_object(_decode(data), "the body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON: {error}") from None
