"""Encodes a request to generateContent or streamGenerateContent.

The model is in the path, not in the body. The parameters of tools are sent as
`parametersJsonSchema`, which accepts any JSON schema; `parameters` accepts only a subset of
OpenAPI's schema and rejects the rest. What a client wrote in that form stays in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mull.dialects.body import dump, merge
from mull.dialects.extras import written_with
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.contents import ContentWriter
from mull.dialects.parameters import write_parameters
from mull.dialects.tables import Words
from mull.neutral.blocks import OpaqueBlock, TextBlock, own_keys
from mull.neutral.messages import Message
from mull.neutral.request import NamedTool, Note, Request, Tool, ToolChoice, WireRequest
from mull.neutral.target import Target
from mull.neutral.thinking import WRITERS, write_thinking

__all__ = ["CHOICES", "encode_request", "write_tool"]

_PATH = "/models/{model}:{method}"
_OPEN_SCHEMA = "parameters"
CHOICES = Words(("AUTO", "auto"), ("NONE", "none"), ("ANY", "required"))


def encode_request(request: Request, target: Target) -> WireRequest:
    """The encoded request, without any key."""
    plan = request.thinking
    writer = ContentWriter(
        needs_signatures=WRITERS[target.compat.thinking_writer].demands_signatures
    )
    system, messages = _split_system(request)
    writer.write(messages)
    body: dict[str, Any] = {"contents": writer.contents}
    if system:
        body["systemInstruction"] = {"parts": system}
    notes = writer.notes()
    if tools := _tools(request):
        body["tools"] = tools
    if request.tool_choice is not None:
        merge(body, _choose(request.tool_choice, request.tools, notes))
    merge(body, _generation(request), write_parameters(request, DIALECT), write_thinking(plan))
    if request.keep_thinking and plan.thinks:
        merge(body, target.compat.keep_thinking)
    merge(body, own_keys(request.wire, DIALECT), target.compat.extra_body)
    return WireRequest(
        path=_path(target, stream=request.stream),
        body=dump(body),
        headers={
            "content-type": "application/json",
            "accept": "text/event-stream" if request.stream else "application/json",
            **request.headers,
        },
        notes=tuple(notes),
    )


def _path(target: Target, *, stream: bool) -> str:
    model = target.model.removeprefix("models/")
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    given = target.compat.path
    if given is None:
        given = "/{model}:{method}" if model.startswith("tunedModels/") else _PATH
    return given.replace("{model}", model).replace("{method}", method)


def _split_system(request: Request) -> tuple[list[dict[str, Any]], Sequence[Message]]:
    """The system instruction and the messages after it; later system messages stay in place."""
    messages = request.messages
    start = next((at for at, m in enumerate(messages) if m.role != "system"), len(messages))
    parts: list[dict[str, Any]] = [{"text": request.system}]
    for block in (block for message in messages[:start] for block in message.blocks):
        if isinstance(block, TextBlock):
            parts.append({"text": block.text, **own_keys(block.wire, DIALECT)})
        elif isinstance(block, OpaqueBlock):
            parts.append(block.data)
    return [part for part in parts if part != {"text": ""}], messages[start:]


def _tools(request: Request) -> list[dict[str, Any]]:
    declared = [write_tool(tool) for tool in request.tools]
    own = [{"functionDeclarations": declared}] if declared else []
    return [*own, *(tool.data for tool in request.hosted_tools)]


def write_tool(tool: Tool) -> dict[str, Any]:
    """The declaration of a tool."""
    declared: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.parameters and _OPEN_SCHEMA not in own_keys(tool.wire, DIALECT):
        declared["parametersJsonSchema"] = tool.parameters
    return written_with(declared, tool.wire, DIALECT)


def _choose(choice: ToolChoice, tools: Sequence[Tool], notes: list[Note]) -> dict[str, Any]:
    if not tools:
        if choice != "none":
            notes.append(Note("toolChoice", "tool choice not sent: the request has no tools"))
        return {}
    if isinstance(choice, NamedTool):
        config = {"mode": "ANY", "allowedFunctionNames": [choice.name]}
    else:
        config = {"mode": CHOICES.write(choice)}
    return {"toolConfig": {"functionCallingConfig": config}}


def _generation(request: Request) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.format is not None:
        config["responseMimeType"] = "application/json"
        if own := own_keys(request.format.wire, DIALECT):
            config |= own
        elif request.format.schema is not None:
            config["responseJsonSchema"] = request.format.schema
    return {"generationConfig": config} if config else {}
