"""Encodes a request as the body of `POST /messages`.

What to request has already been decided; this module maps it to the names of the API, places cache
markers where they help, and adds the beta header that a thinking budget needs for thinking between
tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.messages import History
from mull.dialects.body import dump, merge
from mull.dialects.parameters import write_parameters
from mull.dialects.schemas import with_known_words
from mull.dialects.tables import Words
from mull.neutral.blocks import own_keys
from mull.neutral.request import NamedTool, Note, Request, Tool, ToolChoice, WireRequest
from mull.neutral.target import Target
from mull.neutral.thinking import DEFAULT_ANSWER, write_thinking

__all__ = ["CHOICES", "encode_request"]

CHOICES = Words(("auto", "auto"), ("none", "none"), ("any", "required"))
VERSION = "2023-06-01"
INTERLEAVED = "interleaved-thinking-2025-05-14"
_BETA_OF_FIELD = {"context_management": "context-management-2025-06-27"}
_MARK = {"type": "ephemeral"}
_CACHEABLE = frozenset({"text", "image", "document", "tool_result"})


def encode_request(request: Request, target: Target) -> WireRequest:
    """The encoded request, without any key."""
    compat = target.compat
    thinks = request.thinking.thinks
    history = History(compat, thinks=thinks)
    for message in request.messages:
        history.add(message)
    history.close()
    body = _body(request, target, history)
    keep = compat.keep_thinking if request.keep_thinking and thinks else None
    merge(body, write_thinking(request.thinking), keep, compat.extra_body)
    path = _path(target, body, stream=request.stream)
    return WireRequest(
        path=path,
        body=dump(body),
        headers=_headers(request, body),
        notes=(*history.notes(), *_notes(request, history)),
    )


def _path(target: Target, body: dict[str, Any], *, stream: bool) -> str:
    """The path of the request. On Vertex the model is moved from the body to the path."""
    given = "/messages" if target.compat.path is None else target.compat.path
    if "{model}" not in given:
        return given
    model = body.pop("model")
    method = "streamRawPredict" if stream else "rawPredict"
    return given.replace("{model}", model).replace("{method}", method)


def _body(request: Request, target: Target, history: History) -> dict[str, Any]:
    system = [text for text in (request.system, *history.system) if text.strip()]
    spoken = [{"type": "text", "text": text} for text in system]
    tools = [_tool(tool) for tool in request.tools]
    tools += [dict(tool.data) for tool in request.hosted_tools]
    if request.cache_marks or "cache_write" in (target.facts.cost or {}):
        _mark(spoken, tools, history.messages, request.cache_marks)
    body: dict[str, Any] = {
        "model": target.model,
        target.compat.max_tokens_field: _max_tokens(request),
    }
    if spoken:
        body["system"] = spoken
    if tools:
        body["tools"] = tools
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
    body["messages"] = history.messages
    merge(body, _parameters(request, body), own_keys(request.wire, DIALECT))
    if request.format is not None and request.format.schema is not None:
        schema = with_known_words(request.format.schema)
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    if request.stream:
        body["stream"] = True
    return body


def _parameters(request: Request, body: dict[str, Any]) -> dict[str, Any]:
    """The parameters; in this API, parallel calls are a field of the tool choice."""
    written = write_parameters(request, DIALECT)
    if "tool_choice" in written and "tool_choice" not in body:
        written["tool_choice"]["type"] = CHOICES.write("auto")
    return written


def _max_tokens(request: Request) -> int:
    """The limit of the answer: the API rejects a request without one."""
    if request.max_tokens is not None:
        return request.max_tokens
    return DEFAULT_ANSWER + (request.thinking.budget or 0)


def _tool(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    schema = {"type": "object", **tool.parameters}
    strict = {"strict": True} if tool.strict else {}
    return {"name": tool.name, **described, "input_schema": schema, **strict}


def _tool_choice(choice: ToolChoice) -> dict[str, Any]:
    if isinstance(choice, NamedTool):
        return {"type": "tool", "name": choice.name}
    return {"type": CHOICES.write(choice)}


def _mark(
    system: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    messages: list[dict[str, Any]],
    marks: Mapping[str, dict[str, Any]],
) -> None:
    """Put a cache marker on what the next request will repeat. Only input is marked: thinking
    blocks, which accept no marker, occur only in answers."""
    last = messages[-1]["content"] if messages and messages[-1]["role"] == "user" else []
    cacheable = [block for block in last if block.get("type") in _CACHEABLE]
    for place, blocks in (("system", system), ("tools", tools), ("messages", cacheable)):
        if blocks:
            blocks[-1]["cache_control"] = dict(marks.get(place, _MARK))


def _headers(request: Request, body: dict[str, Any]) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "text/event-stream" if request.stream else "application/json",
        "anthropic-version": VERSION,
    }
    thinking = body.get("thinking")
    budgeted = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    betas = [INTERLEAVED] if budgeted and request.tools else []
    betas += [beta for field, beta in _BETA_OF_FIELD.items() if field in body]
    betas += [beta for tool in request.hosted_tools for beta in tool.betas]
    if betas:
        headers["anthropic-beta"] = ",".join(dict.fromkeys(betas))
    return headers


def _notes(request: Request, history: History) -> list[Note]:
    notes = []
    if request.tool_choice is not None and not request.tools:
        notes.append(Note("toolChoice", "tool choice not sent: the request has no tools"))
    last = request.messages[-1] if request.messages else None
    ends_open = history.messages and history.messages[-1]["role"] == "assistant"
    if ends_open and last is not None and last.stop_reason != "pause_turn":
        text = "the request ends with an answer, which many models reject"
        notes.append(Note("history", text, warning=True))
    return notes
