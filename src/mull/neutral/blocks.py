"""The blocks of a message.

A block keeps whatever the wire provided for it, so that the same endpoint can get it back byte for
byte. Nothing here decides what is shown or sent: that is policy. Values are frozen, compared by
content, and have one JSON form (camelCase, defaults left out, except that a thinking block always
has its thought, as its schema requires).
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
    """The data of a block that only one dialect understands, in that dialect's own format.

    No other code looks inside, and it is sent back only to its origin. `dialect` is None if a file
    from an earlier version does not name it: then any dialect uses it.
    """

    dialect: str | None
    data: dict[str, Any]


def joined(held: Wire | None, more: Wire | None) -> Wire | None:
    """The earlier data merged with the new, key by key."""
    if held is None or more is None:
        return more if held is None else held
    return Wire(more.dialect, {**held.data, **more.data})


def wire_of(dialect: str, data: dict[str, Any]) -> Wire | None:
    """The data of a dialect; None if there is none."""
    return Wire(dialect, data) if data else None


def own_keys(wire: Wire | None, dialect: str) -> dict[str, Any]:
    """The data of this dialect; empty if another stored it."""
    return wire.data if wire is not None and wire.dialect in (None, dialect) else {}


def as_keys(held: Any) -> dict[str, Any]:
    """An object inside a dialect's data; a file may contain anything instead."""
    return held if isinstance(held, dict) else {}


class TextBlock(Value, frozen=True, tag_field="type", tag="text"):
    """Visible text.

    `signature` is a Gemini thought signature on a text part.
    """

    text: str
    signature: str | None = None
    wire: Wire | None = None


class ThinkingBlock(Value, frozen=True, tag_field="type", tag="thinking"):
    """One run of a model's reasoning with everything needed to send it back (REQ-THINK-001).

    `signature`, `encrypted`, `redacted` and `wire` are carriers: opaque, kept unchanged, and only
    sent back to the origin that made them. No block, a block with an empty thought, and a block
    with text are three states.
    """

    thought: str = field(default_factory=str)  # written even if empty
    """The readable text. It is stored even if it is empty, as when only a carrier arrived."""
    source_field: str | None = None
    """The field or item type on the wire that it came in, such as `reasoning_content`; None if
    unknown.
    """
    is_hidden: bool = False
    """Whether the terminal must not show it."""
    signature: str | None = None
    """The provider's signature of the thought (Anthropic, Bedrock, Gemini)."""
    encrypted: str | None = None
    """The thinking in encrypted form (OpenAI Responses)."""
    redacted: str | None = None
    """The data of a block whose thinking the provider withholds (`redacted_thinking`)."""
    id: str | None = None
    """The provider's id of the reasoning item, such as `rs_…`; None in dialects without them."""
    kind: ThinkingKind = "raw"
    """Whether `thought` is the model's own text (`raw`) or the provider's summary of it."""
    wire: Wire | None = None
    """What else the dialect needs to write the block back as it came."""

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

    `arguments` is the wire's own text and is kept only if encoding `input` would not reproduce it
    (other spacing, invalid JSON).
    """

    id: str
    name: str
    input: dict[str, Any] = {}
    arguments: str | None = None
    signature: str | None = None
    wire: Wire | None = None


class MediaBlock(Value, frozen=True, tag_field="type", tag="media"):
    """An image, document or audio file: base64 `data` or a `url`.

    `wire` holds what else its client wrote in it.
    """

    media_type: str
    data: str | None = None
    url: str | None = None
    name: str | None = None
    wire: Wire | None = None


class ToolResultBlock(Value, frozen=True, tag_field="type", tag="tool_result"):
    """The result of the call `call_id`.

    `diff` is what it changed, as a unified diff for the user; it is never sent. `wire` holds what
    else its client wrote in it.
    """

    call_id: str
    output: str = ""
    is_error: bool = False
    media: tuple[MediaBlock, ...] = ()
    diff: str = ""
    wire: Wire | None = None


class OpaqueBlock(Value, frozen=True, tag_field="type", tag="opaque"):
    """Data from a provider that mull does not know: kept in place, and sent back to its origin.

    `dialect` is whose block it is, if the message has no origin: a client wrote it into its
    request. What is `broken` cannot be what it says it is, such as a call without a name: it is
    kept, and sent to nobody.
    """

    data: dict[str, Any]
    dialect: str | None = None
    broken: bool = False

    @property
    def stands_for_earlier(self) -> bool:
        """Whether it replaces the conversation before it, which may have been given up for it; both
        APIs that compact on their own servers call it a `compaction`.
        """
        return "compaction" in str(self.data.get("type"))


Block: TypeAlias = (
    TextBlock | ThinkingBlock | ToolCallBlock | ToolResultBlock | MediaBlock | OpaqueBlock
)
"""Any block of a message."""
