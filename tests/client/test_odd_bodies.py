"""Bodies that are too long, packed wrongly, nested too deeply or no HTTP: what came is kept, memory
is bounded, and nothing is asked for again that would come out the same."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from conversations import snapshot, target
from growth import ends
from loops import FakeClock, run_moved, until
from mull.client.access import Access
from mull.client.exchange import exchange
from mull.client.http import HEAD_SECONDS, HttpClient
from mull.client.refusal import BODY_SECONDS
from mull.client.transport import HttpRequest
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.errors import NetworkError, RefusedError, UnusableError
from mull.neutral.events import Failed, Retrying, TextDelta
from mull.neutral.messages import user
from mull.policy.prepare import prepare
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
YES = b'data: {"choices":[{"index":0,"delta":{"content":"yes"}}]}\n\n'
WHOLE = YES + b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


def raw(*steps):
    """A reply of these bytes and nothing else."""
    return Reply(before=(*steps, CUT))


def chunk(data):
    return b"%x\r\n%b\r\n" % (len(data), data)


async def converse(server, events, dialect="openai-chat"):
    request = prepare(Log([user("hi")]), snapshot(), target(dialect=dialect))
    transport = HttpClient()
    try:
        way = Access(server.url + "/v1")
        async for together in exchange(request, way, transport=transport, clock=FakeClock()):
            events += together
    except (RefusedError, NetworkError) as error:
        return error
    finally:
        await transport.close()
    return None


def ask(script, dialect="openai-chat"):
    events = []
    with ScriptedServer(script) as server:
        error = asyncio.run(converse(server, events, dialect))
    return events, error, len(server.requests)


@pytest.mark.parametrize(
    "wrong",
    [b"zz\r\nmore\r\n", b"-1\r\nx\r\n", b"3\r\ntoo long\r\n", b";" * 20_000],
    ids=["no size", "negative", "too long", "no end"],
)
def test_text_in_the_same_read_as_a_wrong_chunk_is_kept_and_not_asked_for_again(wrong):
    events, error, asked = ask(lambda _: raw(CHUNKED + chunk(YES) + wrong, STALL))
    assert (error, asked) == (None, 1)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["yes"]
    assert (events[-1].code, events[-1].status) == ("network", "interrupted")


def packed(data, level=9):
    squeeze = zlib.compressobj(level, wbits=31)
    return squeeze.compress(data) + squeeze.flush(zlib.Z_SYNC_FLUSH)


def test_text_in_the_same_read_as_a_packing_error_is_kept():
    head = HEAD + b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    body = packed(YES * 300) + b"\xff\xfe" * 50
    events, error, asked = ask(lambda _: raw(head + chunk(body), STALL))
    assert (error, asked) == (None, 1)
    assert assemble(events).text == "yes" * 300
    assert "compressed its response incorrectly" in events[-1].text


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "not HTTP"),
        (raw(CHUNKED + b"zz\r\n"), "a chunk without a size"),
        (
            raw(HEAD + b"content-length: " + b"9" * 5_000 + b"\r\n\r\n"),
            "its content-length is not a number of bytes",
        ),
        (
            raw(HEAD + b"content-encoding: compress\r\ncontent-length: 2\r\n\r\nxx"),
            "although mull did not ask",
        ),
        (
            raw(HEAD + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope"),
            "compressed its response incorrectly",
        ),
        (raw(HEAD + b"x-a: b\0c\r\n\r\n{}"), "the head of its response contains a NUL byte"),
        (raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000), "the head of the response has no end"),
    ],
)
def test_what_no_second_try_would_mend_is_tried_once(reply, said):
    events, error, asked = ask(lambda _: reply)
    assert (type(error), asked, events) == (UnusableError, 1, [])
    assert said in str(error)


def test_a_connection_that_just_breaks_is_tried_again():
    events, error, asked = ask(lambda _: raw(b"HTTP/1.1 200 OK\r\ncont"))
    assert (type(error), asked) == (NetworkError, 4)
    assert all(isinstance(event, Retrying) for event in events)


def test_headers_with_characters_that_are_none():
    head = (
        b"HTTP/1.1 429 Slow\r\nretry-after: \x017\x02\r\nx-\x01y: 1\r\ncontent-length: 2\r\n\r\n{}"
    )

    async def step(server):
        transport = HttpClient()
        async with transport.send(HttpRequest("GET", server.url)) as answer:
            headers = answer.headers
        await transport.close()
        return headers

    with ScriptedServer([raw(head + b"content-length: 2\r\n\r\n{}")]) as server:
        assert asyncio.run(step(server)) == {"retry-after": "7", "content-length": "2"}


PAGE = b"<!doctype html><html><head><title>Log\n in</title></head></html>"


@pytest.mark.parametrize(
    "kind", [{}, {"content-type": "text/plain"}, {"content-type": "text/html"}]
)
@pytest.mark.parametrize("blank", [b"", b" \n "])
def test_a_web_page_is_asked_for_once_whatever_it_calls_itself(kind, blank):
    events, error, asked = ask(lambda _: Reply(200, kind, (blank + PAGE,)))
    assert (type(error), asked, events) == (RefusedError, 1, [])
    assert "a web page, 'Log in' instead of a model's answer" in str(error)


def test_a_web_page_behind_blanks_is_asked_for_once():
    gate = Gate()
    gate.open()
    events, error, asked = ask(lambda _: Reply(200, {}, (b"\n" * 9, gate, PAGE)))
    assert (type(error), asked) in ((RefusedError, 1), (type(None), 1))
    assert "a web page" in (str(error) if error else events[-1].text)


@pytest.mark.parametrize(
    "page", [b"<title" * 40_000, b"<title>" * 35_000, b"<title>" + b"</titl" * 40_000]
)
def test_a_page_of_beginnings_is_read_in_linear_time(page):
    with ends():
        for _ in range(20):
            _, error, _ = ask([Reply(200, {"content-type": "text/html"}, (page,))])
    assert "a web page" in str(error)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "openai-responses", "gemini"])
@pytest.mark.parametrize("levels", [199, 400, 930, 990, 40_000])
def test_an_error_that_is_nested_deeply_is_an_error_like_others(dialect, levels):
    deep = b'{"x":' * levels + b"1" + b"}" * levels
    body = b'{"error":{"message":"no such thing","type":"invalid_request_error","d":' + deep + b"}}"
    events, error, asked = ask([Reply(400, {"content-type": "application/json"}, (body,))], dialect)
    assert (type(error), asked, events) == (RefusedError, 1, [])
    assert "no such thing" in str(error)


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "openai-responses", "gemini"])
def test_an_error_that_drips_is_not_waited_for(dialect):
    async def main(loop):
        events = []
        task = asyncio.create_task(converse(server, events, dialect))
        await until(lambda: gate.wait_reached(0))
        while not task.done():
            await loop.advance(BODY_SECONDS / 4)
            await asyncio.sleep(0)
        assert loop.moved < 60
        return task.result()

    gate = Gate()
    gate.open()
    body = b'{"error":{"message":"slow to say'
    with ScriptedServer([Reply(400, {}, (body, gate, STALL))]) as server:
        error = run_moved(main)
    assert "slow to say" in str(error)


def test_a_head_that_drips_is_not_waited_for():
    async def main(loop):
        events = []
        task = asyncio.create_task(converse(server, events))
        for gate in gates:
            await until(lambda gate=gate: gate.wait_reached(0) or task.done())
            await loop.advance(HEAD_SECONDS / 3)
            gate.open()
        await asyncio.wait([task])
        return task.result()

    gates = [Gate() for _ in range(8)]
    steps = [step for gate in gates for step in (b"x-a: b\r\n", gate)]
    with ScriptedServer([Reply(before=(b"HTTP/1.1 200 OK\r\n", *steps, STALL))]) as server:
        error = run_moved(main)
    assert type(error) is UnusableError
    assert "did not finish the head of its response within 30 s" in str(error)
    assert len(server.requests) == 1


def test_trailers_without_end_take_nothing_from_an_answer():
    whole = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"yes"}]},"finishReason":"STOP"}]}\n\n'
    )
    reply = raw(CHUNKED + chunk(whole) + b"0\r\n" + b"x-more: yes\r\n" * 100, STALL)
    events, error, asked = ask([reply], "gemini")
    assert (error, asked) == (None, 1)
    assert (assemble(events).text, assemble(events).status) == ("yes", "complete")


def test_many_unreadable_frames_are_a_few_lines():
    events, error, _ = ask([Reply.events(b"data: {broken\n\n" * 20_000, WHOLE)])
    assert error is None
    assert len(events) < 30
    assert (assemble(events).text, events[-1].code) == ("yes", "damaged")


def test_one_event_without_end_ends_the_answer_and_says_which_limit():
    sent = [YES, b"data: ", *[b"x" * 2**20] * 70, STALL]
    events, error, asked = ask([Reply.events(*sent)])
    assert (error, asked) == (None, 1)
    assert assemble(events).text == "yes"
    assert events[-1] == Failed(
        "the endpoint sent one event of more than 64 MiB, which is the limit", "oversized"
    )


BOUNDED = """
import asyncio, resource, sys
sys.path[:0] = {path!r}
from test_odd_bodies import *
events = []

async def main():
    return await converse(type("Server", (), {{"url": {url!r}}}), events)

asyncio.run(main())
print(events[-1].code if events else "nothing")
"""


def in_bounded_memory(url, most=400):
    """What the last event of an answer is, in a process that cannot have more megabytes."""
    script = BOUNDED.format(path=[str(Path(__file__).parent), *sys.path], url=url)
    limit = most * 2**20
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.strip()


def bomb(start, status=200):
    """300 MB of blanks behind a start, in a few hundred kilobytes."""
    squeeze = zlib.compressobj(wbits=-15)
    blanks = squeeze.compress(b" " * 2**20) + squeeze.flush(zlib.Z_FULL_FLUSH)
    head = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    return Reply(status, head, (packed(start), *[blanks * 10] * 30))


@pytest.mark.parametrize("start", [b"", b'{"choices":[', YES + b"data: "], ids=["", "json", "sse"])
def test_a_packed_bomb_is_unpacked_in_bounded_memory(start):
    with ScriptedServer([bomb(start)]) as server:
        assert in_bounded_memory(server.url) == "oversized"


def test_a_packed_bomb_as_an_error_is_unpacked_in_bounded_memory():
    with ScriptedServer([bomb(b"no", 400)]) as server:
        assert in_bounded_memory(server.url) == "nothing"
