"""Whose instructions a model gets: the user's own, and those of projects that the user has
approved.

An AGENTS.md comes with a clone, and its author would speak in the system prompt. So a project's
file is used only after the user has seen it, once for each version; if there is nobody to ask it is
left out, and that is reported.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec.structs import replace

from mull.agent.instructions import Instruction
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.store.trust import Trust

__all__ = ["TRUST_WORDS", "TrustAnswer", "TrustRequest", "Truster", "Trusting"]

TrustAnswer: TypeAlias = Literal["always", "once", "no"]
TRUST_WORDS: Mapping[TrustAnswer, str] = {
    "always": "Yes, until it changes",
    "once": "Yes, only this time",
    "no": "No",
}
"""The answers in the order in which they are offered."""

_UNSEEN = "not used: nobody has approved it yet; read it, then run `mull trust` in its folder"
_REFUSED = "not used: you refused it; `mull trust` in its folder approves it"
_NOT_NOW = "not used in this session"


class TrustRequest(Value, frozen=True):
    """Instructions that the user must review before a model gets them."""

    files: tuple[Instruction, ...]


@runtime_checkable
class Truster(Protocol):
    """An approver that also asks whether instructions may be used."""

    async def trust(self, request: TrustRequest) -> TrustAnswer | None:
        """The answer; None if there is nobody to ask."""


class Trusting:
    """Sorts the instructions of a folder into used and unused ones.

    `vouched` are folders whose files are always used.
    """

    def __init__(
        self, found: Sequence[Instruction], trust: Trust, vouched: Collection[Path], *, all_in: bool
    ) -> None:
        self._found = found
        self._trust = trust
        self._vouched = {os.path.realpath(folder) for folder in vouched}
        self._said: dict[str, str] = {}
        """Why a file is not used; empty if it is."""
        for one in found:
            if all_in or self._is_vouched(one):
                self._said[one.path] = ""

    @property
    def used(self) -> tuple[Instruction, ...]:
        """The instructions that a model gets, and the unused ones with the reason in their
        notes.
        """
        sorted_out = (self._sorted(one) for one in self._found)
        return tuple(one for one in sorted_out if one is not None)

    @property
    def waiting(self) -> tuple[Instruction, ...]:
        """The instructions that nobody has decided on yet."""
        return tuple(one for one in self._found if self._reason(one) is None)

    async def settle(self, person: object) -> list[str]:
        """Ask about undecided instructions; returns messages for the user."""
        waiting = self.waiting
        refused = [one for one in self._found if self._reason(one) == _REFUSED]
        told = [f"{one.path}: {_REFUSED}" for one in refused if one.path not in self._said]
        self._said.update((one.path, _REFUSED) for one in refused)
        if not waiting:
            return told
        answer = await person.trust(TrustRequest(waiting)) if isinstance(person, Truster) else None
        reason = {"always": "", "once": "", "no": _NOT_NOW, None: _UNSEEN}[answer]
        for one in waiting:
            self._said[one.path] = reason
            if answer is None:
                told.append(f"{one.path}: {reason}")
            elif answer != "once":
                told += self._remember(one, trusted=answer == "always")
        return told

    def _remember(self, one: Instruction, *, trusted: bool) -> list[str]:
        try:
            self._trust.remember(one.path, one.digest, trusted=trusted)
        except LocalError as error:  # it applies for now
            return [str(error)]
        return []

    def _sorted(self, one: Instruction) -> Instruction | None:
        reason = self._reason(one)
        if reason is None:
            return None
        return replace(one, text="", note=reason) if reason else one

    def _reason(self, one: Instruction) -> str | None:
        """Why it is not used; empty if it is, None if nobody has decided."""
        if one.is_own or not one.text.strip():
            return ""
        if one.path in self._said:
            return self._said[one.path]
        known = self._trust.standing(one.path, one.digest)
        return None if known is None else "" if known else _REFUSED

    def _is_vouched(self, one: Instruction) -> bool:
        return os.path.realpath(Path(one.path).parent) in self._vouched
