"""What a message is made of.

A block keeps whatever the wire gave for it, so that the same endpoint can get it back byte for
byte. Nothing here decides what is shown or sent: that is policy. Values are frozen, equal by
content, and have one JSON form (camelCase, defaults left out, except that a thinking block always
has its thought, as its schema demands).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

__all__ = [
    "Block",
    "MediaBlock",
    "OpaqueBlock",
    "TextBlock",
    "ThinkingBlock",
    "ThinkingKind",
    "ToolCallBlock",
    "ToolResultBlock",
    "Value",
    "Wire",
    "as_keys",
    "joined",
    "own_keys",
    "wire_of",
]

ThinkingKind: TypeAlias = Literal["raw", "summary"]


class Value(
    Struct,
    frozen=True,
    rename="camel",
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """Base of all neutral values: frozen, compared by content, strict about its own JSON."""


class Wire(Value, frozen=True):
    """What of a block only one dialect understands, in that dialect's own shape.

    Nobody else looks inside, and it goes back only to the origin it came from. `dialect` is None
    where a file that an earlier version wrote does not say whose it is: then it is everybody's.
    """

    dialect: str | None
    data: dict[str, Any]


def joined(held: Wire | None, more: Wire | None) -> Wire | None:
    """What came before with what is new, key by key."""
    if held is None or more is None:
        return more if held is None else held
    return Wire(more.dialect, {**held.data, **more.data})


def wire_of(dialect: str, data: dict[str, Any]) -> Wire | None:
    """What a dialect keeps; None where that is nothing."""
    return Wire(dialect, data) if data else None


def own_keys(wire: Wire | None, dialect: str) -> dict[str, Any]:
    """What a dialect kept; nothing where another did."""
    return wire.data if wire is not None and wire.dialect in (None, dialect) else {}


def as_keys(held: Any) -> dict[str, Any]:
    """An object inside what a dialect kept; a file may hold anything in its place."""
    return held if isinstance(held, dict) else {}


class TextBlock(Value, frozen=True, tag_field="type", tag="text"):
    """Text a person reads.

    `signature` is a Gemini thought signature that sat on a text part.
    """

    text: str
    signature: str | None = None
    wire: Wire | None = None


class ThinkingBlock(Value, frozen=True, tag_field="type", tag="thinking"):
    """One run of a model's reasoning with everything needed to send it back (REQ-THINK-001).

    `source_field` names the wire field it came in. `signature`, `encrypted`, `redacted` and
    `wire` are carriers: opaque, kept whole, and only ever replayed to the origin that made
    them. No block, a block with an empty thought, and a block with text are three states.
    """

    thought: str = field(default_factory=str)  # an empty one is written all the same
    source_field: str | None = None
    is_hidden: bool = False
    signature: str | None = None
    encrypted: str | None = None
    redacted: str | None = None
    id: str | None = None
    kind: ThinkingKind = "raw"
    wire: Wire | None = None

    @property
    def has_carrier(self) -> bool:
        """Whether an endpoint can verify or decrypt this block."""
        return bool(self.signature or self.encrypted or self.redacted or self.wire)

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to show and nothing to send back."""
        return not self.has_carrier and not self.thought.strip()


class ToolCallBlock(Value, frozen=True, tag_field="type", tag="tool_call"):
    """A call the model asks for.

    `arguments` is the wire's own text and is kept only where encoding `input` again would not
    give it back (other spacing, invalid JSON).
    """

    id: str
    name: str
    input: dict[str, Any] = {}
    arguments: str | None = None
    signature: str | None = None
    wire: Wire | None = None


class MediaBlock(Value, frozen=True, tag_field="type", tag="media"):
    """An image, document or sound: base64 `data` or a `url`."""

    media_type: str
    data: str | None = None
    url: str | None = None
    name: str | None = None


class ToolResultBlock(Value, frozen=True, tag_field="type", tag="tool_result"):
    """What a tool gave back for the call `call_id`.

    `diff` is what it changed, as a unified diff for people; it is never sent.
    """

    call_id: str
    output: str = ""
    is_error: bool = False
    media: tuple[MediaBlock, ...] = ()
    diff: str = ""


class OpaqueBlock(Value, frozen=True, tag_field="type", tag="opaque"):
    """Something a provider sent that mull does not know: kept in place, echoed to its origin.

    `dialect` is whose block it is, where the message has no origin that says so: what a client
    wrote into its request.
    """

    data: dict[str, Any]
    dialect: str | None = None


Block: TypeAlias = (
    TextBlock | ThinkingBlock | ToolCallBlock | ToolResultBlock | MediaBlock | OpaqueBlock
)
"""Whatever a message can hold."""
