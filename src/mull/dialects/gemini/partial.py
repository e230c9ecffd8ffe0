"""Arguments of a function call that arrive value by value, each with a JSON path.

Vertex AI streams them so on request (`streamFunctionCallArguments`): strings arrive in chunks with
the same path, everything else complete. Paths are the child segments of RFC 9535, in dot or bracket
notation; nothing else can name one value.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from mull.neutral.nesting import DEEPEST

__all__ = ["PartialArguments"]

GAP_LIMIT = 1000
"""Maximum gap before a list index; a server that skips more is not sending arguments."""
_SEGMENT = re.compile(
    r"\.([^.\[\]]+) | \[(\d+)\] | \['((?:[^'\\]|\\.)*)'\] | \[\"((?:[^\"\\]|\\.)*)\"\]", re.VERBOSE
)
_ESCAPED = re.compile(r"\\(.)")
_MISSING = object()


class PartialArguments:
    """Collects the values into one object."""

    __slots__ = ("_paths", "value")

    def __init__(self) -> None:
        self.value: dict[str, Any] = {}
        self._paths: dict[str, list[str | int]] = {}

    def add(self, pieces: Any) -> None:
        """Process the `partialArgs` of one part.

        Raises:
            ValueError: a chunk has no path or no value.
        """
        for piece in pieces if isinstance(pieces, list) else [pieces]:
            if not isinstance(piece, dict):
                raise ValueError(f"not a partial argument: {piece!r:.80}")
            self._put(self._segments(piece.get("jsonPath")), _value(piece))

    def _segments(self, path: Any) -> list[str | int]:
        known = self._paths.get(path) if isinstance(path, str) else None
        if known is None:
            known = _parse(path)
            self._paths[path] = known
        return known

    def _put(self, segments: list[str | int], value: Any) -> None:
        holder: Any = self.value
        for segment, following in pairwise(segments):
            inner = _get(holder, segment)
            if inner is _MISSING or inner is None:
                inner = [] if isinstance(following, int) else {}
                _set(holder, segment, inner)
            holder = inner
        last = segments[-1]
        held = _get(holder, last)
        _set(holder, last, held + value if _both_text(held, value) else value)


def _value(piece: dict[str, Any]) -> Any:
    for name in ("stringValue", "numberValue", "boolValue"):
        if (value := piece.get(name)) is not None:
            return value
    if "nullValue" in piece:
        return None
    raise ValueError(f"a partial argument without a value: {piece!r:.80}")


def _parse(path: Any) -> list[str | int]:
    segments: list[str | int] = []
    at = 1
    while isinstance(path, str) and path.startswith("$") and (found := _SEGMENT.match(path, at)):
        name, index, *quoted = found.groups()
        if index is not None:
            segments.append(int(index))
        else:
            text = next((q for q in quoted if q is not None), None)
            segments.append(name if text is None else _ESCAPED.sub(r"\1", text))
        at = found.end()
    if not 0 < len(segments) < DEEPEST or at != len(path) or isinstance(segments[0], int):
        raise ValueError(f"not a path to an argument: {path!r:.80}")
    return segments


def _get(holder: Any, segment: str | int) -> Any:
    if isinstance(segment, str):
        if not isinstance(holder, dict):
            raise ValueError(f"no object to hold {segment!r:.80}")
        return holder.get(segment, _MISSING)
    if not isinstance(holder, list) or segment > len(holder) + GAP_LIMIT:
        raise ValueError(f"no list to hold number {segment}")
    return holder[segment] if segment < len(holder) else _MISSING


def _set(holder: Any, segment: str | int, value: Any) -> None:
    if isinstance(segment, int):
        holder += [None] * (segment + 1 - len(holder))
    holder[segment] = value


def _both_text(held: Any, value: Any) -> bool:
    return isinstance(held, str) and isinstance(value, str)
