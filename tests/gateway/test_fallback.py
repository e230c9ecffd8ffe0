"""Who answers when a target cannot, and what the client hears of it."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from gateway.test_app import ask
from mull.agent.engine import Engine
from mull.gateway.app import GatewayApp
from mull.gateway.cooldown import Cooldowns
from mull.gateway.drafts import Drafts
from mull.gateway.envelope import Envelopes
from mull.gateway.http import LARGE
from mull.gateway.memory import InProcess
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.store.serve import ServeConfig, ServedModel, ServedTarget
from mull.testing import CUT, Call, Gate, Reply, Say, ScriptedServer, StrictServer, Think

KIMI, CLAUDE, GPT = "moonshotai/kimi-k2.5", "anthropic/claude-sonnet-4-5", "openai/gpt-5"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Served:
    """A gateway whose clock stands still, and one conversation with it."""

    def __init__(self, **models):
        engine, self.clock = Engine(isolated=True), Clock()
        routes = Routes(engine, ServeConfig(models=models))
        cooldowns = Cooldowns(self.clock)
        rest = InProcess(), Envelopes(b"k" * 32)
        self.app = GatewayApp(Gateway(engine, routes, *rest, cooldowns=cooldowns))

    def ask(self, *said, stream=False, path="/v1/chat/completions", leave=None, sent=None, **more):
        messages = [one if isinstance(one, dict) else user(one) for one in said or ("q",)]
        body = {"model": "m", "messages": messages, "stream": stream, **more}

        async def run():
            try:
                data = json.dumps(body).encode()
                return await ask(self.app, "POST", path, data, leave=leave, sent=sent)
            finally:
                await self.app._gateway.engine.close()

        return asyncio.run(run())


def user(text):
    return {"role": "user", "content": text}


def answer(text):
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    return Reply.events(chunk, "[DONE]")


def two(first, second):
    """A target and its fallback."""
    return Served(
        m=ServedModel(KIMI, base_url=first, fallback=("other",)),
        other=ServedModel(KIMI, base_url=second),
    )


def text_of(reply):
    return reply.json["choices"][0]["message"]["content"]


REFUSALS = {
    "rate": Reply.json({"error": {"message": "slow down"}}, 429, {"retry-after": "7"}),
    "overload": Reply.json({"error": {"message": "overloaded"}}, 529),
    "broken": Reply.json({"error": {"message": "oops"}}, 500),
    "quota": Reply.json({"error": {"message": "insufficient_quota"}}, 429),
    "key": Reply.json({"error": {"message": "bad key"}}, 401),
    "model": Reply.json({"error": {"message": "no such model"}}, 404),
    "gone": Reply.hang_up(),
    "page": Reply(200, {"content-type": "text/html"}, (b"<html><title>Down</title>",)),
    "in the stream": Reply.events({"error": {"message": "overloaded", "type": "overloaded_error"}}),
    "after the head": Reply.events(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
        {"error": {"message": "overloaded", "code": 503}},
    ),
    "empty": Reply.events(CUT),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reply", REFUSALS.values(), ids=REFUSALS)
def test_another_target_answers_before_anything_was_told(reply, stream):
    with ScriptedServer([reply]) as first, ScriptedServer([answer("Milk.")]) as second:
        found = two(first.url, second.url).ask(stream=stream)
    assert found.status == 200
    assert b"Milk." in found.body
    assert b"overloaded" not in found.body
    assert "target: moonshotai/kimi-k2.5" in found.headers["x-mull-notes"]
    assert len(second.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json({"error": {"message": "messages: roles must alternate"}}, 400),
        Reply.json({"error": {"message": "too big"}}, 413),
        Reply.json({"error": {"message": "content policy: flagged"}}, 403),
        Reply.json({"error": {"message": "unprocessable"}}, 422),
    ],
)
def test_what_is_wrong_with_the_request_is_told(reply):
    with ScriptedServer([reply] * 2) as first, ScriptedServer([answer("Milk.")]) as second:
        found = two(first.url, second.url).ask()
    assert found.status == reply.status
    assert not second.requests


def test_nothing_is_tried_elsewhere_after_something_was_told():
    chunk = {"choices": [{"index": 0, "delta": {"content": "Mi"}}]}
    with ScriptedServer([Reply.events(chunk, CUT)]) as first, ScriptedServer() as second:
        found = two(first.url, second.url).ask(stream=True)
    assert b"Mi" in found.body
    assert b"[DONE]" not in found.body
    assert not second.requests


def test_the_most_useful_refusal_is_told_where_nobody_answers():
    with (
        ScriptedServer([REFUSALS["rate"]]) as first,
        ScriptedServer([REFUSALS["overload"]]) as second,
    ):
        found = two(first.url, second.url).ask()
    assert found.status == 429
    assert found.headers["retry-after"] == "7"
    assert "slow down" in found.json["error"]["message"]


def test_a_target_rests_and_is_then_tried_again():
    with (
        ScriptedServer([REFUSALS["rate"], answer("A")]) as first,
        ScriptedServer([answer("B"), answer("C")]) as second,
    ):
        served = two(first.url, second.url)
        assert text_of(served.ask()) == "B"
        served.clock.now = 6.9
        found = served.ask()
        assert text_of(found) == "C"
        assert "failed recently" in found.headers["x-mull-notes"]
        served.clock.now = 7.1
        found = served.ask()
        assert text_of(found) == "A"
        assert "x-mull-notes" not in found.headers
    assert len(first.requests) == 2


def test_a_single_target_never_rests():
    with ScriptedServer([REFUSALS["rate"], answer("A")]) as server:
        served = Served(m=ServedModel(KIMI, base_url=server.url))
        assert served.ask().status == 429
        assert text_of(served.ask()) == "A"


def test_where_all_rest_the_one_due_soonest_is_asked():
    with (
        ScriptedServer([REFUSALS["rate"]]) as first,
        ScriptedServer([REFUSALS["overload"], answer("B")]) as second,
    ):
        served = two(first.url, second.url)
        assert served.ask().status == 429
        assert text_of(served.ask()) == "B"


def spread(url_a, url_b):
    """Two keys of one provider, here at two addresses."""
    targets = ServedTarget(KIMI, base_url=url_a), ServedTarget(KIMI, base_url=url_b)
    return Served(m=ServedModel(targets=targets))


def test_a_conversation_stays_with_its_target_and_others_go_elsewhere():
    many = [answer("x")] * 200
    with ScriptedServer(many) as one, ScriptedServer(many) as two:
        served = spread(one.url, two.url)
        for said in "abcdefghijklmnop":
            before = len(one.requests)
            served.ask(said)
            served.ask(said, {"role": "assistant", "content": "x"}, user("more"))
            assert len(one.requests) - before in (0, 2)
        assert one.requests
        assert two.requests


SCRIPT = [[Think("I look."), Call("read", {"path": "a"})], [Think("Seen."), Say("Milk.")]]
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]


def called(reply):
    message = reply.json["choices"][0]["message"]
    return {"role": "assistant", "content": "", "tool_calls": message["tool_calls"]}, {
        "role": "tool",
        "tool_call_id": message["tool_calls"][0]["id"],
        "content": "milk",
    }


def test_reasoning_goes_back_to_where_it_came_from():
    """Whatever the hash of the beginning says: the other target gets no request at all."""
    for said in "abcdef":
        with StrictServer("kimi", SCRIPT) as one, ScriptedServer([answer("no")]) as two:
            alone = Served(m=ServedModel(KIMI, base_url=one.url))
            first = alone.ask(said, tools=TOOLS)
            both = spread(one.url, two.url)
            both.app._gateway.memory = alone.app._gateway.memory
            last = both.ask(said, *called(first), tools=TOOLS)
            assert text_of(last) == "Milk."
            assert not one.refusals
            assert not two.requests


def test_a_fallback_finishes_the_turn_that_it_began_and_then_the_first_is_asked_again():
    with (
        ScriptedServer([REFUSALS["overload"], answer("First.")]) as first,
        StrictServer("kimi", SCRIPT) as second,
    ):
        served = two(first.url, second.url)
        begun = served.ask(tools=TOOLS)
        served.clock.now = 100
        turn = [user("q"), *called(begun)]
        assert text_of(served.ask(*turn, tools=TOOLS)) == "Milk."
        turn += [{"role": "assistant", "content": "Milk."}, user("And?")]
        assert text_of(served.ask(*turn, tools=TOOLS)) == "First."
        assert not second.refusals


def test_carriers_of_a_target_that_is_down_stay_out_of_another_dialects_request():
    with StrictServer("anthropic", SCRIPT) as claude:
        alone = Served(m=ServedModel(CLAUDE, base_url=claude.url))
        begun = alone.ask(tools=TOOLS)
    with StrictServer("openai", [[Think("Seen."), Say("Milk.")]]) as other:
        both = Served(
            m=ServedModel(CLAUDE, base_url=claude.url, fallback=("o",)),
            o=ServedModel(GPT, base_url=other.url),
        )
        both.app._gateway.memory = alone.app._gateway.memory
        last = both.ask("q", *called(begun), tools=TOOLS)
    assert text_of(last) == "Milk."
    assert not other.refusals
    assert "anthropic/claude-sonnet-4-5 could not be reached" in last.headers["x-mull-notes"]


def test_two_keys_of_one_provider_are_two_targets(monkeypatch):
    monkeypatch.setenv("KEY_A", "key-of-account-a")
    monkeypatch.setenv("KEY_B", "key-of-account-b")
    with ScriptedServer([REFUSALS["rate"], answer("B")]) as server:
        targets = tuple(
            ServedTarget(KIMI, base_url=server.url, key_env=name) for name in ("KEY_A", "KEY_B")
        )
        found = Served(m=ServedModel(targets=targets)).ask()
    keys = {one.headers["authorization"] for one in server.requests}
    assert keys == {"Bearer key-of-account-a", "Bearer key-of-account-b"}
    assert text_of(found) == "B"


def test_what_the_configuration_says_where_the_client_does_not():
    with ScriptedServer([answer("x")] * 2) as server:
        at = Served(m=ServedModel(KIMI, base_url=server.url, system="Be brief.", max_tokens=77))
        at.ask({"role": "system", "content": "You are a cook."}, user("q"))
        at.ask({"role": "system", "content": "You are a cook."}, user("q"), max_tokens=9)
    one, other = (request.json for request in server.requests)
    assert one["messages"][0]["content"].startswith("Be brief.\n\nYou are a cook.")
    assert (one["max_tokens"], other["max_tokens"]) == (77, 9)


def test_a_level_in_the_name_goes_before_what_the_clients_program_says():
    with ScriptedServer([answer("x")] * 2) as server:
        served = Served(m=ServedModel("openai/gpt-5-mini", base_url=server.url))
        for model in ("m/high", "m"):
            served.ask(path="/v1/chat/completions", model=model, reasoning_effort="low")
    sent = [json.dumps(request.json) for request in server.requests]
    assert '"high"' in sent[0]
    assert '"low"' in sent[1]


def test_a_client_that_was_told_to_wait_still_hears_another_target(monkeypatch):
    """A keep-alive says nothing of an answer, in whichever dialect that comes."""
    monkeypatch.setattr("mull.gateway.streaming.SILENCE", 0.01)
    gate = Gate()
    with (
        ScriptedServer([Reply.events(gate, CUT)]) as first,
        StrictServer("anthropic", [[Think("Hm."), Say("Milk.")]]) as second,
    ):
        served = Served(
            m=ServedModel(KIMI, base_url=first.url, fallback=("c",)),
            c=ServedModel(CLAUDE, base_url=second.url),
        )

        def waited(message):
            if message.get("body"):
                gate.open()

        found = served.ask(stream=True, sent=waited)
    assert found.body.startswith(b": ")
    assert found.body.endswith(b"data: [DONE]\n\n")
    chunks = [json.loads(line[6:]) for line in found.body.decode().splitlines() if "{" in line]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Milk."
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "Hm."
    assert not second.refusals


def test_a_client_that_leaves_does_not_keep_a_target_from_being_tried_again():
    gate = Gate()
    with (
        ScriptedServer([REFUSALS["rate"], Reply.events(gate), answer("A")]) as first,
        ScriptedServer([answer("B")]) as second,
    ):
        served = two(first.url, second.url)
        served.ask()
        served.clock.now = 10
        served.ask(leave=lambda: asyncio.to_thread(gate.wait_reached))
        gate.open()
        assert text_of(served.ask()) == "A"


def test_a_large_request_is_prepared_in_a_thread_for_each_target(monkeypatch):
    prepared = []

    def make(drafts, route):
        prepared.append(threading.current_thread() is threading.main_thread())
        return made(drafts, route)

    made = Drafts.make
    monkeypatch.setattr(Drafts, "make", make)
    first, second = ScriptedServer([Reply.json({}, 503)]), ScriptedServer([answer("Two.")])
    with first, second:
        assert "Two." in str(two(first.url, second.url).ask("q" * LARGE).json)
    assert prepared == [False, False]
