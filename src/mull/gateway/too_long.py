"""A refusal for length in the words by which clients of a dialect know it.

Clients compress a conversation, or ask for a shorter answer, when they read the sentence of their
own provider. Another provider's sentence they only show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mull.neutral.errors import RefusedError
from mull.neutral.events import Failed
from mull.neutral.messages import Dialect
from mull.policy.failure import Failure, overflow_of
from mull.policy.lengths import Overflow

__all__ = ["told_too_long"]


class _Words(NamedTuple):
    """What a dialect says. `beside` is for a request that would fit without its answer; `vague`
    goes before another's words, where these name no numbers."""

    code: str | None
    too_long: str
    beside: str | None = None
    vague: str = ""


_OPENAI = (
    "This model's maximum context length is {limit} tokens. However, your messages resulted in"
    " {held} tokens. Please reduce the length of the messages."
)
_WORDS: Mapping[Dialect, _Words] = {
    "anthropic": _Words(
        "invalid_request_error",
        "prompt is too long: {held} tokens > {limit} maximum",
        "input length and `max_tokens` exceed context limit: {held} + {asked} > {limit}, decrease"
        " input length or `max_tokens` and try again",
        "prompt is too long: ",
    ),
    "openai-chat": _Words("context_length_exceeded", _OPENAI),
    "openai-responses": _Words("context_length_exceeded", _OPENAI),
    "gemini": _Words(
        None,
        "The input token count ({held}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
}


def told_too_long(error: RefusedError, dialect: Dialect) -> Failed | None:
    """The refusal as clients of this dialect know it; None where it has another subject."""
    words = _WORDS.get(dialect)
    overflow = overflow_of(Failure(error.text or str(error), error.status, error.code))
    if words is None or overflow is None:
        return None
    return Failed(_sentence(words, overflow, error.text), words.code or error.code)


def _sentence(words: _Words, overflow: Overflow, text: str) -> str:
    held, limit, asked = overflow.held, overflow.limit, overflow.asked
    if held is None or limit is None:
        return f"{words.vague}{text}"
    if held > limit:
        return words.too_long.format(held=held, limit=limit)
    if asked is not None and words.beside is not None:
        return words.beside.format(held=held, limit=limit, asked=asked)
    return text
