"""What every tool offers, wherever it comes from: built in, a Python function, an MCP server.

The runner and the gate know nothing else about a tool. A tool describes itself to the model, says
whether it changes anything, and prepares a call: arguments are parsed and paths located once, and
the preview, the subject of rules and the work all come from that one value.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

import msgspec

from mull.agent.tools.output import fitted
from mull.neutral.assemble import read_object
from mull.neutral.blocks import MediaBlock, ToolCallBlock, ToolResultBlock, Value
from mull.neutral.messages import Message
from mull.neutral.request import ToolDefinition
from mull.policy.approval import Asked, Subject

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", default=Any)
else:
    from typing import TypeVar

    D = TypeVar("D")

__all__ = [
    "BUILT_IN",
    "LONGEST_FAILURE",
    "PRINTED",
    "Outcome",
    "Permit",
    "PreparedCall",
    "Preview",
    "RunnableTool",
    "ToolContext",
    "ToolFailure",
    "Work",
    "clamped",
    "explain",
    "inlined",
    "input_of",
    "json_subject",
    "read_arguments",
    "schema_of",
    "unfinished",
    "wrong",
]

BUILT_IN = "built in"
"""The source of the built-in tools."""
LONGEST_FAILURE = 8_000
"""Maximum bytes of a failure: it may repeat the model's input, which has no limit."""
LONGEST_DIFF = 256 << 10
PRINTED = "Output up to that point:"
_MOST_PRINTED = 8_000
"""Characters kept of an unfinished call's output: its end matters most."""

A = TypeVar("A", bound=msgspec.Struct)


class ToolFailure(Exception):
    """Why a call cannot be done, in words that the model can act on."""


class Preview(Value, frozen=True):
    """What a call would do, for the user: one line, and a diff or the whole command below it."""

    title: str
    detail: str = ""
    kind: Literal["text", "diff", "command"] = "text"


class Outcome(NamedTuple):
    """The outcome of a call; `failed` marks it as an error for the model. `diff` is what it
    changed, if that is known only now.
    """

    text: str
    failed: bool = False
    media: tuple[MediaBlock, ...] = ()
    diff: str = ""


class Permit:
    """How a call may run, decided when it is admitted. If it is `confined`, a command runs in the
    sandbox; `more` asks the user for what it wanted beyond that, in words, and returns None for
    yes, otherwise what the model is told.
    """

    def __init__(self) -> None:
        self.confined: bool = False
        self.more: Callable[[str], Awaitable[str | None]] | None = None


class ToolContext(Generic[D]):
    """What a running tool may use.

    `deps` is what the conversation was given as `context`. `call` is the model's call, `messages`
    is the conversation up to and including it. `tokens` is how many the result should not exceed;
    None if the context window is unknown. `cancelled` is set when nobody waits for the result any
    more, because the turn was interrupted or the time limit was exceeded: a blocking function that
    takes long should check it, or wait with `cancelled.wait(seconds)`.
    """

    def __init__(
        self,
        deps: D,
        *,
        call: ToolCallBlock | None = None,
        messages: Sequence[Message] = (),
        tokens: int | None = None,
        on_emit: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.deps: D = deps
        self.call: ToolCallBlock = call or ToolCallBlock("", "")
        self.messages: Sequence[Message] = messages
        self.tokens: int | None = tokens
        self.cancelled: threading.Event = threading.Event()
        self.permit: Permit = Permit()
        self._on_emit = on_emit
        self._printed = ""

    def emit(self, text: str) -> None:
        """Show output as it arrives: a `ToolOutput` event. Callable from any thread."""
        if not self.cancelled.is_set():
            self._printed = (self._printed + text)[-_MOST_PRINTED:]
            self._on_emit(text)


def unfinished(context: ToolContext, why: str) -> str:
    """What the model is told of a call that was stopped: its output is not lost."""
    printed = context._printed.rstrip()
    return f"{why} {PRINTED}\n{printed}" if printed else why


Work: TypeAlias = Callable[[ToolContext], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose arguments have been parsed and whose paths have been located."""

    call: ToolCallBlock
    """The model's call."""
    source: str
    """Where the tool comes from: `built in`, `function`, or `mcp:NAME`."""
    asked: Asked
    """What rules are matched against."""
    preview: Preview
    """What the user is shown."""
    work: Work
    """Does exactly what the preview shows."""
    also: tuple[Asked, ...] = ()
    """What else the call touches: rules have to allow all of it."""
    pin: str = ""
    """Represents the state that was read: if it differs when the call runs, preview and approval
    are no longer valid. Empty if there is no such state.
    """
    wants: str = ""
    """What the call needs beyond what rules and mode allow, in words for the user: "wants the
    network: example.org".
    """
    permit: Permit = field(default_factory=Permit, compare=False)
    """How it may run, decided when it is admitted."""

    def is_same(self, other: PreparedCall) -> bool:
        """Whether both would do the same to the same targets, and look the same to the user."""
        return (self.pin, self.every, self.preview) == (other.pin, other.every, other.preview)

    @property
    def every(self) -> tuple[Asked, ...]:
        """Everything that rules are matched against."""
        return (self.asked, *self.also)

    async def run(self, context: ToolContext) -> ToolResultBlock:
        """The call's result. Any failure is an error result; only cancelling raises."""
        context.permit = self.permit
        try:
            outcome = await self.work(context)
        except ToolFailure as failure:
            outcome = Outcome(fitted(str(failure), LONGEST_FAILURE), failed=True)
        except (Exception, SystemExit) as error:  # a bug in a tool must not end the turn
            outcome = Outcome(explain(error), failed=True)
        finally:
            context.cancelled.set()
        changed = self.preview.kind == "diff" and not outcome.failed
        diff = fitted(self.preview.detail if changed else outcome.diff, LONGEST_DIFF)
        return ToolResultBlock(self.call.id, outcome.text, outcome.failed, outcome.media, diff)


@runtime_checkable
class RunnableTool(Protocol):
    """A tool that the model may call."""

    @property
    def definition(self) -> ToolDefinition:
        """Name, description and JSON schema, as the model gets them."""

    @property
    def changes(self) -> bool:
        """Whether a call may change anything; if False it runs without asking."""

    @property
    def source(self) -> str:
        """Where the tool comes from: `built in`, `function`, `mcp:NAME`."""

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """Parse the arguments and examine their targets. May read files, never changes anything.

        Raises:
            ToolFailure: the call cannot be done, whoever allows it; says why.
        """


def explain(error: BaseException) -> str:
    """An exception in one line: `ValueError: it is under water`."""
    try:
        said = fitted(str(error), LONGEST_FAILURE)
    except Exception:  # it must be reported anyway
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def json_subject(given: Mapping[str, Any]) -> Subject:
    """The arguments as JSON with sorted keys: what rules are matched against for tools whose
    arguments mull does not understand.
    """
    return Subject("text", msgspec.json.encode(given, order="sorted").decode())


def schema_of(
    arguments: type[msgspec.Struct],
    texts: Mapping[str, str] = {},
    *,
    schema_hook: Callable[[type], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The JSON schema; `texts` describe fields that have no description.

    Raises:
        TypeError: a field has a type that JSON cannot express.
    """
    (schema,), parts = msgspec.json.schema_components(
        (arguments,), ref_template="#/$defs/{name}", schema_hook=schema_hook
    )
    own = parts.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    own.pop("title", None)
    own.pop("description", None)  # the struct's docstring is for readers of the code
    for name, text in texts.items():
        if name in own["properties"]:
            own["properties"][name].setdefault("description", text)
    return {**own, "$defs": parts} if parts else own


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its references resolved: not every endpoint supports them. No part may
    contain itself.
    """
    parts = schema.get("$defs", {})

    def place(value: Any) -> Any:
        if isinstance(value, list):
            return [place(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            part = {
                k: v for k, v in parts[value["$ref"].rpartition("/")[2]].items() if k != "title"
            }
            return place({**part, **{k: v for k, v in value.items() if k != "$ref"}})
        return {key: place(one) for key, one in value.items() if key != "$defs"}

    placed: dict[str, Any] = place(schema)
    return placed


def input_of(call: ToolCallBlock, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The call's arguments as an object.

    Raises:
        ToolFailure: the model wrote something else.
    """
    if call.input or not (call.arguments or "").strip():
        return call.input
    given = read_object(call.arguments or "")
    if given is None:
        said = f"the arguments are not a JSON object: {(call.arguments or '')[:200]}"
        raise ToolFailure(f"{said}\nexpected: {_shape(schema)}")
    return given


def clamped(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with numbers clamped to the limits of the schema."""
    known = schema.get("properties", {})
    return {name: _clamped(value, known.get(name, {})) for name, value in given.items()}


def _clamped(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and schema.get("type") == "integer":
        with contextlib.suppress(ValueError):
            value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    value = max(value, schema.get("minimum", value))
    return min(value, schema.get("maximum", value))


def read_arguments(
    given: Mapping[str, Any],
    arguments: type[A],
    schema: Mapping[str, Any],
    *,
    strict: bool = True,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> A:
    """The values, validated. If not strict, accepts `"10"` for a number and null for an omitted
    value.

    Raises:
        ToolFailure: they are invalid; says where, and what would be valid.
    """
    if not strict:
        given = {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(given, arguments, strict=strict, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise wrong(str(error), schema) from None


def wrong(why: str, schema: Mapping[str, Any]) -> ToolFailure:
    """The failure of a call with invalid arguments: why, and what would be valid."""
    return ToolFailure(f"wrong arguments: {why}\nexpected: {_shape(schema)}")


def _shape(schema: Mapping[str, Any], parts: Mapping[str, Any] | None = None) -> str:
    """`{"path": string, "offset"?: integer}`: a question mark marks optional fields."""
    parts = schema.get("$defs", {}) if parts is None else parts
    required = schema.get("required", ())
    fields = (
        f'"{name}"{"" if name in required else "?"}: {_kind(said, parts)}'
        for name, said in schema.get("properties", {}).items()
    )
    return "{" + ", ".join(fields) + "}"


def _kind(schema: Any, parts: Mapping[str, Any]) -> str:
    if not isinstance(schema, Mapping):  # true and false are schemas too
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        part = parts.get(name, {})
        inner = {key: value for key, value in parts.items() if key != name}  # it may contain itself
        return _shape(part, inner) if "properties" in part else _kind(part, inner)
    if "properties" in schema:
        return _shape(schema, parts)
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(value).decode() for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(one, parts) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"[{_kind(schema.get('items') or {}, parts)}, …]"
    limits = [
        f"{sign} {schema[key]}"
        for key, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="))
        if key in schema
    ]
    return " ".join([str(schema.get("type") or "any"), *limits])
