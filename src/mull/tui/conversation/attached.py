"""How attached files look in a message: their names, not their content."""

from __future__ import annotations

import re

from msgspec.structs import replace

from mull.neutral.blocks import Block, TextBlock
from mull.neutral.messages import Message
from mull.neutral.patterns import pattern

__all__ = ["folded", "typed"]

_FENCED = pattern(r"\n\n(?P<name>[^\n]+):\n(?P<fence>`{3,})[^\n]*\n.*\n(?P=fence)", re.DOTALL)

_MOST_LINES = 20
"""Maximum lines drawn of a user message."""


def folded(message: Message) -> Message:
    """The message with the text of each attached file folded to its name, and shortened."""
    if message.role != "user" or not message.blocks:
        return message
    first, *rest = message.blocks
    return replace(message, blocks=(_short(first), *map(_folded, rest)))


def _short(block: Block) -> Block:
    """The first and last lines of a long text, such as a pasted one."""
    lines = block.text.split("\n") if isinstance(block, TextBlock) else []
    hidden = len(lines) - _MOST_LINES
    if hidden <= 1:
        return block
    head, tail = lines[: _MOST_LINES // 2], lines[-_MOST_LINES // 2 :]
    return TextBlock("\n".join([*head, f"[… {hidden:,} more lines …]", *tail]))


def typed(message: Message) -> str:
    """What was typed of a message: its text without that of the files it mentions."""
    first, *rest = message.blocks or (TextBlock(""),)
    left = (block for block in rest if _folded(block) is block)
    return replace(message, blocks=(first, *left)).text


def _folded(block: Block) -> Block:
    found = _FENCED.match(block.text) if isinstance(block, TextBlock) else None
    return TextBlock(f"[{found['name']}]") if found else block
