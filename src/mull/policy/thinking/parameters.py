"""Adapts the parameters of a request to its endpoint.

Some parameters do not exist in a dialect, some are rejected by endpoints, and some cannot be
combined with thinking. The traits of the dialect, the facts of the model and the compat rows of the
endpoint say what each accepts. A value from the user is never dropped silently: each change is a
note, except for parameters that do not affect the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from mull.dialects.extras import bare_tool, pruned
from mull.dialects.traits import TRAITS
from mull.neutral.blocks import wire_of
from mull.neutral.errors import LocalError
from mull.neutral.parameters import (
    NUCLEUS,
    PARAMETERS,
    SAMPLING,
    ParameterName,
    Parameters,
    is_said,
    said_in,
)
from mull.neutral.request import HostedTool, NamedTool, Note, RequestOptions, ToolChoice
from mull.neutral.target import Target
from mull.neutral.thinking import WRITERS
from mull.policy.thinking.plan import Planned
from mull.policy.thinking.steering import cannot_stop

__all__ = [
    "Settled",
    "forced_tools_stop_thinking",
    "foreign_notes",
    "settle_parameters",
    "without_foreign",
]

HINTS: frozenset[ParameterName] = frozenset({"user", "metadata", "cache_key", "verbosity"})
"""Parameters that do not change the question the model answers: leaving one out is no warning."""
_UNSAID: dict[ParameterName, Any] = {name: getattr(Parameters(), name) for name in PARAMETERS}


class Settled(Struct, frozen=True):
    """The options as they are sent, and notes about changes."""

    options: RequestOptions
    notes: tuple[Note, ...] = ()


def forced_tools_stop_thinking(
    conversation: RequestOptions, target: Target, planned: Planned
) -> str | None:
    """Why thinking must be off for this request: the user forces a tool, and the endpoint does not
    accept both; None if it need not be."""
    if not _is_forced(conversation.tool_choice) or _force(target, planned) != "off":
        return None
    if _thinks_anyway(target):
        return None
    return "Thinking is off for this request: the endpoint accepts no forced tool while it thinks"


def settle_parameters(options: RequestOptions, target: Target, planned: Planned) -> Settled:
    """Leave out what the endpoint would reject, with a note for each.

    Raises:
        LocalError: a tool is forced, and cannot be here.
    """
    notes: list[Note] = []
    for name, value in said_in(options).items():
        fitted, reason = _fitted(name, value, options, target, planned)
        options = replace(options, **{name: fitted})
        if reason:
            notes.append(_changed(name, value, fitted, reason))
    if _is_forced(options.tool_choice) and (options.tools or options.hosted_tools):
        options = _forced(options, target, planned, notes)
    if options.tools and target.compat.tools_need_responses and planned.thinks:
        text = f"{target.model} accepts tools only on the Responses API, unless thinking is off"
        notes.append(Note(about="tools", text=text, warning=True))
    return Settled(options, tuple(notes))


def without_foreign(options: RequestOptions, target: Target) -> RequestOptions:
    """The options without tools, fields and demands that only another dialect or provider
    understands."""
    hosted = tuple(tool for tool in options.hosted_tools if _knows(target, tool))
    choice, wire = options.tool_choice, options.wire
    if isinstance(choice, NamedTool) and hosted != options.hosted_tools:
        named = {tool.name for tool in options.tools} | {tool.data.get("name") for tool in hosted}
        choice = choice if choice.name in named else None
    if wire is not None and wire.dialect != target.dialect:
        wire = None
    tools = options.tools
    if refused := frozenset(target.compat.refused_keys):
        wire = wire_of(target.dialect, pruned(wire.data, refused)) if wire else None
        tools = tuple(bare_tool(tool, refused) for tool in tools)
    if gone := _unenforced(options, target):
        tools = tuple(replace(tool, strict=False) if tool.name in gone else tool for tool in tools)
    return replace(options, tools=tools, hosted_tools=hosted, tool_choice=choice, wire=wire)


def foreign_notes(options: RequestOptions, target: Target) -> list[Note]:
    """Notes about what `without_foreign` leaves out."""
    notes = []
    if names := _unenforced(options, target):
        text = f"strict of {', '.join(names)} not sent: {target.name} cannot enforce such a schema"
        notes.append(Note("tools", text, warning=True))
    if gone := [tool.name for tool in options.hosted_tools if not _knows(target, tool)]:
        text = f"not offered: {', '.join(gone)}: {target.name} has no such built-in tool"
        notes.append(Note("tools", text, warning=True))
    if options.wire is not None and options.wire.dialect != target.dialect:
        text = f"not sent: {', '.join(options.wire.data)}: {target.name} has no such parameter"
        notes.append(Note("parameters", text, warning=True))
    return notes


def _unenforced(options: RequestOptions, target: Target) -> list[str]:
    """The tools whose schema is to be enforced, and cannot be by this endpoint."""
    return [t.name for t in options.tools if t.strict and not _can_enforce(t.parameters, target)]


def _can_enforce(schema: Mapping[str, Any], target: Target) -> bool:
    if not target.compat.strict_tools:
        return False
    from mull.dialects.schemas import has_open_objects, is_strict

    match TRAITS[target.dialect].strict_tools:
        case "whole":
            return is_strict(schema)
        case "closed":
            return not has_open_objects(schema)
    return False


def _knows(target: Target, tool: HostedTool) -> bool:
    return target.compat.hosted_tools and tool.dialect == target.dialect


def _is_forced(choice: ToolChoice | None) -> bool:
    return choice == "required" or isinstance(choice, NamedTool)


def _force(target: Target, planned: Planned) -> bool | Literal["off", "required"]:
    """Whether this request may force a tool: `off` is only if it did not think."""
    rule = target.facts.forced_tools
    if rule is None:
        rule = "off" if WRITERS[planned.plan.writer].refuses_forced_tools else True
    if rule != "off":
        return rule
    told = planned.plan.state in ("on", "default")  # of others it is not known that they think
    return "off" if planned.thinks and (told or _thinks_anyway(target)) else True


def _thinks_anyway(target: Target) -> bool:
    """Whether it is known that turning thinking off would not help."""
    facts = target.facts
    return cannot_stop(facts) or target.compat.ignores_off or facts.off_type != "disabled"


def _forced(
    options: RequestOptions, target: Target, planned: Planned, notes: list[Note]
) -> RequestOptions:
    """The options with a tool that is really forced.

    Raises:
        LocalError: it cannot be; to leave the choice to the model is up to the caller.
    """
    choice, force = options.tool_choice, _force(target, planned)
    if force is False or force == "off":
        why = "" if force is False else " while it thinks, and cannot stop thinking"
        raise LocalError(
            f"{target.name} accepts no forced tool{why}.\nLeave the choice to the model"
            " (tool choice auto) and say in the prompt which tool to call, or use another model."
        )
    named = choice.name if isinstance(choice, NamedTool) else None
    if force != "required" or named is None:
        return options
    tools = tuple(tool for tool in options.tools if tool.name == named)
    text = f"toolChoice {named} → required, and no other tool is offered: {target.model} accepts"
    text += " no named tool"
    notes.append(Note("toolChoice", text, requested=named, effective="required"))
    return replace(options, tool_choice="required", tools=tools, hosted_tools=())


def _fitted(
    name: ParameterName, value: Any, options: RequestOptions, target: Target, planned: Planned
) -> tuple[Any, str | None]:
    """The value that can be sent, and why it differs, if that deserves a note."""
    if name == "parallel_calls" and (not options.tools or options.tool_choice == "none"):
        return None, None
    reason = _refuses(name, value, target, planned)
    if reason is None and name == "temperature" and _is_spare(options, target):
        return None, None
    if reason is None and name == "top_p" and _excludes_top_p(options, target):
        reason = f"{target.model} accepts temperature or top_p, not both"
    if reason is not None:
        is_told = value != target.compat.holds.get(name)
        return _UNSAID[name], reason if is_told else None
    if name == "stop":
        return _fitted_stops(value, target)
    if name in ("user", "cache_key"):
        return _fitted_id(value, TRAITS[target.dialect].id_length), None
    span = TRAITS[target.dialect].ranges.get(name)
    if span is None or span[0] <= value <= span[1]:
        return value, None
    least, most = span
    return min(max(value, least), most), f"{target.model} accepts {least:g} to {most:g}"


def _refuses(name: ParameterName, value: Any, target: Target, planned: Planned) -> str | None:
    traits = TRAITS[target.dialect]
    if name not in traits.parameters:
        return "its API has no such parameter"
    if name in target.compat.omits:
        return f"{target.name} does not accept it"
    sampling = target.facts.temperature if name in SAMPLING else None
    if sampling is False or (sampling == "off" and name not in NUCLEUS):
        return f"{target.model} does not accept {name}"
    if sampling == "off" and planned.thinks:
        return f"{target.model} does not accept {name} while it thinks"
    allowed = traits.thinking_ranges.get(name) if planned.thinks else None
    if allowed is None:
        return None
    if not allowed:
        return f"{target.model} does not accept {name} while it thinks"
    least, most = allowed
    if least <= value <= most:
        return None
    span = f"{least:g}" if least == most else f"{least:g} to {most:g}"
    return f"{target.model} thinks only with {name} {span}"


def _is_spare(options: RequestOptions, target: Target) -> bool:
    """Whether the temperature is the default and would exclude a top_p that is not."""
    default = TRAITS[target.dialect].defaults.get("temperature")
    return _excludes_top_p(options, target) and options.temperature == default


def _excludes_top_p(options: RequestOptions, target: Target) -> bool:
    both = options.temperature is not None and options.top_p is not None
    return both and target.compat.either_sampling


def _fitted_stops(stops: tuple[str, ...], target: Target) -> tuple[tuple[str, ...], str | None]:
    blank = TRAITS[target.dialect].blank_stops
    kept = tuple(dict.fromkeys(stop for stop in stops if (stop if blank else stop.strip())))
    most = target.compat.most_stops
    if most is not None and len(kept) > most:
        return kept[:most], f"{target.name} accepts at most {most}"
    lost = len(set(stops)) > len(kept)
    return kept, "a stop sequence must contain more than whitespace" if lost else None


def _fitted_id(name: str, length: int | None) -> str:
    """The name; one that is too long is always shortened to the same name."""
    if length is None or len(name) <= length:
        return name
    from hashlib import sha256

    return sha256(name.encode("utf-8", "replace")).hexdigest()[:length]


def _changed(name: ParameterName, value: Any, fitted: Any, reason: str) -> Note:
    requested, sent = _shown(value), is_said(fitted)
    effective = _shown(fitted) if sent else "not sent"
    text = f"{name} {requested} {'→ ' + effective if sent else effective}: {reason}"
    warning = name not in HINTS
    return Note(name, text, warning=warning, requested=requested, effective=effective)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else f"{value}"
