"""How an answer gets the form of a schema: enforced by the endpoint, through a tool, or by
instructions.

If the catalog says that the model's endpoint enforces schemas, it is asked to. A model that does
not think but calls tools must call one whose arguments are the answer. All others get instructions:
a forced tool would end their thinking, or be rejected beside it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.neutral.request import AnswerFormat, NamedTool, Note, RequestOptions, Tool
from mull.neutral.target import Target

__all__ = ["FormatWay", "ask_in_format", "format_notes", "format_way", "tool_name"]

FormatWay: TypeAlias = Literal["native", "tool", "prompt"]

_SAID: dict[FormatWay, str] = {
    "native": "the endpoint enforces the schema",
    "tool": "the model must call a tool that takes the answer: its endpoint accepts no schema",
    "prompt": "the schema is part of the instructions: the endpoint is not known to enforce one",
}
_WORDS = """\
Your answer must be a single JSON value that fits the JSON schema below. Write the value alone: no \
words before or after it, no code fence.

"""


def format_way(options: RequestOptions, target: Target) -> FormatWay:
    """How this request asks for its format."""
    facts = target.facts
    if options.plain_format:
        return "prompt"
    if facts.structured_output and _is_held(options.format, target):
        return "native"
    is_free = not options.text_format and not options.tools and options.tool_choice is None
    can_force = facts.tool_call is True and facts.forced_tools is not False and not facts.reasoning
    return "tool" if is_free and can_force else "prompt"


def _is_held(wanted: AnswerFormat | None, target: Target) -> bool:
    """Whether the endpoint's own mechanism supports this schema."""
    schema, traits = wanted.schema if wanted is not None else None, TRAITS[target.dialect]
    if schema is None:
        return not traits.needs_schema
    from mull.dialects.schemas import has_open_objects

    return not (traits.closes_objects and has_open_objects(schema))


def tool_name(wanted: AnswerFormat) -> str:
    """The name of the tool whose arguments are the answer."""
    return wanted.name or "answer"


def ask_in_format(options: RequestOptions, target: Target) -> RequestOptions:
    """The options with whatever is needed to ask for their format; `format` stays for the native
    mechanism.
    """
    wanted = options.format
    if wanted is None:
        return options
    way, schema = format_way(options, target), wanted.schema or {}
    if way == "native":
        return options
    if way == "tool":
        name = tool_name(wanted)
        tool = Tool(name, "Give your answer: its arguments are the answer itself.", schema)
        return replace(options, tools=(tool,), tool_choice=NamedTool(name), format=None)
    said = _WORDS + msgspec.json.format(msgspec.json.encode(schema), indent=1).decode()
    system = f"{options.system}\n\n{said}" if options.system else said
    return replace(options, system=system, format=None)


def format_notes(options: RequestOptions, target: Target) -> list[Note]:
    """Notes about the mechanism."""
    if options.format is None:
        return []
    way = format_way(options, target)
    return [Note("format", _SAID[way], requested="schema", effective=way, kind="way")]
