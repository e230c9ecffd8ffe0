"""What a repair is given and what it gives: the refused request, and one change to it.

A cause ties the texts of refusals to the repair that mends them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.messages import Message
from mull.neutral.request import Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from mull.policy.heal.lessons import Lesson, apply_lesson

__all__ = [
    "READ",
    "Case",
    "Cause",
    "Change",
    "Refusal",
    "Repair",
    "Text",
    "keys_of",
    "known",
    "plain",
    "squashed",
]

READ = 8_000
"""How much of a refusal is read; what names the cause stands at its beginning."""
_NOTHING = Lesson()
_MARKS = re.compile(r"""[`'"\\‘’“”]""")
_BLANKS = re.compile(r"\s+")
_JOINTS = re.compile(r"[\s_.-]+")


class Refusal(Value, frozen=True):
    """An endpoint's no: `text`, `code` and `kind` (its error type) are its own words.

    An error inside a stream has the stream's status, 200.
    """

    status: int
    text: str
    code: str | None = None
    kind: str | None = None


def plain(refusal: Refusal) -> str:
    """The refusal as patterns see it: on one line and without quotation marks.

    Providers quote the same sentence differently, and proxies quote the providers.
    """
    said = " ".join(part for part in (refusal.text, refusal.code, refusal.kind) if part)
    return _BLANKS.sub(" ", _MARKS.sub("", said[:READ]))


class Change(Value, frozen=True):
    """One repair: the request as it is now, and what a lesson makes of the target.

    `renew` says that the log may hold more for the changed target than the refused request did.
    """

    text: str
    request: Request
    lesson: Lesson = _NOTHING
    renew: bool = False


class Case(Value, frozen=True):
    """The refused request, its target, and what the endpoint said."""

    request: Request
    target: Target
    said: str

    @property
    def plan(self) -> ThinkingPlan:
        """What the request asks of the model's thinking."""
        return self.request.thinking

    def taught(self, lesson: Lesson) -> Target:
        """The target that a lesson makes of this one."""
        return apply_lesson(self.target, lesson)

    def plans(
        self, text: str, plan: ThinkingPlan, lesson: Lesson = _NOTHING, **changes: Any
    ) -> Change:
        """The change that asks something else of the model's thinking."""
        return Change(text, self._request(thinking=plan, **changes), lesson)

    def sends(self, text: str, messages: tuple[Message, ...], lesson: Lesson = _NOTHING) -> Change:
        """The change that sends another history."""
        return Change(text, self._request(messages=messages), lesson)

    def asks(self, text: str, lesson: Lesson = _NOTHING, **changes: Any) -> Change:
        """The change of other parameters, or of the target alone."""
        return Change(text, self._request(**changes), lesson)

    def _request(self, **changes: Any) -> Request:
        return msgspec.structs.replace(self.request, **changes)


Repair: TypeAlias = Callable[[Case, re.Match[str]], Change | None]


class Text(NamedTuple):
    """One known text: how to recognise it, and where it was seen."""

    pattern: re.Pattern[str]
    source: str


class Cause(NamedTuple):
    """Texts that mean the same, what that is in our words, what helps, and what mends it."""

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
    """The names of all parameters in a part of the body, squashed."""
    for name, value in fragment.items():
        yield squashed(name)
        if isinstance(value, Mapping):
            yield from keys_of(value)


def squashed(name: str) -> str:
    """A parameter's name however it is spelled: reasoning_effort, reasoningEffort."""
    return _JOINTS.sub("", name).lower()
