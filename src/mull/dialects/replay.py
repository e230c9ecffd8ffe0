"""Which parts of an answer are sent back to endpoints of one dialect, and in which form.

Each dialect has its own `Replay`. It is used before anything is counted: an encoder writes all
thinking that it is given, so thinking comes out as it is sent, without the carriers that the
dialect has no field for, or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec.structs import replace

from mull.neutral.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
    own_keys,
    wire_of,
)
from mull.neutral.messages import Dialect, Message

__all__ = ["Form", "Left", "Replay", "Seal", "SignedReplay", "Taken", "Way", "is_void"]

Left: TypeAlias = Literal["untaken", "unsigned", "unreadable", "unfollowed", "refused"]
"""Why thinking is not sent: no field for it, no signature, nothing that the endpoint could read,
nothing after it in its answer, or the endpoint rejects it.
"""
Form: TypeAlias = ThinkingBlock | Left
Taken: TypeAlias = tuple[Block, Block | Left]
"""A block with its form in a request, or why it has none."""
Seal: TypeAlias = tuple[Literal["signature", "encrypted"], str]
"""A carrier in a block's wire."""


class Way(Value, frozen=True):
    """What decides it beside the dialect: its row, and the request's own settings.

    `out` is the row's `reasoningOut`, `first` the first of the fields that the endpoint's answers
    are read from, `only` the user's own field.
    """

    dialect: Dialect
    out: str = "same"
    first: str = "reasoning_content"
    only: str | None = None
    signed_only: bool = False
    thinks: bool = True


class Replay(ABC):
    """How answers are sent back in one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @abstractmethod
    def forms(self, thoughts: Sequence[ThinkingBlock], way: Way) -> Iterator[Form]:
        """The forms of adjacent thinking blocks, one for each."""

    def settle(self, taken: list[Taken]) -> list[Taken]:
        """The forms of a whole answer, if they depend on each other."""
        return taken

    def is_sent(self, form: Block, before: Sequence[Taken]) -> bool:
        """Whether anything of a block that is not thinking is left in a request."""
        match form:
            case TextBlock():
                return bool(form.text or form.wire)
            case MediaBlock() | ToolResultBlock():  # not for an answer
                return False
        return True

    def seals(self, block: Block) -> Iterator[Seal]:
        """The carriers in a block's wire."""
        yield from ()

    def unsealed(self, block: Block) -> Block | Left:
        """The block without what the endpoint rejected."""
        if isinstance(block, TextBlock | ToolCallBlock):
            return replace(block, signature=None)
        return "refused"

    def without_keys(self, block: Block, keys: frozenset[str]) -> Block:
        """The block without these keys of its wire; the same object if it has none."""
        if not isinstance(block, TextBlock | ThinkingBlock | ToolCallBlock):
            return block
        held = own_keys(block.wire, self.dialect)
        if keys.isdisjoint(held):
            return block
        kept = {name: value for name, value in held.items() if name not in keys}
        return replace(block, wire=wire_of(self.dialect, kept))

    def marked(self, message: Message) -> Message:
        """The step with its calls marked as not the model's own, if the dialect can express
        that.
        """
        return message


class SignedReplay(Replay):
    """For thinking in blocks: with their signature, or unsigned if the endpoint never signs."""

    def forms(self, thoughts: Sequence[ThinkingBlock], way: Way) -> Iterator[Form]:
        for block in thoughts:
            if way.out == "never":
                yield "untaken"
            elif block.redacted is not None:
                yield replace(block, thought="", signature=None, encrypted=None, wire=None)
            elif block.signature is None and way.signed_only and block.thought:
                yield "unsigned"
            else:
                wire = None if block.signature is None else block.wire
                yield replace(block, encrypted=None, wire=wire)

    def is_sent(self, form: Block, before: Sequence[Taken]) -> bool:
        return bool(form.text) if isinstance(form, TextBlock) else super().is_sent(form, before)


def is_void(block: ThinkingBlock) -> bool:
    """Whether nothing of a thinking block would be sent."""
    return not block.thought and not block.has_carrier and block.redacted is None
