"""Which notes about a request are sent to the client: what was left out, changed or not found.

Clients are not told how a parameter was translated for another API, nor that a parameter with its
default value was left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.dialects.traits import TRAITS
from mull.gateway.attach import REATTACHED
from mull.neutral.asked import Asked
from mull.neutral.messages import Dialect
from mull.neutral.request import Note
from mull.policy.thinking.plan import OUTCOME
from mull.policy.view.notes import WARNED_OF

__all__ = ["notes_for_client"]

_STEERING = ("reasoning.effort", "reasoning.maxTokens", "reasoning.summary")
"""Settings that clients always send, chosen for a model other than the one that answers. They are
news if nothing of them is sent."""

_LOST = ("unsigned", "unreadable", "refused")
"""Kinds of notes about thinking that its own endpoint cannot verify or read."""


def notes_for_client(notes: Iterable[Note], asked: Asked, dialect: Dialect) -> tuple[Note, ...]:
    """The notes to send to a client of this dialect, without duplicates."""
    given = dict.fromkeys(notes)
    outcomes = [note for note in given if note.kind == OUTCOME and note.about in _STEERING]
    heard = any(note.sent_as and note.effective != "off" for note in outcomes)
    wants = asked.thinking.state in ("on", "default")
    refused = asked.thinking.state == "off" or (wants and not heard)
    return tuple(note for note in given if _is_news(note, asked, dialect, refused))


def _is_news(note: Note, asked: Asked, dialect: Dialect, refused: bool) -> bool:
    if note.about in _STEERING:
        return note.warning and refused
    if note.about == "format":
        return note.effective != "native"
    for name, default in TRAITS[dialect].defaults.items():
        if note.about == name and getattr(asked, name) == default:
            return False
    told = note.kind in (*WARNED_OF, *_LOST) or note.about in (REATTACHED, "model", "verbosity")
    return note.warning or told
