"""The input and output of a fix: the rejected request, and ways to ask differently.

A cause connects the texts of rejections to their fix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern
from mull.neutral.request import Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from mull.policy.heal.amendment import UNAMENDED, Amendment, Part
from mull.policy.heal.lessons import Lesson

__all__ = [
    "Case",
    "Cause",
    "Mend",
    "Mends",
    "Repair",
    "Text",
    "keys_of",
    "known",
    "once",
    "squashed",
]

_NOTHING = Lesson()
_JOINTS = pattern(r"[\s_.-]+")


class Case(Value, frozen=True):
    """The rejected request, its target, and what the endpoint said. `off` is whether the user wants
    no thinking."""

    request: Request
    target: Target
    said: str
    off: bool = False

    @property
    def plan(self) -> ThinkingPlan:
        """What the request asked of the model's thinking."""
        return self.request.thinking


class Mend(Value, frozen=True):
    """What was learnt about the target, what is different this once, and words for both."""

    text: str
    lesson: Lesson = _NOTHING
    amendment: Amendment = UNAMENDED


Mends: TypeAlias = Iterator[Mend]
Repair: TypeAlias = Callable[[Case, re.Match[str]], Mends]
"""Possible fixes of a case, the smallest change first; the first that changes the request is
used.
"""


def once(text: str, *parts: Part, lesson: Lesson = _NOTHING) -> Mend:
    """The fix that leaves out these parts this once."""
    return Mend(text, lesson, Amendment(without=frozenset(parts)))


class Text(NamedTuple):
    """One known text: how to recognise it, and where it was seen."""

    pattern: re.Pattern[str]
    source: str


class Cause(NamedTuple):
    """Texts with the same meaning, that meaning in our words, advice, and the fix."""

    repair: Repair
    why: str
    advice: str
    texts: tuple[Text, ...]


def known(repair: Repair, why: str, advice: str, *texts: tuple[str, str]) -> Cause:
    """One row of the tables; each text is a pattern and its source."""
    return Cause(repair, why, advice, tuple(_text(*text) for text in texts))


def _text(pattern: str, source: str) -> Text:
    return Text(re.compile(pattern, re.IGNORECASE), source)


def keys_of(fragment: Mapping[str, Any]) -> Iterator[str]:
    """The names of all parameters in a part of the body, normalised."""
    for name, value in fragment.items():
        yield squashed(name)
        if isinstance(value, Mapping):
            yield from keys_of(value)


def squashed(name: str) -> str:
    """A parameter's name in any spelling: reasoning_effort, reasoningEffort."""
    return _JOINTS.sub("", name).lower()
