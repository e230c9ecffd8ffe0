"""Encodes a request as the body of `POST /model/{model}/converse-stream`.

The model is in the path. Thinking parameters go into `additionalModelRequestFields`, in the form of
the model maker's own API.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.messages import History
from mull.dialects.bedrock_converse.words import CHOICES
from mull.dialects.body import dump, merge
from mull.dialects.parameters import write_parameters
from mull.dialects.schemas import FORMAT_NAME, with_known_words
from mull.neutral.blocks import own_keys
from mull.neutral.percent import quote_part
from mull.neutral.request import (
    AnswerFormat,
    NamedTool,
    Note,
    Request,
    Tool,
    ToolChoice,
    WireRequest,
)
from mull.neutral.target import Target
from mull.neutral.thinking import DEFAULT_ANSWER, write_thinking

__all__ = ["FIELDS", "encode_request"]

FIELDS = "additionalModelRequestFields"
_PATH = "/model/{model}/{method}"
_INTERLEAVED = "interleaved-thinking-2025-05-14"
_BETA_OF_FIELD = {"context_management": "context-management-2025-06-27"}
_CACHE = {"cachePoint": {"type": "default"}}


def encode_request(request: Request, target: Target) -> WireRequest:
    """The encoded request, without any key."""
    compat = target.compat
    history = History(compat)
    for message in request.messages:
        history.add(message)
    history.close()
    body, notes = _body(request, target, history)
    keep = compat.keep_thinking if request.keep_thinking and request.thinking.thinks else None
    merge(body, write_parameters(request, DIALECT), own_keys(request.wire, DIALECT))
    fields = merge(write_thinking(request.thinking), keep)
    if betas := _betas(body, fields):
        fields["anthropic_beta"] = betas
    merge(body, {FIELDS: fields} if fields else None, compat.extra_body)
    return WireRequest(
        path=_path(target, stream=request.stream),
        body=dump(body),
        headers={
            "content-type": "application/json",
            "accept": "application/vnd.amazon.eventstream"
            if request.stream
            else "application/json",
        },
        notes=(*history.notes(), *notes),
    )


def _path(target: Target, *, stream: bool) -> str:
    given = _PATH if target.compat.path is None else target.compat.path
    model = quote_part(target.model)  # an ARN has colons and slashes
    return given.replace("{model}", model).replace(
        "{method}", "converse-stream" if stream else "converse"
    )


def _body(request: Request, target: Target, history: History) -> tuple[dict[str, Any], list[Note]]:
    notes: list[Note] = []
    system: list[dict[str, Any]] = [
        {"text": text} for text in (request.system, *history.system) if text.strip()
    ]
    tools = [_tool(tool) for tool in request.tools]
    tools += [tool.data for tool in request.hosted_tools]
    tools = tools or _stand_ins(history.called, notes)
    if "cache_write" in (target.facts.cost or {}):
        last = history.messages[-1] if history.messages else {}
        question = last["content"] if last.get("role") == "user" else []
        for blocks in (system, tools, question):
            if blocks:
                blocks.append(_CACHE)
    body: dict[str, Any] = {"messages": history.messages}
    if system:
        body["system"] = system
    if config := _inference(request):
        body["inferenceConfig"] = config
    if tools:
        body["toolConfig"] = {"tools": tools}
    if request.tool_choice is not None:
        merge(body, _choose(request.tool_choice, request, notes))
    if request.format is not None and request.format.schema is not None:
        body["outputConfig"] = {"textFormat": _format(request.format, request.format.schema)}
    return body, notes


def _inference(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {}
    limit, budget = request.max_tokens, request.thinking.budget
    if limit is None and budget is not None:  # it must exceed the budget
        limit = DEFAULT_ANSWER + budget
    if limit is not None:
        config["maxTokens"] = limit
    return config


def _format(wanted: AnswerFormat, schema: dict[str, Any]) -> dict[str, Any]:
    """The answer format; this API takes the schema as a string."""
    text = dump(with_known_words(schema)).decode()
    held = {"schema": text, "name": wanted.name or FORMAT_NAME}
    return {"type": "json_schema", "structure": {"jsonSchema": held}}


def _tool(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    schema = {"json": {"type": "object", **tool.parameters}}
    strict = {"strict": True} if tool.strict else {}
    return {"toolSpec": {"name": tool.name, **described, "inputSchema": schema, **strict}}


def _stand_ins(called: Iterable[str], notes: list[Note]) -> list[dict[str, Any]]:
    """Declarations of the tools that the history calls: the API rejects calls without declared
    tools."""
    tools = [_tool(Tool(name)) for name in called]
    if tools:
        text = f"{len(tools)} tool{'s' if len(tools) > 1 else ''} declared by name only"
        notes.append(Note("tools", f"{text}: the API rejects a history with calls without tools"))
    return tools


def _choose(choice: ToolChoice, request: Request, notes: list[Note]) -> dict[str, Any]:
    if not request.tools:
        notes.append(Note("toolChoice", "tool choice not sent: the request has no tools"))
        return {}
    if choice == "none":
        text = "the API cannot forbid calls: the tools are sent, and the model may call them"
        notes.append(Note("toolChoice", text, warning=True))
        return {}
    if isinstance(choice, NamedTool):
        return {"toolConfig": {"toolChoice": {"tool": {"name": choice.name}}}}
    return {"toolConfig": {"toolChoice": {CHOICES.write(choice): {}}}}


def _betas(body: dict[str, Any], fields: dict[str, Any]) -> list[str]:
    """The betas that Claude's own API takes in a header and this API in a field."""
    thinking = fields.get("thinking")
    budgeted = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    betas = [_INTERLEAVED] if budgeted and "toolConfig" in body else []
    return betas + [beta for field, beta in _BETA_OF_FIELD.items() if field in fields]
