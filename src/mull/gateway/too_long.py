"""Rewords an upstream's "request too long" error so that clients of a dialect recognise it."""

from __future__ import annotations

from mull.dialects.surface import TooLong, surface_of
from mull.neutral.errors import RefusedError, TooLongError
from mull.neutral.events import Failed
from mull.neutral.messages import Dialect
from mull.policy.failure import Failure, overflow_of
from mull.policy.lengths import Overflow

__all__ = ["told_too_long"]


def told_too_long(error: RefusedError, dialect: Dialect) -> Failed | None:
    """The rejection in the words that clients of this dialect recognise; None if the error is not
    about length."""
    surface = surface_of(dialect)
    if isinstance(error, TooLongError) and error.overflow is None:
        return None  # shortening would not help
    overflow = overflow_of(Failure(error.text or str(error), error.status, error.code))
    if surface is None or overflow is None:
        return None
    words = surface.too_long
    return Failed(_sentence(words, overflow, error.text), words.code or error.code)


def _sentence(words: TooLong, overflow: Overflow, text: str) -> str:
    held, limit, asked = overflow.held, overflow.limit, overflow.asked
    if held is None or limit is None:
        return f"{words.vague}{text}"
    if held > limit:
        return words.sentence.format(held=held, limit=limit)
    if asked is not None and words.beside is not None:
        return words.beside.format(held=held, limit=limit, asked=asked)
    return text
