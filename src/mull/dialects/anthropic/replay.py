"""Which thoughts go back: with their signature, or unsigned where the endpoint never signs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec.structs import replace

from mull.dialects.anthropic import DIALECT
from mull.dialects.replay import Form, Replay, Taken, Way
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock
from mull.neutral.messages import Dialect

__all__ = ["REPLAY"]


class _Anthropic(Replay):
    DIALECT: ClassVar[Dialect] = DIALECT

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


REPLAY = _Anthropic()
