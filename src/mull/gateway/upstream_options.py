"""Translates what a client asks for into the settings and options of the upstream request.

Thinking requested in the client's dialect is mapped to the target in the same way as everywhere in
mull. A number that the target cannot accept does not fail the request: the client chose it for
another model. Fields that the upstream could not understand are left out, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from mull.dialects.parameters import nest
from mull.dialects.traits import TRAITS
from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.blocks import wire_of
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Dialect
from mull.neutral.parameters import said_in
from mull.neutral.request import Note, RequestOptions
from mull.neutral.target import Target
from mull.neutral.thinking import as_level
from mull.neutral.traits import Traits
from mull.settings.registry import REGISTRY

__all__ = ["UpstreamOptions", "upstream_options", "without_billing"]

_SUMMARIES = REGISTRY["reasoning.summary"].choices
_BILLING = re.compile(r"\Ax-anthropic-billing-header:[^\n]*\s*")
"""The line that Claude Code puts at the top of its system prompt for its provider. It differs in
every request, which would make the rest of the prompt uncacheable."""
_MOST_BUDGET = 1_000_000
_UNSERVED = "is not supported: the gateway returns one text answer without log probabilities"
_MOST_WORDS = 10
_NEVER = frozenset({"api_base", "api_key", "base_url", "extra_headers"})
"""Fields by which a client could tell a gateway behind this one where to send a request, or that
hold a key of its own."""
_INDEX = re.compile(r"\[\d+\]")


class UpstreamOptions(NamedTuple):
    """Settings for this request alone, its options, and notes about what could not be honoured."""

    settings: Mapping[str, Any]
    options: RequestOptions
    notes: tuple[Note, ...]


def upstream_options(asked: Asked, dialect: Dialect, target: Target) -> UpstreamOptions:
    """The settings and options for this target, from a request in this dialect. `max_tokens` is
    lowered to the target's limit: clients send the limit of another model.

    Raises:
        ConfigError: the request asks for more than one text: several, audio, log probabilities.
    """
    own = dialect == target.dialect
    said = _said(asked.rest, TRAITS[dialect])
    if unserved := TRAITS[dialect].unserved & {*said, *_words(said)}:
        raise ConfigError(f"{min(unserved).removeprefix('include.')} {_UNSERVED}; omit it")
    settings, notes = _thinking(asked.thinking, own=own)
    choice, tools = asked.offered()
    passed = _passed(asked.rest, dialect, target) if own else {}
    if own and target.compat.hosted_tools:  # it is the provider itself
        choice, tools = asked.tool_choice, asked.tools
        passed |= asked.own
    extras: dict[str, Any] = {}
    for path, value in passed.items():
        nest(extras, path, value)
    limit = _least(asked.max_tokens, target.facts.limit.output)
    if limit != asked.max_tokens:
        text = (
            f"lowered from {asked.max_tokens:,} to {limit:,}, the longest answer of {target.model}"
        )
        notes.append(Note("max_tokens", text, True, str(asked.max_tokens), str(limit)))
    options = RequestOptions(
        system=without_billing(asked.system),
        tools=tools,
        tool_choice=choice,
        hosted_tools=asked.hosted_tools,
        max_tokens=limit,
        format=asked.format,
        text_format=True,
        wire=wire_of(dialect, extras),
        headers=asked.headers if own else {},
        **said_in(asked),
    )
    if unread := _unread(asked, dialect, target):
        notes.append(Note("parameters", f"not sent: {', '.join(unread)}", warning=True))
    return UpstreamOptions(settings, options, tuple(notes))


def _said(rest: Mapping[str, Any], traits: Traits) -> dict[str, Any]:
    """The fields whose value is not the usual one."""
    usual = traits.usual
    return {
        path: held for path, held in rest.items() if held is not None and held != usual.get(path)
    }


def _words(rest: Mapping[str, Any]) -> Iterator[str]:
    """The words in lists, each with the path of its list."""
    for path, held in rest.items():
        if isinstance(held, list):
            yield from (f"{path}.{word}" for word in held if isinstance(word, str))


def without_billing(system: str) -> str:
    """The system prompt without the line that differs in every request."""
    return _BILLING.sub("", system)


def _passed(rest: Mapping[str, Any], dialect: Dialect, target: Target) -> dict[str, Any]:
    """The fields of the body that are sent to a server of the client's own dialect as they are.
    Those in lists are in the messages and tools that they belong to."""
    kept = _withheld(dialect, target)
    return {path: value for path, value in rest.items() if "[" not in path and path not in kept}


def _withheld(dialect: Dialect, target: Target) -> frozenset[str]:
    """The fields that a server of the client's own dialect does not get."""
    traits = TRAITS[dialect]
    attended = frozenset[str]() if target.compat.hosted_tools else traits.attended
    return traits.unserved | _NEVER | attended


def _least(wanted: int | None, most: int | None) -> int | None:
    return min(wanted, most) if wanted and most else wanted


def _unread(asked: Asked, dialect: Dialect, target: Target) -> list[str]:
    """What is not sent although the answer may depend on it."""
    traits = TRAITS[dialect]
    rest = _said(asked.rest, traits)
    if dialect == target.dialect:
        return sorted((rest.keys() & _withheld(dialect, target)) - traits.unneeded)
    paths = {name for path, value in rest.items() for name in _named(_INDEX.sub("[]", path), value)}
    return sorted((paths | asked.headers.keys()) - traits.unneeded)


def _named(path: str, value: Any) -> list[str]:
    """What a field is called in a note; of a list of words, each word."""
    if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
        return [path]
    return [f"{path}.{word:.80}" for word in value[:_MOST_WORDS]]


def _thinking(asked: ThinkingAsked, *, own: bool) -> tuple[dict[str, Any], list[Note]]:
    """The settings of what a request says about thinking. Within the conversation, a server of the
    client's own dialect reads it where it stands; for another it is the effort of the request."""
    settings: dict[str, Any] = {}
    notes: list[Note] = []
    inside = None if own else asked.set_inside
    if inside is not None and as_level(inside) is None:
        notes.append(Note("parameters", f"not sent: unknown effort {inside!r:.40}", warning=True))
    elif inside is not None and asked.off is None:  # else it is how long the answers are
        state: Literal["off", "on"] = "off" if inside == "none" else "on"
        asked = replace(asked, state=state, effort=inside, budget=None)
    if asked.summary in _SUMMARIES:
        settings["reasoning.summary"] = asked.summary
    if asked.state == "off":
        return settings | {"reasoning.effort": "none"}, notes
    if asked.state != "on":
        return settings, notes
    settings["reasoning.enabled"] = True
    if asked.effort is not None and (level := as_level(asked.effort)) is not None:
        settings["reasoning.effort"] = level
    if asked.budget is not None and asked.budget > 0:  # Gemini's -1 leaves it to the model
        settings["reasoning.maxTokens"] = min(asked.budget, _MOST_BUDGET)
        settings["reasoning.dynamicBudget"] = False  # a client means what it says each time
    return settings, notes
