"""The stateful part of the Responses API: conversations held by the server, stored responses and
their items, and compaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from mull.dialects.fields import Fields
from mull.dialects.foreign import as_object
from mull.dialects.openai_responses.answer import write_document
from mull.dialects.openai_responses.closing import write_usage
from mull.dialects.openai_responses.state import (
    Item,
    State,
    listed,
    page_of,
    read_state,
    reference_id,
    user_items,
    with_thoughts,
)
from mull.dialects.serving import control_headers
from mull.dialects.writer import About, encode
from mull.gateway.anchors import answer_key
from mull.gateway.compaction import compact
from mull.gateway.http import Receive, Send, WhileThere, aside, give, note_headers, read_body
from mull.gateway.record import Kept, kept_from
from mull.gateway.relay import Client, Relay
from mull.gateway.response_job import ResponseJob, Turn, asked_for
from mull.gateway.response_store import ResponseStore, StoredResponse, check_size, not_found
from mull.gateway.streaming import Streaming
from mull.neutral.assemble import Assembler, tell
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message
from mull.neutral.usage import Usage

if TYPE_CHECKING:
    from mull.gateway.calls import Call
    from mull.gateway.memory import Memory
    from mull.gateway.service import Gateway

__all__ = ["Responses", "body_of"]

MOST_KEPT = 256_000
"""The most bytes of the user's own messages to keep beside a compaction. The limit is one byte per
token of the context window if that is smaller, which fills about a quarter of the window."""
_decode = msgspec.json.Decoder().decode


class Responses:
    """Answers requests to the paths of the Responses API."""

    def __init__(self, gateway: Callable[[], Gateway]) -> None:
        self._find_gateway = gateway

    @property
    def _gateway(self) -> Gateway:
        """The current gateway: a reload of the configuration replaces it."""
        return self._find_gateway()

    async def respond(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses`"""
        job = await self._read(call, receive)
        if job.asked.stream:
            await Streaming(job, receive, send, as_list=False).run()
        else:
            with WhileThere(receive):
                document = await job.document()
            await give(send, document, note_headers(job.notes))

    async def count(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses/input_tokens`"""
        job = await self._read(call, receive)
        tokens = await self._gateway.count(call.client, job.asked, job.body)
        await give(send, call.surface.write_count(tokens))

    async def compact(self, call: Call, receive: Receive, send: Send) -> None:
        """`POST /responses/compact`"""
        job = await self._read(call, receive)
        with WhileThere(receive):
            made = await compact(self._gateway, job, job.id)
        room = min(job.prepared.window or MOST_KEPT, MOST_KEPT)
        document = {
            "id": job.id,
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*user_items(job.turn.items, job.id, room), made.item],
            "usage": write_usage(made.usage or Usage()),
        }
        await give(send, encode(document), note_headers(job.notes))

    async def response(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET` and `DELETE /responses/{id}`"""
        stored = await self._stored(call)
        if call.method == "DELETE":
            await self._store(call.client).forget(stored.id)
            gone = {"id": stored.id, "object": "response", "deleted": True}
            await give(send, encode(gone))
            return
        if call.query.get("stream") == ["true"]:
            raise ConfigError("stream: only a background response can be streamed again")
        (output,) = await self._outputs(call.client, [stored])
        await give(send, encode({**stored.response, "output": output}))

    async def items(self, call: Call, receive: Receive, send: Send) -> None:
        """`GET /responses/{id}/input_items`"""
        stored = await self._stored(call)
        chain = await self._store(call.client).known(stored.id)
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
        self,
        client: Client,
        body: dict[str, Any],
        data: bytes,
        headers: Mapping[str, str],
        local: Memory | None = None,
    ) -> ResponseJob:
        """The job of a request with this body, which was received as `data` with these headers.
        With `local`, responses are also stored there and looked up there first.

        Raises:
            RefusedError: it continues a response that does not exist, or uses an unsupported
                feature.
            LocalError: it cannot be sent as it is.
        """
        fields = Fields(body)
        state = read_state(body, fields)
        turn = await self._turn(client, body, state, local)
        size = len(data) + turn.added
        asked = await aside(
            size, asked_for, self._gateway, client, fields, turn.items, state.threshold
        )
        asked = replace(asked, headers=control_headers(headers, client.dialect))
        job = await self._gateway.job(client, asked, data, ResponseJob, size=size)
        assert isinstance(job, ResponseJob)
        job.turn = turn
        return job

    async def _read(self, call: Call, receive: Receive) -> ResponseJob:
        data = await read_body(receive, call.headers)
        body = await aside(len(data), body_of, data)
        return await self.job(call.client, body, data, call.headers)

    async def _turn(
        self, client: Client, body: dict[str, Any], state: State, local: Memory | None
    ) -> Turn:
        store = self._store(client, local)
        chain = await store.chain(state.previous) if state.previous else []
        given, added = await self._resolved(client, state.items, store)
        outputs = await self._outputs(client, chain)
        items = [
            item
            for stored, output in zip(chain, outputs, strict=True)
            for item in (*stored.input, *output)
        ]
        previous = chain[-1] if chain else None
        added += previous.size if previous else 0
        return Turn(body, state, given, [*items, *given], previous, store, local, added)

    async def _resolved(
        self, client: Client, items: Sequence[Item], store: ResponseStore
    ) -> tuple[list[Item], int]:
        """The items, with each reference replaced by the item of an earlier response, and the bytes
        of those: one item may be referred to often.

        Raises:
            RefusedError: a referenced item does not exist.
            TooLarge: they exceed the size limit of a conversation.
        """
        names = [name for item in items if (name := reference_id(item)) is not None]
        if not names:
            return list(items), 0
        outputs = await self._outputs(client, await store.holders(names))
        found = {item.get("id"): item for output in outputs for item in output}
        for name in names:
            if name not in found:
                raise not_found("Item", name)
        sizes = {name: len(encode(found[name])) for name in set(names)}
        size = sum(sizes[name] for name in names)
        check_size(size)
        resolved = (item if (name := reference_id(item)) is None else found[name] for item in items)
        return list(resolved), size

    def _store(self, client: Client, local: Memory | None = None) -> ResponseStore:
        here = [local] if local is not None else []
        return ResponseStore(client.scope, *here, self._gateway.memory)

    async def _stored(self, call: Call) -> StoredResponse:
        name = call.place.name or ""
        stored = await self._store(call.client).find(name)
        if stored is None:
            raise not_found("Response", name)
        return stored

    async def _outputs(
        self, client: Client, responses: Sequence[StoredResponse]
    ) -> list[list[Item]]:
        """The output items of responses, with the thinking from the records of their answers."""
        keys = [answer_key(stored.id) for stored in responses if _thinks(stored)]
        found, _ = await self._gateway.find(client.scope, keys) if keys else ({}, ())
        outputs = []
        for stored in responses:
            data = found.get(answer_key(stored.id))
            kept = kept_from(data) if data is not None else None
            sent = self._sent_items(client, stored, kept) if kept is not None else []
            outputs.append(with_thoughts(stored.response["output"], sent))
        return outputs

    def _sent_items(self, client: Client, stored: StoredResponse, kept: Kept) -> list[Item]:
        """The items of the answer as they were sent to the client."""
        relay = Relay(client, kept.origin, self._gateway.envelopes, stored.id)
        given = Message(role="assistant", status="complete", origin=kept.origin, blocks=kept.blocks)
        folded = Assembler(kept.origin)
        folded.add_all(relay.translate([*tell(given)]))
        about = About(source=kept.origin.dialect, id=stored.id)
        items: list[Item] = _decode(write_document(folded.message(), about))["output"]
        return items


def _thinks(stored: StoredResponse) -> bool:
    return any(item.get("type") == "reasoning" for item in stored.response["output"])


def body_of(data: bytes) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        ConfigError: the body is not a JSON object.
    """
    try:
        return as_object(_decode(data), "the body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON: {error}") from None
