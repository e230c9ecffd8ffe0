"""Decodes a client's request to the Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import described_by, unread
from mull.dialects.fields import (
    Fields,
    answer_format,
    template_thinking,
    tool_choice,
    tool_of,
)
from mull.dialects.foreign import as_list, as_text, objects
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.encode import FREE_TOOL, write_tool
from mull.dialects.openai_responses.history import read_history
from mull.dialects.openai_responses.shapes import NAMESPACE
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.blocks import Wire, joined, wire_of
from mull.neutral.request import HostedTool, Tool

__all__ = ["decode_request", "read_request", "take_items"]

_SUMMARIES = ("auto", "concise", "detailed", "none")


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; the message says where and why.
    """
    fields = Fields.of(body)
    return read_request(fields, take_items(fields))


def take_items(fields: Fields) -> list[Any]:
    """The input items of a request; a plain string is a user message."""
    given = fields.take("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return [] if given is None else as_list(given, "input")


def read_request(fields: Fields, items: Sequence[Any]) -> Asked:
    """The decoded request with these items as the whole conversation.

    Raises:
        ConfigError: it is not such a request; the message says where and why.
    """
    history = read_history(items, fields.take("instructions"), None)
    tools, hosted = _tools(fields, fields.list("tools"), "tools")
    added, _ = _tools(fields, [*history.tools.values()], "input[].tools")
    asked = Asked(
        messages=tuple(history.messages),
        model=fields.text("model"),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        changed_tools={tool.name: tool for tool in added},
        thinking=replace(_thinking(fields), set_inside=history.effort),
        max_tokens=fields.whole("max_output_tokens"),
        format=answer_format(fields, "text.format"),
        stream=fields.flag("stream") or False,
        stream_usage=True,
        **tool_choice(fields, _named),
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _tools(
    fields: Fields, given: list[Any], place: str
) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The functions, and the tools that the provider runs itself."""
    tools: list[Tool] = []
    hosted: list[HostedTool] = []
    for where, tool in objects(given, place):
        if tool.get("type") in (FREE_TOOL, "function"):
            tools.append(_tool(fields, tool, where))
        elif tool.get("type") == NAMESPACE:
            tools += _grouped(fields, tool, where)
        else:
            hosted.append(HostedTool(DIALECT, tool))
    return tuple(tools), tuple(hosted)


def _tool(fields: Fields, tool: dict[str, Any], where: str) -> Tool:
    if tool.get("type") == FREE_TOOL:
        fields.leave_keys(tool, where, "type", "name", "description", "format")
        return _free_tool(tool, where)
    made = tool_of(fields, where, tool, "parameters", "type")
    return described_by(made, tool, write_tool(made), DIALECT)


def _grouped(fields: Fields, group: dict[str, Any], where: str) -> Iterator[Tool]:
    """The tools of a namespace, each with the keys of the namespace."""
    shared = unread(group, ("type", "tools"))
    fields.leave_keys(shared, where, "name", "description")
    for place, tool in objects(as_list(group.get("tools"), f"{where}.tools"), f"{where}.tools"):
        made = _tool(fields, tool, place)
        if tool.get("type") not in (FREE_TOOL, "function"):
            fields.leave_keys({"type": tool.get("type")}, place)
        yield replace(made, wire=joined(made.wire, Wire(DIALECT, {NAMESPACE: shared})))


def _free_tool(tool: dict[str, Any], where: str) -> Tool:
    """A tool that takes a text; only this dialect can describe the format of that text."""
    known = ("type", "name", "description")
    rest = unread(tool, known)
    described = tool.get("description")
    return Tool(
        as_text(tool.get("name"), f"{where}.name"),
        "" if described is None else as_text(described, f"{where}.description"),
        _one_text(rest.get("format")),
        free_text=True,
        wire=wire_of(DIALECT, rest),
    )


def _one_text(form: Any) -> dict[str, Any]:
    """The schema of an object that contains the text; a grammar goes into the description."""
    held = {"type": "string"}
    match form:
        case {"type": "grammar", "syntax": str(syntax), "definition": str(definition)}:
            held["description"] = f"The whole text, in this grammar ({syntax}):\n{definition}"
    return {"type": "object", "properties": {"input": held}, "required": ["input"]}


def _named(given: Any) -> str | None:
    match given:
        case {"type": "function" | "custom", "name": str(name)}:
            return name
    return None


def _thinking(fields: Fields) -> ThinkingAsked:
    switch, word = template_thinking(fields)
    effort, budget = (
        fields.level("reasoning.effort") or word,
        fields.whole("reasoning_budget_tokens"),
    )
    summary = fields.text("reasoning.summary", "reasoning.generate_summary")
    shown = True if summary is not None else None
    if summary is not None and summary not in _SUMMARIES:
        fields.leave("reasoning.summary", summary)
        summary = None
    if effort is None and budget is None and switch is None:
        return ThinkingAsked("default" if summary else "unsaid", shown=shown, summary=summary)
    off = effort == "none" or budget == 0 or switch is False
    return ThinkingAsked("off" if off else "on", effort, budget, shown, summary)
