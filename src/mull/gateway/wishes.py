"""What a client asks for, as settings and options of the request that goes upstream.

Thinking is asked for in the client's dialect and becomes the target's by the same ladder as
everywhere. A number that cannot hold upstream is no reason to refuse: the client chose it for
another model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mull.neutral.asked import Asked, ThinkingAsked
from mull.neutral.request import Note, RequestOptions
from mull.neutral.thinking import as_level
from mull.settings.registry import REGISTRY

__all__ = ["Wishes", "wishes_of"]

_SUMMARIES = REGISTRY["reasoning.summary"].choices
_UNSENT = ("top_p", "top_k", "presence_penalty", "frequency_penalty", "seed", "stop", "format")


class Wishes(NamedTuple):
    """Settings for this request alone, its options, and what could not be taken."""

    settings: Mapping[str, Any]
    options: RequestOptions
    notes: tuple[Note, ...]


def wishes_of(asked: Asked) -> Wishes:
    """The wishes in a client's request."""
    settings, notes = _thinking(asked.thinking)
    options = RequestOptions(
        system=asked.system,
        tools=asked.tools,
        tool_choice=asked.tool_choice,
        temperature=asked.temperature,
        max_tokens=asked.max_tokens,
    )
    for name in _UNSENT:
        if getattr(asked, name) not in (None, ()):
            notes.append(Note(name, f"{name} is not sent upstream", warning=True))
    return Wishes(settings, options, tuple(notes))


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
            notes.append(Note("reasoning.effort", f"effort {asked.effort!r:.40} is unknown", True))
        else:
            settings["reasoning.effort"] = level
    if asked.budget:
        settings["reasoning.maxTokens"] = asked.budget
    return settings, notes
