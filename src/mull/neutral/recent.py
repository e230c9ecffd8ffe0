"""What was made lately, kept as long as there is room: for results that are asked for again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Recent", "RecentOf"]

_Key = TypeVar("_Key")
_Made = TypeVar("_Made")
_LARGEST = 16
"""The part of the room that one result may take at most."""


class Recent(Generic[_Key, _Made]):
    """Keeps results of `room` bytes in all; what has not been asked for longest goes first.

    Threads may share one: a result may be made twice then, and nothing else.
    """

    def __init__(self, room: int) -> None:
        self._room = self._left = room
        self._kept: OrderedDict[_Key, tuple[_Made, int]] = OrderedDict()

    def get(self, key: _Key) -> _Made | None:
        """The result, if it is still there."""
        found = self._kept.pop(key, None)
        if found is None:
            return None
        self._kept[key] = found
        return found[0]

    def put(self, key: _Key, made: _Made, size: int) -> None:
        """Keep a result of about so many bytes."""
        if size > self._room // _LARGEST:
            return
        self._kept[key] = made, size
        self._left -= size
        while self._left < 0:
            try:
                self._left += self._kept.popitem(last=False)[1][1]
            except KeyError:
                self._left = self._room


class RecentOf(Generic[_Made]):
    """Keeps up to `most` results by the identity of the values that they were made from, for values
    that take longer to compare than the result takes to make.

    Threads may share one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[Hashable, tuple[tuple[object, ...], _Made]] = {}

    def get(self, of: tuple[object, ...], rest: Hashable = None) -> _Made | None:
        """The result that was made from these very objects, and from `rest`."""
        found = self._kept.get((*map(id, of), rest))
        return None if found is None else found[1]

    def put(self, made: _Made, of: tuple[object, ...], rest: Hashable = None) -> _Made:
        """Keep a result, and with it the objects, so that their ids stay theirs."""
        while len(self._kept) >= self._most:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[*map(id, of), rest] = of, made
        return made
