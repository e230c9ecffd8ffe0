"""What functions can be as tools: their types, marks, context, progress, time limits, results."""

import asyncio
import dataclasses
import functools
import json
import os
import threading
import uuid
from collections import UserDict, UserList, UserString, deque
from itertools import chain, count
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

from effort import tried
from loops import run_moved, until
from mull.agent.functions import Tool, tool, tools_from
from mull.agent.tools.tool import ToolContext, ToolFailure
from mull.neutral.blocks import MediaBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from tool_calls import Screen, answer

PNG = b"\x89PNG\r\n\x1a\n0000"
PDF = b"%PDF-1.7 ..."


def run(function, screen=None, **values):
    made = function if isinstance(function, Tool) else Tool(handler=function)
    return asyncio.run(answer(made, ToolCallBlock("c", made.name, values), screen))


def schema(function, name):
    return Tool(handler=function).definition.parameters["properties"][name]


class Address(BaseModel):
    """Where someone lives."""

    street: str = Field(description="with its number")
    floor: int = Field(0, ge=0)


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    homes: list[Address] = []
    friends: "list[Person]" = []


@pydantic_dataclass
class Pair:
    left: int
    right: int = Field(gt=0)


@dataclasses.dataclass
class Box:
    wide: Annotated[int, Field(ge=1)]


class Held(TypedDict):
    person: Person


class Row(NamedTuple):
    n: Annotated[int, Field(lt=5)]


class Plain(msgspec.Struct):
    n: int


# pydantic


def test_pydantic_describes_and_validates_its_models():
    def greet(person: Person, n: int = 1) -> str:
        """Greet.

        Args:
            person: whom
        """
        return f"{type(person).__name__} {person.name} {person.homes[0].floor} {n}"

    parameters = Tool(handler=greet).definition.parameters
    assert parameters["properties"] == {
        "person": {"description": "whom", "$ref": "#/$defs/Person"},
        "n": {"type": "integer", "default": 1},
    }
    assert set(parameters["$defs"]) == {"Person", "Address"}
    assert parameters["$defs"]["Address"]["properties"]["floor"]["minimum"] == 0
    given = {"name": "Ada", "homes": [{"street": "A 1"}]}
    assert run(greet, person=given, n=2).output == "Person Ada 0 2"
    failed = run(greet, person={"name": "Ada", "homes": [{"street": "A 1", "floor": -1}]})
    assert failed.is_error
    assert failed.output.startswith(
        "wrong arguments: Input should be greater than or equal to 0 - at `$.person.homes[0].floor`"
        '\nexpected: {"person": {"name": string, "homes"?: [{"street": string, '
    )
    assert "Field required - at `$.person.name`" in run(greet, person={}).output
    assert "Object missing required field `person`" in run(greet).output


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (Annotated[int, Field(ge=1, description="d")], 1, 0),
        (Annotated[int, msgspec.Meta(ge=1, description="d")], 1, 0),
        (Annotated[str, Field(pattern="^a+$", max_length=3)], "aa", "aaaa"),
        (Annotated[str, msgspec.Meta(pattern="^a+$", max_length=3)], "aa", "aaaa"),
        (list[Annotated[int, Field(gt=0)]], [1], [1, 0]),
        (dict[str, Annotated[int, Field(gt=0)]] | None, {"a": 1}, {"a": 0}),
        (Annotated[list[int], Field(min_length=1)], [1], []),
        (PositiveInt, 1, 0),
        (Annotated[int, AfterValidator(lambda n: n if n % 2 else 1 // 0 or n)], 3, "x"),
        (Box, {"wide": 1}, {"wide": 0}),
        (list[Box], [{"wide": 1}], [{"wide": 0}]),
        (Pair, {"left": 1, "right": 1}, {"left": 1, "right": 0}),
        (Held, {"person": {"name": "A"}}, {"person": {"nam": "A"}}),
        (Row, [1], [5]),
        (Person | int, 3, "x"),
        (list[Plain], [{"n": 1}], [{"n": "1"}]),
    ],
    ids=range(16),
)
def test_constraints_hold_wherever_they_stand(kind, good, bad):
    def take(value: Any) -> str:
        return "took it"

    take.__annotations__["value"] = kind
    assert run(take, value=good) == ToolResultBlock("c", "took it")
    failed = run(take, value=bad)
    assert failed.is_error
    assert failed.output.startswith("wrong arguments: ")


def test_constraints_are_in_the_schema():
    def both(a: Annotated[int, Field(ge=1, description="of a")], b: Annotated[int, "of b"] = 2):
        """Both.

        Args:
            a: not this
        """

    assert schema(both, "a") == {"type": "integer", "minimum": 1, "description": "of a"}
    assert schema(both, "b") == {"type": "integer", "description": "of b", "default": 2}


SCALARS = [
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (str, st.text(st.characters(codec="utf-8"))),
]
KINDS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda one: (list[one[0]], st.lists(one[1], max_size=3))),
        inner.map(
            lambda one: (dict[str, one[0]], st.dictionaries(st.text("ab", max_size=2), one[1]))
        ),
        inner.map(lambda one: (one[0] | None, st.none() | one[1])),
    ),
    max_leaves=3,
)


@tried(0.5)
@given(st.data())
def test_both_validators_pass_on_what_the_model_sent(data):
    kind, values = data.draw(KINDS)
    value = data.draw(values)

    def take(value: Any) -> str:
        seen.append(value)
        return ""

    seen: list[Any] = []
    for annotated in (kind, Annotated[kind, AfterValidator(lambda one: one)]):
        take.__annotations__["value"] = annotated
        assert not run(take, value=value).is_error
    assert seen == [value, value]
    assert type(seen[0]) is type(seen[1])


def test_a_field_may_be_the_default():
    def search(query: str = Field(min_length=2), most: int = Field(5, le=10)) -> str:
        return f"{query} {most}"

    parameters = Tool(handler=search).definition.parameters
    assert parameters["required"] == ["query"]
    assert parameters["properties"]["most"] == {"type": "integer", "maximum": 10, "default": 5}
    assert run(search, query="ab").output == "ab 5"
    assert run(search, query="ab", most=7).output == "ab 7"
    assert run(search, query="a").is_error
    assert run(search, query="ab", most=11).is_error

    def label(mark: str = Field(default_factory=lambda: uuid.uuid4().hex)) -> str:
        return mark

    assert "default" not in schema(label, "mark")
    assert run(label).output != run(label).output


def test_a_field_that_only_describes_needs_no_pydantic():
    def take(value: Annotated[Plain, Field(description="a plain one")]) -> str:
        return type(value).__name__

    assert schema(take, "value")["description"] == "a plain one"
    assert run(take, value={"n": 1}).output == "Plain"


def test_what_pydantic_cannot_describe_is_refused_at_once():
    def take(value: Annotated[Plain, Field(ge=1)]) -> str:
        return ""

    with pytest.raises(LocalError, match="take cannot be a tool: Unable to generate pydantic"):
        tools_from([take])

    class Address(msgspec.Struct):
        n: int

    def two(person: Person, address: Address) -> str:
        return ""

    with pytest.raises(LocalError, match="two of its types are called Address: rename"):
        tools_from([two])


def test_optional_models_and_defaults():
    usual = Address(street="x")

    def visit(at: Address | None = None, more: Address = usual) -> str:
        return f"{at and at.street} {more.street}"

    assert run(visit).output == "None x"
    assert run(visit, at=None).output == "None x"
    assert run(visit, at={"street": "A"}, more={"street": "B"}).output == "A B"
    assert schema(visit, "more")["default"] == {"street": "x", "floor": 0}


# paths and texts


def test_paths_arrive_as_paths():
    def where(
        a: Path,
        b: Path | None = None,
        c: str | os.PathLike[str] = "c",
        d: list[PurePosixPath] = [],  # noqa: B006
        e: Path = Path("e"),
    ) -> str:
        return f"{a!r} {b!r} {c!r} {d!r} {e!r}"

    assert run(where, a="x").output == "PosixPath('x') None 'c' [] PosixPath('e')"
    given = {"a": "x", "b": "y", "c": "z", "d": ["w"], "e": "v"}
    assert run(where, **given).output == (
        "PosixPath('x') PosixPath('y') 'z' [PurePosixPath('w')] PosixPath('v')"
    )
    assert schema(where, "a") == {"type": "string", "format": "path"}
    assert schema(where, "e")["default"] == "e"
    assert "Expected `str`, got `int` - at `$.a`" in run(where, a=3).output


def test_texts_describe_at_any_depth():
    def go(
        cities: list[Annotated[str, "in English"]], n: Annotated[int | None, "how many"] = None
    ) -> str:
        return ""

    assert schema(go, "cities")["items"] == {"type": "string", "description": "in English"}
    assert schema(go, "n")["description"] == "how many"


def test_omitted_positional_arguments_keep_their_defaults():
    def three(a: int = 1, b: int = 2, /, c: int = 3) -> list[int]:
        return [a, b, c]

    assert run(three, b=5).output == "[1,5,3]"
    assert run(three, c=5).output == "[1,2,5]"


# marks and definitions


def test_a_mark_changes_what_is_offered_and_leaves_the_function_as_it_is():
    @tool(name="send_mail", description="Send it.", changes=True, timeout=3)
    def send(to: str) -> str:
        """Not this."""
        return f"to {to}"

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    assert (send("a"), look()) == ("to a", "seen")
    tools = tools_from([send, look])
    assert {name: one.definition.description for name, one in tools.items()} == {
        "send_mail": "Send it.",
        "look": "Look.",
    }
    assert [one.changes for one in tools.values()] == [True, False]
    assert tools["send_mail"].timeout == 3
    assert Tool(handler=functools.partial(send, to="b")).name == "send_mail"
    assert Tool("mail", handler=send, changes=False).name == "mail"
    assert not Tool("mail", handler=send, changes=False).changes


def test_methods_can_be_marked():
    class Desk:
        @tool(changes=True)
        def write(self, text: str) -> str:
            return text

        @staticmethod
        @tool(name="plain")
        def still(text: str) -> str:
            return text

    desk = Desk()
    assert list(tools_from([desk.write, desk.still])) == ["write", "plain"]
    assert run(desk.write, text="a").output == "a"
    with pytest.raises(LocalError, match="put it below @staticmethod"):
        tool(staticmethod(Desk.still))


@pytest.mark.parametrize("seconds", [0, -1, "3", True, float("inf"), float("nan")])
def test_a_time_limit_is_a_number_of_seconds(seconds):
    with pytest.raises(LocalError, match="timeout must be a number of seconds above 0"):
        tool(timeout=seconds)
    with pytest.raises(LocalError, match="timeout must be"):
        Tool("a", handler=print, timeout=seconds)


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 2}, "in-days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def test_a_tool_of_a_schema_and_a_handler():
    def handle(context: ToolContext, **given: Any) -> str:
        return f"{given} {context.deps}"

    made = Tool("weather", "The weather.", SCHEMA, handle)
    assert made.definition.parameters == SCHEMA
    assert made.definition.description == "The weather."
    assert run(made, Screen(deps=7), city="Oslo", **{"in-days": 2}).output == (
        "{'city': 'Oslo', 'in-days': 2} 7"
    )
    failed = run(made, city="O")
    assert failed.is_error
    assert failed.output.startswith("wrong arguments: ")
    assert 'expected: {"city": string, "in-days"?: integer}' in failed.output
    assert run(made, city="Oslo", x=1).is_error


@pytest.mark.parametrize(
    "properties",
    [
        {"a": True},
        {"a": {"anyOf": [True, {"type": "null"}]}},
        {"a": {"type": ["string", "null"]}},
        {"a": {"type": "array", "items": True}},
        {"a": {"$ref": "#"}},
        {"a": {"enum": [None, 1.5, "x"]}},
        {"a": {"const": 3}},
    ],
)
def test_any_valid_schema_can_be_explained_to_a_model(properties):
    schema = {"properties": properties, "required": ["b"]}
    failed = run(Tool("odd", "", schema, lambda **given: "never"), a=1)
    assert failed.is_error
    assert failed.output.startswith("wrong arguments: ")


def test_a_tool_that_cannot_work_is_refused_at_once():
    with pytest.raises(LocalError, match="called with the arguments by name, and has no par"):
        Tool("weather", "", SCHEMA, lambda arguments: "")
    with pytest.raises(LocalError, match="its schema is not valid"):
        Tool("weather", "", {"type": "objekt"})
    with pytest.raises(LocalError, match="its type is 'array', not 'object'"):
        Tool("weather", "", {"type": "array"})
    with pytest.raises(LocalError, match="its schema must be a JSON schema, not <class"):
        Tool("weather", "", Address)
    with pytest.raises(LocalError, match="needs a name"):
        Tool()
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA}
    assert Tool("weather", "", draft).definition.parameters == SCHEMA
    only = Tool("weather", "The weather.", SCHEMA)
    assert only.definition.parameters == SCHEMA
    with pytest.raises(LocalError, match="the tool weather has no handler: give it one, or offer"):
        tools_from([only])
    with pytest.raises(ToolFailure, match="no function"):
        only.prepare(ToolCallBlock("c", "weather"))


def test_tools_that_do_not_say_are_guarded_on_request():
    def plain() -> None: ...

    given = [plain, Tool("a", handler=plain, changes=False), Tool("b", handler=plain)]
    assert [one.changes for one in tools_from(given).values()] == [False, False, False]
    guarded = tools_from(given, guarded=True)
    assert [one.changes for one in guarded.values()] == [True, False, True]
    assert not given[2].changes


# context, progress, time limits


class Deps(NamedTuple):
    user: str


def test_a_context_is_filled_in_and_hidden():
    def who(n: int, context: ToolContext[Deps], more: str = "!") -> str:
        context.emit("looking")
        return f"{context.deps.user}{n}{more} {context.tokens}"

    async def later(context: ToolContext[Deps] | None = None) -> str:
        return context.deps.user if context else "nobody"

    assert list(Tool(handler=who).definition.parameters["properties"]) == ["n", "more"]
    screen = Screen(tokens=5, deps=Deps("ada"))
    assert run(who, screen, n=1).output == "ada1! 5"
    assert screen.text == "looking"
    assert run(later, Screen(deps=Deps("bob"))).output == "bob"
    assert run(who, n=1, context={}).is_error


def test_what_a_generator_yields_is_progress_and_its_end_the_result():
    def counting(n: int):
        yield from range(n)
        return "done"

    def listing(n: int):
        yield from range(n)

    async def later(n: int):
        for at in range(n):
            yield {"at": at}

    def disguised(n: int):
        return (at for at in range(n))

    for function, shown, output in [
        (counting, "0\n1\n", "done"),
        (listing, "0\n1\n", "[0,1]"),
        (later, '{"at":0}\n{"at":1}\n', '[{"at":0},{"at":1}]'),
        (disguised, "0\n1\n", "[0,1]"),
    ]:
        screen = Screen()
        assert run(function, screen, n=2) == ToolResultBlock("c", output)
        assert screen.text == shown
    assert run(counting, n=0).output == "done"
    assert run(later, n=0).output == "null"
    assert run(later, n=1).output == '{"at":0}'


def test_a_generator_that_fails_says_why():
    def breaking():
        yield 1
        raise ValueError("no more")

    async def breaking_later():
        yield 1
        raise ValueError("no more")

    for function in (breaking, breaking_later):
        assert run(function) == ToolResultBlock("c", "ValueError: no more", is_error=True)


LIMITED = "cancelled: it exceeded its time limit of 5 s, and may have done part of its work."


def run_late(function, begun):
    """The result of a call that is begun, and then takes longer than five seconds; what it
    showed."""
    made, screen = Tool(handler=function, timeout=5), Screen()

    async def main(loop):
        task = asyncio.ensure_future(answer(made, ToolCallBlock("c", made.name), screen))
        await until(begun)
        await loop.advance(5.1)
        while not task.done():  # it may be granted time to clean up
            await loop.advance(1.1)
        return await task

    return run_moved(main), screen.text


def test_a_blocking_function_that_takes_too_long_is_left_and_told_so():
    begun, ended = threading.Event(), threading.Event()

    def stuck(context: ToolContext) -> str:
        context.emit("begun\n")
        begun.set()
        context.cancelled.wait(50)
        context.emit("too late")
        ended.set()
        return "never seen"

    result, shown = run_late(stuck, begun.is_set)
    said = f"{LIMITED} Output up to that point:\nbegun"
    assert result == ToolResultBlock("c", said, is_error=True)
    assert ended.wait(50)
    assert shown == "begun\n"


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_an_asynchronous_function_that_takes_too_long_is_cancelled(is_stubborn):
    seen = []

    async def slow() -> str:
        seen.append("begun")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            if not is_stubborn:
                raise
        await asyncio.Event().wait()
        return "never seen"

    result, _ = run_late(slow, lambda: seen)
    assert result == ToolResultBlock("c", LIMITED, is_error=True)
    assert seen[:2] == ["begun", "cancelled"]


def test_progress_before_the_time_limit_is_not_lost():
    seen = []

    async def steps():
        yield "one"
        seen.append("begun")
        await asyncio.Event().wait()

    result, shown = run_late(steps, lambda: seen)
    assert result.output == f"{LIMITED} Output up to that point:\none"
    assert shown == "one\n"


def test_a_time_limit_changes_nothing_for_those_that_keep_it():
    async def quick() -> str:
        return "quick"

    async def broken() -> str:
        raise TimeoutError("of my own")

    async def leaving() -> str:
        raise SystemExit(3)

    assert run(Tool(handler=quick, timeout=50)).output == "quick"
    assert run(Tool(handler=broken, timeout=50)).output == "TimeoutError: of my own"
    assert run(Tool(handler=leaving, timeout=50)).output == "SystemExit: 3"
    assert run(Tool(handler=lambda: 1 / 0, name="div", timeout=50)).output.startswith("ZeroDiv")


def test_leaving_cancels_a_limited_function_too():
    seen = []

    async def slow() -> None:
        seen.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    async def leave():
        made = Tool(handler=slow, timeout=50)
        task = asyncio.ensure_future(answer(made, ToolCallBlock("c", "slow")))
        await until(lambda: seen)
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled()

    assert asyncio.run(leave())
    assert seen == ["begun", "ended"]


# results


class Array:
    """As numpy's."""

    def tolist(self):
        return [1, 2]


@pytest.mark.parametrize(
    ("value", "output", "media"),
    [
        (Address(street="A"), '{"street":"A","floor":0}', []),
        ([Address(street="A")], '[{"street":"A","floor":0}]', []),
        (Pair(1, 2), '{"left":1,"right":2}', []),
        ({"a": Array()}, '{"a":[1,2]}', []),
        (Path("a/b"), "a/b", []),
        (PNG, "", ["image/png"]),
        (bytearray(PDF), "", ["application/pdf"]),
        (["two", PNG, MediaBlock("audio/wav", data="aGk=")], "two", ["image/png", "audio/wav"]),
        ((PNG, {"n": 1}), '{"n":1}', ["image/png"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_are_text_json_or_media(value, output, media):
    result = run(Tool(handler=lambda: value, name="give"))
    assert not result.is_error
    assert result.output == output
    assert [one.media_type for one in result.media] == media


@pytest.mark.parametrize(
    ("value", "output"),
    [
        (range(2), "[0,1]"),
        ({"a": 1}.keys(), '["a"]'),
        (map(str, [1]), '["1"]'),
        (zip("ab", [1, 2], strict=True), '[["a",1],["b",2]]'),
        (iter(["a", "b"]), '["a","b"]'),
        (iter(()), "[]"),
        (reversed([1, 2]), "[2,1]"),
        (enumerate("a"), '[[0,"a"]]'),
        (chain([1], [2]), "[1,2]"),
        ({"rows": iter([1])}, '{"rows":[1]}'),
        (UserList([1]), "[1]"),
        (UserDict({"a": UserString("b")}), '{"a":"b"}'),
        ({"a": deque([1])}, '{"a":[1]}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
    ],
    ids=lambda value: type(value).__name__,
)
def test_collections_are_lists(value, output):
    assert run(Tool(handler=lambda: value, name="give")).output == output


def test_generators_may_come_from_asynchronous_functions():
    async def later():
        return (n for n in range(2))

    screen = Screen()
    assert run(later, screen).output == "[0,1]"
    assert screen.text == "0\n1\n"


LINES = ["first", "second\n", "", "third"]


def given_lines():
    yield from LINES


async def given_lines_later():
    for line in LINES:
        yield line


def returned_lines():
    return (line for line in LINES)


async def returned_lines_later():
    return given_lines_later()


class Lines:
    """An asynchronous iterator that is no generator."""

    def __init__(self):
        self.left = list(LINES)

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


@pytest.mark.parametrize(
    "function", [given_lines, given_lines_later, returned_lines, returned_lines_later]
)
def test_all_lines_that_a_generator_yields_are_its_result(function):
    assert run(function).output == "first\nsecond\n\nthird"


def test_what_a_generator_yields_beside_text_is_a_line_too():
    def mixed():
        yield "counting"
        yield {"rows": 2}
        yield UserString("done")

    def pictured():
        yield "a picture"
        yield PNG

    assert run(mixed).output == 'counting\n{"rows":2}\ndone'
    shown = run(pictured)
    assert (shown.output, len(shown.media)) == ("a picture", 1)


def test_bytes_that_a_generator_yields_in_pieces_are_one_text_or_picture():
    def given(*pieces):
        def give():
            yield from pieces

        return run(give)

    assert given(b"caf\xc3", bytearray(b"\xa9\n"), b"end").output == "caf\xe9\nend"
    assert given(PNG[:20], PNG[20:]).media == given(PNG).media
    assert len(given(PNG, PNG).media) == 2


def test_an_asynchronous_iterator_is_a_list():
    assert run(Tool(handler=lambda: Lines(), name="give")).output == json.dumps(
        LINES, separators=(",", ":")
    )


def test_an_iterator_ends_when_nobody_waits_for_it():
    screen = Screen()
    screen.cancelled.set()
    assert run(Tool(handler=lambda: count(), name="give"), screen).output == "[]"
