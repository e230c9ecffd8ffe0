"""Where an answer ends: at the dialect's own end, whatever the endpoint does with the socket."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from conversations import snapshot, target
from loops import FakeClock, run_moved, until
from mull.client.access import Access
from mull.client.exchange import CLOSING_SECONDS, exchange
from mull.client.http import HttpClient
from mull.client.transport import HttpRequest
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.messages import user
from mull.policy.prepare import prepare
from mull.testing.server import STALL, Gate, Reply, ScriptedServer


def chat(finish=None, **delta):
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def claude(kind, **more):
    return {"type": kind, **more}


def gemini(text, finish=None):
    candidate = {"content": {"parts": [{"text": text}]}}
    return {"candidates": [candidate | ({"finishReason": finish} if finish else {})]}


CLAUDE = (
    claude("message_start", message={"id": "m", "content": [], "usage": {"input_tokens": 1}}),
    claude("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    claude("content_block_delta", index=0, delta={"type": "text_delta", "text": "yes"}),
    claude("content_block_stop", index=0),
    claude("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2}),
)
RESPONSES = (
    {"type": "response.created", "response": {"id": "r"}},
    {"type": "response.output_text.delta", "item_id": "m", "delta": "yes"},
)
DONE = {"status": "completed", "output": [], "usage": {"input_tokens": 1, "output_tokens": 2}}
ENDED = {
    "openai-chat": (chat(content="yes"), chat("stop"), "[DONE]"),
    "anthropic": (*CLAUDE, claude("message_stop")),
    "openai-responses": (*RESPONSES, {"type": "response.completed", "response": DONE}),
}
CLOSING = {
    "openai-chat": (chat(content="yes"), chat("stop")),
    "anthropic": CLAUDE,
    "gemini": (gemini("yes", "STOP"),),
}
LATE = {
    "openai-chat": chat(content=" and no"),
    "anthropic": claude("content_block_delta", index=0, delta={"type": "text_delta", "text": "no"}),
    "openai-responses": {"type": "response.output_text.delta", "item_id": "m", "delta": " and no"},
    "gemini": gemini(" and no"),
}


async def listen(server, dialect, seen, transport):
    request = prepare(Log([user("hi")]), snapshot(), target(dialect=dialect))
    way = Access(server.url + "/v1")
    batches = exchange(request, way, transport=transport, clock=FakeClock())
    async with aclosing(batches):
        async for events in batches:
            seen += events


def ask(script, dialect, advance=()):
    """The message that comes of it, by a clock that only these steps move."""

    async def main(loop):
        transport, seen = HttpClient(), []
        task = asyncio.create_task(listen(server, dialect, seen, transport))
        for step in advance:
            await step(loop, seen, task)
        await asyncio.wait([task])
        task.result()
        await transport.close()
        return assemble(seen)

    with ScriptedServer(script) as server:
        return run_moved(main)


@pytest.mark.parametrize("dialect", ENDED)
@pytest.mark.parametrize("after", [(), ("late",), (b": ping\n\n",) * 3], ids=["", "text", "pings"])
def test_the_end_is_the_end_though_the_connection_stays_open(dialect, after):
    more = [LATE[dialect] if one == "late" else one for one in after]
    message = ask([Reply.events(*ENDED[dialect], *more, STALL)], dialect)
    assert (message.text, message.status) == ("yes", "complete")


@pytest.mark.parametrize("dialect", CLOSING)
def test_a_reason_to_end_is_the_end_after_a_few_seconds(dialect):
    """Silence would end it after ten minutes, and pings would put that off for ever."""
    pings = [Gate() for _ in range(50)]
    moved = []

    async def pass_time(loop, seen, task):
        for gate in pings:
            await until(lambda gate=gate: gate.wait_reached(0) or task.done())
            await loop.advance(1)
            gate.open()
        moved.append(task.done())

    steps = [step for gate in pings for step in (gate, b": ping\n\n")]
    message = ask([Reply.events(*CLOSING[dialect], *steps, STALL)], dialect, [pass_time])
    assert (message.text, message.status, moved) == ("yes", "complete", [True])


def test_what_comes_within_those_seconds_is_part_of_the_answer():
    counts = {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    gate = Gate()

    async def pass_time(loop, seen, task):
        await until(lambda: gate.wait_reached(0))
        await loop.advance(CLOSING_SECONDS - 1)
        gate.open()

    script = [Reply.events(*CLOSING["openai-chat"], gate, counts, "[DONE]", STALL)]
    message = ask(script, "openai-chat", [pass_time])
    assert (message.usage.input, message.usage.output) == (3, 4)


def test_a_slow_reader_loses_nothing_that_came_in_time():
    gates = [Gate(), Gate()]

    async def main(loop):
        transport = HttpClient()
        async with transport.send(HttpRequest("GET", server.url)) as answer:
            pieces = [await anext(answer)]
            answer.finish_within(5)
            for gate in gates:
                gate.open()
                await until(lambda: answer._connection._pieces)
                await loop.advance(60)
                pieces += [piece async for piece in answer]
        await transport.close()
        return pieces

    with ScriptedServer([Reply(steps=(b"a", gates[0], b"b", gates[1], b"c", STALL))]) as server:
        assert run_moved(main) == [b"a", b"b"]


def test_a_reason_in_every_chunk_ends_nothing():
    """Older Gemini models say STOP in each chunk: the seconds begin anew with all that is said."""
    gates = [Gate() for _ in range(3)]

    async def pass_time(loop, seen, task):
        for gate in gates:
            await until(lambda gate=gate: gate.wait_reached(0))
            await loop.advance(CLOSING_SECONDS - 1)
            gate.open()

    steps = [step for gate in gates for step in (gate, gemini("more ", "STOP"))]
    message = ask([Reply.events(gemini("", "STOP"), *steps)], "gemini", [pass_time])
    assert (message.text, message.status) == ("more more more ", "complete")


def test_a_document_that_is_whole_does_not_wait_for_the_end_of_its_body():
    body = b'{"choices":[{"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}]}'
    moved = []

    async def pass_time(loop, seen, task):
        while not task.done():
            await asyncio.to_thread(time.sleep, 0.002)
            await loop.advance(0.5)
        moved.append(loop.moved)

    reply = Reply(200, {"content-type": "application/json"}, (body, STALL))
    message = ask([reply], "openai-chat", [pass_time])
    assert (message.text, message.status) == ("yes", "complete")
    assert moved[0] < 300  # silence would have ended it after ten minutes


@pytest.mark.parametrize("tail", [b"", b"data: [DO", b'data: {"usage":{"prompt'])
def test_an_end_that_is_cut_behind_its_reason_leaves_a_whole_answer(tail):
    message = ask([Reply.events(*CLOSING["openai-chat"], tail)], "openai-chat")
    assert (message.text, message.status) == ("yes", "complete")


def test_the_connection_is_kept_where_its_answer_ends_soon():
    async def main():
        transport, seen = HttpClient(), []
        for _ in range(5):
            await listen(server, "openai-chat", seen, transport)
        await transport.close()

    with ScriptedServer(lambda _: Reply.events(*ENDED["openai-chat"])) as server:
        asyncio.run(main())
    assert {request.connection for request in server.requests} == {0}


@pytest.mark.parametrize("rest", [(STALL,), (b"x" * 100_000, STALL)], ids=["silent", "endless"])
def test_the_connection_is_dropped_where_it_does_not(rest):
    async def main():
        transport, seen = HttpClient(), []
        for _ in range(2):
            await listen(server, "openai-chat", seen, transport)
        assert await asyncio.to_thread(server.requests[0].wait_left)
        await transport.close()

    with ScriptedServer(lambda _: Reply.events(*ENDED["openai-chat"], *rest)) as server:
        asyncio.run(main())
    assert [request.connection for request in server.requests] == [0, 1]


def test_closing_the_transport_drops_what_is_still_ending():
    async def main():
        transport = HttpClient()
        await listen(server, "openai-chat", [], transport)
        await transport.close()
        assert await asyncio.to_thread(server.requests[0].wait_left)

    with ScriptedServer([Reply.events(*ENDED["openai-chat"], STALL)]) as server:
        run_moved(lambda loop: main())
