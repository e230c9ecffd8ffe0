"""The keywords of the library's functions, each named once, and what their values become.

A conversation takes them all; `ask` and `stream` take those of a turn, which apply to that turn
only; `complete` takes those of a request. What an endpoint does not support is left out of the
request, and a note says so.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mull.agent.given import plain, sayable
from mull.agent.reach import Key
from mull.client.connections import ConnectionOptions
from mull.dialects.body import merge
from mull.neutral.errors import LocalError
from mull.neutral.messages import Dialect, Message
from mull.neutral.request import HostedTool, NamedTool, RequestOptions, ToolChoice, ToolDefinition

if TYPE_CHECKING:
    from mull.agent.approving import ApproveFunction
    from mull.agent.engine import Engine
    from mull.agent.functions import AnyTool
    from mull.agent.mcp.given import McpGiven
    from mull.agent.structured import Shape
    from mull.client.exchange import ExchangeOptions

__all__ = [
    "CompleteOptions",
    "ConversationOptions",
    "Parameterized",
    "ReachOptions",
    "RequestParameters",
    "TurnParameters",
    "check_choice",
    "check_names",
    "limited",
    "parameters_over",
]


class RequestParameters(TypedDict, total=False):
    """What shapes one request. None is the same as not given. `extra_body`, `extra_headers` and
    `extra_query` of a turn are merged with those of its conversation, and win.
    """

    max_tokens: int | None
    """The most tokens the answer may have, thinking included."""
    temperature: float | None
    """How random the answer is: 0 is the least random, most providers accept up to 2."""
    top_p: float | None
    """Nucleus sampling: tokens are chosen from the most likely ones that make up this share (0 to
    1).
    """
    top_k: int | None
    """Tokens are chosen from this many of the most likely ones."""
    presence_penalty: float | None
    """Discourages tokens that have occurred at all; usually -2 to 2."""
    frequency_penalty: float | None
    """Discourages tokens in proportion to how often they have occurred; usually -2 to 2."""
    seed: int | None
    """A number that makes answers repeatable, as far as the provider supports it."""
    stop: str | Sequence[str] | None
    """A text, or several, that ends the answer where the model writes it."""
    tool_choice: Literal["auto", "none", "required"] | str | None
    """`auto`, `none`, `required`, or the name of the tool that must be called."""
    parallel_tool_calls: bool | None
    """Whether an answer may contain several tool calls."""
    verbosity: Literal["low", "medium", "high"] | str | None
    """How long answers should be: `low`, `medium` or `high`; only some endpoints know it."""
    user: str | None
    """An id of your end user, for the provider's records."""
    metadata: Mapping[str, Any] | None
    """Labels that the provider stores with the request."""
    cache_key: str | None
    """A name by which the provider groups requests that share a prompt cache."""
    schema: Any
    """The type or JSON schema of the answer: it is parsed into `Result.value`."""
    timeout: float | None
    """The seconds for a request and its retries."""
    extra_body: Mapping[str, Any] | None
    """Fields that are merged into the body as it is sent, over everything else."""
    extra_headers: Mapping[str, str] | None
    """Headers that are sent along with the others."""
    extra_query: Mapping[str, str | int | float | bool] | None
    """What is added at the end of the address, such as `{"api-version": "2024-10-21"}`."""


class TurnParameters(RequestParameters, total=False):
    """What shapes a turn: its requests, and how many rounds of tools it may have (50).

    A `tool_choice` that forces a call applies to the first request of the turn.
    """

    max_rounds: int | None


class ReachOptions(ConnectionOptions, total=False):
    """How models are reached. `key`, `base_url`, `headers`, `dialect` and `compat` apply to the
    provider of the first model.
    """

    key: Key | None
    """An API key, or a function that returns one; None finds it in the environment or where `mull
    keys` stored it.
    """
    keys: Mapping[str, Key] | None
    """Keys for other providers, by provider."""
    base_url: str | None
    """The address to use instead of the provider's, such as `http://localhost:8000/v1`."""
    headers: Mapping[str, str] | None
    """Headers for every request to the provider."""
    dialect: Dialect | None
    """The wire format to speak, if the catalog does not know the address."""
    compat: Mapping[str, Any] | None
    """How the endpoint departs from its dialect, in the keys of compat rows."""
    limits: "ExchangeOptions | None"
    """The time limits and retries of a request."""
    engine: "Engine | None"
    """The engine to use instead of the shared one."""


class CompleteOptions(RequestParameters, ReachOptions, total=False):
    """The keywords of `complete`. Tools are offered, not run: functions, `Tool` values, or JSON
    schemas in the form of any provider; a `HostedTool` is run by the provider.
    """

    system: str | None
    tools: "Iterable[AnyTool | ToolDefinition | HostedTool | Mapping[str, Any]]"
    settings: Mapping[str, object] | None


class ConversationOptions(TurnParameters, ReachOptions, total=False):
    """The keywords of `Conversation` beside its model, and of the functions that create one.

    `approve` decides on calls of tools that change something, or that do not say whether they do.
    `context` is passed to tools that ask for it, as `ToolContext.deps`. `mcp` are MCP servers by
    name: they start with the first question, and end when the conversation is closed.
    """

    system: str | None
    tools: "Iterable[AnyTool]"
    settings: Mapping[str, object] | None
    messages: Iterable[Message]
    approve: "ApproveFunction | None"
    context: Any
    mcp: "McpGiven | None"


class Parameterized(Struct, frozen=True):
    """The parameters of a turn as its requests use them."""

    request: RequestOptions = RequestOptions()
    headers: Mapping[str, str] = {}
    query: Mapping[str, str] = {}
    timeout: float | None = None
    shape: "Shape | None" = None
    rounds: int | None = None


class _Rule(Struct, frozen=True):
    """What a value must be."""

    holds: Callable[[Any], bool]
    words: str


def _is_whole(value: Any, least: int = -(2**63)) -> bool:
    return type(value) is int and least <= value < 2**64


def _is_number(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and least <= value <= most


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list | tuple) and all(map(_is_text, value)))


def _is_object(value: Any) -> bool:
    try:
        return isinstance(value, Mapping) and bool(msgspec.json.encode(value))
    except (TypeError, ValueError, RecursionError, OverflowError):
        return False


def _is_headers(value: Any) -> bool:
    is_mapping = isinstance(value, Mapping)
    return is_mapping and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_query(value: Any) -> bool:
    given = value.items() if isinstance(value, Mapping) else [(None, None)]
    return all(name and isinstance(one, str | int | float) for name, one in given)


_POSITIVE = _Rule(lambda value: _is_whole(value, 1), "a whole number of at least 1")
_NUMBER = _Rule(_is_number, "a number")
_TEXT = _Rule(_is_text, "text")
_RULES: Mapping[str, _Rule] = {
    "max_tokens": _POSITIVE,
    "max_rounds": _POSITIVE,
    "temperature": _Rule(lambda value: _is_number(value, 0), "a number of at least 0"),
    "top_p": _Rule(lambda value: _is_number(value, 0, 1), "a number from 0 to 1"),
    "top_k": _Rule(lambda value: _is_whole(value, 0), "a whole number of at least 0"),
    "presence_penalty": _NUMBER,
    "frequency_penalty": _NUMBER,
    "seed": _Rule(_is_whole, "a whole number"),
    "stop": _Rule(_is_texts, "a text or a list of texts"),
    "tool_choice": _TEXT,
    "parallel_tool_calls": _Rule(lambda value: isinstance(value, bool), "True or False"),
    "verbosity": _TEXT,
    "user": _TEXT,
    "cache_key": _TEXT,
    "metadata": _Rule(_is_object, "a mapping that JSON can express"),
    "timeout": _Rule(lambda value: _is_number(value) and value > 0, "a number above 0"),
    "extra_body": _Rule(_is_object, "a mapping that JSON can express"),
    "extra_headers": _Rule(_is_headers, "a mapping of text to text"),
    "extra_query": _Rule(_is_query, "a mapping of names to text or numbers"),
}
_APART = ("extra_body", "extra_headers", "extra_query")
_SHOWN = _RULES.keys() - {"metadata", *_APART}
"""Values that an error may quote: the others may be secrets."""
_CHOICES = ("auto", "none", "required")
_OF_REQUEST = {name: name for name in _RULES} | {"parallel_tool_calls": "parallel_calls"}
"""The field of `RequestOptions` for each parameter that is passed on unchanged."""
for _apart in ("max_rounds", "stop", "tool_choice", "timeout", *_APART):
    del _OF_REQUEST[_apart]


def check_names(given: Collection[str], known: Collection[str], function: str) -> None:
    """Reject keywords that do not exist.

    Raises:
        TypeError: there is one, as Python itself would say it.
    """
    for name in given:
        if name not in known:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def check_choice(options: RequestOptions) -> None:
    """Reject a tool choice that names no tool.

    Raises:
        LocalError: says which tools there are.
    """
    choice = options.tool_choice
    if not isinstance(choice, NamedTool):
        return
    names = [tool.name for tool in options.tools]
    names += [str(tool.data.get("name") or tool.name) for tool in options.hosted_tools]
    if choice.name not in names:
        there = f"there are {', '.join(names)}" if names else "there are none"
        raise LocalError(
            "tool_choice must be auto, none, required, or the name of a tool, not"
            f" {choice.name!r}: {there}"
        )


def parameters_over(base: Parameterized, given: Mapping[str, Any]) -> Parameterized:
    """The parameters, with those given instead of the ones in `base`; other keywords are ignored.

    Raises:
        LocalError: a value is not allowed; says which.
    """
    said = {name: _ruled(name, value) for name, value in given.items() if value is not None}
    fields = {_OF_REQUEST[name]: value for name, value in said.items() if name in _OF_REQUEST}
    if "stop" in said:
        stop = said["stop"]
        fields["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    if "tool_choice" in said:
        fields["tool_choice"] = _choice(said["tool_choice"])
    if "system" in said:
        fields["system"] = sayable(said["system"])
    if "extra_body" in said:
        fields["extra_body"] = merge(dict(base.request.extra_body), said["extra_body"])
    shape = _shape(said["schema"]) if "schema" in said else base.shape
    if shape is not None:
        fields["format"] = shape.format
    return Parameterized(
        request=replace(base.request, **fields) if fields else base.request,
        headers={**base.headers, **_lowered(said.get("extra_headers", {}))},
        query={**base.query, **_written(said.get("extra_query", {}))},
        timeout=said.get("timeout", base.timeout),
        shape=shape,
        rounds=said.get("max_rounds", base.rounds),
    )


def _ruled(name: str, value: Any) -> Any:
    """A value as JSON has it, if it is what the parameter must be."""
    rule, fault = _RULES.get(name), None
    if rule is None:
        return value
    try:
        made = plain(value, name)
        if rule.holds(made):
            return made
        if isinstance(made, dict):
            wrong = (key for key, held in made.items() if not rule.holds({key: held}))
            fault = next(
                (f"{name}.{key} is of type {type(made[key]).__name__}" for key in wrong), None
            )
    except TypeError as error:
        fault = str(error)
    if fault is None or name in _SHOWN or not isinstance(value, Mapping):
        fault = f"not {repr(value)[:60] if name in _SHOWN else type(value).__name__}"
    raise LocalError(f"{name} must be {rule.words}, {fault}")


def limited(limits: "ExchangeOptions | None", timeout: float | None) -> "ExchangeOptions | None":
    """The limits of a request, with this time limit."""
    if timeout is None:
        return limits
    from mull.client.exchange import ExchangeOptions

    return replace(limits or ExchangeOptions(), total=timeout)


def _choice(word: str) -> ToolChoice:
    return word if word in _CHOICES else NamedTool(word)  # type: ignore[return-value]


def _shape(kind: Any) -> "Shape":
    from mull.agent.structured import shape_of

    return shape_of(kind)


def _written(query: Mapping[str, Any]) -> dict[str, str]:
    """The values as addresses have them: true and false are words."""
    return {n: str(v).lower() if isinstance(v, bool) else str(v) for n, v in query.items()}


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in headers.items()}
