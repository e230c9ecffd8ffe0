"""How an answer ended and what it cost, in words and numbers that all dialects share.

A reason that is not simply the end keeps the provider's own word and message in a warning.
"""

from __future__ import annotations

from typing import Any

from mull.neutral.events import Failed, Finished, Warned
from mull.neutral.usage import Usage

__all__ = ["read_block", "read_error", "read_finish", "read_usage"]

_REASONS = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    # The answer goes on in another request, which nothing here asks for: it is cut.
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MODEL_ARMOR",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
        ),
        "content_filter",
    ),
}
_PLAIN = frozenset({"STOP", "MAX_TOKENS"})


def read_finish(
    word: str | None, message: Any, *, has_calls: bool
) -> tuple[Finished, Warned | None]:
    """The end of an answer; the wire says STOP also where it stopped to call functions."""
    if word is None:
        return Finished("tool_calls" if has_calls else None), None
    reason = _REASONS.get(word, word)
    if reason == "stop" and has_calls:
        reason = "tool_calls"
    if word in _PLAIN:
        return Finished(reason), None
    return Finished(reason), Warned(reason, _said("the provider ended the answer", word, message))


def read_block(feedback: Any) -> tuple[Finished, Warned] | None:
    """The end of a request whose prompt was refused, if `promptFeedback` says that it was."""
    word = feedback.get("blockReason") if isinstance(feedback, dict) else None
    if not word:
        return None
    said = _said("the provider blocked the prompt", word, feedback.get("blockReasonMessage"))
    return Finished("content_filter"), Warned("content_filter", said)


def _said(what: str, word: Any, message: Any) -> str:
    return f"{what}: {word}" + (f" ({message})" if message else "")


def read_error(error: Any) -> Failed:
    """An error object in the provider's own words."""
    if not isinstance(error, dict):
        return Failed(str(error), body=error)
    text, code = error.get("message"), error.get("status") or error.get("code")
    return Failed(
        str(text or "the provider reported an error"),
        None if code is None else str(code),
        body=error,
    )


def read_usage(counts: dict[str, Any]) -> Usage | None:
    """`usageMetadata` in the common meaning; None where it counts nothing.

    Thoughts are counted beside the candidates, and results of the provider's own tools beside the
    prompt. A count of zero is left out by the wire's JSON, so one half of a sum may be missing.
    """
    candidates, thoughts = (
        _count(counts, "candidatesTokenCount"),
        _count(counts, "thoughtsTokenCount"),
    )
    usage = Usage(
        input=_sum(_count(counts, "promptTokenCount"), _count(counts, "toolUsePromptTokenCount")),
        output=_sum(candidates, thoughts),
        reasoning=thoughts,
        total=_count(counts, "totalTokenCount"),
        cache_read=_count(counts, "cachedContentTokenCount"),
    )
    return None if usage == Usage() else usage


def _count(counts: dict[str, Any], name: str) -> int | None:
    value = counts.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)
