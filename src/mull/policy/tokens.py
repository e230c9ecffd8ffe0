"""Counts the tokens of a request with a given counter.

The counter is injected: a real tokenizer if there is one, otherwise the character estimate. When a
tokenizer fails, the estimate takes over permanently with one warning (ERR-002). Carriers
(signatures, encrypted reasoning) are not text of the model's vocabulary: the thinking in them is
estimated from their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol, assert_never

import msgspec

from mull.dialects.registry import seals
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.request import Note, Tool

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
"""Overhead tokens of a message (role and separators)."""
MEDIA_TOKENS = 1500
"""A documented guess for one image or page; providers bill by pixels, which are not known here."""


class Counter(Protocol):
    """Counts the tokens of a text. `exact` says whether it is the model's own vocabulary."""

    @property
    def name(self) -> str:
        """Its name; counts are stored by it."""

    @property
    def exact(self) -> bool:
        """Whether it counts exactly like the model."""

    def count(self, text: str) -> int:
        """The tokens of a text."""


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
    """A counter that cannot fail: it loads on first use and falls back permanently (ERR-002).

    `note` is what there is to say about it from the start.
    """

    def __init__(
        self,
        name: str,
        exact: bool,
        load: Callable[[], Callable[[str], int]],
        *,
        note: Note | None = None,
    ) -> None:
        self.name: str = name
        self.exact: bool = exact
        self._load = load
        self._count: Callable[[str], int] | None = None
        self._note = note

    def count(self, text: str) -> int:
        """The tokens of the text, or the higher estimate once the tokenizer has failed."""
        try:
            if self._count is None:
                self._count = self._load()
            return self._count(text)
        except UnicodeError:  # a lone surrogate, which no tokenizer accepts: the text's own fault
            return CHARACTERS.count(text)
        except Exception as error:  # whatever a foreign library raises must not end a turn
            reason = (
                f"the tokenizer {self.name} failed ({error}): token counts are now estimated"
                " from characters, on the high side"
            )
            self._note = Note(about="tokens", text=reason, warning=True)
            self.name, self.exact, self._count = CHARACTERS.name, False, CHARACTERS.count
            return CHARACTERS.count(text)

    def take_note(self) -> Note | None:
        """What there is to say about its counts, the first time it is asked for."""
        note, self._note = self._note, None
        return note


def count_block(block: Block, counter: Counter) -> int:
    """The tokens of one block when it is sent in full."""
    match block:
        case TextBlock():
            count = counter.count(block.text)
            return count if block.signature is None else max(count, _signed(block.signature))
        case ThinkingBlock():
            return _count_thinking(block, counter)
        case ToolCallBlock():
            arguments = block.arguments if block.arguments is not None else _json(block.input)
            called = counter.count(block.name) + counter.count(arguments)
            return called + _signed(block.signature)
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
    """A carrier contains the thinking itself, so the larger of the two counts, not their sum."""
    hidden = _signed(block.signature) + _signed(block.redacted) + _encrypted(block.encrypted)
    for kind, seal in seals(block):
        hidden += _signed(seal) if kind == "signature" else _encrypted(seal)
    return max(counter.count(block.thought), hidden)


def _signed(value: Any) -> int:
    """The thinking inside a signature or redacted data, from its length in characters. Measured on
    recorded answers of Claude and Gemini, whose providers report thinking tokens.
    """
    return _inside(value, shell=250, per_token=5.5)


def _encrypted(value: Any) -> int:
    """The thinking inside encrypted content; measured on recorded answers of GPT-5 models."""
    return _inside(value, shell=750, per_token=6)


def _inside(value: Any, *, shell: int, per_token: float) -> int:
    return math.ceil(max(len(value) - shell, 0) / per_token) if isinstance(value, str) else 0


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
