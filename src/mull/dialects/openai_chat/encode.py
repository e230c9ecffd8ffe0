"""Encodes a request as the body of a Chat Completions request.

Everything about thinking has already been decided; this module only writes it. An endpoint's own
names and requirements are in its compat row, and what that row adds to the body comes last.
"""

from __future__ import annotations

from typing import Any

from mull.dialects.body import dump, merge
from mull.dialects.extras import merge_own, written_with
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.messages import MessageList
from mull.dialects.openai_chat.reasoning import ReasoningRule
from mull.dialects.parameters import write_parameters
from mull.neutral.blocks import own_keys
from mull.neutral.request import (
    AnswerFormat,
    NamedTool,
    Note,
    Request,
    Tool,
    ToolChoice,
    WireRequest,
)
from mull.neutral.target import Compat, Target, TurnForm
from mull.neutral.thinking import write_thinking

__all__ = ["encode_request", "write_tool"]

PATH = "/chat/completions"


def encode_request(request: Request, target: Target) -> WireRequest:
    """The encoded request, without any key."""
    compat = target.compat
    thinks = request.thinking.thinks
    notes: list[Note] = []
    stream = request.stream
    if compat.thinking_needs_stream and thinks and not stream:
        stream = True
        notes.append(
            Note("stream", "streamed anyway: the endpoint supports thinking only in streams")
        )
    history = MessageList(ReasoningRule(request, compat))
    if request.system:
        history.add_system(request.system)
    for message in request.messages:
        history.add(message)
    body: dict[str, Any] = {"model": target.model, "messages": history.messages}
    body |= _options(request, compat, notes)
    body["stream"] = stream
    if stream and compat.stream_usage:
        body["stream_options"] = {"include_usage": True}
    keep = compat.keep_thinking if request.keep_thinking and thinks else None
    if stream and compat.end_thinking == "llama-control":
        body["reasoning_control"] = True
    if stream and compat.count_thinking == "llama-timings":
        body["timings_per_token"] = True
    if compat.grammar is not None:
        _constrain(body, request, compat.grammar)
    merge(body, write_thinking(request.thinking), keep)
    notes += merge_own(body, own_keys(request.wire, DIALECT))
    merge(body, compat.extra_body)
    accept = "text/event-stream" if stream else "application/json"
    return WireRequest(
        path=PATH if compat.path is None else compat.path,
        body=dump(body),
        headers={"content-type": "application/json", "accept": accept, **request.headers},
        notes=(*notes, *history.notes()),
    )


def _options(request: Request, compat: Compat, notes: list[Note]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    tools = [write_tool(tool) for tool in request.tools]
    if tools := [*tools, *(tool.data for tool in request.hosted_tools)]:
        options["tools"] = tools
        if request.tool_choice is not None:
            options["tool_choice"] = _tool_choice(request.tool_choice)
    elif request.tool_choice is not None:
        notes.append(Note("toolChoice", "tool choice not sent: the request has no tools"))
    if request.format is not None:
        options["response_format"] = _format(request.format)
    if request.max_tokens is not None:
        options[compat.max_tokens_field] = request.max_tokens
    return merge(options, write_parameters(request, DIALECT))


def _constrain(body: dict[str, Any], request: Request, form: TurnForm) -> None:
    """Have the turn written by mull's grammar; that of a plain one the server knows already.

    The server accepts a grammar beside tools only if it is not to look for calls itself, so calls
    arrive as text, in their marks.
    """
    tools = () if request.tool_choice == "none" else request.tools
    thinks = request.thinking.thinks
    if thinks and not tools and request.format is None:
        return
    from mull.dialects.grammar import turn_grammar

    body.pop("response_format", None)
    body["grammar"] = turn_grammar(form, tools, request.tool_choice, request.format, thinks=thinks)
    body["grammar_type"] = "tool_calls"  # only of this type it includes the prompt
    if tools:
        body["tool_choice"] = "none"


def write_tool(tool: Tool) -> dict[str, Any]:
    """The definition of a tool."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    if tool.strict:
        function["strict"] = True
    return written_with({"type": "function", "function": function}, tool.wire, DIALECT)


def _format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.schema is None:
        return {"type": "json_object"}
    from mull.dialects.schemas import FORMAT_NAME, closed, strict_form

    schema, strict = strict_form(wanted.schema)
    if wanted.strict is not None:  # the schema is meant as it is
        schema, strict = closed(wanted.schema), wanted.strict
    held = {"name": wanted.name or FORMAT_NAME, "schema": schema, "strict": strict}
    return {"type": "json_schema", "json_schema": held}


def _tool_choice(choice: ToolChoice) -> Any:
    if isinstance(choice, NamedTool):
        return {"type": "function", "function": {"name": choice.name}}
    return choice
