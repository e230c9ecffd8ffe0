"""Ending a thought: by the server's own call where there is one, else by stopping and asking."""

from __future__ import annotations

import asyncio

import pytest

from mull.agent.hurry import ASK_NOW, ENDED_BY_SERVER, STOPPED, Hurried, Hurry
from mull.agent.library import Conversation
from mull.neutral.events import Started, StateChanged, TextDelta, ThinkingDelta
from mull.testing.server import STALL, Gate, Reply, ScriptedServer


async def endless(*events):
    for event in events:
        yield event
    await asyncio.Event().wait()


def test_outside_a_thought_there_is_nothing_to_end():
    async def run():
        hurry = Hurry()
        events = hurry.watch(endless(Started("a1"), ThinkingDelta("t"), TextDelta("x")))
        seen = [await anext(events)]
        before = hurry.now()
        seen += [await anext(events), await anext(events)]
        after = hurry.now()
        await events.aclose()
        return before, after, len(seen)

    assert asyncio.run(run()) == (False, False, 3)


@pytest.mark.parametrize("waiting", [True, False], ids=["while waiting", "between two events"])
def test_a_thought_is_stopped(waiting):
    async def run():
        hurry = Hurry()
        events = hurry.watch(endless(ThinkingDelta("a"), ThinkingDelta("b")))
        await anext(events)
        if waiting:
            await anext(events)
            asyncio.get_running_loop().call_soon(hurry.now)
        else:
            assert hurry.now()
        with pytest.raises(Hurried):
            await anext(events)

    asyncio.run(run())


@pytest.mark.parametrize("ends", [True, False])
def test_the_servers_own_call_is_tried_first(ends):
    asked = []

    async def control(answer):
        asked.append(answer)
        return ends

    async def run():
        hurry = Hurry(control=control)
        gate = asyncio.Event()

        async def stream():
            yield Started("chatcmpl-1")
            yield ThinkingDelta("a")
            await gate.wait()
            yield TextDelta("x")

        events = hurry.watch(stream())
        await anext(events)
        await anext(events)
        hurry.now()
        asyncio.get_running_loop().call_later(0.01, gate.set)
        if ends:
            assert await anext(events) == TextDelta("x")
        else:
            with pytest.raises(Hurried):
                await anext(events)
        await events.aclose()
        return hurry.ended_by_server

    assert asyncio.run(run()) is ends
    assert asked == ["chatcmpl-1"]


def test_a_call_that_is_refused_too_late_does_not_stop_the_answer():
    async def run():
        asked, refused = asyncio.Event(), asyncio.Event()

        async def control(answer):
            asked.set()
            await refused.wait()
            return False

        async def stream():
            yield Started("chatcmpl-1")
            yield ThinkingDelta("a")
            await asked.wait()
            yield TextDelta("x")
            refused.set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            yield TextDelta("y")

        hurry, seen = Hurry(control=control), []
        async for event in hurry.watch(stream()):
            seen.append(event)
            if isinstance(event, ThinkingDelta):
                assert hurry.now()
        return seen[2:]

    assert asyncio.run(run()) == [TextDelta("x"), TextDelta("y")]


def chunk(delta, finish=None):
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_thought_whose_time_is_up_is_kept_and_the_answer_asked_for_without_thinking():
    thinking = Reply.events(chunk({"reasoning_content": "so far"}), STALL)
    answering = Reply.events(chunk({"content": "42"}), chunk({}, "stop"), "[DONE]")
    with ScriptedServer([thinking, answering]) as server:
        talk = Conversation(
            "zai/glm-4.7",
            base_url=server.url,
            key="k",
            settings={"reasoning.maxSeconds": 0.05},
        )
        result = talk.ask("what is it?")
        first, second = (one.json for one in server.requests)
    assert server.requests[0].wait_left()
    assert (first["thinking"]["type"], second["thinking"]["type"]) == ("enabled", "disabled")
    assert second["messages"][-1]["content"] == f"{ASK_NOW} Your thoughts so far:\n\nso far"
    assert result.text == "42"
    assert STOPPED in [note.text for note in result.notes]
    assert [message.status for message in result.messages] == ["interrupted", None, "complete"]
    assert [entry.own for _, entry in talk.log.entries()] == [False, False, True, False]


def test_llama_cpp_is_asked_to_end_the_thought_itself():
    gate = Gate()
    thinking = Reply.events(
        chunk({"reasoning_content": "so"}), gate, chunk({"content": "42"}), chunk({}, "stop")
    )

    def script(recorded):
        if recorded.path.endswith("/control"):
            gate.open()
            return Reply.json({"ok": True})
        return thinking

    with ScriptedServer(script) as server:
        talk = Conversation(
            "llama.cpp/any", base_url=server.url, settings={"reasoning.maxSeconds": 0.05}
        )
        events = list(stream := talk.stream("q"))
        asked, control = server.requests
    assert asked.json["reasoning_control"] is True
    assert control.path.endswith("/chat/completions/control")
    assert control.json == {"id": "c1", "action": "reasoning_end"}
    assert stream.result.text == "42"
    assert ENDED_BY_SERVER in [note.text for note in stream.result.notes]
    assert [e.state for e in events if isinstance(e, StateChanged)][-1] == "done"
