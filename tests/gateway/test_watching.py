"""What the gateway keeps for its page: bounded, apart for each client, and nowhere else."""

from __future__ import annotations

import asyncio
import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import to_builtins

from gateway.test_app import KIMI, STREAMED, ask, once
from mull.agent.engine import Engine
from mull.cli.serve_watch import Printer
from mull.gateway.app import GatewayApp
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes
from mull.gateway.memory import InProcess
from mull.gateway.observing import Observer, Outcome
from mull.gateway.pages import pages_of
from mull.gateway.relay import Client
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.tokens import ClientToken, hashed
from mull.gateway.watching import Watch
from mull.neutral.events import TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.usage import Usage
from mull.store.serve import ServeConfig, ServedModel
from mull.testing import Say, StrictServer, Think


def job(client="", body=b"{}", sent_size=0, name="name") -> Any:
    target = SimpleNamespace(
        provider="p", model="m", dialect="anthropic", facts=SimpleNamespace(cost=None)
    )
    return SimpleNamespace(
        client=Client("openai-chat", client),
        asked=SimpleNamespace(model=name, stream=True),
        prepared=SimpleNamespace(target=target),
        notes=(),
        body=body,
        sent_size=sent_size,
        began=0.0,
    )


OVER = Outcome("complete", 1.0, 2.0, Usage(10, 5, reasoning=2))


def served(watch: Watch, one: Any, *events: Any) -> None:
    watch.began(one)
    watch.emitted(one, events)
    watch.ended(one, OVER)


def test_the_oldest_requests_go_but_open_ones_stay():
    watch = Watch(most=3)
    opened = job(body=b"still open")
    watch.began(opened)
    for _ in range(10):
        served(watch, job())
    assert [one.state for one in watch.summaries()] == ["complete"] * 10 + ["open"]
    assert watch.search("still open") == ["1"]
    assert [number for number in map(str, range(1, 12)) if watch.find(number)] == ["1", "10", "11"]


def test_content_is_bounded_by_its_size():
    watch = Watch(most_bytes=200_000)
    for _ in range(9):
        served(watch, job(), TextDelta("x" * 30_000))
    assert len(watch.search("xx")) == 3
    for _ in range(9):
        served(watch, job(body=b'"y"', sent_size=40_000))
    assert len(watch.search('"y"')) == 2


def test_an_answer_that_has_ended_is_kept_in_few_pieces():
    watch, one = Watch(), job()
    served(watch, one, *[ThinkingDelta("so ")] * 1_000, *[TextDelta("x")] * 1_000)
    seen = watch.find("1")
    assert seen is not None
    assert seen.pieces == [("thought", "so " * 1_000), ("text", "x" * 1_000)]


def test_a_summary_is_short_whatever_the_client_and_the_upstream_say():
    watch, one = Watch(), job(name="n" * 100_000)
    watch.began(one)
    watch.ended(one, Outcome("refused", None, 2.0, status=400, error="e" * 100_000))
    (summary,) = watch.summaries()
    assert len(json.dumps(to_builtins(summary))) < 3_000


def test_what_the_gateway_adds_to_a_request_counts():
    with StrictServer("kimi", [[Say("Milk.")], [Say("Bread.")]]) as server:
        app = app_for(server.url, watch := Watch())

        async def run():
            first = {"model": "m", "input": "x" * 50_000}
            asked = await ask(app, "POST", "/v1/responses", json.dumps(first).encode())
            then = {"model": "m", "input": "More.", "previous_response_id": asked.json["id"]}
            await ask(app, "POST", "/v1/responses", json.dumps(then).encode())
            await app._gateway.close()

        asyncio.run(run())
    seen = watch.find("2")
    assert seen is not None
    assert len(seen.job.body) < 200
    assert seen.size > 100_000


def test_a_client_sees_its_own_requests_alone():
    watch = Watch()
    served(watch, job("ann"), ThinkingDelta("secret plan"))
    served(watch, job("bob"), ThinkingDelta("secret plan"))
    assert [one.client for one in watch.summaries("ann")] == ["ann"]
    assert watch.search("plan", "ann") == ["1"]
    assert watch.find("2", "ann") is None
    assert watch.find("2", "bob") is not None
    assert len(watch.summaries(None)) == 2


def test_what_was_said_is_in_order_and_in_one_piece_each():
    watch, one = Watch(), job()
    watch.began(one)
    for event in (
        ThinkingDelta("Let "),
        ThinkingDelta("me see."),
        ToolCallDelta(name="read", arguments='{"a"'),
        ToolCallDelta(arguments=":1}"),
        TextDelta("Done."),
    ):
        watch.emitted(one, [event])
    seen = watch.find("1")
    assert seen is not None
    assert seen.content() == [
        ("thought", "Let me see."),
        ("call", '\nread {"a":1}'),
        ("text", "Done."),
    ]


def test_a_subscriber_that_does_not_listen_is_told_that_it_missed_something():
    async def run():
        watch = Watch()
        subscriber = watch.subscribe()
        one = job()
        watch.began(one)
        for _ in range(3_000):
            watch.emitted(one, [TextDelta("x")])
        heard = [await subscriber.next() for _ in range(3)]
        watch.unsubscribe(subscriber)
        watch.emitted(one, [TextDelta("y")])
        return heard

    assert [one["type"] for one in asyncio.run(run())] == ["missed", "piece", "piece"]


def app_for(url, *observers: Observer, tokens: tuple[ClientToken, ...] = ()) -> GatewayApp:
    engine = Engine(isolated=True)
    config = ServeConfig(models={"m": ServedModel(KIMI, base_url=url)})
    routes = Routes(engine, config)
    gateway = Gateway(engine, routes, InProcess(), Envelopes(b"k" * 32), observers)
    watches = [one for one in observers if isinstance(one, Watch)]
    return GatewayApp(gateway, Door(tokens), pages_of(watches[0]) if watches else {})


def test_the_page_is_public_and_what_it_shows_is_not():
    app = app_for("http://127.0.0.1:9", Watch(), tokens=(ClientToken("ann", hashed("right")),))
    page = once(app, "GET", "/")
    assert page.status == 200
    assert b"/*script*/" not in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in ("/watch/requests", "/watch/search?q=x", "/watch/request?id=1", "/watch/live"):
        assert once(app, "GET", path).status == 401
    assert once(app, "GET", "/watch/requests?key=right").json == []
    assert once(app, "GET", "/", host="evil.example").status == 403


def test_one_request_is_shown_on_its_whole_road():
    with StrictServer("kimi", [[Think("Hm."), Say("Milk.")]]) as server:
        app = app_for(server.url, Watch())

        async def run():
            await ask(app, "POST", "/v1/chat/completions", STREAMED)
            found = await ask(app, "GET", "/watch/request?id=1")
            listed = await ask(app, "GET", "/watch/requests")
            await app._gateway.close()
            return found.json, listed.json

        found, listed = asyncio.run(run())
        sent = json.loads(server.requests[0].body)
    assert found["request"] == listed[0]
    assert found["content"] == [["thought", "Hm."], ["text", "Milk."]]
    assert found["road"]["client"]["body"] == json.loads(STREAMED)
    assert found["road"]["upstream"]["body"] == sent
    assert found["request"]["state"] == "complete"


def test_without_a_watch_there_is_no_page():
    assert once(app_for("http://127.0.0.1:9"), "GET", "/").status == 404


@pytest.mark.parametrize("tail", ["", "x" * 500])
def test_lines_name_their_request_while_two_stream_at_once(tail):
    out = io.StringIO()
    printer = Printer(out)
    one, other = job("ann"), job()
    printer.began(one)
    printer.began(other)
    printer.emitted(one, [ThinkingDelta("First\nsec")])
    printer.emitted(other, [TextDelta("Other" + tail)])
    printer.emitted(one, [ThinkingDelta("ond")])
    printer.ended(one, OVER)
    printer.ended(other, Outcome("broken", None, 3.0, error="cut off"))
    assert out.getvalue().splitlines() == [
        "#1 ann: name → p/m (openai-chat → anthropic)",
        "#2 name → p/m (openai-chat → anthropic)",
        "#1 thinking   First",
        *([f"#2 answer     Other{tail}"] if tail else []),
        "#1 thinking   second",
        "#1 complete, 2.0 s, 10 tokens in, 5 out (2 reasoning)",
        *([] if tail else ["#2 answer     Other"]),
        "#2 broken: cut off, 3.0 s",
    ]
