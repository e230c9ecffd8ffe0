"""Counting tokens of what a request holds, with whatever counter is given.

The counter is injected: a real tokenizer where there is one, the character estimate otherwise.
When a tokenizer fails, the estimate takes over for good and one warning is left (ERR-002).
Carriers (signatures, encrypted reasoning) are not text of the model's vocabulary: they are
estimated from their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, assert_never

import msgspec

from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.request import Tool

__all__ = [
    "CHARACTERS",
    "MESSAGE_OVERHEAD",
    "CharacterCounter",
    "Counter",
    "SafeCounter",
    "count_block",
    "count_blocks",
    "count_tools",
]

MESSAGE_OVERHEAD = 4
"""Tokens that a message costs beside its content (role and separators)."""
MEDIA_TOKENS = 1500
"""A stated guess for one image or page; providers bill by pixels, which are not known here."""


class Counter(Protocol):
    """Counts the tokens of a text. `exact` says whether it is the model's own vocabulary."""

    @property
    def name(self) -> str: ...
    @property
    def exact(self) -> bool: ...
    def count(self, text: str) -> int: ...


class CharacterCounter:
    """Half of the text's bytes: above what real tokenizers give for prose and dense code."""

    name = "characters"
    exact = False

    def count(self, text: str) -> int:
        """The estimate, rounded up."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return -(-size // 2)


CHARACTERS = CharacterCounter()


class SafeCounter:
    """A counter that cannot fail: it loads on first use and falls back once for all (ERR-002)."""

    def __init__(self, name: str, exact: bool, load: Callable[[], Callable[[str], int]]) -> None:
        self.name = name
        self.exact = exact
        self._load = load
        self._count: Callable[[str], int] | None = None
        self._warning: str | None = None

    def count(self, text: str) -> int:
        """The tokens of the text, or the higher estimate once the tokenizer has failed."""
        try:
            if self._count is None:
                self._count = self._load()
            return self._count(text)
        except UnicodeError:  # half a character, which no tokenizer takes: the text's own fault
            return CHARACTERS.count(text)
        except Exception as error:  # whatever a foreign library raises must not end a turn
            self._warning = (
                f"the tokenizer {self.name} failed ({error}): token counts are now estimated"
                " from characters, on the high side"
            )
            self.name, self.exact, self._count = CHARACTERS.name, False, CHARACTERS.count
            return CHARACTERS.count(text)

    def take_warning(self) -> str | None:
        """The warning, the first time it is asked for."""
        warning, self._warning = self._warning, None
        return warning


def count_block(block: Block, counter: Counter) -> int:
    """The tokens one block costs when it is sent whole."""
    match block:
        case TextBlock():
            return max(counter.count(block.text), _carrier(block.signature))
        case ThinkingBlock():
            return _count_thinking(block, counter)
        case ToolCallBlock():
            arguments = block.arguments if block.arguments is not None else _json(block.input)
            called = counter.count(block.name) + counter.count(arguments)
            return called + _carrier(block.signature)
        case ToolResultBlock():
            return counter.count(block.output) + MEDIA_TOKENS * len(block.media)
        case MediaBlock():
            return MEDIA_TOKENS
        case OpaqueBlock():
            return counter.count(_json(block.data))
        case _:
            assert_never(block)


def count_blocks(blocks: Iterable[Block], counter: Counter) -> int:
    """The tokens of several blocks."""
    return sum(count_block(block, counter) for block in blocks)


def count_tools(tools: Iterable[Tool], counter: Counter) -> int:
    """The tokens of the tool definitions."""
    return sum(counter.count(_json(tool)) + MESSAGE_OVERHEAD for tool in tools)


def _count_thinking(block: ThinkingBlock, counter: Counter) -> int:
    """A carrier holds the thought itself, so the larger of the two counts, not their sum."""
    hidden = _carrier(block.signature) + _carrier(block.encrypted) + _carrier(block.redacted)
    if block.details:
        hidden += sum(_carrier(d.get("data")) + _carrier(d.get("signature")) for d in block.details)
    return max(counter.count(block.thought), hidden)


def _carrier(value: Any) -> int:
    """Base64 is 4 characters for 3 bytes, and a token is about 4 bytes of reasoning."""
    return -(-3 * len(value) // 16) if isinstance(value, str) else 0


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
