"""Plain typed Python functions as tools.

The name, the docstring and the annotations are the definition that the model sees; what the model
sends is checked against the same annotations before the function is called. A mistake of the
model's comes back to it as an error it can act on.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

import msgspec

from mull.agent.tools.arguments import input_of, read_arguments, schema_of
from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.tool import Preview, ToolContext, ToolFailure
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.errors import LocalError
from mull.neutral.request import Tool

__all__ = ["FunctionTool", "tools_from"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class FunctionTool:
    """One function that a model may call."""

    source = "function"

    def __init__(self, function: Callable[..., Any], *, changes: bool = False) -> None:
        self._function = function
        name = getattr(function, "__name__", "")
        if not _NAME.fullmatch(name):
            raise LocalError(f"{function!r} cannot be a tool: it needs a plain name")
        self._arguments = _arguments_of(function, name)
        self.definition = Tool(name, _description(function), _schema(self._arguments, function))
        self.changes = changes
        """False unless said otherwise: who gives a function means it to be called."""

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.definition.name

    def preview(self, input: dict[str, Any]) -> Preview:
        """The call as one would write it."""
        given = ", ".join(f"{key}={value!r}" for key, value in input.items())
        return Preview(one_line(f"{self.name}({given})"), visible(f"{self.name}({given})"))

    async def run(self, call: ToolCallBlock, context: ToolContext | None = None) -> ToolResultBlock:
        """Call the function with what the model sent; failures become error results."""
        schema = self.definition.parameters
        try:
            values = read_arguments(input_of(call, schema), self._arguments, schema)
            given = {f: getattr(values, f) for f in self._arguments.__struct_fields__}
            return ToolResultBlock(call.id, _text(await self._call(given)))
        except ToolFailure as failure:
            return ToolResultBlock(call.id, str(failure), is_error=True)
        except (Exception, SystemExit) as error:  # whatever a tool raises is an answer to the model
            return ToolResultBlock(call.id, f"{type(error).__name__}: {error}", is_error=True)

    async def _call(self, given: dict[str, Any]) -> Any:
        if inspect.iscoroutinefunction(self._function):
            return await self._function(**given)
        import asyncio

        return await asyncio.to_thread(self._function, **given)


def tools_from(functions: Iterable[Callable[..., Any]]) -> dict[str, FunctionTool]:
    """The functions by the names models call them.

    Raises:
        LocalError: one of them cannot be a tool, or two have one name.
    """
    tools: dict[str, FunctionTool] = {}
    for function in functions:
        tool = FunctionTool(function)
        if tool.name in tools:
            raise LocalError(f"two tools are called {tool.name!r}: give one another name")
        tools[tool.name] = tool
    return tools


def _arguments_of(function: Callable[..., Any], name: str) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise LocalError(f"{name} cannot be a tool: *{parameter.name} has no schema")
        kind = hints.get(parameter.name, Any)
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, parameter.default))
    return msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


def _schema(arguments: type[msgspec.Struct], function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return schema_of(arguments, _parameter_texts(function))
    except TypeError as error:
        raise LocalError(f"{arguments.__name__} cannot be a tool: {error}") from None


def _description(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function) or ""
    return re.split(r"\n\s*(?:Args|Arguments|Parameters|Returns|Raises):", text)[0].strip()


def _parameter_texts(function: Callable[..., Any]) -> dict[str, str]:
    """What an `Args:` section of the docstring says of each parameter."""
    text = inspect.getdoc(function) or ""
    section = re.search(
        r"^(?:Args|Arguments|Parameters):\n((?:[ \t]+.*\n?|\n)+)", text, re.MULTILINE
    )
    if not section:
        return {}
    rows = re.findall(r"^\s+(\w+)(?: \([^)]*\))?:\s*(.+)$", section.group(1), re.MULTILINE)
    return {name: said.strip() for name, said in rows}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)  # a subclass is no text to whoever encodes it
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        return str(value)
