"""A request and its answer over real sockets: events, retries, healing, and what is kept."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest

from conversations import decided, snapshot, target
from loops import FakeClock, run_moved, until
from mull.auth.secret import Secret
from mull.client.access import Access
from mull.client.exchange import Aid, ExchangeOptions, exchange
from mull.client.http import HttpClient
from mull.client.retry import RetryRules
from mull.history.log import Log
from mull.neutral.assemble import assemble
from mull.neutral.errors import NetworkError, RefusedError, SilenceError
from mull.neutral.events import (
    Failed,
    Finished,
    Healed,
    Retrying,
    Started,
    TextDelta,
    ThinkingDelta,
)
from mull.neutral.messages import user
from mull.policy.heal.healing import Repaired
from mull.policy.prepare import prepare
from mull.testing.server import CUT, STALL, Reply, ScriptedServer

KEY = "canary-0123456789"


def prepared(dialect="openai-chat", text="hi"):
    return prepare(Log([user(text)]), snapshot(), target(dialect=dialect))


def chunk(finish=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "model": "m", "choices": [choice]}


WHOLE = (
    chunk(reasoning_content="hm"),
    chunk(content="yes"),
    chunk("stop"),
    "[DONE]",
)
OVERLOADED = Reply.json({"error": {"message": "Overloaded", "type": "overloaded_error"}}, 529)
REFUSED = Reply.json({"error": {"message": "Invalid `signature`", "code": "bad_thought"}}, 400)


class Talk:
    """Runs one exchange against a script and keeps everything that came of it."""

    def __init__(self, script, request=None, *, heal=None, options=None, headers=None):
        self.clock, self.events, self.error = FakeClock(), [], None
        self.sent = []
        with ScriptedServer(script) as self.server:
            asyncio.run(self._run(request or prepared(), heal, options, headers))
        self.requests = self.server.requests

    async def _run(self, request, heal, options, headers):
        options = options or ExchangeOptions(sending=lambda *sent: self.sent.append(sent))
        way = Access(self.server.url + "/v1", Secret(KEY), headers or {})
        transport = HttpClient()
        try:
            async for events in exchange(
                request,
                way,
                transport=transport,
                options=options,
                clock=self.clock,
                aid=Aid(heal=heal),
            ):
                self.events += events
        except (RefusedError, NetworkError) as error:
            self.error = error
        finally:
            await transport.close()

    def of(self, *kinds):
        return [event for event in self.events if isinstance(event, kinds)]


def test_a_streamed_answer():
    talk = Talk([Reply.events(*WHOLE)])
    assert talk.error is None
    assert talk.of(ThinkingDelta, TextDelta, Finished) == [
        ThinkingDelta("hm", 0, "reasoning_content"),
        TextDelta("yes", 1),
        Finished("stop"),
    ]
    (request,) = talk.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json["messages"] == [{"role": "user", "content": "hi"}]


def test_a_whole_answer():
    message = {"role": "assistant", "content": "yes", "reasoning_content": "hm"}
    talk = Talk(
        [Reply.json({"id": "c", "choices": [{"message": message, "finish_reason": "stop"}]})]
    )
    assert assemble(talk.events).text == "yes"
    assert assemble(talk.events).status == "complete"


def test_what_goes_out_is_told_without_a_key():
    talk = Talk([Reply.events(*WHOLE)])
    ((request, wire),) = talk.sent
    assert decided(request) == decided(prepared())
    assert wire.body == talk.requests[0].body
    assert KEY not in repr(talk.sent)


def test_overload_is_waited_out_and_told():
    talk = Talk([OVERLOADED, OVERLOADED, Reply.events(*WHOLE)])
    assert talk.of(Retrying) == [
        Retrying(2, 0.375, "529: Overloaded", 4),
        Retrying(3, 0.75, "529: Overloaded", 4),
    ]
    assert talk.clock.slept == [0.375, 0.75]
    assert talk.events[-1] == Finished("stop")
    bodies = {request.body for request in talk.requests}
    assert (len(talk.requests), len(bodies)) == (3, 1)


def test_retry_after_is_honoured():
    busy = Reply.json({"error": {"message": "slow"}}, 429, {"retry-after": "7"})
    talk = Talk([busy, Reply.events(*WHOLE)])
    assert talk.clock.slept == [pytest.approx(7, abs=1)]
    assert talk.clock.slept[0] >= 7


def test_it_gives_up_after_four_attempts():
    talk = Talk(lambda _: OVERLOADED)
    assert len(talk.requests) == 4
    assert isinstance(talk.error, RefusedError)
    assert (talk.error.status, talk.error.text, talk.error.code) == (
        529,
        "Overloaded",
        "overloaded_error",
    )
    assert "Overloaded" in str(talk.error)
    assert "Tried 4 times" in str(talk.error)
    assert len(str(talk.error).splitlines()) == 2


def test_quota_is_not_asked_for_again():
    empty = Reply.json({"error": {"message": "no money", "code": "insufficient_quota"}}, 429)
    talk = Talk(lambda _: empty)
    assert len(talk.requests) == 1
    assert talk.error.code == "insufficient_quota"


def test_a_broken_connection_is_tried_again():
    talk = Talk([Reply.hang_up(), Reply.events(*WHOLE)])
    (retrying,) = talk.of(Retrying)
    assert retrying.reason.startswith("the connection to 127.0.0.1:")
    assert talk.events[-1] == Finished("stop")


def test_an_empty_answer_is_tried_again():
    talk = Talk(lambda _: Reply.events())
    assert len(talk.requests) == 4
    assert type(talk.error) is NetworkError
    host = f"127.0.0.1:{talk.server.port}"
    assert str(talk.error) == f"{host} ended the response before it began\nTried 4 times"


@pytest.mark.parametrize(
    ("dialect", "body", "text", "code"),
    [
        (
            "openai-chat",
            {"error": {"message": "bad", "type": "invalid_request_error", "code": "c1"}},
            "bad",
            "c1",
        ),
        ("openai-chat", {"detail": "bad"}, "bad", None),
        ("openai-chat", {"object": "error", "message": "bad", "code": 400}, "bad", "400"),
        (
            "anthropic",
            {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}},
            "bad",
            "invalid_request_error",
        ),
        (
            "openai-responses",
            {"error": {"message": "bad", "type": "invalid_request_error", "code": "c2"}},
            "bad",
            "c2",
        ),
        (
            "gemini",
            {"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}},
            "bad",
            "INVALID_ARGUMENT",
        ),
        (
            "gemini",
            [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}],
            "bad",
            "INVALID_ARGUMENT",
        ),
    ],
)
def test_refusals_of_every_dialect(dialect, body, text, code):
    talk = Talk([Reply.json(body, 400)], prepared(dialect))
    assert talk.events == []
    assert (talk.error.status, talk.error.text, talk.error.code) == (400, text, code)
    assert str(talk.error).startswith("Acme rejected the request for thinker (400): bad")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"upstream is  gone\n", "upstream is gone"),
        (b"<html><head><title>Bad\n gateway</title>...", "a web page, 'Bad gateway'"),
        (b"<html>", "a web page"),
        (b"", "no reason given"),
        (b'{"odd": 1}', '{"odd": 1}'),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_refusals_in_no_dialect(body, text):
    reply = Reply(400, {"content-length": str(len(body))}, (body,))
    assert Talk([reply]).error.text == text


def test_a_refusal_whose_body_breaks_off():
    talk = Talk([Reply(403, {"content-length": "99"}, (b'{"err', CUT))])
    assert (talk.error.status, talk.error.text) == (403, "no reason given")


def test_a_web_page_is_not_an_answer():
    page = b"<!doctype html><title>Sign in</title>"
    reply = Reply(200, {"content-type": "text/html; charset=utf-8"}, (page,))
    talk = Talk([reply])
    assert isinstance(talk.error, RefusedError)
    host = f"127.0.0.1:{talk.server.port}"
    assert str(talk.error) == (
        f"{host} returned a web page, 'Sign in' instead of a model's answer.\nCheck the base URL."
    )


def test_a_redirect_is_told_not_followed():
    where = "https://other.example/v2?token=secret"
    talk = Talk([Reply(308, {"location": where, "content-length": "0"})])
    assert "redirects to https://other.example/v2; mull does not send an API key" in str(talk.error)
    assert "secret" not in str(talk.error)
    assert len(talk.requests) == 1


class Healer:
    """Repairs whatever it is shown by asking something else."""

    def __init__(self, text="healed"):
        self.shown = []
        self._text = text

    def __call__(self, request, refusal):
        self.shown.append(refusal)
        changed = msgspec.structs.replace(request.request, messages=(user(self._text),))
        repaired = msgspec.structs.replace(request, request=changed)
        return Repaired(repaired, "a bad thought", "left the thought out")


def test_a_refusal_is_healed_once():
    heal = Healer()
    talk = Talk([REFUSED, Reply.events(*WHOLE)], heal=heal)
    assert [(r.status, r.text, r.code) for r in heal.shown] == [
        (400, "Invalid `signature`", "bad_thought")
    ]
    assert talk.events[0] == Healed("a bad thought", "left the thought out")
    assert talk.events[-1] == Finished("stop")
    contents = [request.json["messages"][0]["content"] for request in talk.requests]
    assert contents == ["hi", "healed"]
    assert [request.request.messages[0].text for request, _ in talk.sent] == ["hi", "healed"]


def test_a_second_refusal_stands():
    heal = Healer()
    talk = Talk(lambda _: REFUSED, heal=heal)
    assert (len(heal.shown), len(talk.requests)) == (1, 2)
    assert talk.error.text == "Invalid `signature`"
    assert len(talk.of(Healed)) == 1


def test_the_same_bytes_are_never_sent_as_a_repair():
    talk = Talk(lambda _: REFUSED, heal=Healer("hi"))
    assert len(talk.requests) == 1
    assert talk.of(Healed) == []
    assert talk.error.status == 400


def test_healing_goes_before_waiting():
    broken = Reply.json({"error": {"message": "template error"}}, 500)
    talk = Talk([broken, Reply.events(*WHOLE)], heal=Healer())
    assert [type(event) for event in talk.events[:1]] == [Healed]
    assert talk.clock.slept == []


def test_an_overloaded_server_may_still_be_waited_for_after_healing():
    talk = Talk([REFUSED, OVERLOADED, Reply.events(*WHOLE)], heal=Healer())
    assert [type(e) for e in talk.of(Healed, Retrying)] == [Healed, Retrying]
    assert talk.events[-1] == Finished("stop")


@pytest.mark.parametrize("before", [(), (chunk(role="assistant"),)])
def test_a_refusal_inside_the_stream_is_healed_too(before):
    error = {"error": {"message": "Encrypted content gone", "code": "invalid_encrypted_content"}}
    heal = Healer()
    talk = Talk([Reply.events(*before, error), Reply.events(*WHOLE)], heal=heal)
    (shown,) = heal.shown
    assert (shown.streamed, shown.text) == (True, "Encrypted content gone")
    assert next(type(e) for e in talk.events if not isinstance(e, Started)) is Healed
    assert assemble(talk.events).text == "yes"


NO = {"message": "not so", "code": "bad", "type": "overloaded_error"}
"""A refusal for which, had nothing come before it, the request would go out again."""
CALL = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{"}}
CLAUDE = {"type": "message_start", "message": {"id": "m", "model": "x", "content": []}}


def claude_block(block, delta):
    return (
        CLAUDE,
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
    )


def responses(**event):
    return ({"type": "response.created", "response": {"id": "r"}}, {"output_index": 0, **event})


def gemini(**part):
    return ({"candidates": [{"content": {"parts": [part]}}]},)


VISIBLE = {
    "openai-chat": {
        "text": (chunk(content="half"),),
        "a thought": (chunk(reasoning_content="half"),),
        "a call": (chunk(tool_calls=[CALL]),),
        "text that may be a tag": (chunk(content="<thi"),),
    },
    "openai-responses": {
        "text": responses(type="response.output_text.delta", delta="half", item_id="m"),
        "a thought": responses(
            type="response.reasoning_summary_text.delta",
            delta="half",
            item_id="rs",
            summary_index=0,
        ),
    },
    "anthropic": {
        "text": claude_block({"type": "text", "text": ""}, {"type": "text_delta", "text": "half"}),
        "a thought": claude_block(
            {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "half"}
        ),
        "a redacted thought": claude_block({"type": "redacted_thinking", "data": "x"}, {}),
        "a call": claude_block(
            {"type": "tool_use", "id": "t", "name": "look", "input": {}},
            {"type": "input_json_delta", "partial_json": "{"},
        ),
    },
    "gemini": {
        "text": gemini(text="half"),
        "a thought": gemini(text="half", thought=True),
        "a call": gemini(functionCall={"name": "look", "args": {}}),
    },
}
REFUSALS = {
    "openai-chat": {"error": NO},
    "openai-responses": {"type": "response.failed", "response": {"id": "r", "error": NO}},
    "anthropic": {"type": "error", "error": NO},
    "gemini": {"error": {"code": 503, "status": "UNAVAILABLE", "message": "not so"}},
}


@pytest.mark.parametrize(
    ("dialect", "kind"), [(d, kind) for d, kinds in VISIBLE.items() for kind in kinds]
)
def test_a_refusal_after_something_visible_is_kept_neither_healed_nor_tried_again(dialect, kind):
    before, heal = VISIBLE[dialect][kind], Healer()
    reply = Reply.events(*before, REFUSALS[dialect])
    talk = Talk(lambda _: reply, prepared(dialect), heal=heal)
    assert (heal.shown, len(talk.requests), talk.error) == ([], 1, None)
    assert talk.of(Failed) == [talk.events[-1]]
    assert talk.events[-1].text == "not so"
    assert len(assemble(talk.events).blocks) == 1


@pytest.mark.parametrize("dialect", REFUSALS)
def test_the_same_refusal_before_anything_visible_is_healed_or_tried_again(dialect):
    before = {"anthropic": (CLAUDE,), "openai-responses": responses(type="response.queued")[:1]}
    reply = Reply.events(*before.get(dialect, ()), REFUSALS[dialect])
    heal = Healer()
    talk = Talk(lambda _: reply, prepared(dialect), heal=heal)
    assert len(heal.shown) == 1
    assert len(talk.requests) == RetryRules().attempts
    assert [type(event) for event in talk.of(Healed, Retrying)] == [Healed, Retrying, Retrying]


def test_an_overload_inside_the_stream_is_waited_out():
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    start = {"type": "message_start", "message": {"id": "m", "model": "x", "content": []}}
    text = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "yes"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    script = [Reply.events(start, error), Reply.events(start, *text)]
    talk = Talk(script, prepared("anthropic"))
    assert [e.reason for e in talk.of(Retrying)] == ["Overloaded"]
    assert assemble(talk.events).text == "yes"
    assert assemble(talk.events).status == "complete"


def test_a_refusal_inside_the_stream_that_nothing_helps():
    error = {"error": {"message": "not allowed", "type": "permission_error"}}
    talk = Talk([Reply.events(error)])
    assert talk.error is None
    assert talk.of(Failed) == [talk.events[-1]]
    assert (talk.events[-1].text, talk.events[-1].code) == ("not allowed", "permission_error")
    assert len(talk.requests) == 1


def test_a_stream_that_breaks_keeps_what_came_and_is_not_tried_again():
    talk = Talk([Reply.events(*WHOLE[:2], CUT), Reply.events(*WHOLE)])
    assert (len(talk.requests), talk.error, talk.of(Retrying)) == (1, None, [])
    last = talk.events[-1]
    assert isinstance(last, Failed)
    assert (last.code, last.status) == ("network", "interrupted")
    assert last.text.endswith("; what arrived before is kept")
    message = assemble(talk.events)
    assert (message.text, message.thinking[0].thought) == ("yes", "hm")
    assert message.status == "interrupted"


def test_a_connection_that_breaks_after_the_end_does_not_matter():
    talk = Talk([Reply.events(*WHOLE, CUT)])
    assert talk.events[-1] == Finished("stop")
    assert len(talk.requests) == 1


def test_an_end_that_is_missing_is_told():
    talk = Talk([Reply.events(chunk(content="half"))])
    assert (talk.events[-1].code, talk.events[-1].status) == ("incomplete", "interrupted")


def test_waits_do_not_go_over_the_total_limit():
    busy = Reply.json({"error": {"message": "slow"}}, 429, {"retry-after": "30"})
    talk = Talk(lambda _: busy, options=ExchangeOptions(total=50))
    assert talk.clock.slept == [pytest.approx(30, abs=1)]
    assert "would exceed the time limit" in str(talk.error)


def test_waiting_at_a_gate_is_no_part_of_the_total_limit():
    told = []

    class SlowGate:
        async def wait(self, prepared, way):
            talk.clock.time += 100
            return self

        async def __aenter__(self):
            told.append("sent")

        async def __aexit__(self, *_):
            told.append("over")

        def heard(self, status, headers):
            told.append(status)

        def failed(self, failure):
            told.append(failure.text)

    talk = object.__new__(Talk)
    talk.__init__(
        [OVERLOADED, Reply.events(*WHOLE)], options=ExchangeOptions(total=30, gate=SlowGate())
    )
    assert assemble(talk.events).text == "yes"
    assert told == ["sent", 529, "over", "Overloaded", "sent", 200, "over"]


def test_retries_can_be_off():
    talk = Talk(lambda _: OVERLOADED, options=ExchangeOptions(retry=RetryRules(attempts=1)))
    assert len(talk.requests) == 1


LEAKS = [
    Reply.json({"error": {"message": f"bad key {KEY}", "code": KEY, "more": [KEY]}}, 401),
    Reply(401, {"content-length": "25"}, (f"Bearer {KEY} !".encode().ljust(25),)),
    Reply.events({"error": {"message": f"bad key {KEY}", "more": {KEY: KEY}}}),
    Reply.events(chunk(content="x"), {"error": {"message": f"bad key {KEY}", "x": KEY}}),
    Reply.json({"error": {"message": f"wait {KEY}"}}, 503),
    Reply.json({"error": {"message": "echo mine-own-secret"}}, 400),
    Reply.json({"error": {"message": f"bad key {KEY}", "type": KEY, "code": KEY}}, 400),
]


@pytest.mark.parametrize("reply", LEAKS)
def test_no_key_comes_back(reply):
    heal = Healer()
    talk = Talk(lambda _: reply, heal=heal, headers={"x-extra": "mine-own-secret"})
    error = talk.error
    told = [repr(talk.events), repr(heal.shown), repr(error)]
    told += [str(error), repr(error.text), repr(error.code)] if error else []
    assert KEY in talk.requests[0].headers["authorization"]
    for text in told:
        assert KEY not in text
        assert "mine-own-secret" not in text
    assert "***" in "".join(told)


async def listen(server, transport, seen=None, clock=None, **options):
    way = Access(server.url, Secret(KEY))
    given = {"options": ExchangeOptions(**options), "clock": clock or FakeClock()}
    events = exchange(prepared(), way, transport=transport, **given)
    async with aclosing(events):
        async for together in events:
            if seen is not None:
                seen += together


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_stopping_closes_the_socket_at_once(how):
    async def main():
        transport = HttpClient()
        if how == "cancel":
            task = asyncio.create_task(listen(server, transport))
            await asyncio.to_thread(server.wait_requests)
            task.cancel()
        else:
            events = exchange(prepared(), Access(server.url), transport=transport)
            assert isinstance((await anext(events))[0], Started)
            await events.aclose()
        assert await asyncio.to_thread(server.requests[0].wait_left)
        await transport.close()

    with ScriptedServer([Reply.events(*WHOLE[:2], STALL)]) as server:
        asyncio.run(main())


@pytest.mark.parametrize("steps", [(), WHOLE[:2]])
def test_silence_is_told_and_not_tried_again(steps):
    reply = Reply.events(*steps, STALL) if steps else Reply(before=(STALL,))

    async def main(loop):
        transport, seen = HttpClient(), []
        task = asyncio.create_task(listen(server, transport, seen, idle=120))
        await asyncio.to_thread(server.wait_requests)
        await until(lambda: any(isinstance(event, TextDelta) for event in seen) or not steps)
        await loop.advance(119)
        assert not task.done()
        await loop.advance(1.1)
        await asyncio.wait([task])
        await transport.close()
        return task.exception(), seen

    with ScriptedServer([reply]) as server:
        error, seen = run_moved(main)
        said = f"127.0.0.1:{server.port} sent nothing for 120 s"
    assert len(server.requests) == 1
    if steps:
        assert error is None
        assert seen[-1] == Failed(f"{said}; what arrived before is kept", "network", "interrupted")
    else:
        assert type(error) is SilenceError
        assert str(error) == said


def test_the_idle_limit_knows_the_model():
    """Nothing is set: a server on this machine may be silent for ten minutes."""

    async def main(loop):
        transport = HttpClient()
        near = msgspec.structs.replace(target(), endpoint="http://127.0.0.1:1/v1")
        request = msgspec.structs.replace(prepared(), target=near)
        events = exchange(request, Access(server.url), transport=transport, clock=FakeClock())
        task = asyncio.ensure_future(anext(events))
        await asyncio.to_thread(server.wait_requests)
        await loop.advance(599)
        assert not task.done()
        await loop.advance(2)
        with pytest.raises(SilenceError, match=r"for 10 min 1 s$"):
            await task
        await transport.close()

    with ScriptedServer([Reply(before=(STALL,))]) as server:
        run_moved(main)
