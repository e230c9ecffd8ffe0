"""The calls of one answer: every one gets a result that can be stored and sent."""

import asyncio

import msgspec
import pytest

from mull.agent.calls import STOPPED, Calls, allow_all
from mull.agent.functions import tools_from
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.events import ToolRan


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
