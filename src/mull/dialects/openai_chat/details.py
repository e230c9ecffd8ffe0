"""Reassembles `reasoning_details` and `thinking_blocks` from the chunks of a stream.

Chunks of one entry have the same type and index, or are consecutive if there is no index. Only text
grows; a chunk with a different value for a known key is another entry, so nothing is ever
overwritten and signed text never grows after its signature (agno-agi/agno#8794). A complete
response needs no reassembly: its entries stay unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mull.dialects.openai_chat.places import text_of

__all__ = ["Details"]

_GROWING = ("text", "summary", "thinking")


class _Entry:
    __slots__ = ("fields", "grown", "run")

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = dict(fields)
        self.run = -1
        self.grown: dict[str, list[str]] = {}

    def extend(self, piece: dict[str, Any], cumulative: bool) -> str | None:
        """Merge another chunk; returns the new text, or None if it does not belong to this
        entry.
        """
        fields, grows = self.fields, False
        for name, value in piece.items():
            if name in _GROWING:
                grows = grows or bool(value)
            elif fields.get(name) != value and value is not None and value != "":
                held = fields.get(name)
                if held is not None and held != "":
                    return None
        if grows and fields.get("signature"):
            return None
        return self._grow(piece, cumulative)

    def _grow(self, piece: dict[str, Any], cumulative: bool) -> str:
        new = ""
        for name, value in piece.items():
            if name not in _GROWING:
                held = self.fields.get(name)
                if held is None or held == "":
                    self.fields[name] = value
            elif value and isinstance(value, str):
                pieces = self.grown.get(name)
                if pieces is None:
                    pieces = self.grown[name] = [self.fields.get(name) or ""]
                if cumulative and value.startswith(pieces[0]):
                    new += value[len(pieces[0]) :]
                    pieces[0] = value
                else:
                    new += value
                    pieces.append(value)
        return new

    def build(self) -> dict[str, Any]:
        for name, pieces in self.grown.items():
            self.fields[name] = "".join(pieces)
        self.grown.clear()
        return self.fields


class Details:
    """The entries of one answer, each with the run of thinking it came in."""

    def __init__(self, *, whole: bool = False, cumulative: bool = False) -> None:
        self._whole = whole
        self._cumulative = cumulative
        self._entries: list[_Entry] = []
        self._placed = 0
        self._latest: dict[tuple[Any, Any], _Entry] = {}

    def add(self, pieces: Iterable[Any]) -> str:
        """Process the chunks of one delta; returns their new text."""
        text = ""
        for piece in pieces:
            if isinstance(piece, dict):
                text += self._add(piece)
        return text

    @property
    def has_new(self) -> bool:
        """Whether there are entries without a run of thinking."""
        return self._placed < len(self._entries)

    def place(self, run: int) -> None:
        """Assign the new entries to this run."""
        for entry in self._entries[self._placed :]:
            entry.run = run
        self._placed = len(self._entries)

    def _add(self, piece: dict[str, Any]) -> str:
        index = piece.get("index")
        if not isinstance(index, int | str):
            index = None
        kind = piece.get("type")
        place = (kind if isinstance(kind, str) else None, index)
        entry = None if self._whole else self._latest.get(place)
        if entry is not None and index is None and entry is not self._entries[-1]:
            entry = None
        if entry is not None:
            new = entry.extend(piece, self._cumulative)
            if new is not None:
                return new
        entry = _Entry(piece)
        self._entries.append(entry)
        self._latest[place] = entry
        return text_of(piece)

    def runs(self) -> dict[int, list[dict[str, Any]]]:
        """The entries by run, in the order in which they first appeared."""
        runs: dict[int, list[dict[str, Any]]] = {}
        for entry in self._entries:
            runs.setdefault(entry.run, []).append(entry.build())
        return runs
