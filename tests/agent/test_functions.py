"""Functions as tools: their definition, their arguments, their failures."""

import asyncio
import contextvars
import dataclasses
import enum
import functools
import math
import subprocess
import sys
import threading
from typing import Annotated, Literal, NotRequired, TypedDict

import msgspec
import pytest

from mull.agent.calls import Calls, allow_all
from mull.agent.functions import Tool, tools_from
from mull.agent.tools.tool import Preview
from mull.neutral.blocks import MediaBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.request import ToolDefinition
from mull.policy.approval import Asked, Subject
from tool_calls import answer, call, preview

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
    tool = tool if isinstance(tool, Tool) else Tool(handler=tool)
    return asyncio.run(answer(tool, ToolCallBlock("c", tool.name, values)))


def test_the_definition_is_the_signature_and_the_docstring():
    assert Tool(handler=weather).definition == ToolDefinition(
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

    assert run(leave_later if is_async else leave) == ToolResultBlock(
        "c", "SystemExit: 3", is_error=True
    )


def test_arguments_that_are_no_json_come_back_too():
    call = ToolCallBlock("c", "weather", {}, arguments='{"city": ')
    result = asyncio.run(answer(Tool(handler=weather), call))
    assert result.is_error
    assert result.output == f'the arguments are not a JSON object: {{"city": \n{EXPECTED}'


def test_no_arguments_may_be_written_in_any_way():
    def now() -> str:
        return "noon"

    for written in (None, "", "{ }"):
        call = ToolCallBlock("c", "now", {}, arguments=written)
        assert asyncio.run(answer(Tool(handler=now), call)) == ToolResultBlock("c", "noon")


def test_a_function_is_shown_as_the_call_it_is():
    tool = Tool(handler=weather)
    assert (tool.source, tool.changes) == ("function", False)
    assert Tool(handler=weather, changes=True).changes
    shown = preview(tool, city="Os\x1b[2Jlo", days=2)
    assert shown == Preview("weather(city='Os\\x1b[2Jlo', days=2)", shown.title)


def test_rules_are_compared_with_what_the_model_sent():
    prepared = Tool(handler=weather, changes=True).prepare(call("weather", unit="F", city="Oslo"))
    subject = Subject("text", '{"city":"Oslo","unit":"F"}')
    assert prepared.asked == Asked("weather", True, subject)
    assert prepared.source == "function"


# what can be a tool


class Desk:
    """Something with methods."""

    def __init__(self, number):
        self.number = number

    def add(self, n: int) -> int:
        """Add to the number."""
        return self.number + n

    async def add_later(self, n: int) -> int:
        return self.number + n

    @classmethod
    def double(cls, n: int) -> int:
        return 2 * n

    @staticmethod
    def halve(n: int) -> float:
        return n / 2

    def __call__(self, n: int) -> int:
        return self.number * n


class NamedDesk(Desk):
    def __init__(self, number):
        super().__init__(number)
        self.__name__ = f"desk_{number}"
        self.__doc__ = f"The desk with the number {number}."


def test_a_callable_object_has_its_own_name_or_that_of_its_class():
    made = Tool(handler=NamedDesk(7))
    assert (made.name, made.definition.description) == ("desk_7", "The desk with the number 7.")
    renamed = functools.partial(key_and_number, "k")
    renamed.__name__ = "numbered"
    assert Tool(handler=renamed).name == "numbered"
    assert Tool(handler=functools.partial(NamedDesk(7), 2)).name == "desk_7"
    assert Tool(handler=Desk(7)).name == "Desk"


class LaterDesk(Desk):
    async def __call__(self, n: int) -> int:
        """Multiply, later."""
        return self.number * n


def passed_on(function):
    @functools.wraps(function)
    def wrapper(*given, **more):
        return function(*given, **more)

    return wrapper


def key_and_number(key: str, n: int) -> str:
    """Shows both.

    Args:
        n: a number
    """
    return f"{key}{n}"


def mixed(a: int, /, n: int, *, c: int = 3) -> list[int]:
    return [a, n, c]


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (Desk(1).add, "5"),
        (Desk(1).add_later, "5"),
        (Desk(1).double, "8"),
        (Desk.halve, "2.0"),
        (Desk(3), "12"),
        (Tool(handler=Desk(3), name="times"), "12"),
        (Tool(handler=LaterDesk(3), name="times"), "12"),
        (Tool(handler=lambda n: n + 1, name="more"), "5"),
        (functools.partial(key_and_number, "k"), "k4"),
        (functools.partial(key_and_number, key="k"), "k4"),
        (functools.partial(mixed, 1), "[1,4,3]"),
        (passed_on(Desk(1).add), "5"),
        (passed_on(Desk(1).add_later), "5"),
        (functools.lru_cache(Desk.halve), "2.0"),
        (math.factorial, "24"),
    ],
)
def test_whatever_can_be_called_by_name_can_be_a_tool(function, output):
    name = next(iter(tools_from([function]).values())).definition.parameters["required"][0]
    assert run(function, **{name: 4}) == ToolResultBlock("c", output)


def test_a_partial_keeps_what_it_settled_from_the_model():
    tool = Tool(handler=functools.partial(key_and_number, key="secret"))
    assert tool.definition == ToolDefinition(
        "key_and_number",
        "Shows both.",
        {
            "type": "object",
            "properties": {"n": {"type": "integer", "description": "a number"}},
            "required": ["n"],
            "additionalProperties": False,
        },
    )
    assert run(tool, n=1, key="mine").is_error
    assert run(tool, n=1).output == "secret1"


def test_arguments_reach_the_parameters_they_are_for():
    assert run(mixed, a=1, n=2, c=5).output == "[1,2,5]"
    assert run(mixed, a=1, n=2).output == "[1,2,3]"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Size(TypedDict):
    width: int
    depth: NotRequired[int]


_NOTHING = object()


def paint(
    at: Point,
    colour: Colour = Colour.RED,
    size: Size | None = None,
    more: list[Point] = [Point(7)],  # noqa: B006, B008
    label: str = None,  # noqa: RUF013
    nothing: object = _NOTHING,
) -> str:
    """Paint it."""
    found = [at.x, at.y, colour.name, size, [point.x for point in more], label]
    return f"{found} {nothing is _NOTHING}"


def test_arguments_come_as_the_types_that_were_written():
    assert run(paint, at={"x": 1}).output == "[1, 0, 'RED', None, [7], None] True"
    given = {"at": {"x": 1, "y": 2}, "colour": "blue", "size": {"width": 3}, "more": []}
    assert run(paint, **given, label=None, nothing=1).output == (
        "[1, 2, 'BLUE', {'width': 3}, [], None] False"
    )


def test_a_model_is_told_what_types_and_defaults_there_are():
    schema = Tool(handler=paint).definition.parameters
    assert schema["required"] == ["at"]
    defaults = {
        name: one["default"] for name, one in schema["properties"].items() if "default" in one
    }
    assert defaults == {"colour": "red", "size": None, "more": [{"x": 7, "y": 0}], "label": None}
    assert schema["$defs"]["Colour"]["enum"] == ["blue", "red"]
    assert run(paint, at={"x": "1"}).output == (
        "wrong arguments: Expected `int`, got `str` - at `$.at.x`\n"
        'expected: {"at": {"x": integer, "y"?: integer}, "colour"?: "blue" | "red", "size"?:'
        ' {"depth"?: integer, "width": integer} | null, "more"?: [{"x": integer, "y"?: integer},'
        ' …], "label"?: string | null, "nothing"?: any}'
    )


def described_by_google(x: int, y: str = "a", z: int = 1) -> None:
    """Does things.

    Example:
        as here

    Args:
        x: the number
            that counts: always
        y (str, optional): a text
        z:
            on its own line

    Note:
        y: not this
    """


def described_by_numpy(x: int, y: str = "a", z: int = 1) -> None:
    """Does things.

    Example:
        as here

    Parameters
    ----------
    x : int
        the number
        that counts: always
    y : str, optional
        a text
    z
        on its own line

    Returns
    -------
    None
        y: not this
    """


def described_by_sphinx(x: int, y: str = "a", z: int = 1) -> None:
    """Does things.

    Example:
        as here

    :param int x: the number
        that counts: always
    :param y: a text
    :param z:
        on its own line
    :returns: y: not this
    """


def described_by_annotations(
    x: Annotated[int, "the number that counts: always"],
    y: Annotated[str, "a text"] = "a",
    z: Annotated[int, msgspec.Meta(description="on its own line")] = 1,
) -> None:
    """Does things.

    Example:
        as here
    """


@pytest.mark.parametrize(
    "function",
    [described_by_google, described_by_numpy, described_by_sphinx, described_by_annotations],
)
def test_descriptions_are_read_whole_in_whatever_form_they_are_written(function):
    definition = Tool(handler=function).definition
    assert definition.description == "Does things.\n\nExample:\n    as here"
    assert {
        name: one["description"] for name, one in definition.parameters["properties"].items()
    } == {
        "x": "the number that counts: always",
        "y": "a text",
        "z": "on its own line",
    }


def test_what_cannot_be_a_tool_is_said_before_anything_is_sent():
    def spread(*numbers: int) -> int:
        return sum(numbers)

    def open_ended(**more: int) -> int:
        return len(more)

    def odd(value: complex) -> str:
        return ""

    def lost(value: "Missing") -> str:  # noqa: F821
        return ""

    for given, said in [
        (spread, r"spread cannot be a tool: \*numbers has no schema; declare each argument$"),
        (open_ended, r"open_ended cannot be a tool: \*\*more has no schema"),
        (odd, "odd cannot be a tool: type <class 'complex'> is not supported$"),
        (lost, "lost cannot be a tool: its signature is unclear: name 'Missing' is not"),
        (lambda: 1, r"its name must consist .* mull.Tool\(name, handler=…\)"),
        (Desk, "Desk'> cannot be a tool: it is not a function"),
        ("weather", "'weather' cannot be a tool: it is not a function"),
    ]:
        with pytest.raises(LocalError, match=said):
            tools_from([given])


def test_the_type_of_a_result_need_not_be_known():
    def found() -> "Missing":  # noqa: F821
        return "it"

    assert run(found).output == "it"


def test_tools_are_told_apart_by_their_names():
    with pytest.raises(LocalError, match="two tools are called 'later'"):
        tools_from([later, Tool(handler=weather, name="later")])
    ready = Tool(handler=weather, name="forecast", changes=True)
    tools = tools_from([weather, ready, later])
    assert list(tools) == ["weather", "forecast", "later"]
    assert tools["forecast"] is ready


# what becomes of a call


class Word(str):
    """A text with something to it."""


class Odd:
    """Something JSON cannot hold."""

    def __str__(self):
        return "odd"


HOLDS_ITSELF: list[object] = []
HOLDS_ITSELF.append(HOLDS_ITSELF)


@pytest.mark.parametrize(
    ("value", "output"),
    [
        ("plain", "plain"),
        (Word("word"), "word"),
        (b"caf\xc3\xa9", "café"),
        (b"\xff\xfe", "//4="),
        (None, "null"),
        ({"city": "Zürich", "days": 2}, '{"city":"Zürich","days":2}'),
        ({"half": "\ud800"}, '{"half":"\ud800"}'),
        ({1: [float("nan")]}, '{"1":[NaN]}'),
        (Point(1, 2), '{"x":1,"y":2}'),
        (Colour.RED, "red"),
        (Odd(), "odd"),
        ([Odd(), 1], '["odd",1]'),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (HOLDS_ITSELF, "[[...]]"),
        ("x" * 100_000, "x" * 100_000),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_are_text_or_json(value, output):
    def give() -> object:
        return value

    assert run(give) == ToolResultBlock("c", output)


def test_a_picture_is_shown_to_the_model():
    picture = MediaBlock("image/png", data="aGk=")
    assert run(Tool(handler=lambda: picture, name="look")).media == (picture,)


class Wordless(Exception):
    def __str__(self):
        raise KeyError("no words")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("it is under water"), "ValueError: it is under water"),
        (Wordless(), "Wordless"),
        (StopIteration(3), "StopIteration: 3"),
        (KeyError("Oslo"), "KeyError: 'Oslo'"),
    ],
)
def test_whatever_a_function_raises_is_an_answer(error, said, is_async):
    def fails() -> None:
        raise error

    async def fails_later() -> None:
        raise error

    result = run(fails_later if is_async else fails)
    if is_async and isinstance(error, StopIteration):
        said = "RuntimeError: coroutine raised StopIteration"
    assert result == ToolResultBlock("c", said, is_error=True)


def test_all_calls_of_an_answer_run_at_once_however_many():
    """Each waits for all others: in a pool of fewer threads they would never end."""
    together = threading.Barrier(60)

    def meet(n: int) -> int:
        together.wait(20)
        return n

    calls = [ToolCallBlock(f"c{n}", "meet", {"n": n}) for n in range(60)]

    async def main():
        running = Calls(calls, tools_from([meet]), allow_all, lambda event: None)
        await running.run()
        return running.results()

    assert [result.output for result in asyncio.run(main())] == [str(n) for n in range(60)]


def test_a_function_that_never_ends_does_not_hold_up_who_leaves():
    begun, let_go = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        let_go.wait(60)

    async def leave():
        running = asyncio.ensure_future(answer(Tool(handler=stuck), call("stuck")))
        await asyncio.to_thread(begun.wait)
        running.cancel()
        await asyncio.wait((running,))
        return running.cancelled()

    assert asyncio.run(leave())  # which waits for every thread of the loop's own pool
    assert not let_go.is_set()
    let_go.set()


def test_a_program_ends_although_a_function_does_not():
    program = """
import asyncio, threading
from mull.agent.calls import Calls, allow_all
from mull.agent.functions import tools_from
from mull.neutral.blocks import ToolCallBlock

begun = threading.Event()

def stuck() -> None:
    begun.set()
    threading.Event().wait()

async def main():
    calls = Calls([ToolCallBlock("c", "stuck")], tools_from([stuck]), allow_all, print)
    running = asyncio.ensure_future(calls.run())
    await asyncio.to_thread(begun.wait)
    running.cancel()

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=30)


def test_a_function_sees_the_context_it_was_called_in():
    user = contextvars.ContextVar("user", default="nobody")

    def who() -> str:
        return user.get()

    user.set("ada")
    assert run(who).output == "ada"
