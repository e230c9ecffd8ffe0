"""The open blocks of an answer: how each kind handles its start, deltas and stop.

A signature counts when its block has stopped, because half of one verifies nothing. Redacted data
arrives complete in the start and counts immediately. An unknown kind is collected and passed on as
one value. `cut` is what happens to a block in which the stream broke off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from mull.dialects.anthropic import DIALECT
from mull.dialects.anthropic.fold import Fold
from mull.dialects.decoder import broken_part
from mull.neutral.blocks import ThinkingKind, wire_of
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

__all__ = ["REDACTED", "THINKING", "Part", "ToolUsePart", "guess_block", "new_part"]

THINKING = "thinking"
REDACTED = "redacted_thinking"
_encode = msgspec.json.Encoder().encode


class Part(Protocol):
    """One block of the answer."""

    stopped: bool

    def open(self) -> list[Event]:
        """Events of its start."""

    def take(self, delta: dict[str, Any]) -> list[Event]:
        """Events of one delta."""

    def stop(self) -> list[Event]:
        """Events of its end."""

    def cut(self) -> list[Event]:
        """The remaining events when the stream breaks off."""


class TextPart:
    """Visible text, with the keys beside it (citations)."""

    __slots__ = ("_block", "_key", "_rest", "stopped")

    def __init__(self, key: int, block: dict[str, Any]) -> None:
        self._key, self._block = key, block
        self._rest = Fold(block, ("type", "text"))
        self.stopped = False

    def open(self) -> list[Event]:
        rest = wire_of(DIALECT, self._rest.build())
        return [TextDelta(_text(self._block, "text"), self._key, wire=rest)]

    def take(self, delta: dict[str, Any]) -> list[Event]:
        if delta.get("type") == "text_delta" and type(text := delta.get("text")) is str:
            return [TextDelta(text, self._key)]
        if (event := _stray(delta, self._key)) is not None:
            return [event]
        self._rest.add(delta)
        return self.cut() if self.stopped else []

    def stop(self) -> list[Event]:
        self.stopped = True
        return [*self.cut(), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        rest = wire_of(DIALECT, self._rest.build())
        return [TextDelta("", self._key, wire=rest)] if rest else []


class ThinkingPart:
    """Thinking with a signature, and with unknown keys."""

    __slots__ = ("_block", "_key", "_kind", "_rest", "_signature", "stopped")

    def __init__(self, key: int, block: dict[str, Any], kind: ThinkingKind) -> None:
        self._key, self._block, self._kind = key, block, kind
        self._rest = Fold(block, ("type", "thinking", "signature"))
        signature = block.get("signature")
        self._signature = [signature] if isinstance(signature, str) else []
        self.stopped = False

    def open(self) -> list[Event]:
        # Empty thinking is a block too: it may carry only its signature.
        return [ThinkingDelta(_text(self._block, "thinking"), self._key, THINKING, self._kind)]

    def take(self, delta: dict[str, Any]) -> list[Event]:
        kind = delta.get("type")
        if kind == "thinking_delta" and type(text := delta.get("thinking")) is str:
            return [ThinkingDelta(text, self._key, THINKING, self._kind)]
        if kind == "signature_delta" and type(piece := delta.get("signature")) is str:
            self._signature.append(piece)
        elif (event := _stray(delta, self._key)) is not None:
            return [event]
        else:
            self._rest.add(delta)
        return self._carrier() if self.stopped else []

    def stop(self) -> list[Event]:
        self.stopped = True
        return [*self._carrier(), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        return []

    def _carrier(self) -> list[Event]:
        rest = wire_of(DIALECT, self._rest.build())
        if not self._signature and not rest:
            return []
        # An empty signature counts: servers that do not sign send it and want it back.
        signature = "".join(self._signature) if self._signature else None
        return [ThinkingCarrier(self._key, THINKING, signature=signature, wire=rest)]


class RedactedPart:
    """Thinking that only the endpoint can read, complete from the start."""

    __slots__ = ("_block", "_key", "stopped")

    def __init__(self, key: int, block: dict[str, Any]) -> None:
        self._key, self._block = key, block
        self.stopped = False

    def open(self) -> list[Event]:
        return [ThinkingCarrier(self._key, REDACTED, redacted=self._block["data"])]

    def take(self, delta: dict[str, Any]) -> list[Event]:
        event = _stray(delta, self._key)
        return [_unexpected(delta, REDACTED) if event is None else event]

    def stop(self) -> list[Event]:
        self.stopped = True
        return [BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        return []


class ToolUsePart:
    """A call of one of the client's tools. An input in the start counts only if no deltas follow:
    some servers send both.
    """

    __slots__ = ("_block", "_heard", "_id", "_key", "_rest", "stopped")

    def __init__(self, key: int, block: dict[str, Any], call_id: str | None) -> None:
        self._key, self._block, self._id = key, block, call_id
        self._rest: Fold | None = None
        self._heard = self.stopped = False

    def open(self) -> list[Event]:
        rest = Fold(self._block, ("type", "id", "name", "input")).build()
        name = _text(self._block, "name") or None
        wire = wire_of(DIALECT, rest)
        return [ToolCallDelta(self._key, self._id, name, wire=wire, structured=True)]

    def take(self, delta: dict[str, Any]) -> list[Event]:
        if delta.get("type") == "input_json_delta":
            text = delta.get("partial_json")
            if type(text) is not str or not text:
                return []
            self._heard = True
            return [ToolCallDelta(self._key, None, None, text)]
        if (event := _stray(delta, self._key)) is not None:
            return [event]
        self._rest = self._rest or Fold({})
        self._rest.add(delta)
        return [ToolCallDelta(self._key, wire=wire_of(DIALECT, self._rest.build()))]

    def stop(self) -> list[Event]:
        events = [*self.cut(), BlockEnded(self._key)]
        self.stopped = True
        return events

    def cut(self) -> list[Event]:
        given = self._block.get("input")
        if self._heard or self.stopped or not given:
            return []
        text = given if isinstance(given, str) else _encode(given).decode()
        return [ToolCallDelta(self._key, arguments=text)]


class OpaquePart:
    """A block of an unknown kind: one value, when it is complete. One that is `broken` is of a kind
    that is known, and that it cannot be.
    """

    __slots__ = ("_broken", "_fold", "_key", "_kind", "stopped")

    def __init__(self, key: int, block: dict[str, Any], *, broken: bool = False) -> None:
        self._key, self._kind, self._broken = key, block.get("type"), broken
        self._fold = Fold(block)
        self.stopped = False

    def open(self) -> list[Event]:
        return []

    def take(self, delta: dict[str, Any]) -> list[Event]:
        if self.stopped:
            return [_unexpected(delta, self._kind)]
        self._fold.add(delta)
        return []

    def stop(self) -> list[Event]:
        self.stopped = True
        data = self._fold.build()
        if self._broken:
            return [*broken_part(data, self._key, "a block"), BlockEnded(self._key)]
        return [OpaqueReceived(data, self._key), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        return [Warned("unfinished_block", f"a {self._kind} block was cut off and is left out")]


_KINDS: dict[str, Callable[[int, dict[str, Any]], Part]] = {
    "text": TextPart,
    "redacted_thinking": RedactedPart,
}
_CONTENT = {"text": "text", "thinking": "thinking", REDACTED: "data"}
_STARTED_BY = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
}


def new_part(key: int, block: dict[str, Any], thinking: ThinkingKind) -> Part:
    """The part for a block that is not a call of the client's tools; `thinking` is what the model
    shows of its own.
    """
    kind = block.get("type")
    if not isinstance(kind, str) or kind == "tool_result":  # a result is never the model's
        return OpaquePart(key, block, broken=True)
    held = block.get(_CONTENT[kind]) if kind in _CONTENT else ""
    if not isinstance(held, str) and (held is not None or kind == REDACTED):
        return OpaquePart(key, block, broken=True)
    if kind == THINKING:
        return ThinkingPart(key, block, thinking)
    return _KINDS.get(kind, OpaquePart)(key, block)


def guess_block(delta: dict[str, Any]) -> dict[str, Any] | None:
    """The block of a delta whose start never arrived; a call without a name is none."""
    kind = delta.get("type")
    started_by = _STARTED_BY.get(kind) if isinstance(kind, str) else None
    return None if started_by is None else {"type": started_by}


def _stray(delta: dict[str, Any], key: int) -> Event | None:
    """The event for a known delta that belongs to a block of another kind."""
    match delta:
        case {"type": "text_delta", "text": str(text)}:
            return TextDelta(text, key)
        case {"type": "thinking_delta", "thinking": str(text)}:
            return ThinkingDelta(text, key, THINKING)
        case {"type": "signature_delta" | "input_json_delta"}:
            return _unexpected(delta, "different")
    return None


def _unexpected(delta: dict[str, Any], kind: Any) -> Warned:
    return Warned("unexpected_delta", f"a {delta.get('type')} on a {kind} block was left out")


def _text(block: dict[str, Any], name: str) -> str:
    value = block.get(name)
    return value if isinstance(value, str) else ""
