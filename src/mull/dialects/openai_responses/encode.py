"""Encodes a neutral request as the body of `POST /responses`.

The endpoint is told not to store anything (`store: false`); instead the request asks for encrypted
reasoning, so that it can be sent back. Unchanged settings produce the same bytes every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mull.dialects.body import dump, merge
from mull.dialects.extras import merge_own
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.messages import InputItems
from mull.dialects.openai_responses.shapes import NAMESPACE
from mull.dialects.parameters import write_parameters
from mull.dialects.schemas import FORMAT_NAME, closed, strict_form
from mull.neutral.blocks import as_keys, own_keys
from mull.neutral.messages import Message
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
from mull.neutral.thinking import write_thinking

__all__ = ["encode_request", "write_tool"]

PATH = "/responses"
FREE_TOOL = "custom"
"""The type of a tool that takes a text."""
LEAST_OUTPUT = 16
"""The smallest `max_output_tokens` that the API accepts (earendil-works/pi#6265)."""


def encode_request(request: Request, target: Target) -> WireRequest:
    """The request in the Responses API, without any key."""
    written = InputItems(target)
    body: dict[str, Any] = {"model": target.model}
    system, messages = _opening(request, target)
    if system and target.compat.system_role == "developer":
        written.add_system(system)
    elif system:
        body["instructions"] = system
    for message in messages:
        written.add(message)
    body |= {"input": written.items, "stream": request.stream, "store": False}
    if _reasons(request, target):
        body["include"] = ["reasoning.encrypted_content"]
    if tools := [*_tools(request, target), *(tool.data for tool in request.hosted_tools)]:
        body["tools"] = tools
    if request.tool_choice is not None:
        body["tool_choice"] = _tool_choice(request.tool_choice, request.tools)
    merge(body, write_parameters(request, DIALECT))
    if request.format is not None:
        merge(body, {"text": {"format": _format(request.format)}})
    notes = [*written.notes, *_limit(body, request, target)]
    merge(body, write_thinking(request.thinking))
    if request.keep_thinking and request.thinking.thinks:
        merge(body, target.compat.keep_thinking)
    own = own_keys(request.wire, DIALECT)
    included = dict.fromkeys((*body.get("include", ()), *own.get("include", ())))
    notes += merge_own(body, own)
    merge(body, {"include": list(included)} if included else None, target.compat.extra_body)
    return WireRequest(
        path=PATH if target.compat.path is None else target.compat.path,
        body=dump(body),
        headers={
            "content-type": "application/json",
            "accept": "text/event-stream" if request.stream else "application/json",
            **request.headers,
        },
        notes=tuple(notes),
    )


def _opening(request: Request, target: Target) -> tuple[str, Sequence[Message]]:
    """The system prompt and the messages after it. If the model's template accepts only one system
    message, at the start, all system messages at the start are merged."""
    messages = request.messages
    if target.compat.system_inside == "system":
        return request.system, messages
    start = next((at for at, one in enumerate(messages) if one.role != "system"), len(messages))
    texts = [request.system, *(message.text for message in messages[:start])]
    return "\n\n".join(filter(None, texts)), messages[start:]


def _reasons(request: Request, target: Target) -> bool:
    """Whether to ask for encrypted reasoning. OpenAI rejects that for a model that does not reason
    (pydantic/pydantic-ai#2865), other servers ignore it; an unknown model is asked until it
    rejects it, because its reasoning would be lost otherwise."""
    if not target.compat.encrypted_reasoning:
        return False
    state = request.thinking.state
    return (
        target.facts.reasoning
        or state in ("on", "default")
        or (not target.known and state != "off")
    )


def _limit(body: dict[str, Any], request: Request, target: Target) -> list[Note]:
    if request.max_tokens is None:
        return []
    named = target.compat.max_tokens_field
    field = "max_output_tokens" if named == "max_tokens" else named
    body[field] = max(request.max_tokens, LEAST_OUTPUT)
    if body[field] == request.max_tokens:
        return []
    text = f"max_tokens raised from {request.max_tokens} to {LEAST_OUTPUT}, the API's minimum"
    return [Note("maxTokens", text, True, str(request.max_tokens), str(LEAST_OUTPUT))]


def _tools(request: Request, target: Target) -> list[dict[str, Any]]:
    """The tools; those of a namespace are grouped in it if the endpoint supports namespaces."""
    tools: list[dict[str, Any]] = []
    groups: dict[str, list[dict[str, Any]]] = {}
    for tool in request.tools:
        group = as_keys(own_keys(tool.wire, DIALECT).get(NAMESPACE))
        name = group.get("name")
        if not target.compat.namespaces or not isinstance(name, str):
            tools.append(write_tool(tool))
            continue
        if name not in groups:
            groups[name] = []
            tools.append({"type": NAMESPACE, **group, "tools": groups[name]})
        groups[name].append(write_tool(tool))
    return tools


def write_tool(tool: Tool) -> dict[str, Any]:
    """The definition of a tool. `strict` is always sent: without it, this API would rewrite the
    schema."""
    own = {k: v for k, v in own_keys(tool.wire, DIALECT).items() if k != NAMESPACE}
    if tool.free_text:
        described = {"description": tool.description} if tool.description else {}
        return {"type": FREE_TOOL, "name": tool.name, **described, **own}
    made: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        made["description"] = tool.description
    made["parameters"] = tool.parameters or {"type": "object", "properties": {}}
    made["strict"] = tool.strict
    return merge(made, own)


def _format(wanted: AnswerFormat) -> dict[str, Any]:
    if wanted.schema is None:
        return {"type": "json_object"}
    schema, strict = strict_form(wanted.schema)
    if wanted.strict is not None:  # the schema is meant as it is
        schema, strict = closed(wanted.schema), wanted.strict
    name = wanted.name or FORMAT_NAME
    return {"type": "json_schema", "name": name, "schema": schema, "strict": strict}


def _tool_choice(choice: ToolChoice, tools: Sequence[Tool]) -> Any:
    if isinstance(choice, NamedTool):
        free = any(tool.free_text for tool in tools if tool.name == choice.name)
        return {"type": FREE_TOOL if free else "function", "name": choice.name}
    return choice
