"""Which thinking is sent back: any that the request may think about, and signed thinking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mull.dialects.gemini import DIALECT
from mull.dialects.replay import Form, Replay, Way
from mull.neutral.blocks import ThinkingBlock, ToolCallBlock, own_keys
from mull.neutral.messages import Message

__all__ = ["REPLAY"]


class _Gemini(Replay):
    def forms(self, thoughts: Sequence[ThinkingBlock], way: Way) -> Iterator[Form]:
        for block in thoughts:
            kept = own_keys(block.wire, DIALECT)
            if not block.signature and not kept and not way.thinks and not block.is_blank:
                yield "unreadable"
            else:
                wire = block.wire if kept else None
                yield replace(block, encrypted=None, redacted=None, wire=wire)

    def marked(self, message: Message) -> Message:
        """A step whose first call is unsigned loses all signatures: the encoder then marks it."""
        calls = message.tool_calls
        if not calls or calls[0].signature or not any(call.signature for call in calls):
            return message
        blocks = (
            replace(block, signature=None) if isinstance(block, ToolCallBlock) else block
            for block in message.blocks
        )
        return replace(message, blocks=tuple(blocks))


REPLAY = _Gemini(DIALECT)
