"""The output items of one answer as they arrive, and the events they produce.

Text is emitted from deltas as they arrive; the finished item then supplies what no delta contained
and what only it has: encrypted content, ids, annotations. The content of an item when it is added
may be partial, so it is used only if nothing better follows.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from mull.dialects.decoder import NAMELESS, broken_part
from mull.dialects.ids import distinct_id
from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.shapes import (
    PART_TYPE,
    RESULTS,
    SEPARATOR,
    call_keys,
    is_sound,
    message_keys,
    pack_part,
    pack_parts,
    part_text,
    parts_of,
    reasoning_rest,
)
from mull.neutral.blocks import ThinkingKind, Wire, wire_of
from mull.neutral.events import (
    BlockEnded,
    Event,
    OpaqueReceived,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    Warned,
)

__all__ = ["Call", "FreeCall", "Item", "Other", "Reasoning", "Said"]

_SOURCE: dict[ThinkingKind, str] = {"summary": "summary", "raw": "reasoning_text"}
_LISTS: tuple[tuple[ThinkingKind, str], ...] = (("summary", "summary"), ("raw", "content"))
_EMPTY_PARTS = 100
"""How many skipped parts may count as empty; if an index skips more, it is treated as wrong."""
_to_json = msgspec.json.Encoder().encode


class _Part:
    __slots__ = ("key", "pieces")

    def __init__(self, key: str) -> None:
        self.key = key
        self.pieces: list[str] = []

    def came(self) -> str:
        if len(self.pieces) != 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0]

    def missing(self, whole: str) -> str | None:
        """The part of the complete text that has not arrived; None if the texts differ."""
        came = self.came()
        if whole != came and not whole.startswith(came):
            # Surrogate halves that arrived separately are one character in the complete text.
            came = came.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            if not whole.startswith(came):
                return None
        self.pieces = [whole]
        return whole[len(came) :]


def _sorted(value: Any, part_type: str) -> tuple[list[dict[str, Any]], list[Event]]:
    """The parts in an item's list, and the events of those that cannot be what they say."""
    parts = parts_of(value, part_type)
    broken = [part for part in parts if not is_sound(part)]
    events = [event for part in broken for event in broken_part(part, None, "a part")]
    return [part for part in parts if is_sound(part)], events


def _differs(key: str) -> Warned:
    return Warned("mismatch", f"the finished item {key} differs from its stream; both are kept")


class Item:
    """One output item, as it was when added and when finished."""

    __slots__ = ("done", "first", "key", "last")

    def __init__(self, key: str, first: dict[str, Any]) -> None:
        self.key = key
        self.first = first
        self.last: dict[str, Any] | None = None
        self.done = False

    def open(self) -> list[Event]:
        """Events for the start of the item."""
        return []

    def settle(self) -> list[Event]:
        """Events that fix its position before a later item starts."""
        return []

    def finish(self, item: dict[str, Any]) -> list[Event]:
        """Events for the finished item."""
        raise NotImplementedError

    def fill(self, item: dict[str, Any]) -> list[Event]:
        """Events for what only the finished response contains of an already finished item."""
        return []

    def flush(self) -> list[Event]:
        """Events for an item that was never finished."""
        return self.finish(self.first)


class Reasoning(Item):
    """A reasoning item: summary parts, raw parts, encrypted content."""

    __slots__ = ("encrypted", "parts", "settled")

    def __init__(self, key: str, first: dict[str, Any]) -> None:
        super().__init__(key, first)
        self.parts: dict[ThinkingKind, dict[Any, _Part]] = {"summary": {}, "raw": {}}
        self.encrypted = False
        self.settled = False

    def add(self, kind: ThinkingKind, index: Any, delta: str) -> list[Event]:
        part = self.parts[kind].get(index)
        if part is None:
            return self._open_part(kind, index, delta)
        part.pieces.append(delta)
        return [ThinkingDelta(delta, part.key, _SOURCE[kind], kind)]

    def complete(self, kind: ThinkingKind, index: Any, text: str) -> list[Event]:
        """Add the missing text of a part; a part opens with its first text, not before."""
        part = self.parts[kind].get(index)
        if part is None:
            return self._open_part(kind, index, text) if text else []
        missing = part.missing(text)
        return [ThinkingDelta(missing, part.key, _SOURCE[kind], kind)] if missing else []

    def _open_part(self, kind: ThinkingKind, index: Any, text: str) -> list[Event]:
        parts = self.parts[kind]
        shown = [""] if parts else []
        # An empty carrier distinguishes a new part from a blank line inside a part.
        events: list[Event] = [self._border(kind)] if parts else []
        if type(index) is int and index - len(parts) < _EMPTY_PARTS:
            for empty in range(len(parts), index):
                if empty not in parts:
                    parts[empty] = _Part(self._key(kind))
                    shown.append("")
        part = parts[index] = _Part(self._key(kind))
        part.pieces.append(text)
        text = SEPARATOR.join((*shown, text))
        return [*events, ThinkingDelta(text, part.key, _SOURCE[kind], kind)]

    def _border(self, kind: ThinkingKind) -> Event:
        return ThinkingCarrier(self._key(kind), _SOURCE[kind], kind=kind)

    def settle(self) -> list[Event]:
        if self.done or self.settled or any(self.parts.values()):
            return []
        self.settled = True
        return [self._carrier("summary", self.first)]

    def finish(self, item: dict[str, Any]) -> list[Event]:
        self.done = True
        events: list[Event] = []
        carriers: list[Event] = []
        held, kept = self.holder(item), dict[ThinkingKind, list[dict[str, Any]]]()
        for kind, name in _LISTS:
            parts, broken = _sorted(item.get(name), PART_TYPE[kind])
            events += broken
            for index, part in enumerate(parts):
                opening = index not in self.parts[kind]
                act = self._open_part if opening else self.complete
                events += act(kind, index, part_text(part))
            came = self._came(kind)
            if parts and came != [part_text(part) for part in parts]:
                events.append(_differs(self.key))
            kept[kind] = parts or [{"type": PART_TYPE[kind], "text": text} for text in came]
        usable = bool(item.get("encrypted_content") or SEPARATOR.join(self._came("raw")))
        rest = reasoning_rest(item)
        for kind, _ in _LISTS:
            if kind != held and not self.parts[kind]:
                continue
            parts = pack_parts(kind, kept[kind], self._came(kind), usable=usable)
            own: dict[str, Any] = {"parts": parts} if parts else {}
            if kind == held and rest:
                own["item"] = rest
            wire = wire_of(DIALECT, own)
            carriers.append(self._carrier(kind, item, wire, encrypted=kind == held))
            carriers.append(BlockEnded(self._key(kind)))
        return events + carriers

    def _came(self, kind: ThinkingKind) -> list[str]:
        return [part.came() for part in self.parts[kind].values()]

    def holder(self, item: dict[str, Any]) -> ThinkingKind:
        """The kind of the block to which the encrypted content belongs."""
        if self.settled or self.parts["summary"] or item.get("summary"):
            return "summary"
        return "raw" if self.parts["raw"] or item.get("content") else "summary"

    def fill(self, item: dict[str, Any]) -> list[Event]:
        # Azure may send the encrypted content only in the finished response (pi#6409).
        if self.encrypted or not item.get("encrypted_content"):
            return []
        return [self._carrier(self.holder(self.first), item, encrypted=True)]

    def flush(self) -> list[Event]:
        item = {k: v for k, v in self.first.items() if k != "encrypted_content"}
        return self.finish(item)

    def _key(self, kind: ThinkingKind) -> str:
        return self.key if kind == "summary" else f"{self.key}/content"

    def _carrier(
        self,
        kind: ThinkingKind,
        item: dict[str, Any],
        wire: Wire | None = None,
        *,
        encrypted: bool = False,
    ) -> ThinkingCarrier:
        sealed = item.get("encrypted_content") if encrypted else None
        self.encrypted = self.encrypted or bool(sealed)
        item_id = item.get("id")
        return ThinkingCarrier(
            self._key(kind),
            _SOURCE[kind],
            encrypted=sealed if isinstance(sealed, str) else None,
            id=item_id if isinstance(item_id, str) else None,
            kind=kind,
            wire=wire,
        )


class Said(Item):
    """A message item: texts and refusals."""

    __slots__ = ("notes", "parts", "refused")

    def __init__(self, key: str, first: dict[str, Any]) -> None:
        super().__init__(key, first)
        self.parts: dict[Any, _Part] = {}
        self.notes: dict[Any, list[Any]] = {}
        self.refused = False

    def open(self) -> list[Event]:
        return [TextDelta("", self._key(0), wire=wire_of(DIALECT, message_keys(self.first)))]

    def add(self, index: Any, delta: str) -> list[Event]:
        part = self.parts.get(index)
        if part is None:
            part = self._part(index)
        part.pieces.append(delta)
        return [TextDelta(delta, part.key)]

    def refuse(self, index: Any, delta: str) -> list[Event]:
        self.refused = True
        part = self._part(index)
        wire = None if part.pieces else Wire(DIALECT, {"part": {"type": "refusal"}})
        part.pieces.append(delta)
        return [TextDelta(delta, part.key, wire=wire)]

    def annotate(self, index: Any, annotation: Any) -> list[Event]:
        notes = self.notes.setdefault(index, [])
        notes.append(annotation)
        part = {"type": "output_text", "annotations": list(notes)}
        return [TextDelta("", self._part(index).key, wire=Wire(DIALECT, {"part": part}))]

    def complete(self, index: Any, text: str) -> list[Event]:
        part = self._part(index)
        missing = part.missing(text)
        return [TextDelta(missing, part.key)] if missing else []

    def finish(self, item: dict[str, Any]) -> list[Event]:
        self.done = True
        own = message_keys(item)
        parts, events = _sorted(item.get("content"), "output_text")
        for index, part in enumerate(parts):
            self.refused = self.refused or part.get("type") == "refusal"
            at = self._part(index)
            missing = at.missing(part_text(part))
            if missing is None:
                events.append(_differs(self.key))
            kept = pack_part(part, keep_text=missing is None)
            more = {**own, "part": kept} if kept is not None else own
            events.append(TextDelta(missing or "", at.key, wire=wire_of(DIALECT, more)))
        if not self.parts:
            bare = Wire(DIALECT, {**own, "part": {}})
            events.append(TextDelta("", self._key(0), wire=bare))
        for index, at in self.parts.items():
            if index not in range(len(parts)):
                events.append(TextDelta("", at.key, wire=wire_of(DIALECT, own)))
        return [*events, BlockEnded(self.key)]

    def flush(self) -> list[Event]:
        return super().flush() if self.first.get("content") else []

    def _part(self, index: Any) -> _Part:
        part = self.parts.get(index)
        if part is None:
            part = self.parts[index] = _Part(self._key(index))
        return part

    def _key(self, index: Any) -> str:
        return f"{self.key}/{index}" if index else self.key


class Call(Item):
    """A function call."""

    __slots__ = ("arguments", "id", "name", "taken")

    def __init__(self, key: str, first: dict[str, Any]) -> None:
        super().__init__(key, first)
        self.arguments = _Part(key)
        self.taken: set[str] = set()
        self.id: str | None = None
        self.name: str | None = None

    def open(self) -> list[Event]:
        return [self._describe(self.first)]

    def add(self, delta: str) -> list[Event]:
        self.arguments.pieces.append(delta)
        return [ToolCallDelta(self.key, arguments=delta)]

    def complete(self, text: str) -> list[Event]:
        missing = self.arguments.missing(text)
        return [ToolCallDelta(self.key, arguments=missing)] if missing else []

    def finish(self, item: dict[str, Any]) -> list[Event]:
        self.done = True
        events: list[Event] = []
        text = item.get("arguments")
        if isinstance(text, dict):
            text = _to_json(text).decode()
        missing = self.arguments.missing(text) if isinstance(text, str) and text else ""
        if missing is None:
            events.append(_differs(self.key))
            events.append(ToolCallDelta(self.key, wire=Wire(DIALECT, {"arguments": text})))
        return [*events, self._describe(item, missing or ""), *self._ended()]

    def _describe(self, item: dict[str, Any], arguments: str = "") -> ToolCallDelta:
        name, called = item.get("name"), item.get("call_id") or item.get("id")
        if self.id is None and isinstance(called, str) and (item.get("call_id") or self.done):
            self.id = called = distinct_id(called, len(self.taken), self.taken)
        else:
            called = None
        if self.name is None and isinstance(name, str) and name:
            self.name = name
        wire = wire_of(DIALECT, call_keys(item))
        return ToolCallDelta(self.key, called, self.name, arguments, None, wire)

    def _ended(self) -> list[Event]:
        return [*([] if self.name else [NAMELESS]), BlockEnded(self.key)]


class FreeCall(Call):
    """A call whose input is a text, emitted piece by piece as the only member of an object."""

    __slots__ = ("opened",)

    def __init__(self, key: str, first: dict[str, Any]) -> None:
        super().__init__(key, first)
        self.opened = False

    def add(self, delta: str) -> list[Event]:
        self.arguments.pieces.append(delta)
        return [self._tell(self._opening() + _escaped(delta))]

    def complete(self, text: str) -> list[Event]:
        missing = self.arguments.missing(text)
        return [self._tell(self._opening() + _escaped(missing))] if missing else []

    def finish(self, item: dict[str, Any]) -> list[Event]:
        self.done = True
        events: list[Event] = []
        text = item.get("input")
        missing = self.arguments.missing(text) if isinstance(text, str) and text else ""
        if missing is None:
            events.append(_differs(self.key))
            events.append(ToolCallDelta(self.key, wire=Wire(DIALECT, {"input": text})))
        events.append(self._describe(item))
        events.append(self._tell(f'{self._opening()}{_escaped(missing or "")}"}}'))
        return [*events, *self._ended()]

    def flush(self) -> list[Event]:
        self.done = True  # its object stays open, so that the text cannot pass for complete
        return [self._describe(self.first), *self._ended()]

    def _opening(self) -> str:
        begun, self.opened = self.opened, True
        return "" if begun else '{"input":"'

    def _tell(self, arguments: str) -> Event:
        return ToolCallDelta(self.key, arguments=arguments, structured=True)


def _escaped(text: str) -> str:
    """Text inside a JSON string; a surrogate half is joined with the next piece."""
    return json.dumps(text)[1:-1]


class Other(Item):
    """An item that is kept unchanged: items of hosted tools, and types not yet known. One without a
    type, or the result of one of the client's calls, is none that a model can give.
    """

    __slots__ = ()

    def finish(self, item: dict[str, Any]) -> list[Event]:
        self.done = True
        kind = item.get("type")
        if not isinstance(kind, str) or not kind or kind in RESULTS:
            return broken_part(item, self.key, "an item")
        return [OpaqueReceived(item, self.key)]
