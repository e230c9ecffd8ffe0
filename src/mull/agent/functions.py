"""Python functions as tools.

The name, the docstring and the annotations are the definition that the model sees; its arguments
are validated against the same annotations before the function is called. A tool with a JSON schema
of its own is validated against that. The model's mistakes are returned to it as errors it can act
on.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any, NamedTuple, TypeAlias, TypeVar, overload

from mull.agent.function_arguments import Arguments, Call, context_parameters
from mull.agent.function_docs import docstring, read_docstring
from mull.agent.function_runs import run_function
from mull.agent.given import expressed, expressed_fields
from mull.agent.tools.shown import one_line, visible
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    RunnableTool,
    ToolContext,
    ToolFailure,
    input_of,
    json_subject,
    wrong,
)
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.errors import LocalError
from mull.neutral.request import ToolDefinition
from mull.policy.approval import Asked
from mull.policy.json_schema import first_misfit
from mull.policy.json_schema_faults import first_fault

__all__ = ["AnyTool", "Tool", "tool", "tools_from"]

_F = TypeVar("_F", bound=Callable[..., Any])

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MARK = "__mull_tool__"


class _Options(NamedTuple):
    """What `@tool` says about a function; None leaves it to the function itself."""

    name: str | None = None
    description: str | None = None
    changes: bool | None = None
    timeout: float | None = None


class Tool:
    """A tool that a model may call: a function, method, partial or callable object as `handler`,
    and what the model is told about it.

    Name, description and schema come from the handler's signature and docstring unless they are
    given. With a `schema` of its own, the handler is called with the arguments by name. Without a
    handler it is a definition only: `mull.complete` offers it, and the caller handles its calls.

    `changes` says whether a call may change anything. A conversation with an approver asks it about
    tools that change something, and about those that do not say. After `timeout` seconds a call is
    cancelled, and the model is told.

    Raises:
        LocalError: this cannot be a tool; says why.
    """

    source: str = "function"

    def __init__(
        self,
        name: str | None = None,
        description: str | None = None,
        schema: Mapping[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        *,
        changes: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        marked = _Options() if handler is None else _options_of(handler)
        self.handler: Callable[..., Any] | None = handler
        self.timeout: float | None = _checked(marked.timeout if timeout is None else timeout)
        self._changes = marked.changes if changes is None else changes
        name = name or marked.name or _name_of(handler)
        if not _NAME.fullmatch(name):
            raise LocalError(
                f"{handler or name!r} cannot be a tool: its name must consist of at most 64 "
                "letters, digits, - and _: give it one with mull.Tool(name, handler=…)"
            )
        description = marked.description if description is None else description
        self._arguments: _Arguments | None = None
        if schema is not None:
            self._arguments = _Described(name, schema, handler)
        elif handler is not None:
            written, texts = read_docstring(docstring(_plain(handler)))
            description = written if description is None else description
            self._arguments = Arguments(handler, _plain(handler), name, texts)
        parameters = self._arguments.schema if self._arguments else _NOTHING
        self.definition: ToolDefinition = expressed_fields(
            ToolDefinition(name, description or "", parameters), f"the tool {name}"
        )

    def __repr__(self) -> str:
        return f"<mull.Tool {self.name}>"

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return self.definition.name

    @property
    def changes(self) -> bool:
        """Whether a call may change anything."""
        return bool(self._changes)

    def guarded(self) -> Tool:
        """The same tool; if it does not say whether it changes anything, it does."""
        if self._changes is not None:
            return self
        same = object.__new__(Tool)
        same.__dict__.update(self.__dict__, _changes=True)
        return same

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """Validate the arguments.

        Raises:
            ToolFailure: they do not match.
        """
        handler, arguments, schema = self.handler, self._arguments, self.definition.parameters
        if handler is None or arguments is None:
            raise ToolFailure(f"{self.name} has no function that could be called")
        given = input_of(call, schema)
        values = arguments.read(given)

        async def work(context: ToolContext) -> Outcome:
            args, kwargs = arguments.call(values, context)
            return await run_function(
                functools.partial(handler, *args, **kwargs), context, self.timeout
            )

        written = f"{self.name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        asked = Asked(self.name, self.changes, json_subject(given))
        preview = Preview(one_line(written), visible(written))
        return PreparedCall(call, self.source, asked, preview, work)


AnyTool: TypeAlias = Callable[..., Any] | RunnableTool
"""What can be passed as a tool: a function, a `Tool`, or another object with its methods."""

_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


@overload
def tool(function: _F, /) -> _F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    changes: bool | None = None,
    timeout: float | None = None,
) -> Callable[[_F], _F]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    changes: bool | None = None,
    timeout: float | None = None,
) -> Callable[..., Any]:
    """Say how a function is offered as a tool: `@mull.tool(changes=True, timeout=30)`.

    The function stays as it is, and can be a method. `name` and `description` replace its own,
    `changes` says whether a call may change anything, and `timeout` is how many seconds a call may
    take.

    Raises:
        LocalError: what is decorated is not a function.
    """
    options = _Options(name, description, changes, _checked(timeout))

    def mark(function: Any) -> Any:
        if not inspect.isfunction(function):
            raise LocalError(
                f"@mull.tool cannot mark {function!r}: it is for functions; put it below "
                "@staticmethod and @classmethod, and use mull.Tool(handler=…) for other callables"
            )
        setattr(function, _MARK, options)
        return function

    return mark if function is None else mark(function)


def tools_from(given: Iterable[AnyTool], *, guarded: bool = False) -> dict[str, RunnableTool]:
    """The tools by name. If they are `guarded`, those that do not say otherwise change something.

    Raises:
        LocalError: one of them cannot be a tool, has no handler, or two have the same name.
    """
    tools: dict[str, RunnableTool] = {}
    for one in given:
        made = one if isinstance(one, RunnableTool) else Tool(handler=one)
        if isinstance(made, Tool):
            if made.handler is None:
                raise LocalError(
                    f"the tool {made.name} has no handler: give it one, or offer it with "
                    "mull.complete and handle its calls"
                )
            made = made.guarded() if guarded else made
        name = made.definition.name
        if name in tools:
            raise LocalError(f"two tools are called {name!r}: rename one of them")
        tools[name] = made
    return tools


class _Described:
    """Arguments of which only a JSON schema is known."""

    def __init__(
        self, name: str, schema: Mapping[str, Any], handler: Callable[..., Any] | None
    ) -> None:
        if not isinstance(schema, Mapping):
            raise LocalError(
                f"{name} cannot be a tool: its schema must be a JSON schema, not {schema!r}: to "
                "use a type, annotate the parameters of the handler"
            )
        schema = {key: value for key, value in schema.items() if key != "$schema"}
        schema = expressed(schema, f"the schema of {name}")
        fault = first_fault(schema)
        if fault is None and schema.get("type", "object") != "object":
            fault = f"its type is {schema.get('type')!r}, not 'object'"
        if fault is not None:
            raise LocalError(f"{name} cannot be a tool: its schema is not valid: {fault}")
        self.schema = {"type": "object", **schema}
        self._context = context_parameters(_plain(handler)) if handler else []
        for argument in schema.get("properties", {}) if handler else ():
            if not _accepts(handler, argument):
                raise LocalError(
                    f"{name} cannot be a tool: its handler is called with the arguments by name, "
                    f"and has no parameter {argument!r}"
                )

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        misfit = first_misfit(given, self.schema)
        if misfit is not None:
            raise wrong(misfit, self.schema)
        return dict(given)

    def call(self, values: Mapping[str, Any], context: ToolContext) -> Call:
        return Call((), {**values, **dict.fromkeys(self._context, context)})


_Arguments: TypeAlias = Arguments | _Described


def _accepts(handler: Any, argument: str) -> bool:
    """Whether the handler can be called with this argument by name, as far as is known."""
    try:
        parameters = inspect.signature(handler).parameters
    except (TypeError, ValueError):
        return True
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return True
    found = parameters.get(argument)
    return found is not None and found.kind in (found.POSITIONAL_OR_KEYWORD, found.KEYWORD_ONLY)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The object that has the name, the docstring and the annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(inspect.unwrap(function)):
        return function
    if inspect.isclass(function) or not hasattr(function, "__call__"):  # noqa: B004
        raise LocalError(f"{function!r} cannot be a tool: it is not a function")
    return MethodType(type(function).__call__, function)


def _options_of(handler: Callable[..., Any]) -> _Options:
    options = getattr(_plain(handler), _MARK, None)
    return options if isinstance(options, _Options) else _Options()


def _name_of(handler: Callable[..., Any] | None) -> str:
    if handler is None:
        raise LocalError("a tool without a handler needs a name: mull.Tool(name, …)")
    _plain(handler)
    while not (name := getattr(handler, "__name__", "")) and isinstance(handler, functools.partial):
        handler = handler.func
    return str(name or type(handler).__name__)  # a callable object without a name of its own


def _checked(timeout: Any) -> float | None:
    is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if timeout is None or (is_number and 0 < timeout < float("inf")):
        return timeout  # type: ignore[no-any-return]
    raise LocalError(f"timeout must be a number of seconds above 0, not {timeout!r}")
