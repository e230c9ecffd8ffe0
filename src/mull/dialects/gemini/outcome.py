"""How an answer ended and what it cost, in the terms that all dialects share.

An unusual reason keeps the provider's own word and message in a warning.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from mull.dialects.tables import Counts, Statuses, Words
from mull.neutral.events import Failed, Finished, Warned
from mull.neutral.usage import Usage

__all__ = [
    "STATUSES",
    "read_block",
    "read_error",
    "read_finish",
    "read_usage",
    "write_finish",
    "write_usage",
]

_REASONS = Words(
    ("STOP", "stop"),
    ("STOP", "tool_calls"),
    ("MAX_TOKENS", "length"),
    # The answer continues in another request, which nothing here sends: it is cut.
    ("CONTINUATION", "length"),
    ("SAFETY", "content_filter"),
    ("SAFETY", "refusal"),
    ("RECITATION", "content_filter"),
    ("BLOCKLIST", "content_filter"),
    ("PROHIBITED_CONTENT", "content_filter"),
    ("SPII", "content_filter"),
    ("MODEL_ARMOR", "content_filter"),
    ("IMAGE_SAFETY", "content_filter"),
    ("IMAGE_PROHIBITED_CONTENT", "content_filter"),
    ("IMAGE_RECITATION", "content_filter"),
)
STATUSES = Statuses(
    (400, "INVALID_ARGUMENT"),
    (400, "FAILED_PRECONDITION"),
    (401, "UNAUTHENTICATED"),
    (403, "PERMISSION_DENIED"),
    (404, "NOT_FOUND"),
    (409, "ABORTED"),
    (429, "RESOURCE_EXHAUSTED"),
    (499, "CANCELLED"),
    (500, "INTERNAL"),
    (503, "UNAVAILABLE"),
    (529, "UNAVAILABLE"),
    (504, "DEADLINE_EXCEEDED"),
    other="INTERNAL",
)
_COUNTS = Counts(
    ("prompt", "promptTokenCount"),
    ("hosted", "toolUsePromptTokenCount"),
    ("candidates", "candidatesTokenCount"),
    ("reasoning", "thoughtsTokenCount"),
    ("total", "totalTokenCount"),
    ("cache_read", "cachedContentTokenCount"),
)
_PLAIN = frozenset({"STOP", "MAX_TOKENS"})


def read_finish(
    word: str | None, message: Any, *, has_calls: bool
) -> tuple[Finished, Warned | None]:
    """The end of an answer; the wire says STOP also if it stopped to call functions."""
    if word is None:
        return Finished("tool_calls" if has_calls else None), None
    reason = _REASONS.read(word)
    if reason == "stop" and has_calls:
        reason = "tool_calls"
    if word in _PLAIN:
        return Finished(reason), None
    return Finished(reason), Warned(reason, _said("the provider ended the answer", word, message))


def write_finish(reason: str | None) -> str:
    """The wire's word for an end."""
    return _REASONS.write(reason or "stop")


def read_block(feedback: Any) -> tuple[Finished, Warned] | None:
    """The end of a request whose prompt was blocked, if `promptFeedback` says so."""
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
    """`usageMetadata` in the neutral meaning; None if it counts nothing.

    Thinking is counted beside the candidates, and results of the provider's own tools beside the
    prompt. The wire's JSON omits zero counts, so one half of a sum may be missing.
    """
    read = _COUNTS.read(counts)
    usage = Usage(
        input=_sum(read["prompt"], read["hosted"]),
        output=_sum(read["candidates"], read["reasoning"]),
        reasoning=read["reasoning"],
        total=read["total"],
        cache_read=read["cache_read"],
    )
    return None if usage == Usage() else usage


def write_usage(usage: Usage) -> dict[str, Any]:
    """The known counts; cache writes have no field here."""
    counts = {"prompt": usage.input, "candidates": usage.output, **asdict(usage)}
    if usage.output is not None and usage.reasoning is not None:
        counts["candidates"] = max(0, usage.output - usage.reasoning)
    return _COUNTS.write(counts)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)
