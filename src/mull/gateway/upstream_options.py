"""Translates what a client asks for into the settings and options of the upstream request.

Thinking requested in the client's dialect is mapped to the target in the same way as everywhere in
mull. A number that the target cannot accept does not fail the request: the client chose it for
another model. Fields that the upstream could not understand are left out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mull.dialects.parameters import nest
from mull.dialects.traits import TRAITS
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.blocks import wire_of
from mull.neutral.messages import Dialect
from mull.neutral.parameters import said_in
from mull.neutral.request import Note, RequestOptions
from mull.neutral.target import Target
from mull.neutral.thinking import as_level
from mull.settings.registry import REGISTRY

__all__ = ["UpstreamOptions", "upstream_options"]

_SUMMARIES = REGISTRY["reasoning.summary"].choices
_BILLING = re.compile(r"\Ax-anthropic-billing-header:[^\n]*\s*")
"""The line that Claude Code puts at the top of its system prompt for its provider. It differs in
every request, which would make the rest of the prompt uncacheable."""
_MOST_BUDGET = 1_000_000
_NOTHING = object()
_CACHE_MARK = ".cache_control"
_INDEX = re.compile(r"\[\d+\]")


class UpstreamOptions(NamedTuple):
    """Settings for this request alone, its options, and notes about what could not be honoured."""

    settings: Mapping[str, Any]
    options: RequestOptions
    notes: tuple[Note, ...]


def upstream_options(asked: Asked, dialect: Dialect, target: Target) -> UpstreamOptions:
    """The settings and options for this target, from a request in this dialect. `max_tokens` is
    lowered to the target's limit: clients send the limit of another model."""
    settings, notes = _thinking(asked.thinking)
    traits = TRAITS[dialect]
    rest = {p: value for p, value in asked.rest.items() if traits.usual.get(p, _NOTHING) != value}
    extras: dict[str, Any] = {}
    for path in sorted(rest.keys() & traits.extras):
        nest(extras, path, rest[path])
    options = RequestOptions(
        system=_BILLING.sub("", asked.system),
        tools=asked.tools,
        tool_choice=asked.tool_choice,
        hosted_tools=asked.hosted_tools,
        max_tokens=_least(asked.max_tokens, target.facts.limit.output),
        format=asked.format,
        text_format=True,
        wire=wire_of(dialect, extras),
        cache_marks=_cache_marks(asked.rest) if dialect == target.dialect else {},
        **said_in(asked),
    )
    if unread := _unread(rest, dialect):
        notes.append(Note("parameters", f"not sent: {', '.join(unread)}", warning=True))
    return UpstreamOptions(settings, options, tuple(notes))


def _cache_marks(rest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The cache markers of each part of the body. A part without a marker gets the one with the
    longest lifetime: APIs reject a shorter lifetime before a longer one."""
    found: dict[str, dict[str, Any]] = {}
    for path, value in rest.items():
        if path.endswith(_CACHE_MARK) and isinstance(value, dict):
            found[path.partition("[")[0]] = value
    if not found:
        return {}
    longest = max(found.values(), key=lambda mark: mark.get("ttl") == "1h")
    return {"system": longest, "tools": longest, "messages": longest, **found}


def _least(wanted: int | None, most: int | None) -> int | None:
    return min(wanted, most) if wanted and most else wanted


def _unread(rest: Mapping[str, Any], dialect: Dialect) -> list[str]:
    """The fields that were ignored although the answer may depend on them."""
    traits = TRAITS[dialect]
    paths = {_INDEX.sub("[]", path) for path in rest if path not in traits.extras}
    return sorted(paths - traits.unneeded)


def _thinking(asked: ThinkingAsked) -> tuple[dict[str, Any], list[Note]]:
    settings: dict[str, Any] = {}
    notes: list[Note] = []
    if asked.summary in _SUMMARIES:
        settings["reasoning.summary"] = asked.summary
    if asked.state == "off":
        return settings | {"reasoning.effort": "none"}, notes
    if asked.state != "on":
        return settings, notes
    settings["reasoning.enabled"] = True
    if asked.effort is not None:
        level = as_level(asked.effort)
        if level is None:
            notes.append(Note("reasoning.effort", f"unknown effort {asked.effort!r:.40}", True))
        else:
            settings["reasoning.effort"] = level
    if asked.budget is not None and asked.budget > 0:  # Gemini's -1 leaves it to the model
        settings["reasoning.maxTokens"] = min(asked.budget, _MOST_BUDGET)
    return settings, notes
