"""Which block of an answer an event belongs to.

A block is found by the wire's own key first, a tool call then by its id, and only without either by
adjacency: the open block of the same kind. Folding events into blocks and encoding them again both
follow this rule.
"""

from __future__ import annotations

from typing import Any, ClassVar

from mull.neutral.events import Key, ToolCallDelta

__all__ = ["BlockFinder"]


class BlockFinder:
    """The blocks of one answer, in the order in which they first appeared.

    A kind of block is a class without arguments. `CALL` is the kind of tool calls, which have an
    `id`; `ALONE` is a kind that no event continues without a key.
    """

    CALL: ClassVar[type[Any]]
    ALONE: ClassVar[type[Any]]

    def __init__(self) -> None:
        self._found: list[Any] = []
        self._open: int | None = None
        self._by_key: dict[tuple[type, int | str], int] = {}
        self._calls_by_id: dict[str, int] = {}

    @property
    def at(self) -> int | None:
        """The position of the open block: the one that the last event belonged to."""
        return self._open

    def _find(self, kind: type[Any], key: Key) -> Any:
        if key is not None:
            at = self._by_key.get((kind, key))
            if at is not None:
                self._open = at
                return self._found[at]
        elif kind is not self.ALONE and self._is_open(kind):
            return self._found[self._open or 0]
        return self._append(kind(), key)

    def _is_open(self, kind: type[Any]) -> bool:
        return self._open is not None and type(self._found[self._open]) is kind

    def _find_call(self, event: ToolCallDelta) -> Any:
        if isinstance(event.key, str):
            # An item's own id distinguishes calls, even with the same call id.
            return self._find(self.CALL, event.key)
        known = self._calls_by_id.get(event.id) if event.id else None
        if known is not None:
            self._open = known
            found: Any = self._found[known]
            if event.key is not None:
                # What follows with this key, without an id, belongs to this call.
                self._by_key[self.CALL, event.key] = known
        elif event.key is None and event.id:
            found = self._append(self.CALL(), None)
        else:
            found = self._find(self.CALL, event.key)
            if event.id and found.id and found.id != event.id:
                # A new id under a used key opens a new call: some servers send index 0 for all.
                found = self._append(self.CALL(), event.key)
        if event.id and self._open is not None:
            self._calls_by_id.setdefault(event.id, self._open)
        return found

    def _append(self, block: Any, key: Key) -> Any:
        self._found.append(block)
        self._open = len(self._found) - 1
        if key is not None:
            self._by_key[type(block), key] = self._open
        return block
