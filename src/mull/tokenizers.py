"""The one home of the tokenizer library: which vocabulary counts for a target.

The vocabularies are inside the library, so counting works offline. Nothing is loaded before the
first text is counted, and a failure there is the counter's to survive (ERR-002). Without the
library, which the extra `tokens` brings, counts are estimated from characters.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

from mull.neutral.blocks import ThinkingBlock
from mull.neutral.extras import is_installed, missing
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.neutral.target import Script, Target
from mull.policy.tokens import CHARACTERS, Counter, SafeCounter, count_block

__all__ = ["DEFAULT_VOCABULARY", "counter_for", "counter_named", "estimate_thinking_tokens"]

PIECE = 1 << 18
"""Characters that are counted at once."""
DEFAULT_VOCABULARY = "o200k_base"
"""Stands in for models whose vocabulary is not published."""
Weights = tuple[tuple[Script, float], ...]


def _bytes(first: int, last: int) -> bytes:
    return bytes(range(first, last + 1))


_LEADS: Mapping[Script, bytes] = MappingProxyType(
    {
        "letters": string.ascii_letters.encode(),
        "accented": _bytes(0xC3, 0xC9),
        "greek": _bytes(0xCD, 0xCF),
        "cyrillic": _bytes(0xD0, 0xD3),
        "semitic": _bytes(0xD6, 0xDD),
        "indic": _bytes(0xE0, 0xE1),
        "symbols": b"\xe2" + _bytes(0xF0, 0xF4),
        "kana": b"\xe3",
        "han": _bytes(0xE4, 0xE9),
        "hangul": _bytes(0xEA, 0xED),
    }
)
"""The bytes that characters of a script begin with in UTF-8; none occurs inside another character,
so that counting a script's characters is counting its bytes.
"""


def counter_for(target: Target) -> SafeCounter:
    """The counter for a model: its own vocabulary where known, else a stated approximation."""
    facts = target.facts
    return counter_named(
        facts.tokenizer or DEFAULT_VOCABULARY,
        exact=facts.tokenizer_exact,
        scale=facts.tokenizer_scale,
        scripts=tuple(facts.tokenizer_scripts.items()),
    )


@cache
def counter_named(
    vocabulary: str, *, exact: bool = False, scale: float = 1.0, scripts: Weights = ()
) -> SafeCounter:
    """The counter of one vocabulary; the same object every time, so it loads once.

    `scale` and `scripts` are for a stand-in: how many of the model's own tokens one of its tokens
    is worth, and how many of its tokens each character of a script adds or takes away.
    """
    if not is_installed("tokens"):
        return _estimate()
    if scale == 1.0 and not scripts:
        return SafeCounter(vocabulary, exact, lambda: _load(vocabulary))
    letters = dict(scripts).get("letters", 0)
    name = f"{vocabulary} × {scale:g}" + (f" + {letters:g} a letter" if letters else "")
    return SafeCounter(name, exact, lambda: _scaled(vocabulary, scale, scripts))


def estimate_thinking_tokens(
    content: Message | Iterable[Message] | Iterable[ThinkingBlock], counter: Counter | None = None
) -> int:
    """The tokens of the thinking in blocks or messages (REQ-THINK-002.4), by default those of the
    vocabulary that stands in for unknown models.
    """
    counter = counter or counter_named(DEFAULT_VOCABULARY)
    parts = (content,) if isinstance(content, Message) else content
    blocks = [b for p in parts for b in (p.thinking if isinstance(p, Message) else (p,))]
    return sum(count_block(block, counter) for block in blocks)


@cache
def _estimate() -> SafeCounter:
    """What counts for all models where the library is missing: one counter, so that it is said
    once."""
    text = f"token counts are estimated from characters, on the high side: {missing('tokens')}"
    note = Note(about="tokens", text=text)
    return SafeCounter(CHARACTERS.name, False, lambda: CHARACTERS.count, note=note)


def _scaled(vocabulary: str, scale: float, scripts: Weights) -> Callable[[str], int]:
    count = _load(vocabulary)
    rare = tuple((_LEADS[script], weight) for script, weight in scripts if script != "letters")
    common = tuple((_LEADS[script], weight) for script, weight in scripts if script == "letters")

    def weighted(text: str) -> int:
        tokens: float = count(text)
        if scripts:
            data = text.encode()
            for leads, weight in common if data.isascii() else common + rare:
                tokens += weight * (len(data) - len(data.translate(None, leads)))
        return max(round(tokens * scale), 1 if text else 0)

    return weighted


@cache
def _load(vocabulary: str) -> Callable[[str], int]:
    from splintr import Tokenizer

    # encode_ordinary: text that spells a special token is a user's text, not that token.
    encode = Tokenizer.from_pretrained(vocabulary).encode_ordinary
    framing = len(encode(""))  # what some put around every text

    def count(text: str) -> int:
        return sum(len(encode(piece)) - framing for piece in _pieces(text))

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
