"""Functions as tools: their definition, their arguments, their failures."""

import asyncio
import sys
from typing import Literal

import pytest

from mull.agent.functions import FunctionTool, tools_from
from mull.agent.tools.tool import Preview
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.request import Tool

EXPECTED = 'expected: {"city": string, "unit"?: "C" | "F", "days"?: integer}'


def weather(city: str, unit: Literal["C", "F"] = "C", days: int = 1) -> dict[str, object]:
    """The weather of a city.

    Args:
        city: its name, in English
        unit: of the temperature

    Returns:
        what it will be
    """
    if city == "Atlantis":
        raise ValueError("it is under water")
    return {"city": city, "unit": unit, "days": days}


async def later(text: str) -> str:
    """Says it back."""
    await asyncio.sleep(0)
    return text


def run(tool, **values):
    return asyncio.run(FunctionTool(tool).run(ToolCallBlock("c", tool.__name__, values)))


def test_the_definition_is_the_signature_and_the_docstring():
    assert FunctionTool(weather).definition == Tool(
        "weather",
        "The weather of a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "its name, in English"},
                "unit": {"enum": ["C", "F"], "default": "C", "description": "of the temperature"},
                "days": {"type": "integer", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    )


def test_results_are_text_or_json():
    assert run(weather, city="Oslo", days=2) == ToolResultBlock(
        "c", '{"city":"Oslo","unit":"C","days":2}'
    )
    assert run(later, text="hi") == ToolResultBlock("c", "hi")
    assert run(odd_result, x=1).output == "odd 1"


class Odd:
    """Something JSON cannot hold."""

    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"odd {self.x}"


def odd_result(x: int) -> object:
    """Gives back something odd."""
    return Odd(x)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "wrong arguments: Object missing required field `city`"),
        ({"city": 3}, "wrong arguments: Expected `str`, got `int` - at `$.city`"),
        ({"city": "O", "unit": "K"}, "wrong arguments: Invalid enum value 'K' - at `$.unit`"),
        ({"city": "O", "x": 1}, "wrong arguments: Object contains unknown field `x`"),
        ({"city": "Atlantis"}, "ValueError: it is under water"),
    ],
)
def test_mistakes_come_back_as_errors_the_model_can_act_on(values, said):
    if said.startswith("wrong arguments"):
        said += f"\n{EXPECTED}"
    assert run(weather, **values) == ToolResultBlock("c", said, is_error=True)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_that_would_end_the_program_only_fails(is_async):
    def leave() -> str:
        sys.exit(3)

    async def leave_later() -> str:
        sys.exit(3)

    tool = FunctionTool(leave_later if is_async else leave)
    result = asyncio.run(tool.run(ToolCallBlock("c", tool.name, {})))
    assert result == ToolResultBlock("c", "SystemExit: 3", is_error=True)


def test_arguments_that_are_no_json_come_back_too():
    call = ToolCallBlock("c", "weather", {}, arguments='{"city": ')
    result = asyncio.run(FunctionTool(weather).run(call))
    assert result.is_error
    assert result.output == f'the arguments are not a JSON object: {{"city": \n{EXPECTED}'


def test_no_arguments_may_be_written_in_any_way():
    def now() -> str:
        return "noon"

    for written in (None, "", "{ }"):
        call = ToolCallBlock("c", "now", {}, arguments=written)
        assert asyncio.run(FunctionTool(now).run(call)) == ToolResultBlock("c", "noon")


def test_a_function_is_shown_as_the_call_it_is():
    tool = FunctionTool(weather)
    assert (tool.source, tool.changes) == ("function", False)
    assert FunctionTool(weather, changes=True).changes
    shown = tool.preview({"city": "Os\x1b[2Jlo", "days": 2})
    assert shown == Preview("weather(city='Os\\x1b[2Jlo', days=2)", shown.title)


def test_what_cannot_be_a_tool_is_said_before_anything_is_sent():
    def spread(*numbers: int) -> int:
        return sum(numbers)

    with pytest.raises(LocalError, match=r"spread cannot be a tool: \*numbers has no schema"):
        tools_from([spread])
    with pytest.raises(LocalError, match="two tools are called 'later'"):
        tools_from([later, later])
    with pytest.raises(LocalError, match="needs a plain name"):
        tools_from([lambda: 1])

    def odd(value: complex) -> str:
        return ""

    with pytest.raises(LocalError, match="odd cannot be a tool"):
        tools_from([odd])
    assert list(tools_from([weather, later])) == ["weather", "later"]
