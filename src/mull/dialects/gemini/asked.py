"""Decodes a client's generateContent request; the model and the method are in the path."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mull.dialects.extras import described_by, unread
from mull.dialects.fields import Fields, choice_of, tool_of
from mull.dialects.foreign import as_object, objects
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.encode import CHOICES, write_tool
from mull.dialects.gemini.history import read_history
from mull.dialects.parameters import read_parameters
from mull.dialects.schemas import json_schema
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.blocks import wire_of
from mull.neutral.errors import ConfigError
from mull.neutral.request import AnswerFormat, HostedTool, NamedTool, Tool

__all__ = ["decode_request"]

_PATH = re.compile(r"/(?:models/)?(?P<model>[^/:]+(?:/[^/:]+)?):(?P<method>\w+)")
_COUNT, _WHOLE = ":countTokens", "generateContentRequest"
_CONFIG = "generationConfig"
_CALLING = "toolConfig.functionCallingConfig"
_SCHEMAS = ("parametersJsonSchema", "parameters")
_FORMATS = (f"{_CONFIG}.responseJsonSchema", f"{_CONFIG}.responseSchema")

_NAMES = {
    re.sub("([A-Z])", r"_\1", name).lower(): name
    for name in (
        "allowedFunctionNames cachedContent candidateCount codeExecution codeExecutionResult"
        " executableCode fileData fileUri frequencyPenalty functionCall functionCallingConfig"
        " functionDeclarations functionResponse generateContentRequest generationConfig"
        " googleSearch includeThoughts inlineData maxOutputTokens mediaResolution mimeType"
        " parametersJsonSchema presencePenalty responseJsonSchema responseLogprobs"
        " responseMimeType responseModalities responseSchema safetySettings stopSequences"
        " systemInstruction thinkingBudget thinkingConfig thinkingLevel thoughtSignature"
        " toolConfig topK topP urlContext videoMetadata"
    ).split()
}
"""This API has two spellings of each name; mull reads one of them."""
_SNAKE = re.compile(b'"(?:%b)"' % b"|".join(name.encode() for name in _NAMES))
_CONTENT = frozenset(
    "args response parameters parametersJsonSchema responseSchema responseJsonSchema labels".split()
)
"""What these hold is written by tools and clients."""


def decode_request(body: bytes, path: str, headers: Mapping[str, str]) -> Asked:
    """The decoded request.

    Raises:
        ConfigError: it is not such a request; says where and why.
    """
    found = _PATH.search(path)
    fields = Fields.of(body)
    if _SNAKE.search(body):
        fields = Fields(_respelled(fields.left()))
    fields = _to_count(fields) if path.endswith(_COUNT) else fields
    system = fields.take("systemInstruction")
    history = read_history(fields.list("contents"), system, None)
    tools, hosted = _tools(fields)
    asked = Asked(
        messages=tuple(history.messages),
        model=found["model"] if found else fields.text("model"),
        system=history.system,
        tools=tools,
        hosted_tools=hosted,
        thinking=_thinking(fields),
        max_tokens=fields.whole(f"{_CONFIG}.maxOutputTokens"),
        format=_format(fields),
        stream=bool(found and found["method"].startswith("stream")),
        stream_usage=True,
        **_choice(fields),
        **read_parameters(fields, DIALECT),
    )
    return asked.with_rest(fields.left(), history.rest)


def _respelled(held: Any) -> Any:
    """A value with the names that mull reads."""
    if isinstance(held, list):
        return [_respelled(one) for one in held]
    if not isinstance(held, dict):
        return held
    named = {_NAMES.get(key, key): value for key, value in held.items()}
    return {k: value if k in _CONTENT else _respelled(value) for k, value in named.items()}


def _to_count(fields: Fields) -> Fields:
    """The request whose tokens are to be counted: bare contents, or a whole request."""
    whole = fields.take(_WHOLE)
    if whole is None:
        return fields
    if fields.take("contents") is not None:
        raise ConfigError(f"the request has both contents and {_WHOLE}: send one of them")
    return Fields(as_object(whole, _WHOLE))


def _tools(fields: Fields) -> tuple[tuple[Tool, ...], tuple[HostedTool, ...]]:
    """The client's own functions, and the tools that the provider runs."""
    tools, hosted = [], []
    for where, group in objects(fields.list("tools"), "tools"):
        for key, value in group.items():
            if key != "functionDeclarations":
                hosted.append(HostedTool(DIALECT, {key: value}))
                continue
            place = f"{where}.{key}"
            for at, declared in objects(value if isinstance(value, list) else [value], place):
                tools.append(_tool(fields, declared, at))
    return tuple(tools), tuple(hosted)


def _tool(fields: Fields, declared: dict[str, Any], where: str) -> Tool:
    """A function. A schema in Google's own form is read as JSON schema, and kept as it is."""
    key = next((name for name in _SCHEMAS if name in declared), _SCHEMAS[0])
    made = tool_of(fields, where, declared, key)
    schema = json_schema(made.parameters)
    given = unread(declared, _SCHEMAS)
    if schema != made.parameters:
        made, given = replace(made, parameters=schema), declared
    return described_by(made, given, write_tool(made), DIALECT)


def _choice(fields: Fields) -> dict[str, Any]:
    mode = fields.text(f"{_CALLING}.mode")
    names = fields.texts(f"{_CALLING}.allowedFunctionNames")
    choice = None if mode is None else choice_of(CHOICES.read(mode))
    if choice is None and mode is not None:
        fields.leave(f"{_CALLING}.mode", mode)
    if choice == "required" and len(names) == 1:
        return {"tool_choice": NamedTool(names[0])}
    own = {f"{_CALLING}.allowedFunctionNames": list(names)} if names else {}
    return {"tool_choice": choice, "allowed": names, "own": own}


def _thinking(fields: Fields) -> ThinkingAsked:
    place = f"{_CONFIG}.thinkingConfig"
    effort, budget = fields.level(f"{place}.thinkingLevel"), fields.whole(f"{place}.thinkingBudget")
    shown = fields.flag(f"{place}.includeThoughts")
    effort = effort.lower() if effort else None
    asked = ThinkingAsked("unsaid", effort, budget, shown, returned=shown is not False)
    if budget == 0:
        return replace(asked, state="off")
    if effort or budget is not None:
        return replace(asked, state="on")
    return replace(asked, state="default") if shown else asked


def _format(fields: Fields) -> AnswerFormat | None:
    schema: Any = fields.take(*_FORMATS)
    kind = fields.text(f"{_CONFIG}.responseMimeType")
    if kind not in (None, "application/json", "text/plain"):  # such as a bare word of a list
        fields.leave(f"{_CONFIG}.responseMimeType", kind)
        if schema is not None:
            fields.leave(_FORMATS[-1], schema)
        return None
    if schema is not None:
        given = as_object(schema, _FORMATS[-1])
        read = json_schema(given)
        wire = None if read == given else wire_of(DIALECT, {"responseSchema": given})
        return AnswerFormat(read, wire=wire)
    return AnswerFormat() if kind == "application/json" else None
