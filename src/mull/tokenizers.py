"""The one home of the tokenizer library: which vocabulary counts for a target.

The vocabularies are inside the library, so counting works offline. Nothing is loaded before the
first text is counted, and a failure there is the counter's to survive (ERR-002). Without the
library, which the extra `tokens` brings, counts are estimated from characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from mull.neutral.extras import is_installed, missing
from mull.neutral.request import Note
from mull.neutral.target import Target
from mull.policy.tokens import CHARACTERS, SafeCounter

__all__ = ["DEFAULT_VOCABULARY", "counter_for", "counter_named"]

PIECE = 1 << 18
"""Characters that are counted at once."""
DEFAULT_VOCABULARY = "o200k_base"
"""Stands in for models whose vocabulary is not published."""


def counter_for(target: Target) -> SafeCounter:
    """The counter for a model: its own vocabulary where known, else a stated approximation."""
    facts = target.facts
    vocabulary = facts.tokenizer or DEFAULT_VOCABULARY
    return counter_named(vocabulary, exact=facts.tokenizer_exact, scale=facts.tokenizer_scale)


@cache
def counter_named(vocabulary: str, *, exact: bool = False, scale: float = 1.0) -> SafeCounter:
    """The counter of one vocabulary; the same object every time, so it loads once.

    `scale` is for a stand-in: how many of the model's own tokens one of its tokens is worth.
    """
    if not is_installed("tokens"):
        return _estimate()
    if scale == 1.0:
        return SafeCounter(vocabulary, exact, lambda: _load(vocabulary))
    return SafeCounter(f"{vocabulary} × {scale:g}", exact, lambda: _scaled(vocabulary, scale))


@cache
def _estimate() -> SafeCounter:
    """What counts for all models where the library is missing: one counter, so that it is said
    once."""
    text = f"token counts are estimated from characters, on the high side: {missing('tokens')}"
    note = Note(about="tokens", text=text)
    return SafeCounter(CHARACTERS.name, False, lambda: CHARACTERS.count, note=note)


def _scaled(vocabulary: str, scale: float) -> Callable[[str], int]:
    count = _load(vocabulary)
    return lambda text: round(count(text) * scale)


@cache
def _load(vocabulary: str) -> Callable[[str], int]:
    from splintr import Tokenizer

    # encode_ordinary: text that spells a special token is a user's text, not that token.
    encode = Tokenizer.from_pretrained(vocabulary).encode_ordinary

    def count(text: str) -> int:
        return sum(len(encode(piece)) for piece in _pieces(text))

    return count


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of bounded size, cut before a space where there is one: the list of its
    tokens takes many times the memory of the text."""
    start = 0
    while len(text) - start > PIECE:
        cut = text.rfind(" ", start + PIECE // 2, start + PIECE)
        end = cut if cut > 0 else start + PIECE
        yield text[start:end]
        start = end
    yield text[start:] if start else text
