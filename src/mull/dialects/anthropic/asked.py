"""Decodes a client's request to the Messages API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.encode import CHOICES
from mull.dialects.anthropic.history import read_history
from mull.dialects.fields import Fields, choice_of, first_keys, template_thinking, tool_of
from mull.dialects.foreign import as_object, as_text, objects
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool, ToolChoice

__all__ = ["decode_request"]

_VERTEX = re.compile(r"/models/([^/:]+):(?:stream)?[rR]awPredict")
_BETA = "anthropic-beta"
_DISPLAYS = {"omitted": False, "summarized": True}
_THINKING, _OUTPUT = first_keys("thinking"), first_keys("output_config", "output_format")


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    fields = Fields.of(body)
    history = read_history(fields.list("messages"), fields.take("system"), None)
    betas = {_BETA: headers[_BETA]} if _BETA in headers else {}
    tools, hosted = _tools(fields, headers.get(_BETA, ""))
    asked = Asked(
        messages=tuple(history.messages),
        model=fields.text("model") or (found[1] if (found := _VERTEX.search(path)) else None),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=_choice(fields),
        thinking=_thinking(fields),
        max_tokens=fields.whole("max_tokens"),
        format=_format(fields),
        stream=fields.flag("stream") or False,
        stream_usage=True,
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest, betas)


def _tools(fields: Fields, said: str) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that the provider runs."""
    tools, hosted = [], []
    betas = tuple(filter(None, (beta.strip() for beta in said.split(","))))
    for where, tool in objects(fields.list("tools"), "tools"):
        if tool.get("type") in (None, "custom"):
            tools.append(tool_of(fields, where, tool, "input_schema", "type"))
        else:
            hosted.append(HostedTool(DIALECT, tool, betas))
    return tuple(tools), tuple(hosted)


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
        return ThinkingAsked()
    kind, effort = fields.text("thinking.type"), fields.text("output_config.effort") or word
    display = fields.text("thinking.display")
    shown = _DISPLAYS.get(display) if display else None
    if display and shown is None:
        fields.leave("thinking.display", display)
    match kind:
        case None:
            if switch is False:
                return ThinkingAsked("off", effort, shown=shown)
            return ThinkingAsked("on" if effort or switch else "unsaid", effort, shown=shown)
        case "enabled":
            budget = fields.whole("thinking.budget_tokens")
            return ThinkingAsked("off" if switch is False else "on", effort, budget, shown)
        case "adaptive":
            return ThinkingAsked("on" if effort else "default", effort, shown=shown)
    return ThinkingAsked("off", effort, shown=shown, off=kind)


def _format(fields: Fields) -> AnswerFormat | None:
    if not fields.has_any(_OUTPUT):
        return None
    for place in ("output_config.format", "output_format"):
        if fields.text(f"{place}.type") is not None:
            schema: Any = fields.take(f"{place}.schema")
            return AnswerFormat(None if schema is None else as_object(schema, f"{place}.schema"))
    return None
