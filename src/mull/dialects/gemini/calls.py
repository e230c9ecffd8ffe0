"""Function calls of an answer, complete or in chunks.

A call may have no id. Then it gets one made of the response's id and a running number, so the same
bytes give the same id and another answer another. Whatever the wire's call contained beside name
and arguments, including its own id, stays in its wire: that is what is sent back.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import msgspec

from mull.dialects.decoder import broken_part
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.partial import PartialArguments
from mull.dialects.gemini.shapes import PART_KEYS
from mull.neutral.blocks import wire_of
from mull.neutral.events import BlockEnded, Event, Failed, ToolCallDelta

__all__ = ["CallReader", "signature_of"]

_encode = msgspec.json.Encoder().encode
_READ = frozenset({"name", "args", "partialArgs", "willContinue"})
_BESIDE = frozenset({"functionCall"})
_BESIDE_SIGNED = frozenset({"functionCall", "thoughtSignature"})


class CallReader:
    """Reads the `functionCall` parts of one answer, in order."""

    def __init__(self) -> None:
        self.count = 0
        self.is_open = False
        self.response_id: str | None = None
        self._ids: set[str] = set()
        self._id = ""
        self._pieces = PartialArguments()

    def read(self, part: dict[str, Any]) -> list[Event]:
        """Events of one part that has a `functionCall`."""
        call, signature = part["functionCall"], signature_of(part)
        name = call.get("name") if isinstance(call, dict) else None
        if isinstance(name, str) and name:
            return [*self.close(), *self._begin(part, call, signature)]
        if self.is_open and isinstance(call, dict):
            events: list[Event] = []
            if signature:
                events.append(ToolCallDelta(self.count, self._id, signature=signature))
            return events + self._go_on(call)
        # Vertex AI closes a streamed call with an empty one; without an open call it means nothing.
        if not call and not signature:
            return self.close()
        return [*self.close(), *broken_part(part, None, "a call without a name")]

    def close(self) -> list[Event]:
        """The arguments of a call that arrived in chunks, once it is complete."""
        return [*self.cut(), BlockEnded(self.count)] if self.is_open else []

    def cut(self) -> list[Event]:
        """The arguments of a call in which the stream broke off, as far as they arrived."""
        if not self.is_open:
            return []
        self.is_open = False
        return [ToolCallDelta(self.count, self._id, arguments=_text(self._pieces.value))]

    def _begin(
        self, part: dict[str, Any], call: dict[str, Any], signature: str | None
    ) -> list[Event]:
        in_pieces = bool(call.get("willContinue")) or call.get("partialArgs") is not None
        text = "" if in_pieces else _text(call.get("args"))
        self.count += 1
        self._id = self._name(call.get("id"), f"{signature}{call['name']}{text}")
        kept = _others(call, _READ)
        if kept.get("id", self._id) != self._id:  # another call's: the order tells them apart
            del kept["id"]
        if beside := _others(part, _BESIDE_SIGNED if signature else _BESIDE):
            kept[PART_KEYS] = beside
        wire = wire_of(DIALECT, kept)
        event = ToolCallDelta(self.count, self._id, call["name"], text, signature, wire)
        if not in_pieces:
            return [event, BlockEnded(self.count)]
        self.is_open, self._pieces = True, PartialArguments()
        return [event, *self._go_on(call)]

    def _go_on(self, call: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        try:
            if (args := call.get("args")) and isinstance(args, dict):
                self._pieces.value.update(args)
            if pieces := call.get("partialArgs"):
                self._pieces.add(pieces)
        except ValueError as error:
            events.append(Failed(f"arguments of a call could not be read: {error}", "damaged"))
        return events if call.get("willContinue") else events + self.close()

    def _name(self, wire_id: Any, content: str) -> str:
        """The id of the call; a second call must not be taken for a continuation of the first."""
        if isinstance(wire_id, str) and wire_id and wire_id not in self._ids:
            given = wire_id
        else:
            seed = (self.response_id or content).encode("utf-8", "surrogatepass")
            given = f"call_{blake2b(seed, digest_size=8).hexdigest()}_{self.count}"
        self._ids.add(given)
        return given


def signature_of(part: dict[str, Any]) -> str | None:
    """The part's signature; an empty one counts as none."""
    given = part.get("thoughtSignature")
    return given if given and isinstance(given, str) else None


def _others(held: dict[str, Any], read: frozenset[str]) -> dict[str, Any]:
    return {k: v for k, v in held.items() if k not in read and v is not None and v != ""}


def _text(args: Any) -> str:
    """Arguments as JSON text; text stays unchanged."""
    if args is None or isinstance(args, str):
        return args or ""
    try:
        return _encode(args).decode()
    except UnicodeEncodeError:  # lone surrogates, which the decoder repairs afterwards
        return json.dumps(args, ensure_ascii=False, separators=(",", ":"))
