"""Plain typed Python functions as tools.

The name, the docstring and the annotations are the definition that the model sees; its arguments
are validated against the same annotations before the function is called. The model's mistakes are
returned to it as errors it can act on.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import zip_longest
from types import MethodType, SimpleNamespace
from typing import Annotated, Any, Union, get_origin, get_type_hints

import msgspec

from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    RunnableTool,
    explain,
    input_of,
    json_subject,
    read_arguments,
    schema_of,
)
from mull.neutral.blocks import MediaBlock, ToolCallBlock
from mull.neutral.errors import LocalError
from mull.neutral.request import Tool
from mull.policy.approval import Asked

__all__ = ["FunctionTool", "tools_from"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SECTION = re.compile(r"^(\w+)(:|\n-{3,})[ \t]*$", re.MULTILINE)
_OF_ARGUMENTS = ("Args", "Arguments", "Parameters")
_NOT_FOR_MODELS = (*_OF_ARGUMENTS, "Returns", "Yields", "Raises")
_FIELD = re.compile(
    r"^:(?:param (?:[^:\n]* )?(\w+)|\w[^:\n]*):((?:.*\n?)(?:[ \t]+.*\n?)*)", re.MULTILINE
)
_ROWS = {
    ":": re.compile(r"\*{0,2}(\w+)(?: \([^)]*\))?:(.*)", re.DOTALL),
    "-": re.compile(r"(\w+)(?: *:[^\n]*)?\n(.*)", re.DOTALL),
}


class FunctionTool:
    """A function that a model may call; a method, a partial or a callable object also works.

    Give a `name` if the function has no suitable one. `changes` says whether a call may change
    anything. It is False by default: a function you pass is meant to be called. If there is an
    approver, it is asked before functions that change something, and in read-only mode they are not
    offered.

    Raises:
        LocalError: the function cannot be a tool; says why.
    """

    source = "function"

    def __init__(
        self, function: Callable[..., Any], *, name: str | None = None, changes: bool = False
    ) -> None:
        self._function = function
        self.changes = changes
        plain = _plain(function)
        name = name or str(getattr(plain, "__name__", ""))
        if not _NAME.fullmatch(name) or name == "__call__":
            raise LocalError(
                f"{function!r} cannot be a tool: its name must consist of at most 64 "
                "letters, digits, - and _: give it one with FunctionTool(function, "
                "name=…)"
            )
        self._signature, self._arguments = _arguments_of(function, plain, name)
        description, texts = _read_docstring(_docstring(plain))
        self.definition: Tool = Tool(name, description, self._schema(texts))

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.definition.name

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """Validate the arguments against the annotations.

        Raises:
            ToolFailure: they do not match.
        """
        schema = self.definition.parameters
        given = input_of(call, schema)
        values = read_arguments(given, self._arguments, schema)
        bound = self._bind({name: getattr(values, name) for name in given})
        written = f"{self.name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        asked = Asked(self.name, self.changes, json_subject(given))
        preview = Preview(one_line(written), visible(written))
        return PreparedCall(call, self.source, asked, preview, lambda context: _outcome(bound))

    def _bind(self, values: Mapping[str, Any]) -> Callable[[], Any]:
        """The Python call; omitted arguments get the function's own defaults."""
        bound = self._signature.bind_partial()
        bound.arguments.update(values)
        return functools.partial(self._function, *bound.args, **bound.kwargs)

    def _schema(self, texts: Mapping[str, str]) -> dict[str, Any]:
        try:
            schema = schema_of(self._arguments, texts)
        except TypeError as error:
            why = str(error).rpartition("\n")[2]
            raise LocalError(f"{self._arguments.__name__} cannot be a tool: {why}") from None
        for parameter in self._signature.parameters.values():
            with contextlib.suppress(TypeError, ValueError):  # JSON cannot express every default
                if parameter.default is not parameter.empty:
                    default = msgspec.json.decode(msgspec.json.encode(parameter.default))
                    schema["properties"][parameter.name]["default"] = default
        return schema


def tools_from(functions: Iterable[Callable[..., Any] | RunnableTool]) -> dict[str, RunnableTool]:
    """The tools by name; existing tools are left as they are.

    Raises:
        LocalError: one of them cannot be a tool, or two have the same name.
    """
    tools: dict[str, RunnableTool] = {}
    for given in functions:
        tool = given if isinstance(given, RunnableTool) else FunctionTool(given)
        name = tool.definition.name
        if name in tools:
            raise LocalError(f"two tools are called {name!r}: rename one of them")
        tools[name] = tool
    return tools


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The object that has the name, the docstring and the annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(inspect.unwrap(function)):
        return function
    if inspect.isclass(function) or not hasattr(function, "__call__"):  # noqa: B004
        raise LocalError(f"{function!r} cannot be a tool: it is not a function")
    return MethodType(type(function).__call__, function)


def _docstring(plain: Callable[..., Any]) -> str:
    if (
        inspect.ismethod(plain) and plain.__name__ == "__call__"
    ):  # otherwise Python's own would be inherited
        return inspect.cleandoc(plain.__doc__ or type(plain.__self__).__doc__ or "")
    return inspect.getdoc(plain) or ""


def _arguments_of(
    function: Callable[..., Any], plain: Callable[..., Any], name: str
) -> tuple[inspect.Signature, type[msgspec.Struct]]:
    """The function's parameters, and the same as a struct to validate against."""
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise LocalError(f"{name} cannot be a tool: it is a generator; return a list instead")
    try:
        hints = _hints(plain)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise LocalError(f"{name} cannot be a tool: its signature is unclear: {error}") from None
    settled = function.keywords if isinstance(function, functools.partial) else {}
    parameters = [one for one in signature.parameters.values() if one.name not in settled]
    fields: list[Any] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise LocalError(
                f"{name} cannot be a tool: {str(parameter).partition(':')[0]} has no "
                "schema; declare each argument"
            )
        kind = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            accepted = (kind, None) if parameter.default is None else (kind,)
            fields.append((parameter.name, Union[*accepted, msgspec.UnsetType], msgspec.UNSET))
    struct = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    return signature.replace(parameters=parameters), struct


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of the parameters; a text in `Annotated` describes its parameter."""
    written = {n: a for n, a in getattr(function, "__annotations__", {}).items() if n != "return"}
    found = SimpleNamespace(__annotations__=written, __wrapped__=function)
    hints = get_type_hints(found, include_extras=True)
    for name, kind in hints.items():
        if kind is object:
            hints[name] = Any
        elif get_origin(kind) is Annotated:
            for text in (one for one in kind.__metadata__ if isinstance(one, str)):
                hints[name] = Annotated[kind, msgspec.Meta(description=text)]
    return hints


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of the function and of each parameter, in Google, NumPy or Sphinx style."""
    texts = {found[1]: found[2] for found in _FIELD.finditer(text) if found[1]}
    ends = [found.start() for found in _FIELD.finditer(text)]
    sections = list(_SECTION.finditer(text))
    for found, following in zip_longest(sections, sections[1:]):
        if found[1] in _NOT_FOR_MODELS:
            ends.append(found.start())
        if found[1] in _OF_ARGUMENTS:
            section = text[found.end() : following.start() if following else len(text)]
            texts.update(_rows(section, _ROWS[found[2].strip()[0]]))
    said = {name: " ".join(words.split()) for name, words in texts.items()}
    return text[: min(ends, default=len(text))].strip(), {n: one for n, one in said.items() if one}


def _rows(section: str, row: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The parameters of a section: each starts at a line that is not indented further."""
    for part in re.split(r"\n(?=\S)", inspect.cleandoc(section)):
        if found := row.match(part):
            yield found[1], found[2]


async def _outcome(function: Callable[[], Any]) -> Outcome:
    """Call it, a blocking function in its own thread: all calls of an answer run at once, however
    many, and one that never ends blocks neither the others nor the end of the program.
    """
    if inspect.iscoroutinefunction(function):
        return _outcome_of(await function())
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any) -> None:
        if not done.done():
            done.set_result(result)

    def call() -> None:
        result = context.run(_attempt, function)
        with contextlib.suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=call, name="mull tool", daemon=True).start()
    result = await done
    return result if isinstance(result, Outcome) else _outcome_of(await result)


def _attempt(function: Callable[[], Any]) -> Any:
    """The outcome; an awaitable is returned as it is."""
    try:
        value = function()
        return value if inspect.isawaitable(value) else _outcome_of(value)
    except BaseException as error:  # whatever a tool raises is an answer to the model
        return Outcome(explain(error), failed=True)


def _outcome_of(value: Any) -> Outcome:
    return Outcome("", media=(value,)) if isinstance(value, MediaBlock) else Outcome(_text(value))


def _text(value: Any) -> str:
    """Text as it is, also from bytes; anything else as JSON or as Python prints it."""
    if isinstance(value, bytes | bytearray):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    try:
        plain = msgspec.to_builtins(value, enc_hook=str)
        if isinstance(plain, str):
            return plain
        import json  # keeps NaN and lone surrogates, which msgspec rejects or drops

        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return str(value)
