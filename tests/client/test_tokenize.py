"""Tokens as a server counts them: asked once for each text, never twice where it fails."""

from __future__ import annotations

import asyncio

import pytest

from mull.agent.engine import Engine
from mull.client.tokenize import KEPT, LONG, SHAPES, server_tokens
from mull.testing.server import CUT, Reply, ScriptedServer
from small_server import SmallServer

TEXT = "磨坊主在中午之前数了十七条船。" * 40


def counting(server, shape="llama", stand_in=len):
    return server_tokens(server.url, {}, lambda text: SHAPES[shape]("m", text), stand_in)


def numbered(recorded):
    return Reply.json({"tokens": list(range(len(recorded.json["content"]) // 2))})


def test_a_text_is_counted_by_the_server_once():
    with ScriptedServer(numbered) as server:
        count = counting(server)
        assert [count(TEXT), count(TEXT)] == [len(TEXT) // 2] * 2
        (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/tokenize")
    assert request.json == {"content": TEXT, "add_special": False}


def test_short_texts_are_counted_at_the_rate_of_the_others():
    with ScriptedServer(numbered) as server:
        count = counting(server)
        assert count("x" * 100) == 100
        count(TEXT)
        assert count("x" * 100) == pytest.approx(50, abs=1)
        assert len(server.requests) == 1


def test_a_long_text_is_judged_by_its_beginning():
    with ScriptedServer(numbered) as server:
        assert counting(server)("x" * LONG * 4) == LONG * 2
        assert len(server.requests[0].json["content"]) == LONG


def test_vllm_is_asked_in_its_own_shape():
    with ScriptedServer(
        [Reply.json({"count": 7, "max_model_len": 9, "tokens": [1] * 7})]
    ) as server:
        assert counting(server, "vllm")(TEXT) == 7
        asked = {"model": "m", "prompt": TEXT, "add_special_tokens": False}
        assert server.requests[0].json == asked


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json({"error": "no"}, 404),
        Reply.json({"tokens": 3}),
        Reply.json([]),
        Reply(200, {}, (b"<html>",)),
        Reply(200, {"content-length": "99"}, (b"{", CUT)),
        Reply.hang_up(),
    ],
    ids=["404", "number", "list", "page", "cut", "gone"],
)
def test_a_server_that_fails_is_not_asked_again(reply):
    with ScriptedServer([reply]) as server:
        count = counting(server)
        assert [count(TEXT), count(TEXT + "x")] == [len(TEXT), len(TEXT) + 1]
        assert len(server.requests) == 1


def test_half_a_character_is_counted_too():
    with ScriptedServer(numbered) as server:
        assert counting(server)("\ud800" + "x" * 999) == 500


def test_what_is_kept_is_bounded():
    with ScriptedServer(lambda recorded: Reply.json({"count": 1})) as server:
        count = counting(server)
        tokens = count.__self__
        for number in range(KEPT, KEPT + 5):
            tokens._keep(number.to_bytes(16, "big"), 1, 1)
        for number in range(KEPT * 2):
            tokens._keep(number.to_bytes(16, "big"), 1, 1)
        assert len(tokens._known) <= KEPT
        assert server.requests == []


@pytest.mark.usefixtures("inspected_servers")
def test_a_server_on_this_machine_counts_for_its_model():
    with SmallServer(2048) as server:
        engine = Engine()
        target = engine.target("llama.cpp/small", base_url=server.url)
        asyncio.run(engine.inspected(target, base_url=server.url))
        counter = engine.counter_for(target)
        assert (counter.name, counter.exact) == ("llama.cpp itself", True)
        assert counter.count(TEXT) == server.tokens(TEXT)
        other = engine.counter_for(engine.target("moonshotai/kimi-k2.5"))
        assert other.name != counter.name
