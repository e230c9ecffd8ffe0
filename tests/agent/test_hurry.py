"""Ending a thought: by the server's own call where there is one, else by stopping and asking."""

from __future__ import annotations

import asyncio
import json

import pytest

from loops import run_moved
from mull.agent.hurry import ASKED_SERVER, ENDED_BY_SERVER
from mull.agent.hurry_plan import ASK_NOW, STOPPED, ask_now
from mull.agent.library import Conversation
from mull.agent.turn import ThoughtStopped
from mull.catalog.resolve import resolve
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.events import (
    Finished,
    Hurried,
    Started,
    StateChanged,
    TextDelta,
    ThinkingDelta,
)
from mull.neutral.messages import assistant
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.server import STALL, Gate, Reply, ScriptedServer
from turning import Watched

pytestmark = pytest.mark.usefixtures("in_step")


async def endless(*events):
    for event in events:
        yield event
    await asyncio.Event().wait()


def test_outside_a_thought_there_is_nothing_to_end():
    async def run():
        events = Watched(endless(Started("a1"), ThinkingDelta("t"), TextDelta("x")))
        hurry = events.hurry
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
        events = Watched(endless(ThinkingDelta("a"), ThinkingDelta("b")))
        hurry = events.hurry
        await anext(events)
        if waiting:
            await anext(events)
            asyncio.get_running_loop().call_soon(hurry.now)
        else:
            assert hurry.now()
        with pytest.raises(ThoughtStopped) as stopped:
            await anext(events)
        return stopped.value.cause

    assert asyncio.run(run()) == "hurried"


def test_a_time_out_of_the_stream_itself_is_no_stop():
    async def broken():
        yield ThinkingDelta("a")
        raise TimeoutError("the socket")

    async def run():
        events = Watched(broken())
        await anext(events)
        with pytest.raises(TimeoutError, match="the socket"):
            await anext(events)

    asyncio.run(run())


def test_a_thought_that_ends_by_itself_is_not_stopped_after_it():
    async def run():
        async def stream():
            yield ThinkingDelta("a")
            events.hurry.now()
            yield TextDelta("x")
            yield Finished("stop")

        events = Watched(stream())
        return [event async for event in events][1:]

    assert asyncio.run(run()) == [TextDelta("x"), Finished("stop")]


def test_what_is_not_stopped_is_told_once_and_a_person_may_still_stop_it():
    async def run(loop):
        refused = {"overdue": "it goes on"}
        events = Watched(
            endless(*(ThinkingDelta(letter) for letter in "abcd")), 1.0, refuse=refused.get
        )
        hurry = events.hurry
        seen = [await anext(events)]
        await loop.advance(2)
        seen += [await anext(events), await anext(events)]
        assert hurry.now("overdue")
        seen.append(await anext(events))
        assert hurry.now()
        with pytest.raises(ThoughtStopped):
            await anext(events)
        return seen

    told = Hurried("reasoning.maxSeconds", "left", "it goes on")
    thought = [ThinkingDelta(letter) for letter in "abc"]
    assert run_moved(run) == [thought[0], told, *thought[1:]]


ASKED = Hurried("thinking", "asked", ASKED_SERVER)


@pytest.mark.parametrize("ends", [True, False])
def test_the_servers_own_call_is_tried_first(ends):
    asked = []

    async def run():
        hurry = None
        answered = asyncio.Event()

        async def control(answer):
            asked.append(answer)
            answered.set()
            return ends

        async def stream():
            yield Started("chatcmpl-1")
            yield ThinkingDelta("a")
            await answered.wait()
            await asyncio.sleep(0)
            yield TextDelta("x")

        events = Watched(stream(), control=control)
        hurry = events.hurry
        await anext(events)
        await anext(events)
        assert hurry.now()
        assert hurry.now()
        seen = [await anext(events)]
        if not ends:
            with pytest.raises(ThoughtStopped):
                await anext(events)
            return seen
        return [*seen, *[event async for event in events]]

    told = [Hurried("thinking", "server", ENDED_BY_SERVER), TextDelta("x")]
    assert asyncio.run(run()) == [ASKED, *(told if ends else [])]
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

        events, seen = Watched(stream(), control=control), []
        async for event in events:
            seen.append(event)
            if isinstance(event, ThinkingDelta):
                assert events.hurry.now()
        return seen[2:]

    assert asyncio.run(run()) == [ASKED, TextDelta("x"), TextDelta("y")]


def test_a_thought_that_goes_on_although_the_server_agreed_is_stopped_when_asked_again():
    async def run():
        granted = asyncio.Event()

        async def control(answer):
            granted.set()
            return True

        async def stream():
            yield Started("chatcmpl-1")
            yield ThinkingDelta("a")
            await granted.wait()
            await asyncio.sleep(0)
            yield ThinkingDelta("b")
            await asyncio.Event().wait()

        events, seen = Watched(stream(), control=control), []

        async def follow():
            async for event in events:
                seen.append(event)
                if isinstance(event, ThinkingDelta):
                    assert events.hurry.now()

        with pytest.raises(ThoughtStopped):
            await follow()
        return seen

    told = Hurried("thinking", "server", ENDED_BY_SERVER)
    seen = asyncio.run(run())
    assert seen == [Started("chatcmpl-1"), ThinkingDelta("a"), ASKED, told, ThinkingDelta("b")]


def test_a_call_that_is_answered_after_the_last_event_is_told_of_all_the_same():
    async def run():
        over = asyncio.Event()

        async def control(answer):
            await over.wait()
            return True

        async def stream():
            yield Started("chatcmpl-1")
            yield ThinkingDelta("a")
            yield TextDelta("x")
            over.set()

        events, seen = Watched(stream(), control=control), []
        async for event in events:
            seen.append(event)
            events.hurry.now()
        return seen[2:]

    told = Hurried("thinking", "server", ENDED_BY_SERVER)
    assert asyncio.run(run()) == [ASKED, TextDelta("x"), told]


def chunk(delta, finish=None):
    return {"id": "c1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def ask(server, model, *, key, tools=(), **settings):
    """One turn in which every thought lasts too long: for the clock, or for a person."""

    async def run(loop):
        named = {f"reasoning.{name}": value for name, value in settings.items()}
        if not key:
            named["reasoning.maxSeconds"] = 1
        talk = Conversation(model, base_url=server.url, key="k", tools=tools, settings=named)
        talk.interactive = key
        stream, told = talk.stream_async("what is it?"), []
        async for event in stream:
            if isinstance(event, ThinkingDelta):
                await loop.advance(1.5)
                if key:
                    assert talk.answer_now()
            elif isinstance(event, Hurried):
                told.append(event)
        await talk.aclose()
        assert "disabling" not in " ".join(note.text for note in stream.prepared.notes)
        return talk, stream.result, told

    return run_moved(run)


UNKNOWN = "mull knows no way to turn its thinking off or down"
AGAIN = "the thinking continues: the model has already been told to answer"
OFF, LESS = f"{STOPPED} with thinking off", f"{STOPPED} with less thinking: "
WORDS, LEFT = (
    f"{STOPPED} with an instruction only: ",
    "the time limit for thinking has passed, but the thinking continues: ",
)
CAN_BE_OFF = [
    ("kimi", "moonshotai/kimi-k2.5", {"thinking": {"type": "disabled"}}),
    ("kimi", "zai/glm-4.7", {"thinking": {"type": "disabled"}}),
    ("openai", "openai/gpt-5.1/high", {"reasoning": {"effort": "none"}}),
    ("gemini", "google/gemini-2.5-flash", {"thinkingConfig": {"thinkingBudget": 0}}),
    ("anthropic", "anthropic/claude-sonnet-4-5", {"thinking": None}),
    ("anthropic", "anthropic/claude-opus-4-7", {"thinking": None}),
    ("openrouter", "openrouter/anthropic/claude-sonnet-4.5", {"reasoning": None}),
]
CAN_BE_LESS = [
    ("openai", "openai/o3", "low effort (minimum)", '"effort":"low"'),
    ("openai", "openai/gpt-5", "minimal effort (minimum)", '"effort":"minimal"'),
    ("gemini", "google/gemini-2.5-pro", "minimum (128 tokens)", '"thinkingBudget":128'),
    ("gemini", "google/gemini-3-pro-preview", "LOW level (minimum)", '"thinkingLevel":"LOW"'),
    ("anthropic-bound", "anthropic/claude-opus-5-5", "low effort (minimum)", '"effort":"low"'),
]
CANNOT = [
    ("kimi", "moonshotai/kimi-k2-thinking", UNKNOWN),
    ("deepseek", "deepseek/deepseek-reasoner", UNKNOWN),
    ("kimi", "openrouter/moonshotai/kimi-k2-thinking", UNKNOWN),
    ("kimi", "openai-compatible/x", UNKNOWN),
    ("openai", "openai/o3/low", "low effort (minimum) is the lowest it accepts"),
]


def thinking_always(*more):
    while True:
        yield [Think("on and on, and on"), *(more or [Say("42")])]


def by(key):
    return "thinking" if key else "reasoning.maxSeconds"


@pytest.mark.parametrize("key", [True, False], ids=["by key", "by time"])
@pytest.mark.parametrize(("provider", "model", "off"), CAN_BE_OFF)
def test_thinking_is_turned_off_where_that_can_be_said(provider, model, off, key):
    with StrictServer(provider, thinking_always()) as server:
        talk, result, told = ask(server, model, key=key)
        first, second = (request.json for request in server.requests)
    assert server.refusals == []
    assert told == [Hurried(by(key), "off", OFF)]
    body = second.get("generationConfig", second)
    assert {name: body.get(name) for name in off} == off
    assert {name: first.get("generationConfig", first).get(name) for name in off} != off
    assert (result.text, result.status) == ("42", "complete")
    assert [message.status for message in result.messages] == ["interrupted", None, "complete"]
    assert [entry.own for _, entry in talk.log.entries()] == [False, False, True, False]


@pytest.mark.parametrize("key", [True, False], ids=["by key", "by time"])
@pytest.mark.parametrize(("provider", "model", "words", "sent"), CAN_BE_LESS)
def test_thinking_is_turned_down_where_it_cannot_be_off(provider, model, words, sent, key):
    with StrictServer(provider, thinking_always()) as server:
        _, result, told = ask(server, model, key=key)
        first, second = (request.body.decode() for request in server.requests)
    assert server.refusals == []
    assert told == [Hurried(by(key), "less", LESS + words), Hurried(by(key), "left", AGAIN)]
    assert (sent in first, sent in second) == (False, True)
    assert (result.text, result.status) == ("42", "complete")
    note = next(note for note in result.notes if note.text == LESS + words)
    assert note.effective == words
    assert sent in note.sent_as
    assert "disabling" not in " ".join(note.text for note in result.notes)


@pytest.mark.parametrize(("provider", "model", "why"), CANNOT)
def test_the_clock_stops_no_thought_that_would_only_be_thought_again(provider, model, why):
    with StrictServer(provider, thinking_always()) as server:
        _, result, told = ask(server, model, key=False)
        assert len(server.requests) == 1
    assert told == [Hurried("reasoning.maxSeconds", "left", LEFT + why)]
    assert LEFT + why in [note.text for note in result.notes]
    assert (result.text, result.status) == ("42", "complete")


@pytest.mark.parametrize(("provider", "model", "why"), CANNOT)
def test_a_person_may_stop_it_all_the_same_once(provider, model, why):
    with StrictServer(provider, thinking_always()) as server:
        _, result, told = ask(server, model, key=True)
        first, second = (request.json for request in server.requests)
    assert told == [
        Hurried("thinking", "words", WORDS + why),
        Hurried("thinking", "left", AGAIN),
    ]
    messages = "input" if "input" in second else "messages"
    assert ASK_NOW in json.dumps(second.pop(messages)[-1])
    assert {**first, messages: None} == {**second, messages: None}
    assert (result.text, result.status) == ("42", "complete")
    notes = [note.text for note in result.notes]
    assert "disabling" not in " ".join(notes)
    assert OFF not in notes


def test_a_default_that_is_the_least_already_is_nothing_to_turn_down():
    with StrictServer("gemini", thinking_always()) as server:
        _, _, told = ask(server, "google/gemini-3.5-flash-lite", key=False)
        assert len(server.requests) == 1
    assert told[0].text == f"{LEFT}MINIMAL level (minimum) is the lowest it accepts"


def test_the_users_own_wish_stands_in_the_notes():
    with StrictServer("openai", thinking_always()) as server:
        _, result, _ = ask(server, "openai/o3", key=False, effort="high")
        first, second = (request.json["reasoning"]["effort"] for request in server.requests)
    assert (first, second) == ("high", "low")
    (outcome,) = (note for note in result.notes if note.kind == "outcome")
    assert (outcome.about, outcome.requested) == ("reasoning.effort", "high")


def test_the_model_is_told_what_it_had_thought():
    with StrictServer("kimi", thinking_always()) as server:
        ask(server, "zai/glm-4.7", key=True)
        said = server.requests[1].json["messages"][-1]["content"]
    assert said == f"{ASK_NOW} Your thoughts so far:\n\non and"


def test_a_model_that_declines_thoughts_is_only_told_to_answer():
    unfinished = assistant(ThinkingBlock("on and"))
    for model, is_told in (("anthropic/claude-sonnet-4-5", True), ("claude-fable-5-1", False)):
        assert ("on and" in ask_now(unfinished, resolve(model))) is is_told


@pytest.mark.parametrize("model", ["moonshotai/kimi-k2.5", "moonshotai/kimi-k2-thinking"])
def test_earlier_thoughts_go_along_as_the_settings_say(model):
    async def run(loop):
        talk = Conversation(model, base_url=server.url, key="k")
        talk.interactive = True
        await talk.ask_async("first")
        async for event in talk.stream_async("second"):
            if isinstance(event, ThinkingDelta):
                talk.answer_now()
        await talk.aclose()

    with StrictServer("kimi", thinking_always()) as server:
        run_moved(run)
        _, second, follows = (request.json["messages"] for request in server.requests)
    assert second[1]["reasoning_content"] == "on and on, and on"
    assert follows[: len(second)] == second


def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


def rounds(count):
    """Rounds of tools, then an answer; a thought before everything."""
    calls = [[Think(f"thought {n} ..."), Call("look", {"at": "it"})] for n in range(count)]
    return [*calls, [Think("then ..."), Say("42")]]


ONCE = f"{LEFT}mull stops the thinking only once per turn for this"


@pytest.mark.parametrize(
    ("provider", "model", "texts"),
    [
        ("kimi", "moonshotai/kimi-k2.5", [OFF, ONCE]),
        ("anthropic", "anthropic/claude-sonnet-4-5", [OFF]),  # its chain goes on without thinking
        ("openai", "openai/o3", [f"{LESS}low effort (minimum)", ONCE]),
        ("gemini", "google/gemini-2.5-pro", [f"{LESS}minimum (128 tokens)", ONCE]),
    ],
)
def test_the_clock_stops_one_thought_of_a_turn(provider, model, texts):
    first, *others = rounds(3)
    with StrictServer(provider, [first, first, *others]) as server:
        _, result, told = ask(server, model, key=False, tools=[look])
        assert len(server.requests) == 5
    assert server.refusals == []
    assert result.text == "42"
    assert [event.text for event in told if event.text != AGAIN] == texts


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("kimi", "moonshotai/kimi-k2-thinking"),
        ("openai", "openai/o3"),
        ("gemini", "google/gemini-2.5-pro"),
    ],
)
def test_a_person_may_stop_a_thought_of_every_round(provider, model):
    script = [answer for answer in rounds(3) for _ in range(2)]
    with StrictServer(provider, script) as server:
        _, result, told = ask(server, model, key=True, tools=[look])
        assert len(server.requests) == 8
    assert result.text == "42"
    assert len([event for event in told if event.how != "left"]) == 4


def test_a_thought_that_is_let_go_on_is_told_of_once_a_turn():
    with StrictServer("kimi", rounds(4)) as server:
        _, result, told = ask(server, "moonshotai/kimi-k2-thinking", key=False, tools=[look])
        assert len(server.requests) == 5
    assert result.text == "42"
    assert [event.text for event in told] == [LEFT + UNKNOWN]


def test_a_thought_whose_server_stalls_is_stopped_too():
    thinking = Reply.events(chunk({"reasoning_content": "so far"}), STALL)
    answering = Reply.events(chunk({"content": "42"}), chunk({}, "stop"), "[DONE]")
    with ScriptedServer([thinking, answering]) as server:
        _, result, told = ask(server, "zai/glm-4.7", key=False)
        assert server.requests[0].wait_left()
    assert result.text == "42"
    assert told == [Hurried("reasoning.maxSeconds", "off", OFF)]


def test_llama_cpp_is_asked_to_end_the_thought_itself():
    gate = Gate()
    thinking = Reply.events(
        chunk({"reasoning_content": "so"}), gate, chunk({"content": "42"}), chunk({}, "stop")
    )

    def script(recorded):
        if recorded.path.endswith("/control"):
            gate.open()
            return Reply.json({"success": True})
        return thinking

    with ScriptedServer(script) as server:
        talk = Conversation(
            "llama.cpp/any",
            base_url=server.url,
            key=lambda: "fresh",
            settings={"reasoning.maxSeconds": 0.000001},
        )
        events = list(stream := talk.stream("q"))
        asked, control = server.requests
    assert asked.json["reasoning_control"] is True
    assert control.path.endswith("/chat/completions/control")
    assert asked.headers["authorization"] == control.headers["authorization"] == "Bearer fresh"
    assert control.json == {"id": "c1", "action": "reasoning_end"}
    assert stream.result.text == "42"
    assert Hurried("reasoning.maxSeconds", "server", ENDED_BY_SERVER) in events
    assert ENDED_BY_SERVER in [note.text for note in stream.result.notes]
    assert [e.state for e in events if isinstance(e, StateChanged)][-1] == "done"


@pytest.mark.parametrize(
    "reply",
    [
        Reply.json({"error": {"message": "no such path"}}, 404),
        Reply.json({"success": False, "message": "reasoning control not enabled"}),
        Reply.json([]),
        Reply(steps=(b"<html>",)),
    ],
    ids=["none", "unwilling", "odd", "unreadable"],
)
def test_a_llama_cpp_that_does_not_end_it_is_asked_again_with_thinking_off(reply):
    thinking = Reply.events(chunk({"reasoning_content": "so"}), STALL)
    answering = Reply.events(chunk({"content": "42"}), chunk({}, "stop"), "[DONE]")

    def script(recorded):
        if recorded.path.endswith("/control"):
            return reply
        return answering if "chat_template_kwargs" in recorded.json else thinking

    async def run(loop):
        settings = {"reasoning.maxSeconds": 1}
        talk = Conversation("llama.cpp/any", base_url=server.url, settings=settings)
        stream, told = talk.stream_async("q"), []
        async for event in stream:
            if isinstance(event, ThinkingDelta):
                await loop.advance(1.5)
                await asyncio.to_thread(server.wait_requests, 2)
            elif isinstance(event, Hurried):
                told.append(event)
        await talk.aclose()
        return stream.result.text, told

    with ScriptedServer(script) as server:
        text, told = run_moved(run)
        paths = [request.path[-8:] for request in server.requests]
        assert paths == ["pletions", "/control", "pletions"]
        assert server.requests[2].json["chat_template_kwargs"]["enable_thinking"] is False
    assert text == "42"
    asked = Hurried("reasoning.maxSeconds", "asked", ASKED_SERVER)
    assert told == [asked, Hurried("reasoning.maxSeconds", "off", OFF)]
