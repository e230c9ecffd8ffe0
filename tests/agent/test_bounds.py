"""No turn goes on for ever: how often it asks is bounded, whatever the other side does.

The other side is as hostile as can be: it always thinks, always refuses, always calls tools, never
answers, and a user presses the key for an answer at every thought.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compressing import filler, flat, turn
from loops import run_moved
from mull.agent.functions import tools_from
from mull.agent.hub import Hub
from mull.agent.library import Conversation
from mull.agent.run import Situation, Turn, run_turn
from mull.agent.turn import Limits
from mull.catalog.resolve import resolve
from mull.client.retry import RetryRules
from mull.history.log import Log
from mull.neutral.errors import LocalError, MullError, RefusedError
from mull.neutral.events import (
    Compressed,
    Failed,
    Finished,
    Healed,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import user
from mull.neutral.request import RequestOptions
from mull.policy.tokens import CHARACTERS
from mull.settings.layers import Settings
from mull.testing import Call, StrictServer, Think
from mull.testing.server import Reply, ScriptedServer
from side_calls import chat, last_text
from turning import sends

pytestmark = pytest.mark.usefixtures("in_step")


def look() -> str:
    """Look."""
    return "seen"


THOUGHT = [ThinkingDelta("hm"), ThinkingDelta("hm")]
CALLS = [ToolCallDelta(key=0, id="c0", name="look", arguments="{}"), Finished("tool_calls")]
HEALED = Healed("refused", "repaired")
ANSWERS = {
    "thinks and calls": [*THOUGHT, *CALLS],
    "calls": CALLS,
    "thinks and says nothing": [*THOUGHT, Finished("stop")],
    "says nothing": [Finished("stop")],
    "is healed and thinks": [HEALED, *THOUGHT, *CALLS],
    "is healed again and again": [HEALED, *THOUGHT, HEALED, HEALED, *CALLS],
    "breaks off": [*THOUGHT, Failed("gone")],
    "thinks and answers": [*THOUGHT, TextDelta("yes"), Finished("stop")],
}


@dataclass
class Hostile:
    """A model that goes through these answers for ever, a user who never waits, and a history
    that is always too long."""

    answers: list
    target: object
    limits: Limits
    cause: str = "hurried"
    asked: int = 0
    shortened: int = 0

    def needed(self, prepared, situation) -> bool:
        return True

    async def run(self, prepared, situation, say):
        self.shortened += 1
        say(Compressed(False, "not compressed"))
        return []

    async def send(self, prepared, sending):
        self.asked += 1
        for event in next(self._left):
            yield event

    def situation(self) -> Situation:
        tools = tools_from([look])
        return Situation(
            target=self.target,
            snapshot=Settings().snapshot(),
            options=RequestOptions(tools=tuple(tool.definition for tool in tools.values())),
            counter=CHARACTERS,
            send=sends(self.send),
            tools=tools,
            interactive=True,
        )

    def play(self) -> Turn:
        self._left = cycle(self.answers)
        turn = Turn(
            Log([user("go")]),
            self.situation,
            self.situation(),
            shorten=lambda: self,
            limits=self.limits,
            hub=Hub(lambda events: self.hurry(turn, events)),
        )

        async def run():
            with suppress(MullError):
                await run_turn(turn)

        asyncio.run(run())
        return turn

    def hurry(self, turn, events) -> None:
        if any(isinstance(event, ThinkingDelta) for event in events):
            turn.hurry.now(self.cause)


few = st.integers(0, 2)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=6),
    st.builds(Limits, st.integers(1, 3), few, few, few, few, few),
    st.sampled_from(["moonshotai/kimi-k2-thinking", "zai/glm-4.7", "openai/o3"]),
    st.sampled_from(["hurried", "overdue"]),
)
def test_a_turn_asks_no_more_often_than_its_limits_say(names, limits, model, cause):
    hostile = Hostile([ANSWERS[name] for name in names], resolve(model), limits, cause)
    turn = hostile.play()
    assert turn.progress.state in ("done", "failed")
    assert 1 <= hostile.asked <= limits.requests
    assert hostile.shortened <= limits.shortenings * limits.requests
    assert len([m for m in turn.messages if m.role == "assistant"]) <= limits.requests


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("thinks and calls", 100),  # every round's thought is stopped once
        ("calls", 50),
        ("thinks and says nothing", 3),  # stopped, and then one nudge
        ("says nothing", 2),
        ("is healed and thinks", 100),
        ("is healed again and again", 2),  # the second repair of a request ends the turn
        ("breaks off", 2),
        ("thinks and answers", 2),
    ],
)
def test_how_often_a_turn_asks_at_most(name, most):
    hostile = Hostile([ANSWERS[name]], resolve("moonshotai/kimi-k2-thinking"), Limits())
    hostile.play()
    assert hostile.asked == most <= Limits().requests
    assert hostile.shortened == 2 * most


MODELS = [
    ("kimi", "moonshotai/kimi-k2-thinking"),
    ("deepseek", "deepseek/deepseek-reasoner"),
    ("openai", "openai/o3"),
    ("gemini", "google/gemini-2.5-pro"),
    ("anthropic", "anthropic/claude-sonnet-4-5"),
]


def see(at: str) -> str:
    """See."""
    return at


def hammer(server, model, *, tools=(see,), **values):
    """A turn whose user has the clock run and presses the key at every thought."""

    async def run(loop):
        settings = {key.replace("__", "."): value for key, value in values.items()}
        settings = {"reasoning.maxSeconds": 1, **settings}
        talk = Conversation(model, base_url=server.url, key="k", tools=tools, settings=settings)
        talk.interactive = True
        try:
            async for event in talk.stream_async("go"):
                if isinstance(event, ThinkingDelta):
                    talk.answer_now()
                    await loop.advance(1.5)
        finally:
            await talk.aclose()
        return talk

    return run_moved(run)


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_tools_without_end_and_a_key_at_every_thought(provider, model):
    calls = cycle([[Think("on and on"), Call("see", {"at": "it"})]])
    with StrictServer(provider, calls) as server:
        with pytest.raises(LocalError, match="called tools in 50 rounds without answering"):
            hammer(server, model)
        # a chain of Claude's that began without a thought goes on without one
        assert len(server.requests) == (51 if provider == "anthropic" else 100)
    assert server.refusals == []


def test_the_same_at_a_server_that_nobody_knows():
    with ScriptedServer(lambda _: chat(thought="on", calls=True, finish="tool_calls")) as server:
        with pytest.raises(LocalError, match="called tools in 50 rounds without answering"):
            hammer(server, "openai-compatible/x", tools=[look])
        assert len(server.requests) == 100


@pytest.mark.parametrize(("provider", "model"), MODELS)
def test_thoughts_without_an_answer_and_a_key_at_every_one(provider, model):
    with StrictServer(provider, cycle([[Think("on and on")]])) as server:
        talk = hammer(server, model)
        assert len(server.requests) == 3
    assert server.refusals == []
    assert talk.messages[-1].status == "no_answer"
    with StrictServer(provider, cycle([[Think("on and on")]])) as server:
        hammer(server, model, tools=())  # who has no tools is not asked to go on
        assert len(server.requests) == 2


DIALECTS = ["moonshotai/kimi-k2-thinking", "openai/o3", "google/gemini-2.5-pro", "claude-opus-4-7"]


def no(status, message, **more):
    error = {"message": message, "type": "invalid_request_error", **more}
    return Reply.json({"type": "error", "error": error}, status)


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize(
    ("reply", "most"),
    [
        (no(400, "prompt is too long: the maximum context length is 10"), 1),
        (no(413, "too large"), 1),
        (no(503, "overloaded"), RetryRules().attempts),
        (no(429, "too many requests"), RetryRules().attempts),
        (Reply.hang_up(), RetryRules().attempts),
    ],
    ids=["overflow", "too large", "overloaded", "too many", "hangs up"],
)
def test_a_server_that_always_refuses(model, reply, most, monkeypatch):
    monkeypatch.setattr("mull.client.retry.FIRST_WAIT", 0.0)
    with ScriptedServer(lambda _: reply) as server:
        with pytest.raises(MullError):
            hammer(server, model)
        assert len(server.requests) == most


MID_STREAM = {
    "/chat/completions": lambda error: (error,),
    "/responses": lambda error: (
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.failed", "response": {"id": "r", **error}},
    ),
    "/messages": lambda error: (
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "error", **error},
    ),
    ":streamGenerateContent": lambda error: (error,),
}


OVERLOADED = {"message": "no", "code": "overloaded_error", "type": "overloaded_error"}
NOT_SO = {"message": "reasoning is not supported", "code": "invalid_request_error"}
TRIES = RetryRules().attempts


@pytest.mark.parametrize("model", DIALECTS)
@pytest.mark.parametrize(
    ("errors", "most"),
    [
        ([OVERLOADED], TRIES),
        ([NOT_SO], 1 + Limits().heals),
        ([OVERLOADED] * (TRIES - 1) + [NOT_SO], TRIES + Limits().heals),
        ([NOT_SO, OVERLOADED], TRIES + Limits().heals),
    ],
    ids=["overloaded", "not so", "overloaded, not so", "not so, overloaded"],
)
def test_a_server_that_always_refuses_in_the_stream(model, errors, most, monkeypatch):
    monkeypatch.setattr("mull.client.retry.FIRST_WAIT", 0.0)
    refusals = cycle(errors)

    def script(asked):
        events = next(say for end, say in MID_STREAM.items() if end in asked.path)
        return Reply.events(*events({"error": next(refusals)}))

    with ScriptedServer(script) as server:
        with suppress(RefusedError):
            hammer(server, model)
        assert 1 <= len(server.requests) <= most
    if errors == [OVERLOADED]:
        assert len(server.requests) == most


def test_a_summary_that_makes_nothing_shorter_is_not_asked_for_in_circles():
    """A full window, a summariser that only repeats, and a chain of tools that never ends."""
    target = resolve("moonshotai/kimi-k2-thinking")
    summaries, answers = [], []

    def script(asked):
        if "nothing else." in last_text(asked.json)[-40:]:
            summaries.append(asked)
            return chat(filler("again", 3000))
        answers.append(asked)
        return chat(thought="hm", calls=True, finish="tool_calls")

    log = flat(turn(target, str(n), size=1000) for n in range(12))

    async def run(loop):
        talk = Conversation(
            target.name,
            base_url=server.url,
            key="k",
            tools=[look],
            messages=log,
            settings={"context.limit": 8000, "reasoning.maxSeconds": 1},
        )
        try:
            async for event in talk.stream_async("go"):
                if isinstance(event, ThinkingDelta):
                    await loop.advance(1.5)
        finally:
            await talk.aclose()

    with ScriptedServer(script) as server, pytest.raises(LocalError, match="50 rounds"):
        run_moved(run)
    assert len(answers) == 50
    assert 1 <= len(summaries) <= 2 * len(answers)
