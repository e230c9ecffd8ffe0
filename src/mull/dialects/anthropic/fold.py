"""Assembles an object of the wire from its start and its deltas.

Deltas of unknown kinds are treated like the known ones: text is appended, lists grow, anything else
is replaced. So an unknown block comes out as the endpoint would have sent it in one piece, which is
what it accepts back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from mull.neutral.nesting import shallow

__all__ = ["UNREADABLE_INPUT", "Fold"]

UNREADABLE_INPUT = "partial_json"
"""The key for the text of an input that was cut off: stored, never sent back."""

_object = msgspec.json.Decoder(dict[str, Any]).decode


class Fold:
    """One growing object."""

    __slots__ = ("_data", "_lists", "_pieces")

    def __init__(self, start: dict[str, Any], without: Iterable[str] = ()) -> None:
        self._data = {name: value for name, value in start.items() if name not in without}
        self._pieces: dict[str, list[str]] = {}
        self._lists: dict[str, list[Any]] = {}

    def add(self, delta: dict[str, Any]) -> None:
        """Merge a delta."""
        for name, value in delta.items():
            if name == "citation":
                self._extend("citations", [value])
            elif name != "type":
                self._put(name, value)

    def build(self) -> dict[str, Any]:
        """The object so far."""
        data = dict(self._data)
        data |= {name: [*own] for name, own in self._lists.items() if data[name] is own}
        data |= {name: "".join(pieces) for name, pieces in self._pieces.items()}
        text = data.pop(UNREADABLE_INPUT, "")
        if isinstance(text, str) and text.strip():
            try:
                data["input"] = _object(shallow(text.encode()))
            except (msgspec.DecodeError, UnicodeError):
                data[UNREADABLE_INPUT] = text
        return data

    def _put(self, name: str, value: Any) -> None:
        held = self._data.get(name)
        if isinstance(value, str) and (held is None or isinstance(held, str)):
            self._pieces.setdefault(name, [held] if held else []).append(value)
        elif isinstance(value, list) and (held is None or isinstance(held, list)):
            self._extend(name, value)
        elif value is not None:
            self._data[name] = value

    def _extend(self, name: str, values: list[Any]) -> None:
        """Grow a list of our own: the received one belongs to the wire's value."""
        held = self._data.get(name)
        if name not in self._lists or self._lists[name] is not held:
            self._data[name] = self._lists[name] = [*held] if isinstance(held, list) else []
        self._lists[name] += values
