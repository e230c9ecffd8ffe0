"""What a client's user is told of a request: what was left out, changed or not found.

How a wish was put into the words of another API is no news, and neither is that a value which says
nothing was not sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.dialects.traits import TRAITS
from mull.gateway.attach import REATTACHED
from mull.neutral.asked import Asked
from mull.neutral.messages import Dialect
from mull.neutral.request import Note

__all__ = ["worth_telling"]

_STEERING = ("reasoning.effort", "reasoning.maxTokens", "reasoning.summary")
"""Settings that clients always make, in the words of a model that they do not ask."""


def worth_telling(notes: Iterable[Note], asked: Asked, dialect: Dialect) -> tuple[Note, ...]:
    """The notes that a client of this dialect is told, each once."""
    return tuple(dict.fromkeys(note for note in notes if _is_news(note, asked, dialect)))


def _is_news(note: Note, asked: Asked, dialect: Dialect) -> bool:
    if note.about in _STEERING:
        return note.warning and asked.thinking.state == "off"
    if note.about == "format":
        return note.effective != "native"
    for name, default in TRAITS[dialect].defaults.items():
        if note.about == name and getattr(asked, name) == default:
            return False
    return note.warning or note.about == REATTACHED
