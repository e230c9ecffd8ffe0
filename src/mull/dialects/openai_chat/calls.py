"""Which tool call a chunk belongs to.

A known id decides, then a new id opens a call, then the index; without either the chunk belongs to
the open call. Servers repeat index 0 for every call, send the tail of a call under another index,
or omit index and id (apache/maka#1976, agno-agi/agno#8879).
"""

from __future__ import annotations

from typing import Any

import msgspec

from mull.dialects.ids import distinct_id
from mull.dialects.openai_chat import DIALECT
from mull.neutral.blocks import wire_of
from mull.neutral.events import Event, ToolCallDelta

__all__ = ["Calls"]

_ENVELOPE = frozenset({"index", "id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_CLOSED_BY = {"{": "}", "[": "]"}
_encode = msgspec.json.Encoder().encode


class _Call:
    """`pieces` are its arguments, `bare` those that came without id and index. `said` is the id as
    the server gave it, which another call may have. A call with its own `kind` may have its name
    elsewhere.
    """

    __slots__ = ("bare", "id", "key", "kind", "name", "pieces", "said")

    def __init__(self, key: int) -> None:
        self.key = key
        self.id: str | None = None
        self.said: str | None = None
        self.kind = False
        self.pieces: list[str] = []
        self.name: str | None = None
        self.bare: list[str] = []


class Calls:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._ids: set[str] = set()
        self._by_index: dict[int, _Call] = {}
        self._inline: dict[int, _Call] = {}
        self._open: _Call | None = None

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def nameless(self) -> int:
        """How many of them have no name, so far: those are none."""
        return sum(not call.name and not call.kind for call in self._calls)

    @property
    def usable(self) -> bool:
        """Whether any has a name."""
        return self.nameless < len(self._calls)

    def add(self, pieces: list[Any], out: list[Event]) -> None:
        """The events of the chunks of one delta."""
        touched: set[int] = set()
        for piece in pieces:
            if isinstance(piece, dict) and not self._goes_on(piece, out):
                self._piece(piece, touched, out)

    def _goes_on(self, piece: dict[str, Any], out: list[Event]) -> bool:
        """The common case: more arguments for a known index, and nothing else."""
        index, function = piece.get("index"), piece.get("function")
        if len(piece) != 2 or type(index) is not int or type(function) is not dict:
            return False
        call, arguments = self._by_index.get(index), function.get("arguments")
        if call is None or len(function) != 1 or type(arguments) is not str:
            return False
        self._open = call
        if arguments:
            call.pieces.append(arguments)
            out.append(ToolCallDelta(call.key, None, None, arguments))
        return True

    def add_legacy(self, function: dict[str, Any], out: list[Event]) -> None:
        """The single call of the API before there were tools."""
        self.add([{"index": 0, "function": function}], out)

    def add_inline(
        self, block: int, name: str | None, id_: str | None, text: str, out: list[Event]
    ) -> None:
        """A chunk of a call that the model wrote into its text."""
        call, opening = self._inline.get(block), name
        if call is None:
            call = self._inline[block] = self._new()
            id_ = distinct_id(id_, call.key, self._ids) if id_ else None
            call.name, call.id = name, id_
        else:
            opening = id_ = None
        if text or opening or id_:
            out.append(ToolCallDelta(call.key, id_, opening, text))

    def _piece(self, piece: dict[str, Any], touched: set[int], out: list[Event]) -> None:
        function = piece.get("function")
        if not isinstance(function, dict):
            function = {}
        index = piece.get("index")
        index = index if isinstance(index, int) else None
        id_, name = _word(piece.get("id")), _word(function.get("name"))
        arguments = _arguments(function.get("arguments"))
        if not (id_ or name or arguments or self._calls):
            return
        before = len(self._calls)
        call = self._find(id_, index, name, touched)
        is_new = len(self._calls) > before
        if index is not None:
            self._by_index[index] = call
        self._open = call
        touched.add(call.key)
        new_id = id_ if call.id is None else None
        new_name = name if call.name is None else None
        if new_id:
            call.said = new_id
            self._by_id.setdefault(new_id, call)
            call.id = new_id = distinct_id(new_id, call.key, self._ids)
        call.name = call.name or new_name
        if arguments:
            call.pieces.append(arguments)
            if id_ is None and index is None:
                call.bare.append(arguments)
        kept = wire_of(DIALECT, _kept(piece, function))
        call.kind = call.kind or (kept is not None and "type" in kept.data)
        if is_new or arguments or new_id or new_name or kept:
            out.append(ToolCallDelta(call.key, new_id, new_name, arguments, None, kept))

    def _find(
        self, id_: str | None, index: int | None, name: str | None, touched: set[int]
    ) -> _Call:
        at_index = None if index is None else self._by_index.get(index)
        if id_ is not None:
            known = self._by_id.get(id_)
            if at_index is not None and at_index is not known and at_index.said == id_:
                return at_index
            if known is not None and self._is_namesake(known, index, name, touched):
                return self._new()
            if known is None and at_index is not None and at_index.id is None:
                known = at_index
            return known or self._new()
        if at_index is not None:
            return self._new() if name and at_index.name not in (None, name) else at_index
        if self._open is None:
            return self._new()
        if name and self._is_another(name, index, touched):
            return self._new()
        return self._open

    def _is_namesake(
        self, known: _Call, index: int | None, name: str | None, touched: set[int]
    ) -> bool:
        """Whether a call only shares its id with a known one: it is a separate call. One of the
        same name under another index may also be the rest of the known one.
        """
        if known.key in touched:
            return True
        elsewhere = index is not None and self._by_index.get(index) is not known
        if not elsewhere or name is None or known.name is None:
            return False
        return name != known.name or _is_complete(known.pieces)

    def _is_another(self, name: str, index: int | None, touched: set[int]) -> bool:
        """Whether a name without id at a new index opens a call, or belongs to the open one, which
        may lack a name or have it repeated.
        """
        held = self._open
        if held is None or held.name is None:
            return held is None
        if index is not None or held.name != name:
            return True
        return held.key in touched or _is_complete(held.bare)

    def _new(self) -> _Call:
        call = _Call(len(self._calls))
        self._calls.append(call)
        return call


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _arguments(value: Any) -> str:
    """The text of the arguments; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else _encode(value).decode()


def _is_complete(pieces: list[str]) -> bool:
    if not pieces:
        return False
    closing, last = _CLOSED_BY.get(pieces[0][0]), pieces[-1][-1]
    if closing is not None and last != closing and not last.isspace():
        # Called for every chunk that repeats the name, so reading them all is rarely worthwhile.
        return False
    try:
        msgspec.json.decode("".join(pieces))
    except msgspec.DecodeError:
        return False
    return True


def _kept(piece: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    """What the wire contains beside the known keys, to be sent back to the same origin.

    Google's thought signatures are sent this way (earendil-works/pi#3234).
    """
    if piece.keys() <= _ENVELOPE and function.keys() <= _FUNCTION:
        kind = piece.get("type")
        return {} if kind in (None, "", "function") else {"type": kind}
    kept = {k: v for k, v in piece.items() if k not in _ENVELOPE and v is not None}
    if piece.get("type") not in (None, "", "function"):
        kept["type"] = piece["type"]
    more = {k: v for k, v in function.items() if k not in _FUNCTION and v is not None}
    if more:
        kept["function"] = more
    return kept
