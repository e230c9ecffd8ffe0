"""What a scripted model does in one answer: it thinks, speaks and calls tools, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from mull.neutral.blocks import Value

__all__ = ["Act", "Call", "Say", "Think", "calls_in", "read_script", "said_in", "thoughts_in"]


class Think(Value, frozen=True):
    """Thinking. If hidden it is sent without its text, in the provider's own form:
    `redacted_thinking`, a reasoning item without a summary, an encrypted detail.
    """

    text: str
    hidden: bool = False


class Say(Value, frozen=True):
    """Text for the user."""

    text: str


class Call(Value, frozen=True):
    """A tool call; several in one answer are parallel."""

    name: str
    input: dict[str, Any] = {}


Act: TypeAlias = Think | Say | Call


def thoughts_in(acts: Sequence[Act]) -> list[Think]:
    """The thinking of an answer."""
    return [act for act in acts if isinstance(act, Think)]


def said_in(acts: Sequence[Act]) -> str:
    """All text of an answer."""
    return "".join(act.text for act in acts if isinstance(act, Say))


def calls_in(acts: Sequence[Act]) -> list[Call]:
    """The calls of an answer."""
    return [act for act in acts if isinstance(act, Call)]


def read_script(data: bytes) -> list[list[Act]]:
    """A script from JSON: a list of answers, each a list of `{"think": TEXT, "hidden": BOOL}`,
    `{"say": TEXT}` and `{"call": NAME, "input": OBJECT}`.

    Raises:
        ValueError: it is not that; says where.
    """
    answers = msgspec.json.decode(data)
    if not isinstance(answers, list) or not answers:
        raise ValueError("a script must be a list of at least one answer")
    return [_read_answer(answer, number) for number, answer in enumerate(answers, 1)]


def _read_answer(answer: object, number: int) -> list[Act]:
    if not isinstance(answer, list):
        raise ValueError(f"answer {number} is not a list")
    try:
        return [_read_act(act) for act in answer]
    except msgspec.ValidationError as error:
        raise ValueError(f"answer {number}: {error}") from None


def _read_act(act: object) -> Act:
    names = set(act) if isinstance(act, dict) else set()
    for kind in _KINDS:
        if kind.__struct_fields__[0] in names:
            return msgspec.convert(act, kind).act()
    raise msgspec.ValidationError('each part needs "think", "say" or "call"')


class _Thought(msgspec.Struct, forbid_unknown_fields=True):
    think: str
    hidden: bool = False

    def act(self) -> Act:
        return Think(self.think, self.hidden)


class _Words(msgspec.Struct, forbid_unknown_fields=True):
    say: str

    def act(self) -> Act:
        return Say(self.say)


class _ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    call: str
    input: dict[str, Any] = {}

    def act(self) -> Act:
        return Call(self.call, self.input)


_KINDS: tuple[type[_Thought | _Words | _ToolCall], ...] = (_Thought, _Words, _ToolCall)
