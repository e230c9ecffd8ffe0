"""Decodes a client's Chat Completions request, with any of its formats for thinking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import described_by
from mull.dialects.fields import (
    Fields,
    answer_format,
    first_keys,
    template_thinking,
    tool_choice,
    tool_of,
)
from mull.dialects.foreign import objects
from mull.dialects.openai_chat import DIALECT
from mull.dialects.openai_chat.encode import write_tool
from mull.dialects.openai_chat.history import read_history
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.request import HostedTool, Tool
from mull.neutral.thinking import as_level

__all__ = ["decode_request"]

_LIMITS = ("max_completion_tokens", "max_tokens")
_GOOGLE = "extra_body.google.thinking_config"
_EFFORTS = ("reasoning_effort", "reasoning.effort", f"{_GOOGLE}.thinking_level")
_BUDGETS = (
    "thinking_budget",
    "thinking.budget_tokens",
    "thinking_token_budget",
    "reasoning_budget_tokens",
    "reasoning.max_tokens",
    f"{_GOOGLE}.thinking_budget",
)
_ON, _OFF = ("enabled", "adaptive", "auto"), ("disabled", "between_tools")
_SWITCHES = ("enable_thinking", "reasoning.enabled")
_SHOWN = ("include_reasoning", f"{_GOOGLE}.include_thoughts")
_KIND, _OLLAMA, _HIDDEN, _SUMMARY = (
    "thinking.type",
    "think",
    "reasoning.exclude",
    "reasoning.summary",
)
_THINKING = first_keys(
    *(*_EFFORTS, *_BUDGETS, *_SWITCHES, *_SHOWN), *(_KIND, _OLLAMA, _HIDDEN, _SUMMARY)
)


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    fields = Fields.of(body)
    history = read_history(fields.list("messages"), None, None)
    tools, hosted = _tools(fields)
    asked = Asked(
        messages=tuple(history.messages),
        model=fields.text("model"),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        thinking=_thinking(fields),
        max_tokens=fields.whole(*_LIMITS),
        format=answer_format(fields, "response_format", "json_schema."),
        stream=fields.flag("stream") or False,
        stream_usage=fields.flag("stream_options.include_usage") or False,
        **tool_choice(fields, _named),
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that only some servers know."""
    tools, hosted = [], []
    for where, tool in objects(fields.list("tools"), "tools"):
        function = tool.get("function")
        if tool.get("type", "function") == "function" and isinstance(function, dict):
            made = tool_of(fields, f"{where}.function", function, "parameters")
            tools.append(described_by(made, tool, write_tool(made), DIALECT))
            fields.leave_keys(tool, where, "type", "function")
        else:
            hosted.append(HostedTool(DIALECT, tool))
    return tuple(tools), tuple(hosted)


def _named(given: Any) -> str | None:
    match given:
        case {"type": "function", "function": {"name": str(name)}}:
            return name
    return None


def _thinking(fields: Fields) -> ThinkingAsked:
    """All formats that control thinking are read; one that says off takes precedence."""
    told, word = template_thinking(fields)
    if told is None and word is None and not fields.has_any(_THINKING):
        return ThinkingAsked()
    effort, budget = fields.level(*_EFFORTS) or word, fields.whole(*_BUDGETS)
    kind = fields.text(_KIND)
    if kind not in (None, *_ON, *_OFF):
        fields.leave(_KIND, kind)
        kind = None
    said = (told, *map(fields.flag, _SWITCHES))
    switches = [on for on in said if on is not None]
    if (think := fields.take(_OLLAMA)) is not None:  # Ollama: a switch, or an effort
        if isinstance(think, bool):
            switches.append(think)
        elif effort is None and isinstance(think, str) and as_level(think) is not None:
            effort = think
        else:
            fields.leave(_OLLAMA, think)
    hidden, shown = fields.flag(_HIDDEN), fields.flag(*_SHOWN)
    shown = not hidden if shown is None and hidden is not None else shown
    summary = fields.text(_SUMMARY)
    off = kind if kind in _OFF else None
    asked = ThinkingAsked(
        "unsaid", effort, budget, shown, summary, off, returned=shown is not False
    )
    if off or False in switches or effort == "none" or budget == 0:
        return replace(asked, state="off")
    is_said = bool(kind or switches or effort or budget is not None)
    return replace(asked, state="on") if is_said else asked
