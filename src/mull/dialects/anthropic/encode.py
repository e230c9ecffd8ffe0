"""Encodes a request as the body of `POST /messages`.

What to request has already been decided; this module maps it to the names of the API, places cache
markers where they help, and adds the beta header that a thinking budget needs for thinking between
tool calls.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.messages import History
from mull.dialects.body import dump, merge
from mull.dialects.extras import merge_own, written_with
from mull.dialects.parameters import write_parameters
from mull.dialects.schemas import with_known_words
from mull.dialects.tables import Words
from mull.neutral.blocks import own_keys
from mull.neutral.request import NamedTool, Note, Request, Tool, ToolChoice, WireRequest
from mull.neutral.target import Target
from mull.neutral.thinking import DEFAULT_ANSWER, write_thinking

__all__ = ["BETA", "CHOICES", "encode_request", "write_tool"]

CHOICES = Words(("auto", "auto"), ("none", "none"), ("any", "required"))
VERSION = "2023-06-01"
BETA = "anthropic-beta"
INTERLEAVED = "interleaved-thinking-2025-05-14"
_BETA_OF_FIELD = {"context_management": "context-management-2025-06-27"}
_THINKING = ("adaptive", "enabled")
_WITH_THINKING = ("display", "block_binding")
"""What the API rejects where there is no thinking."""
_MARKER = "cache_control"
_CACHEABLE = ("text", "image", "document", "tool_result")


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
    merge(body, write_thinking(request.thinking), keep)
    lost = _merge_own(body, own_keys(request.wire, DIALECT))
    merge(body, compat.extra_body)
    path = _path(target, body, stream=request.stream)
    return WireRequest(
        path=path,
        body=dump(body),
        headers=_headers(request, body, history.betas, compat.refused_keys),
        notes=(*history.notes(), *lost, *_notes(request, history)),
    )


def _merge_own(body: dict[str, Any], own: Mapping[str, Any]) -> list[Note]:
    """Merge what the client said to this API: a kind of thinking that mull does not know as it is,
    and of thinking that is off not what is rejected then."""
    said = own.get("thinking")
    if not isinstance(said, dict):
        return merge_own(body, own)
    if "type" in said:
        body["thinking"] = said
        return merge_own(body, {key: value for key, value in own.items() if key != "thinking"})
    kind = body.get("thinking", {}).get("type")
    gone = () if kind in _THINKING else _WITH_THINKING if kind else _WITH_THINKING[:1]
    if kept := {key: value for key, value in said.items() if key not in gone}:
        merge(body, {"thinking": kept})
    return merge_own(body, {key: value for key, value in own.items() if key != "thinking"})


def _path(target: Target, body: dict[str, Any], *, stream: bool) -> str:
    """The path of the request. On Vertex the model is moved from the body to the path."""
    given = "/messages" if target.compat.path is None else target.compat.path
    if "{model}" not in given:
        return given
    model = body.pop("model")
    method = "streamRawPredict" if stream else "rawPredict"
    return given.replace("{model}", model).replace("{method}", method)


def _speaks(block: dict[str, Any]) -> bool:
    """Whether it is more than a blank text; what a client gave may be another kind of block."""
    text = block.get("text")
    return not isinstance(text, str) or bool(text.strip())


def _body(request: Request, target: Target, history: History) -> dict[str, Any]:
    system = [{"type": "text", "text": request.system}, *history.system]
    spoken = [block for block in system if _speaks(block)]
    tools = [write_tool(tool) for tool in request.tools]
    tools += [dict(tool.data) for tool in request.hosted_tools]
    own = own_keys(request.wire, DIALECT)
    if "cache_write" in (target.facts.cost or {}):
        _mark(spoken, tools, history.messages, own)
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
    parameters = write_parameters(request, DIALECT)
    if "tool_choice" in parameters:  # parallel calls are a field of the choice
        body.setdefault("tool_choice", {"type": CHOICES.write("auto")})
    body["messages"] = history.messages
    merge(body, parameters)
    if request.format is not None and request.format.schema is not None:
        schema = with_known_words(request.format.schema)
        body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    if request.stream:
        body["stream"] = True
    return body


def _max_tokens(request: Request) -> int:
    """The limit of the answer: the API rejects a request without one."""
    if request.max_tokens is not None:
        return request.max_tokens
    return DEFAULT_ANSWER + (request.thinking.budget or 0)


def write_tool(tool: Tool) -> dict[str, Any]:
    """The definition of a tool."""
    described = {"description": tool.description} if tool.description else {}
    schema = {"type": "object", **tool.parameters}
    strict = {"strict": True} if tool.strict else {}
    written = {"name": tool.name, **described, "input_schema": schema, **strict}
    return written_with(written, tool.wire, DIALECT)


def _tool_choice(choice: ToolChoice) -> dict[str, Any]:
    if isinstance(choice, NamedTool):
        return {"type": "tool", "name": choice.name}
    return {"type": CHOICES.write(choice)}


def _mark(
    system: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    messages: list[dict[str, Any]],
    own: Mapping[str, Any],
) -> None:
    """Put a cache marker on what the next request will repeat, unless the client put its own. Only
    input is marked: thinking blocks, which accept no marker, occur only in answers."""
    said = (block for message in messages for block in message["content"])
    if _MARKER in own or any(_MARKER in block for block in (*system, *tools, *said)):
        return
    last = messages[-1]["content"] if messages and messages[-1]["role"] == "user" else []
    for blocks in (system, last):
        cacheable = [block for block in blocks if block.get("type") in _CACHEABLE]
        if cacheable:
            cacheable[-1][_MARKER] = {"type": "ephemeral"}
    if tools:
        tools[-1][_MARKER] = {"type": "ephemeral"}


def _headers(
    request: Request, body: dict[str, Any], more: Sequence[str], refused: Container[str]
) -> dict[str, str]:
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
    betas += more
    betas += (beta.strip() for beta in request.headers.get(BETA, "").split(","))
    wanted = [beta for beta in dict.fromkeys(betas) if beta and beta not in refused]
    return {**headers, BETA: ",".join(wanted)} if wanted else headers


def _notes(request: Request, history: History) -> list[Note]:
    notes = []
    if request.tool_choice is not None and not request.tools:
        notes.append(Note("toolChoice", "tool choice not sent: the request has no tools"))
    last = request.messages[-1] if request.messages else None
    ends_open = history.messages and history.messages[-1]["role"] == "assistant"
    if ends_open and last is not None and not last.is_paused:
        text = "the request ends with an answer, which many models reject"
        notes.append(Note("history", text, warning=True))
    return notes
