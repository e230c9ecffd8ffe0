"""One request over a history that the caller owns: tools are offered, and nothing is run.

What stands on it decides itself what to do with the answer: agents of one's own, adapters to other
libraries, batches. The message of a result belongs at the end of the history of the next request,
so that its thinking is sent back as the endpoint requires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias, Unpack

from mull.agent import shared
from mull.agent.given import Said, as_message, check_message, expressed, expressed_fields, is_said
from mull.agent.library import Conversation
from mull.agent.options import CompleteOptions, check_names
from mull.agent.results import Result, result_of
from mull.agent.run import LIMITS, Turn
from mull.agent.streams import AsyncStream, Stream
from mull.agent.tools.tool import RunnableTool
from mull.agent.turn import Limits
from mull.dialects.serving import read_history, recognised
from mull.neutral.errors import LocalError
from mull.neutral.messages import Message
from mull.neutral.request import HostedTool, Note, Tool
from mull.neutral.target import Target

__all__ = [
    "History",
    "complete",
    "complete_async",
    "complete_stream",
    "complete_stream_async",
    "described_tools",
    "turn_over",
]

History: TypeAlias = Said | Iterable[Message | Mapping[str, Any]]
"""A question, or messages: mull's own, dictionaries in the form of any provider, or both."""

_ONE_REQUEST = Limits(rounds=1, nudges=0, shortenings=0, overflows=0)


def complete(
    messages: History, model: str | None = None, **options: Unpack[CompleteOptions]
) -> Result:
    """Send one request and wait for the answer.

    Nothing is run or stored: calls are in `Result.tool_calls`, and the caller adds
    `Result.message` and the results of the calls to the messages. An answer that does not match
    its `schema` is asked for once more.

    Raises:
        RemoteError: the endpoint rejected the request or could not be reached, or the answer does
            not match the schema.
        LocalError: the request cannot be made as asked.
    """
    talk, turn = _started(messages, model, options)
    return shared.loop().run(lambda: _finished(talk, turn))


async def complete_async(
    messages: History, model: str | None = None, **options: Unpack[CompleteOptions]
) -> Result:
    """`complete` on the caller's event loop."""
    return await _finished(*_started(messages, model, options))


def complete_stream(
    messages: History, model: str | None = None, **options: Unpack[CompleteOptions]
) -> Stream:
    """Send one request and get the answer's events as they arrive."""
    talk, turn = _started(messages, model, options)
    return Stream(turn, partial(talk._run, turn, None), shared.loop())


def complete_stream_async(
    messages: History, model: str | None = None, **options: Unpack[CompleteOptions]
) -> AsyncStream:
    """`complete_stream` on the caller's event loop."""
    talk, turn = _started(messages, model, options)
    return AsyncStream(turn, partial(talk._run, turn, None))


async def _finished(talk: Conversation, turn: Turn) -> Result:
    await talk._run(turn, None)
    return result_of(turn)


def _started(
    messages: History, model: str | None, options: CompleteOptions
) -> tuple[Conversation, Turn]:
    check_names(options, CompleteOptions.__optional_keys__, "complete")
    given: dict[str, Any] = {**options}
    tools = tuple(given.pop("tools", None) or ())
    talk = Conversation(model, **given)
    return talk, turn_over(talk, messages, tools, _ONE_REQUEST)


def turn_over(
    talk: Conversation, messages: History, tools: Sequence[Any] = (), limits: Limits = LIMITS
) -> Turn:
    """The turn of a new conversation that answers these messages.

    The tools are offered, not run: whoever handles their calls decides what follows, so that the
    turn is one request then, whatever the limits.

    Raises:
        LocalError: the messages or a tool cannot be read; says why.
    """
    offered, hosted = described_tools(tools)
    history, system, notes = _read_messages(messages, talk.target)
    for message in history:
        talk.add(message)
    system = "\n\n".join(part for part in (talk.options.system, system) if part)
    talk._change_requests(tools=offered, hosted_tools=hosted, system=system)
    turn = talk._turn(limits=_ONE_REQUEST if tools else limits)
    turn.note(*notes)
    return turn


def _read_messages(given: History, target: Target) -> tuple[list[Message], str, list[Note]]:
    """The messages, the system prompt among them, and what could not be read."""
    if is_said(given):
        return [as_message(given)], "", []
    if isinstance(given, Mapping | bytes) or not hasattr(given, "__iter__"):
        raise LocalError(f"`messages` must be text or a list, not {type(given).__name__}")
    given = list(given)
    for at, one in enumerate(given):
        _check_content(one, at)
    read: list[Message] = []
    systems: list[str] = []
    notes: list[Note] = []
    for foreign, run in groupby(given, lambda one: isinstance(one, Mapping)):
        if not foreign:
            read += map(check_message, run)
            continue
        dicts: Sequence[Any] = [dict(one) for one in run]
        dialect = recognised(dicts, has_system=False)
        found = read_history(dialect, dicts, None, target if dialect == target.dialect else None)
        read += found.messages
        systems += [found.system] if found.system else []
        if found.rest:
            notes.append(Note("messages", f"not sent: {', '.join(found.rest)}", warning=True))
    if not read:
        raise LocalError("there are no messages to answer")
    return read, "\n\n".join(systems), notes


def _check_content(message: Any, at: int) -> None:
    """Reject a user message that says nothing: a mistake of the caller, which endpoints answer with
    an error, or worse, with an answer.
    """
    says_nothing = False
    if isinstance(message, Message):
        says_nothing = message.role == "user" and not message.blocks
    elif isinstance(message, Mapping) and message.get("role") == "user":
        says_nothing = not message.get("content") and not message.get("parts")
    if says_nothing:
        raise LocalError(
            f"messages[{at}] is a user message without content: there is nothing to send"
        )


def described_tools(given: Iterable[Any]) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The definitions of tools, and those that the provider runs.

    Raises:
        LocalError: one of them is not a tool; says why.
    """
    tools: list[Tool] = []
    hosted: list[HostedTool] = []
    for one in given:
        if isinstance(one, HostedTool):
            hosted.append(expressed_fields(one, "a hosted tool"))
        elif isinstance(one, Mapping) and isinstance(one.get("functionDeclarations"), list):
            tools += map(_definition, one["functionDeclarations"])
        else:
            tools.append(_definition(one))
    return tuple(tools), tuple(hosted)


def _definition(given: Callable[..., Any] | RunnableTool | Tool | Mapping[str, Any]) -> Tool:
    """The definition of a tool.

    Raises:
        LocalError: it is not a tool; says why.
    """
    if isinstance(given, Tool):
        return expressed_fields(given, "a tool")
    if isinstance(given, RunnableTool):
        return given.definition
    if not isinstance(given, Mapping):
        from mull.agent.functions import Tool as FunctionTool

        return FunctionTool(handler=given).definition
    told: Mapping[str, Any] = expressed(given, "a tool")
    inner = told.get("function") or told.get("toolSpec") or told
    name = inner.get("name") if isinstance(inner, Mapping) else None
    schema = next((inner[key] for key in _SCHEMAS if key in inner), None) if name else None
    if isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping):
        schema = schema["json"]  # as Bedrock writes it
    is_run_there = schema is None and told.get("type", "function") != "function"
    if is_run_there or not isinstance(name, str) or not isinstance(schema, Mapping | None):
        raise LocalError(
            "a tool given as a dictionary needs a name, a description and parameters (a JSON "
            f"schema), not {', '.join(map(str, told)) or 'nothing'}; one that the provider runs "
            "is given as mull.HostedTool(dialect, data)"
        )
    described = str(inner.get("description") or "")
    return Tool(name, described, dict(schema or {}), strict=inner.get("strict") is True)


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
