"""Which reasoning items are sent back: those that the endpoint can decrypt or read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec.structs import replace

from mull.dialects.openai_responses import DIALECT
from mull.dialects.openai_responses.shapes import is_same_item, stands_alone
from mull.dialects.replay import Form, Replay, Taken, Way, is_void
from mull.neutral.blocks import Block, OpaqueBlock, ThinkingBlock

__all__ = ["REPLAY"]


class _Responses(Replay):
    def forms(self, thoughts: Sequence[ThinkingBlock], way: Way) -> Iterator[Form]:
        numbered = zip(thoughts, _items(thoughts), strict=True)
        for _, item in groupby(numbered, key=lambda pair: pair[1]):
            members = [block for block, _ in item]
            readable = any(b.encrypted or (b.kind == "raw" and b.thought) for b in members)
            for block in members:
                form = replace(block, signature=None, redacted=None)
                yield form if readable or block.is_blank else "unreadable"

    def is_sent(self, form: Block, before: Sequence[Taken]) -> bool:
        if isinstance(form, OpaqueBlock):
            return stands_alone(form) or _has_its_thought(before)
        return super().is_sent(form, before)


def _items(blocks: Sequence[ThinkingBlock]) -> Iterator[int]:
    """The number of the reasoning item that each block came from: a summary and its raw text are
    one item."""
    number = 0
    for at, block in enumerate(blocks):
        number += not (at and is_same_item(blocks[at - 1], block))
        yield number


def _has_its_thought(before: Sequence[Taken]) -> bool:
    """Whether the reasoning before a hosted tool's item is sent; without it, neither is the
    item."""
    thoughts = [(block, form) for block, form in before if isinstance(block, ThinkingBlock)]
    if not thoughts:
        return True
    (block, form), earlier = thoughts[-1], thoughts[:-1]
    if isinstance(form, ThinkingBlock) and not is_void(form):
        return True
    if not earlier or not is_same_item(earlier[-1][0], block):
        return False
    return isinstance(earlier[-1][1], ThinkingBlock)


REPLAY = _Responses(DIALECT)
