"""Tool call ids as the API accepts them: few characters, each used once in a conversation.

Ids of other servers may contain anything and may start again in every turn (`call_0`). The ids on
the wire are derived from the history alone, from its beginning on, so a longer history keeps them.
"""

from __future__ import annotations

import re
from collections import deque
from hashlib import blake2b
from typing import Any

__all__ = ["ToolIds", "distinct_id"]

_TAKEN = re.compile(r"[a-zA-Z0-9_-]+")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")


def distinct_id(given: Any, key: int | str, taken: set[str]) -> str:
    """The id of a call of an answer, which is then taken; results are matched by it, so a second
    call of the same id gets another.
    """
    call_id = given if isinstance(given, str) and given else f"call_{key}"
    while call_id in taken:
        call_id += f"_{key}"
    taken.add(call_id)
    return call_id


class ToolIds:
    """Assigns each call its id on the wire, and each result the id of its call.

    `longest` is the maximum length of an id, if the API has a limit.
    """

    def __init__(self, longest: int | None = None) -> None:
        self._longest = longest
        self._used: set[str] = set()
        self._times: dict[str, int] = {}
        self._waiting: dict[str, deque[str]] = {}

    def of_call(self, call_id: str) -> str:
        """The wire's id for a call, in the order of the history."""
        clean = wire = self._clean(call_id)
        times = self._times.get(clean, 1)
        while wire in self._used:
            times += 1
            wire = self._clean(f"{clean}_{times}")
        self._times[clean] = times
        self._used.add(wire)
        self._waiting.setdefault(call_id, deque()).append(wire)
        return wire

    def of_result(self, call_id: str) -> str:
        """The wire's id of the oldest call of that id that still awaits its result."""
        waiting = self._waiting.get(call_id)
        if not waiting:
            return self._clean(call_id)
        return waiting.popleft() if len(waiting) > 1 else waiting[0]

    def next_turn(self) -> None:
        """Calls of earlier answers no longer wait: their results have arrived or never will."""
        self._waiting.clear()

    def _clean(self, call_id: str) -> str:
        fits = self._longest is None or len(call_id) <= self._longest
        if fits and _TAKEN.fullmatch(call_id):
            return call_id
        told_apart = blake2b(call_id.encode("utf-8", "replace"), digest_size=4).hexdigest()
        room = None if self._longest is None else self._longest - len(told_apart) - 1
        return f"{_REFUSED.sub('_', call_id)[:room]}_{told_apart}"
