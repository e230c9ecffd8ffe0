"""The calls of one answer: every one gets a result that can be stored and sent."""

import asyncio
import threading

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.calls import STOPPED, Calls, allow_all
from mull.agent.functions import tools_from
from mull.agent.tools.tool import Preview
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.events import ToolOutput, ToolRan, ToolStarted


def number(n: int) -> str:
    """Say a number; seven cannot be said."""
    if n == 7:
        raise ValueError("seven")
    return str(n)


def run(functions, *calls):
    events = []

    async def main():
        running = Calls(calls, tools_from(functions), allow_all, events.append)
        await running.run()
        return running.results()

    return asyncio.run(main()), events


def test_of_twenty_calls_at_once_one_fails_and_all_are_answered_in_order():
    calls = [ToolCallBlock(f"c{n}", "number", {"n": n}) for n in range(20)]
    results, events = run([number], *calls)
    assert [result.call_id for result in results] == [f"c{n}" for n in range(20)]
    assert [result.output for result in results if not result.is_error] == [
        str(n) for n in range(20) if n != 7
    ]
    assert (results[7].output, results[7].is_error) == ("ValueError: seven", True)
    assert sorted(event.call_id for event in events if isinstance(event, ToolRan)) == sorted(
        f"c{n}" for n in range(20)
    )


def half() -> str:
    """Give half a character."""
    return "a\ud800é"


def fail_by_half() -> str:
    """Fail with half a character."""
    raise ValueError("\udfff")


@pytest.mark.parametrize(
    ("function", "output"), [(half, "a?é"), (fail_by_half, "ValueError: ?")], ids=["good", "bad"]
)
def test_half_a_character_of_a_tool_does_not_spoil_the_session(function, output):
    results, events = run([function], ToolCallBlock("c", function.__name__, {}))
    assert results[0].output == events[-1].output == output
    assert msgspec.json.encode(results)


def test_a_tool_that_takes_itself_back_leaves_a_result():
    async def cancels() -> str:
        raise asyncio.CancelledError

    results, _ = run(
        [cancels, number], ToolCallBlock("a", "cancels", {}), ToolCallBlock("b", "number", {"n": 1})
    )
    assert [result.output for result in results] == [STOPPED, "1"]


class Held:
    """A tool that ends when it is let go; what is seen of it beforehand can take its time."""

    source, changes, definition = "function", False, None

    def __init__(self, before=None, after=None):
        self.before, self.after = before, after

    def preview(self, input):
        if self.before is not None:
            assert self.before.wait(20)
        if self.after is not None:
            self.after.set()
        return Preview("held")

    async def run(self, call, context):
        context.emit(call.id)
        await call.input["go"].wait()
        return ToolResultBlock(call.id, call.id)


@given(st.permutations(range(5)), st.sets(st.integers(0, 4)))
def test_results_are_shown_in_the_order_of_the_calls_whichever_is_done_first(order, twins):
    """Calls that a model gave one and the same id are told apart by their number alone."""

    async def main():
        gates = [asyncio.Event() for _ in order]
        made = [
            ToolCallBlock("twin" if n in twins else f"c{n}", "held", {"go": gate})
            for n, gate in enumerate(gates)
        ]
        shown, finished, waiting = [], [], list(order)

        def put(event):
            nonlocal shown
            if isinstance(event, ToolRan):
                finished.append(event.call_id)
            shown += calls.in_order(event)
            begun = sum(isinstance(event, ToolStarted) for event in shown)
            if begun == len(made) and waiting and len(finished) == len(made) - len(waiting):
                gates[waiting.pop(0)].set()

        calls = Calls(made, {"held": Held()}, allow_all, put)
        await calls.run()
        return made, shown, finished

    made, shown, finished = asyncio.run(main())
    assert finished == [made[n].id for n in order]
    told = [event.call_id for event in shown if isinstance(event, ToolRan)]
    assert told == [call.id for call in made]
    begun = [event.call_id for event in shown if isinstance(event, ToolStarted)]
    assert begun == [call.id for call in made]
    assert len([event for event in shown if isinstance(event, ToolOutput)]) == len(made)


def test_people_are_asked_in_the_order_of_the_calls_whatever_their_previews_take():
    asked, seen = [], threading.Event()
    tools = {"slow": Held(before=seen), "quick": Held(after=seen)}
    made = [ToolCallBlock("a", "slow", {}), ToolCallBlock("b", "quick", {})]

    async def refuse(tool, call, preview):
        asked.append(call.id)
        return "no"

    async def main():
        running = Calls(made, tools, refuse, lambda event: None)
        task = asyncio.ensure_future(running.run())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, seen.set)
        await task

    asyncio.run(main())
    assert asked == ["a", "b"]


def test_a_tool_that_takes_itself_back_holds_no_other_result_up():
    async def cancels() -> str:
        raise asyncio.CancelledError

    _, events = run(
        [cancels, number], ToolCallBlock("a", "cancels", {}), ToolCallBlock("b", "number", {"n": 1})
    )
    assert {event.call_id: event.output for event in events if isinstance(event, ToolRan)} == {
        "a": STOPPED,
        "b": "1",
    }
