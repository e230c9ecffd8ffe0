"""Decodes a client's generateContent request; the model and the method are in the path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mull.dialects.fields import Fields, choice_of, tool_of
from mull.dialects.foreign import as_object, objects
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.encode import CHOICES
from mull.dialects.gemini.history import read_history
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool, ToolChoice

__all__ = ["decode_request"]

_PATH = re.compile(r"/(?:models/)?(?P<model>[^/:]+(?:/[^/:]+)?):(?P<method>\w+)")
_CONFIG = "generationConfig"
_CALLING = "toolConfig.functionCallingConfig"
_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema", "parameters")


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    fields = Fields.of(body)
    found = _PATH.search(path)
    system = fields.take("systemInstruction", "system_instruction")
    history = read_history(fields.list("contents"), system, None)
    tools, hosted = _tools(fields)
    asked = Asked(
        messages=tuple(history.messages),
        model=found["model"] if found else fields.text("model"),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=_choice(fields),
        thinking=_thinking(fields),
        max_tokens=fields.whole(f"{_CONFIG}.maxOutputTokens"),
        format=_format(fields),
        stream=bool(found and found["method"].startswith("stream")),
        stream_usage=True,
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that the provider runs."""
    tools, hosted = [], []
    for where, group in objects(fields.list("tools"), "tools"):
        for key, value in group.items():
            if key not in ("functionDeclarations", "function_declarations"):
                hosted.append(HostedTool(DIALECT, {key: value}))
                continue
            place = f"{where}.{key}"
            for at, declared in objects(value if isinstance(value, list) else [value], place):
                schema = next((name for name in _SCHEMAS if name in declared), _SCHEMAS[0])
                tools.append(tool_of(fields, at, declared, schema))
    return tuple(tools), tuple(hosted)


def _choice(fields: Fields) -> ToolChoice | None:
    mode = fields.text(f"{_CALLING}.mode")
    names = fields.texts(f"{_CALLING}.allowedFunctionNames")
    if mode == "ANY" and len(names) == 1:
        return NamedTool(names[0])
    if names:
        fields.leave(f"{_CALLING}.allowedFunctionNames", [*names])
    if mode is None:
        return None
    choice = choice_of(CHOICES.read(mode))
    if choice is None:
        fields.leave(f"{_CALLING}.mode", mode)
    return choice


def _thinking(fields: Fields) -> ThinkingAsked:
    place = f"{_CONFIG}.thinkingConfig"
    effort, budget = fields.text(f"{place}.thinkingLevel"), fields.whole(f"{place}.thinkingBudget")
    shown = fields.flag(f"{place}.includeThoughts")
    effort = effort.lower() if effort else None
    if budget == 0:
        return ThinkingAsked("off", effort, budget, shown)
    if effort or budget is not None:
        return ThinkingAsked("on", effort, budget, shown)
    return ThinkingAsked("default" if shown else "unsaid", shown=shown)


def _format(fields: Fields) -> AnswerFormat | None:
    schema: Any = fields.take(f"{_CONFIG}.responseJsonSchema", f"{_CONFIG}.responseSchema")
    kind = fields.text(f"{_CONFIG}.responseMimeType")
    if schema is not None:
        return AnswerFormat(as_object(schema, "responseSchema"))
    if kind is not None and kind not in ("application/json", "text/plain"):
        fields.leave(f"{_CONFIG}.responseMimeType", kind)
    return AnswerFormat() if kind == "application/json" else None
