"""Decodes a client's Converse request."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.encode import FIELDS
from mull.dialects.bedrock_converse.history import read_history
from mull.dialects.bedrock_converse.words import CHOICES
from mull.dialects.fields import Fields, choice_of, tool_of
from mull.dialects.foreign import as_object, as_text, objects
from mull.dialects.parameters import read_parameters
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.errors import ConfigError
from mull.neutral.percent import unquote_part
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool, ToolChoice

__all__ = ["decode_request"]

_PATH = re.compile(r"/model/([^/?]+)/converse(-stream)?(?:\?|$)")
_EFFORTS = (
    f"{FIELDS}.output_config.effort",
    "outputConfig.effort",
    f"{FIELDS}.reasoningConfig.maxReasoningEffort",
    f"{FIELDS}.reasoning_effort",
    f"{FIELDS}.reasoning.effort",
)


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request; the model and whether to stream are in the path.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    fields = Fields.of(body)
    history = read_history(fields.list("messages"), fields.take("system"), None)
    found = _PATH.search(path)
    tools, hosted = _tools(fields)
    asked = Asked(
        messages=tuple(history.messages),
        model=unquote_part(found[1]) if found else fields.text("modelId"),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        tool_choice=_choice(fields),
        thinking=_thinking(fields),
        max_tokens=fields.whole("inferenceConfig.maxTokens"),
        format=_format(fields),
        stream=bool(found and found[2]),
        stream_usage=True,
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that the provider runs; cache markers are left."""
    tools, hosted = [], []
    for where, tool in objects(fields.list("toolConfig.tools"), "toolConfig.tools"):
        given = tool.get("toolSpec")
        if not isinstance(given, dict):
            if "cachePoint" in tool:
                fields.leave(where, tool)
            else:
                hosted.append(HostedTool(DIALECT, tool))
            continue
        place = f"{where}.toolSpec"
        schema = as_object(given.get("inputSchema") or {}, f"{place}.inputSchema").get("json")
        plain = {**given, "inputSchema": schema}
        tools.append(tool_of(fields, place, plain, "inputSchema"))
    return tuple(tools), tuple(hosted)


def _choice(fields: Fields) -> ToolChoice | None:
    given = fields.take("toolConfig.toolChoice")
    if given is None:
        return None
    held = as_object(given, "toolConfig.toolChoice")
    if "tool" in held:
        named = as_object(held["tool"], "toolConfig.toolChoice.tool")
        return NamedTool(as_text(named.get("name"), "toolConfig.toolChoice.tool.name"))
    choice = choice_of(CHOICES.read(next(iter(held), "")))
    if choice is None:
        fields.leave("toolConfig.toolChoice", given)
    return choice


def _thinking(fields: Fields) -> ThinkingAsked:
    """In the parameters of the makers whose models are served: Claude's, Nova's, OpenAI's."""
    effort = fields.text(*_EFFORTS)
    kind = fields.text(f"{FIELDS}.thinking.type", f"{FIELDS}.reasoningConfig.type")
    match kind:
        case None:
            return ThinkingAsked("on" if effort else "unsaid", effort)
        case "enabled":
            return ThinkingAsked("on", effort, fields.whole(f"{FIELDS}.thinking.budget_tokens"))
        case "adaptive":
            return ThinkingAsked("on" if effort else "default", effort)
    return ThinkingAsked("off", effort, off=kind)


def _format(fields: Fields) -> AnswerFormat | None:
    place = "outputConfig.textFormat"
    if fields.text(f"{place}.type") is None:
        return None
    told = f"{place}.structure.jsonSchema"
    text, name = fields.text(f"{told}.schema"), fields.text(f"{told}.name")
    if text is None:
        return AnswerFormat(None, name)
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ConfigError(f"{told}.schema is not JSON: {error}") from None
    return AnswerFormat(as_object(schema, f"{told}.schema"), name)
