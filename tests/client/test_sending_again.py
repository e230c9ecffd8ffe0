"""When a request goes out a second time without being asked to, and when it does not."""

from __future__ import annotations

import asyncio

import pytest

import mull
from loops import run_moved
from mull.agent.engine import Engine
from mull.client.http import AT_ONCE, HttpClient
from mull.client.transport import HttpRequest
from mull.neutral.errors import NetworkError, SilenceError
from mull.neutral.events import Retrying
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer


class Endpoint:
    """Answers a round of requests; then every connection it has is about to be closed.

    `dropping` is what a connection that was kept gets from then on, `fresh` what a new one gets.
    """

    def __init__(self, dropping, fresh=None):
        self.dropping, self.fresh = dropping, fresh or Reply.json("new")
        self.ready, self.old = None, None
        self.server = ScriptedServer(self.answer)

    def answer(self, recorded):
        if self.old is None:
            return Reply(before=(self.ready,), headers={"content-length": "2"}, steps=(b"ok",))
        return self.dropping if recorded.connection in self.old else self.fresh

    async def fill(self, transport, count):
        """Have the transport keep so many connections."""
        self.ready = Gate()
        request = HttpRequest("POST", self.server.url, {}, b"{}")
        tasks = [asyncio.create_task(read(transport, request)) for _ in range(count)]
        assert await asyncio.to_thread(self.server.wait_requests, count)
        self.ready.open()
        await asyncio.gather(*tasks)
        self.old = set(range(self.server.connections))
        assert len(self.old) == count
        self.server.requests.clear()


async def read(transport, request, **more):
    async with transport.send(request, **more) as answer:
        return b"".join([piece async for piece in answer])


def ask(endpoint, kept=8, wait=0.0, **more):
    """One request over a transport that keeps connections; what came, and what was told.

    Once the request is there, nothing comes for `wait` seconds.
    """
    told = []

    async def main(loop):
        transport = HttpClient()
        try:
            await endpoint.fill(transport, kept)
            request = HttpRequest("POST", endpoint.server.url, {}, b'{"q": 1}')
            reading = asyncio.ensure_future(read(transport, request, again=told.append, **more))
            if wait:
                assert await asyncio.to_thread(endpoint.server.wait_requests)
                await loop.advance(wait)
            return await reading
        finally:
            await transport.close()

    with endpoint.server:
        try:
            return run_moved(main), told
        except NetworkError as error:
            return error, told


def test_a_request_whose_kept_connection_was_closed_goes_out_once_more_and_that_is_told():
    endpoint = Endpoint(Reply.hang_up())
    came, told = ask(endpoint)
    assert came == b'"new"'
    assert [one.body for one in endpoint.server.requests] == [b'{"q": 1}'] * 2
    assert endpoint.server.requests[1].connection not in endpoint.old
    name = endpoint.server.url.partition("//")[2]
    assert [line.partition(" broke: ")[0] for line in told] == [f"the connection to {name}"]


def test_it_is_told_before_the_second_answer_comes():
    gate = Gate()
    endpoint = Endpoint(Reply.hang_up(), Reply(before=(gate,), steps=(b"late",)))
    order = []

    async def main(_):
        transport = HttpClient()
        await endpoint.fill(transport, 3)

        def again(reason):
            order.append("told")
            gate.open()

        order.append(await read(transport, HttpRequest("POST", endpoint.server.url), again=again))
        await transport.close()

    with endpoint.server:
        run_moved(main)
    assert order == ["told", b"late"]


def test_a_second_connection_that_breaks_is_an_error_after_two_requests():
    endpoint = Endpoint(Reply.hang_up(), Reply.hang_up())
    error, told = ask(endpoint)
    assert type(error) is NetworkError
    assert (len(endpoint.server.requests), len(told)) == (2, 1)


def test_a_new_connection_that_breaks_is_not_tried_again():
    endpoint = Endpoint(Reply.hang_up(), Reply.hang_up())
    error, told = ask(endpoint, kept=0)
    assert type(error) is NetworkError
    assert (len(endpoint.server.requests), told) == (1, [])


@pytest.mark.parametrize(
    "reply",
    [
        Reply(steps=(CUT,)),
        Reply(steps=(b"a word", CUT)),
        Reply(headers={"content-length": "9"}, steps=(b"half", CUT)),
        Reply(before=(b"HTTP/1.1 20", CUT)),
        Reply(before=(b"H", CUT)),
        Reply(before=(b"HTTP/1.1 100 Continue\r\n\r\n", CUT)),
    ],
)
def test_a_kept_connection_that_said_anything_is_not_replaced(reply):
    endpoint = Endpoint(reply)
    error, told = ask(endpoint)
    assert type(error) is NetworkError
    assert (len(endpoint.server.requests), told) == (1, [])


def test_a_silent_kept_connection_is_not_replaced():
    endpoint = Endpoint(Reply(before=(STALL,)))
    error, told = ask(endpoint, wait=121, idle=120)
    assert type(error) is SilenceError
    assert (len(endpoint.server.requests), told) == (1, [])


def test_the_total_limit_is_no_reason_to_send_again():
    endpoint = Endpoint(Reply(before=(STALL,)))
    error, told = ask(endpoint, wait=121, total=120)
    assert "the time limit" in str(error)
    assert (len(endpoint.server.requests), told) == (1, [])


def held(seconds, after=()):
    """A kept connection that is closed so long after it got the request, and what follows."""
    gate = Gate()
    endpoint = Endpoint(Reply(before=(gate, CUT)))
    told = []

    async def main(loop):
        transport = HttpClient()
        await endpoint.fill(transport, 8)
        request = HttpRequest("POST", endpoint.server.url, {}, b"{}")
        task = asyncio.create_task(read(transport, request, again=told.append))
        assert await asyncio.to_thread(gate.wait_reached)
        loop.moved += seconds
        gate.open()
        came = (await asyncio.gather(task, return_exceptions=True))[0]
        then = [await read(transport, request, again=told.append) for _ in after]
        await transport.close()
        return came, then

    with endpoint.server:
        came, then = run_moved(main)
    return endpoint, came, told, then


def test_what_was_held_before_it_was_closed_may_have_been_thought_about():
    endpoint, came, told, _ = held(AT_ONCE + 0.1)
    assert type(came) is NetworkError
    assert (len(endpoint.server.requests), told) == (1, [])


def test_after_a_kept_connection_broke_the_next_request_has_a_new_one():
    endpoint, came, told, then = held(AT_ONCE + 0.1, after=[1])
    assert type(came) is NetworkError
    assert (then, told) == ([b'"new"'], [])
    assert endpoint.server.requests[1].connection not in endpoint.old


def test_connections_to_other_places_are_kept():
    with ScriptedServer(lambda _: Reply.json(1)) as other:
        endpoint = Endpoint(Reply.hang_up())

        async def main(_):
            transport = HttpClient()
            elsewhere = HttpRequest("POST", other.url)
            await read(transport, elsewhere)
            await endpoint.fill(transport, 3)
            await read(transport, HttpRequest("POST", endpoint.server.url))
            await read(transport, elsewhere)
            await transport.close()

        with endpoint.server:
            run_moved(main)
    assert [one.connection for one in other.requests] == [0, 0]


def test_connections_closed_while_they_waited_are_not_used_at_all():
    heard, told, ends = [], [], []

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        heard.append(writer)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        ends.append(writer)

    async def main():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            transport = HttpClient()
            for _ in range(2):
                await read(transport, HttpRequest("GET", url), again=told.append)
                ends.pop().close()
                for _ in range(5):
                    await asyncio.sleep(0)  # the end is heard
            await transport.close()

    asyncio.run(main())
    assert (len(set(heard)), told) == (2, [])


def test_a_question_whose_kept_connection_was_closed_tells_of_its_second_request():
    said = {"choices": [{"index": 0, "delta": {"content": "yes"}, "finish_reason": "stop"}]}
    endpoint = Endpoint(Reply.hang_up(), Reply.events(said, "[DONE]"))

    async def main(_):
        engine = Engine()
        url = endpoint.server.url
        await endpoint.fill(engine.client({}), 8)
        stream = mull.stream_async("q", "openai-compatible/m", base_url=url, engine=engine)
        told = [event async for event in stream if isinstance(event, Retrying)]
        await engine.close()
        return told, stream.result.text

    with endpoint.server:
        (retrying,), text = run_moved(main)
    assert (retrying.attempt, retrying.seconds, text) == (2, 0.0, "yes")
    assert len(endpoint.server.requests) == 2
