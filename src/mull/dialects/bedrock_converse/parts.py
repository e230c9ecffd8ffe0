"""The open blocks of an answer.

Text and reasoning start with their first delta, other kinds with a start. A signature and redacted
data count when their block has stopped, because half of one verifies nothing. An unknown kind is
assembled from its pieces and passed on as one value. `cut` is what happens to a block in which the
stream broke off.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from typing import Any, Protocol

import msgspec

from mull.dialects.bedrock_converse import DIALECT
from mull.dialects.bedrock_converse.words import REASONING, REDACTED
from mull.dialects.decoder import broken_part
from mull.neutral.blocks import ThinkingKind, wire_of
from mull.neutral.events import (
    BlockEnded,
    Event,
    Key,
    OpaqueReceived,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    Warned,
)

__all__ = ["OpaquePart", "Part", "ReasoningPart", "TextPart", "ToolUsePart", "begun_by"]

_THOUGHT_KEYS = ("text", "signature", REDACTED)
_encode = msgspec.json.Encoder().encode
_object = msgspec.json.Decoder(dict[str, Any]).decode


class Part(Protocol):
    """One block of the answer."""

    stopped: bool

    def take(self, delta: dict[str, Any]) -> list[Event]:
        """Events of one delta."""

    def stop(self) -> list[Event]:
        """Events of its end."""

    def cut(self) -> list[Event]:
        """The remaining events when the stream breaks off."""


class TextPart:
    """Visible text, with what it cites."""

    __slots__ = ("_cited", "_key", "stopped")

    def __init__(self, key: int) -> None:
        self._key = key
        self._cited: list[Any] = []
        self.stopped = False

    def take(self, delta: dict[str, Any]) -> list[Event]:
        text = delta.get("text")
        if type(text) is str and len(delta) == 1:
            return [TextDelta(text, self._key)]
        events: list[Event] = [TextDelta(text, self._key)] if isinstance(text, str) else []
        if "citation" in delta:
            self._cited.append(delta["citation"])
            events += self.cut() if self.stopped else []
        known = ("text", "citation") if isinstance(text, str | None) else ("citation",)
        return events + _strange(delta, "a text", *known)

    def stop(self) -> list[Event]:
        self.stopped = True
        return [*self.cut(), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        if not self._cited:
            return []
        return [TextDelta("", self._key, wire=wire_of(DIALECT, {"citations": [*self._cited]}))]


class ReasoningPart:
    """A thought with its signature, or one that only the endpoint can read.

    The wire has one or the other in a block. Where a server puts both, they are two thoughts.
    """

    __slots__ = ("_key", "_kind", "_open", "_redacted", "_rest", "_signature", "stopped")

    def __init__(self, key: int, kind: ThinkingKind) -> None:
        self._key, self._kind = key, kind
        self._signature: list[str] = []
        self._redacted: list[str] = []
        self._rest: dict[str, Any] = {}
        self._open = self.stopped = False

    def take(self, delta: dict[str, Any]) -> list[Event]:
        given = delta.get(REASONING)
        if type(given) is not dict:
            return _strange(delta, "a thought")
        text = given.get("text")
        if type(text) is str and len(given) == 1 and not self.stopped:
            self._open = True
            return [ThinkingDelta(text, self._key, REASONING, self._kind)]
        events: list[Event] = []
        signature = given.get("signature")
        rest = {name: value for name, value in given.items() if name not in _THOUGHT_KEYS}
        if rest and REDACTED in given:
            return [
                *self.take({REASONING: {k: given[k] for k in given if k not in rest}}),
                *_strange(rest, "a thought"),
            ]
        self._rest |= rest
        if isinstance(redacted := given.get(REDACTED), str):
            self._redacted.append(redacted)
        if isinstance(text, str) or ((isinstance(signature, str) or rest) and not self._open):
            # Empty reasoning is a block too: it may carry only its signature.
            self._open = True
            said = text if isinstance(text, str) else ""
            events.append(ThinkingDelta(said, self._key, REASONING, self._kind))
        if isinstance(signature, str):
            self._signature.append(signature)
        return events + (self._carriers() if self.stopped else [])

    def stop(self) -> list[Event]:
        self.stopped = True
        return [*self._carriers(), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        if not self._redacted:
            return []
        return [Warned("unfinished_block", "a redacted thinking block was cut off and is left out")]

    def _carriers(self) -> list[Event]:
        events: list[Event] = []
        if self._signature or self._rest:
            signature = "".join(self._signature) if self._signature else None
            kept = wire_of(DIALECT, self._rest)
            events.append(ThinkingCarrier(self._key, REASONING, signature, wire=kept))
        if self._redacted:
            key: Key = f"{self._key}.redacted" if self._open else self._key
            events.append(ThinkingCarrier(key, REDACTED, redacted=_joined(self._redacted)))
        return events


class ToolUsePart:
    """A call of one of the client's tools."""

    __slots__ = ("_key", "stopped")

    def __init__(self, key: int) -> None:
        self._key = key
        self.stopped = False

    def begin(self, start: dict[str, Any], call_id: str) -> list[Event]:
        name = start.get("name")
        known = ("toolUseId", "name", "input")
        rest = {key: value for key, value in start.items() if key not in known}
        events: list[Event] = [
            ToolCallDelta(
                self._key,
                call_id,
                name if isinstance(name, str) else None,
                wire=wire_of(DIALECT, rest),
                structured=True,
            )
        ]
        return events + self._input(start.get("input"))

    def take(self, delta: dict[str, Any]) -> list[Event]:
        given = delta.get("toolUse")
        if type(given) is not dict:
            return _strange(delta, "a call")
        return self._input(given.get("input"))

    def _input(self, given: Any) -> list[Event]:
        if not given:
            return []
        text = given if isinstance(given, str) else _encode(given).decode()
        return [ToolCallDelta(self._key, None, None, text)]

    def stop(self) -> list[Event]:
        self.stopped = True
        return [BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        return []


class OpaquePart:
    """A block of a kind that mull does not know, or that the provider itself acts on."""

    __slots__ = ("_data", "_key", "_pieces", "stopped")

    def __init__(self, key: int, start: dict[str, Any]) -> None:
        self._key = key
        self._data = {name: _copied(value) for name, value in start.items()}
        self._pieces: dict[str, list[str]] = {}
        self.stopped = False

    def take(self, delta: dict[str, Any]) -> list[Event]:
        if self.stopped:
            return _strange(delta, f"a {self._kind} block")
        for kind, value in delta.items():
            held = self._data.get(kind)
            if isinstance(value, list):
                holder = held if isinstance(held, dict) else self._data.setdefault(kind, {})
                holder["content"] = [*holder.get("content", []), *value]
            elif isinstance(held, dict) and isinstance(value, dict):
                self._fold(held, kind, value)
            else:
                self._data[kind] = _copied(value)
        return []

    def stop(self) -> list[Event]:
        self.stopped = True
        for place, pieces in self._pieces.items():
            kind, _, name = place.partition(".")
            self._data[kind][name] = _input("".join(pieces)) if name == "input" else "".join(pieces)
        if _is_broken(self._data):
            return [*broken_part(self._data, self._key, "a block"), BlockEnded(self._key)]
        return [OpaqueReceived(self._data, self._key), BlockEnded(self._key)]

    def cut(self) -> list[Event]:
        return [Warned("unfinished_block", f"a {self._kind} block was cut off and is left out")]

    @property
    def _kind(self) -> str:
        return next(iter(self._data), "strange")

    def _fold(self, held: dict[str, Any], kind: str, value: dict[str, Any]) -> None:
        for name, piece in value.items():
            if isinstance(piece, str):
                before = held.get(name)
                first = [before] if isinstance(before, str) else []
                self._pieces.setdefault(f"{kind}.{name}", first).append(piece)
            else:
                held[name] = piece


def _is_broken(data: dict[str, Any]) -> bool:
    """Whether a block is nothing, of a known kind in another shape, or a result, which the model
    does not give unless the provider's own tool did.
    """
    if not data or "text" in data or REASONING in data:
        return True
    used = [data[kind] for kind in ("toolUse", "toolResult") if kind in data]
    return any(not isinstance(one, dict) or one.get("type") is None for one in used)


def begun_by(delta: dict[str, Any], key: int, thinking: ThinkingKind) -> Part | None:
    """The part that a delta begins whose block had no start; a call without a name is none."""
    if REASONING in delta:
        return ReasoningPart(key, thinking)
    if "text" in delta or "citation" in delta:
        return TextPart(key)
    return None if "toolUse" in delta or not delta else OpaquePart(key, {})


def _strange(delta: dict[str, Any], where: str, *known: str) -> list[Event]:
    names = [name for name in delta if name not in known]
    return [Warned("unexpected_delta", f"{name} in {where} was left out") for name in names]


def _joined(pieces: list[str]) -> str:
    """Pieces of data, each of which is base64 by itself."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)


def _input(text: str) -> Any:
    try:
        return _object(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else value
