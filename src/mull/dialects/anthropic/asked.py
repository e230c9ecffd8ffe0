"""Decodes a client's request to the Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.answer import NO_THREADS
from mull.dialects.anthropic.encode import BETA, CHOICES, write_tool
from mull.dialects.anthropic.history import read_history
from mull.dialects.extras import described_by
from mull.dialects.fields import Fields, choice_of, first_keys, template_thinking, tool_of
from mull.dialects.foreign import as_object, as_text, objects
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.errors import RefusedError
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool, ToolChoice

__all__ = ["decode_request"]

_VERTEX = re.compile(r"/models/([^/:]+):(?:stream)?[rR]awPredict")
_NO_THREADS = (
    "thread is not supported by this server, which keeps reasoning by the messages of a request:"
    " send the full conversation without it"
)
_DISPLAYS = {"omitted": False, "summarized": True}
_OFF = ("disabled", "between_tools")
_THINKING, _OUTPUT = first_keys("thinking"), first_keys("output_config", "output_format")


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    fields = Fields.of(body)
    if fields.take("thread") is not None:
        raise RefusedError(_NO_THREADS, status=400, text=_NO_THREADS, code=NO_THREADS)
    history = read_history(fields.list("messages"), fields.take("system"), None)
    tools, hosted = _tools(fields, headers.get(BETA, ""))
    changes = {
        name: None if tool is None else _tool(fields, tool, "messages[].content[].tool")
        for name, tool in history.tools.items()
    }
    asked = Asked(
        messages=tuple(history.messages),
        model=fields.text("model") or (found[1] if (found := _VERTEX.search(path)) else None),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        changed_tools=changes,
        tool_choice=_choice(fields),
        thinking=replace(_thinking(fields), set_inside=history.effort),
        max_tokens=fields.whole("max_tokens"),
        format=_format(fields),
        stream=fields.flag("stream") or False,
        stream_usage=True,
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _tools(fields: Fields, said: str) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that the provider runs."""
    tools, hosted = [], []
    betas = tuple(filter(None, (beta.strip() for beta in said.split(","))))
    for where, tool in objects(fields.list("tools"), "tools"):
        if (made := _tool(fields, tool, where)) is not None:
            tools.append(made)
        else:
            hosted.append(HostedTool(DIALECT, tool, betas))
    return tuple(tools), tuple(hosted)


def _tool(fields: Fields, tool: dict[str, Any], where: str) -> Tool | None:
    """A function of the client; None if the provider runs the tool."""
    if tool.get("type") not in (None, "custom"):
        return None
    made = tool_of(fields, where, tool, "input_schema", "type")
    return described_by(made, tool, write_tool(made), DIALECT)


def _choice(fields: Fields) -> ToolChoice | None:
    kind = fields.text("tool_choice.type")
    if kind is None:
        return None
    if kind == "tool":
        return NamedTool(as_text(fields.take("tool_choice.name"), "tool_choice.name"))
    choice = choice_of(CHOICES.read(kind))
    if choice is None:
        fields.leave("tool_choice.type", kind)
    return choice


def _thinking(fields: Fields) -> ThinkingAsked:
    switch, word = template_thinking(fields)
    if not fields.has_any(_THINKING | _OUTPUT) and switch is None and word is None:
        return ThinkingAsked(returned=False)
    kind, effort = fields.text("thinking.type"), fields.level("output_config.effort") or word
    if kind not in (None, "enabled", "adaptive", *_OFF):
        fields.leave("thinking.type", kind)
        return ThinkingAsked("on" if effort else "default", effort)
    display = fields.text("thinking.display")
    shown = _DISPLAYS.get(display) if display else None
    if display:
        fields.leave("thinking.display", display)
    match kind:
        case None:
            asked = ThinkingAsked("on" if effort or switch else "unsaid", effort, shown=shown)
            state = "off" if switch is False else asked.state
            return replace(asked, state=state, returned=switch is True)
        case "enabled":
            budget = fields.whole("thinking.budget_tokens")
            return ThinkingAsked("off" if switch is False else "on", effort, budget, shown)
        case "adaptive":
            return ThinkingAsked("on" if effort else "default", effort, shown=shown)
    return ThinkingAsked("off", effort, shown=shown, off=kind, returned=False)


def _format(fields: Fields) -> AnswerFormat | None:
    if not fields.has_any(_OUTPUT):
        return None
    for place in ("output_config.format", "output_format"):
        if fields.text(f"{place}.type") is not None:
            schema: Any = fields.take(f"{place}.schema")
            return AnswerFormat(None if schema is None else as_object(schema, f"{place}.schema"))
    return None
