"""The runner: tools at once and in order, stops that orphan nothing, limits that show."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import aclosing

import msgspec
import pytest
from msgspec.structs import replace

from mull.agent.calls import STOPPED
from mull.agent.functions import tools_from
from mull.agent.hurry_plan import Cut
from mull.agent.run import NUDGE, UNUSABLE, Situation, Turn
from mull.agent.tools.tool import Outcome
from mull.agent.turn import Limits
from mull.catalog.resolve import resolve
from mull.history.log import Entry, Log, Summary
from mull.neutral.blocks import ToolResultBlock
from mull.neutral.errors import LocalError, NetworkError
from mull.neutral.events import (
    Compressed,
    Finished,
    Healed,
    Hurried,
    Nudged,
    Progressed,
    StateChanged,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolOutput,
    ToolRan,
    ToolStarted,
)
from mull.neutral.messages import user
from mull.neutral.request import RequestOptions, WireRequest
from mull.neutral.thinking import ThinkingPlan
from mull.policy.tokens import CHARACTERS
from mull.settings.layers import Settings
from turning import going, sends

KIMI = resolve("moonshotai/kimi-k2-thinking")
GLM = resolve("zai/glm-4.7")


def call(at: int, name: str, arguments: str = "{}") -> list:
    return [ToolCallDelta(key=at, id=f"c{at}", name=name, arguments=arguments)]


def calls(*names: str) -> list:
    made = [event for at, name in enumerate(names) for event in call(at, name)]
    return [ThinkingDelta("hm"), *made, Finished("tool_calls")]


ANSWER = [ThinkingDelta("so"), TextDelta("done"), Finished("stop")]
SILENT = [ThinkingDelta("so"), Finished("stop")]


class Model:
    """Gives one list of events per request, and remembers what was asked."""

    def __init__(self, *answers: list) -> None:
        self._answers = iter(answers)
        self.asked: list = []

    async def __call__(self, prepared, sending=None):
        self.asked.append(prepared)
        for event in next(self._answers):
            await asyncio.sleep(0)
            if isinstance(event, Exception):
                raise event
            if event == "wait":
                await asyncio.Event().wait()
            yield event


def turn_with(model, *functions, target=KIMI, **more) -> Turn:
    tools = tools_from(functions)
    settings = Settings()

    def situation() -> Situation:
        return Situation(
            target=target() if callable(target) else target,
            snapshot=settings.snapshot(),
            options=RequestOptions(tools=tuple(tool.definition for tool in tools.values())),
            counter=CHARACTERS,
            send=sends(model),
            tools=tools,
        )

    return Turn(Log([user("go")]), situation, situation(), **more)


def run(turn: Turn) -> list:
    async def collect():
        return [event async for event in going(turn)]

    return asyncio.run(collect())


def states(events) -> list[str]:
    return [event.state for event in events if isinstance(event, StateChanged)]


class Noted:
    """A recorder that keeps the results of tools as they come."""

    def __init__(self):
        self.ran = []

    def begin(self, origin):
        pass

    def append(self, record):
        pass

    def events(self, events):
        self.ran += [event for event in events if isinstance(event, ToolRan)]


def test_parallel_calls_run_at_once_and_their_results_stand_in_the_order_of_the_calls():
    both = asyncio.Barrier(2)
    order = []

    async def slow() -> str:
        await both.wait()
        await asyncio.sleep(0.01)
        order.append("slow")
        return "S"

    async def fast() -> str:
        await both.wait()
        order.append("fast")
        return "F"

    turn = turn_with(Model(calls("slow", "fast"), ANSWER), slow, fast)
    turn.recorder = Noted()
    events = run(turn)
    assert order == ["fast", "slow"]
    # safe as soon as it is done; the last one is so with the results of all
    assert [event.name for event in turn.recorder.ran] == ["fast"]
    assert [event.name for event in events if isinstance(event, ToolRan)] == ["slow", "fast"]
    assert turn.messages[1].blocks == (ToolResultBlock("c0", "S"), ToolResultBlock("c1", "F"))
    assert states(events) == ["sending", "streaming", "tools", "sending", "streaming", "done"]


def test_a_call_is_announced_runs_and_is_told_of():
    class Talker:
        definition = tools_from([look])["look"].definition
        changes, source = False, "test"

        def prepare(self, call):
            return dataclasses.replace(tools_from([look])["look"].prepare(call), work=self.talk)

        async def talk(self, context):
            context.emit("half")
            return Outcome("whole")

    turn = turn_with(Model(calls("look"), ANSWER), look)
    tools = {"look": Talker()}
    situation = turn.situation
    turn.situation = lambda: _with_tools(situation(), tools)
    turn.now = turn.situation()
    told = [e for e in run(turn) if isinstance(e, ToolStarted | ToolOutput | ToolRan)]
    assert told == [
        ToolStarted("c0", "look", {}, "look()", "look()"),
        ToolOutput("c0", "half"),
        ToolRan("c0", "look", "whole"),
    ]


def _with_tools(situation: Situation, tools) -> Situation:
    return msgspec.structs.replace(situation, tools=tools)


def look() -> str:
    """Looks."""
    return "seen"


def test_an_unknown_tool_wrong_arguments_and_a_failure_are_results_the_model_can_use():
    def add(one: int, two: int) -> int:
        raise OverflowError("too much")

    wrong = [*call(0, "ad"), *call(1, "add", '{"one":"x"}'), *call(2, "add", '{"one":')]
    right = call(3, "add", '{"one":1,"two":2}')
    turn = turn_with(Model([*wrong, *right, Finished("tool_calls")], ANSWER), add)
    run(turn)
    results = turn.messages[1].blocks
    assert all(result.is_error for result in results)
    said = [result.output for result in results]
    assert said[0] == "unknown tool ad: use add"
    assert "one" in said[1]
    assert "not a JSON object" in said[2]
    assert said[3] == "OverflowError: too much"


def test_a_no_is_told_to_the_model_and_the_tool_does_not_run():
    ran = []

    def write() -> str:
        ran.append(1)
        return "written"

    async def no(prepared):
        return f"{prepared.preview.title} was refused: ask first"

    turn = turn_with(Model(calls("write"), ANSWER), write, approve=no)
    events = run(turn)
    assert not ran
    expected = ToolResultBlock("c0", "write() was refused: ask first", is_error=True)
    assert turn.messages[1].blocks == (expected,)
    assert not [event for event in events if isinstance(event, ToolStarted)]


def test_stopping_while_tools_run_cancels_them_and_leaves_no_call_without_a_result():
    cancelled = asyncio.Event()

    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    turn = turn_with(Model(calls("look", "forever")), look, forever)

    async def stop_when_one_is_done_and_one_runs():
        missing = {(ToolStarted, "forever"), (ToolRan, "look")}
        async with aclosing(going(turn)) as events:
            async for event in events:
                missing.discard((type(event), getattr(event, "name", None)))
                if not missing:
                    return

    asyncio.run(stop_when_one_is_done_and_one_runs())
    assert cancelled.is_set()
    assert turn.messages[-1].blocks == (
        ToolResultBlock("c0", "seen"),
        ToolResultBlock("c1", STOPPED, is_error=True),
    )
    assert turn.progress.state == "done"


def test_stopping_a_thought_keeps_it_as_interrupted():
    turn = turn_with(Model([ThinkingDelta("half a th"), "wait"]))

    async def stop():
        async with aclosing(going(turn)) as events:
            async for event in events:
                if isinstance(event, ThinkingDelta):
                    return

    asyncio.run(stop())
    assert (turn.messages[-1].status, turn.progress.state) == ("interrupted", "done")
    assert turn.log[-1].thought_seconds is not None


def test_the_limit_of_rounds_is_seen_and_ends_the_turn_with_all_results_stored():
    turn = turn_with(Model(*[calls("look")] * 3), look, limits=Limits(rounds=3))
    seen = []

    async def collect():
        async for event in going(turn):
            seen.append(event)

    with pytest.raises(LocalError, match="called tools in 3 rounds without answering"):
        asyncio.run(collect())
    assert seen[-1] == StateChanged("failed", 3, 3)
    assert [message.role for message in turn.messages] == ["assistant", "tool"] * 3


def test_s03_a_model_that_only_thinks_is_asked_once_more_and_everything_is_kept():
    model = Model(SILENT, ANSWER)
    turn = turn_with(model, look)
    events = run(turn)
    assert [event for event in events if isinstance(event, Nudged)] == [Nudged(1, 1)]
    assert [m.status for m in turn.messages] == ["no_answer", None, "complete"]
    assert turn.messages[1] == user(NUDGE)
    assert model.asked[1].request.messages[-1] == user(NUDGE)
    assert [e.message.text for _, e in turn.log.entries() if e.own] == [NUDGE]


@pytest.mark.parametrize("said", [[], [TextDelta("I look.")]], ids=["alone", "with text"])
def test_a_model_whose_call_cannot_be_used_is_told_that_and_nothing_else(said):
    model = Model([*said, ToolCallDelta(0, "c1", None, "{}"), Finished("stop")], ANSWER)
    turn = turn_with(model, look)
    run(turn)
    assert model.asked[1].request.messages[-1] == user(UNUSABLE)


def test_s03_a_second_silence_ends_the_turn():
    turn = turn_with(Model(SILENT, calls("look"), SILENT), look)
    events = run(turn)
    assert states(events)[-1] == "done"
    assert turn.messages[-1].status == "no_answer"
    assert len([event for event in events if isinstance(event, Nudged)]) == 1


def test_the_model_can_be_switched_between_two_rounds():
    model, chosen = Model(calls("switch"), ANSWER), [KIMI]

    def switch() -> str:
        chosen.append(GLM)
        return "ok"

    turn = turn_with(model, switch, target=lambda: chosen[-1])
    run(turn)
    assert [prepared.target.model for prepared in model.asked] == ["kimi-k2-thinking", "glm-4.7"]
    assert [m.origin.model for m in turn.messages if m.origin] == ["kimi-k2-thinking", "glm-4.7"]


class Recording:
    def __init__(self) -> None:
        self.kept: list = []
        self.origins: list = []

    def begin(self, origin) -> None:
        self.origins.append(origin)

    def events(self, events) -> None:
        self.kept += events

    def append(self, record) -> None:
        self.kept.append(record)


def test_an_answer_is_recorded_before_it_is_shown_as_done():
    recorder, shown = Recording(), []
    turn = turn_with(Model(calls("look"), ANSWER), look, recorder=recorder)

    async def collect():
        async for event in going(turn):
            shown.append(event)
            if isinstance(event, Finished):
                assert isinstance(recorder.kept[-1], Entry)
                assert recorder.kept[-1].message == turn.messages[-1]

    asyncio.run(collect())
    assert [event for event in shown if isinstance(event, Finished)]
    entries = [kept for kept in recorder.kept if isinstance(kept, Entry)]
    assert [entry.message for entry in entries] == turn.messages
    deltas = [event for event in recorder.kept if isinstance(event, ThinkingDelta | TextDelta)]
    assert deltas == [event for event in shown if isinstance(event, ThinkingDelta | TextDelta)]


def test_an_answer_is_of_the_target_that_a_repaired_request_went_to():
    recorder = Recording()
    elsewhere = replace(KIMI, dialect="openai-responses")

    async def model(prepared, sending):
        sending(replace(prepared, target=elsewhere), WireRequest("/", b""))
        yield Healed("not here", "sent elsewhere")
        yield ThinkingDelta("half a th")
        raise NetworkError("gone")

    turn = turn_with(model, recorder=recorder)
    with pytest.raises(NetworkError):
        run(turn)
    assert recorder.origins == [KIMI.origin, elsewhere.origin]
    assert turn.messages[-1].origin == elsewhere.origin


class Shortening:
    def __init__(self) -> None:
        self.calls = 0

    def needed(self, prepared, situation) -> bool:
        return not self.calls

    async def run(self, prepared, situation, say):
        self.calls += 1
        say(Progressed("compression", "reading"))
        say(Compressed(True, "shorter", 9, 3))
        return [Summary(0, 1, "the story so far", "user")]


def test_a_request_that_must_be_shorter_is_made_shorter_first():
    model = Model(ANSWER)
    shortening = Shortening()
    turn = turn_with(model, shorten=lambda: shortening)
    events = run(turn)
    assert states(events) == ["sending", "compressing", "sending", "streaming", "done"]
    assert [type(e) for e in events if isinstance(e, Progressed | Compressed)] == [
        Progressed,
        Compressed,
    ]
    assert [m.text for m in model.asked[0].request.messages] == ["the story so far"]


def test_a_hurried_answer_is_asked_for_without_thinking_also_when_it_is_made_shorter_first():
    model, shortening = Model(calls("look"), ANSWER), Shortening()
    cut = Cut("hurried", ThinkingPlan("default"))
    turn = turn_with(model, look, target=GLM, shorten=lambda: shortening, cut=cut)
    events = run(turn)
    assert [event.how for event in events if isinstance(event, Hurried)] == ["off"]
    first, second = (prepared.request.thinking.state for prepared in model.asked)
    assert (first, second) == ("off", "default")


def test_a_failure_before_anything_came_is_raised_and_the_state_says_failed():
    turn, seen = turn_with(Model([NetworkError("nobody there")])), []

    async def collect():
        async for event in going(turn):
            seen.append(event)

    with pytest.raises(NetworkError):
        asyncio.run(collect())
    assert states(seen) == ["sending", "failed"]
    assert turn.messages == []
