"""How a response ends: its counts, the reason it stopped, and what went wrong."""

from __future__ import annotations

from typing import Any

from mull.neutral.events import Failed, Finished
from mull.neutral.usage import Usage

__all__ = ["CUT", "read_ending", "read_failure", "read_usage"]

CUT = Failed("the stream ended before the response was complete", "incomplete", "interrupted")

_REASONS = {"max_output_tokens": "length", "max_tokens": "length"}


def read_usage(value: Any) -> Usage | None:
    """The counts of a response, if it has any. Reasoning is part of the output here."""
    if not isinstance(value, dict):
        return None
    read = _details(value, "input_tokens_details")
    written = _details(value, "output_tokens_details")
    return Usage(
        input=_count(value.get("input_tokens")),
        output=_count(value.get("output_tokens")),
        reasoning=_count(written.get("reasoning_tokens")),
        total=_count(value.get("total_tokens")),
        cache_read=_count(read.get("cached_tokens")),
        cache_write=_count(read.get("cache_write_tokens")),
    )


def _details(value: dict[str, Any], key: str) -> dict[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def read_failure(value: dict[str, Any]) -> Failed:
    """An error, however it is wrapped: nested, flat, or as a bare text."""
    error = value.get("error")
    source = error if isinstance(error, dict) else value
    text = error if isinstance(error, str) else None
    for key in ("message", "detail"):
        if text is None and isinstance(said := source.get(key), str):
            text = said
    code = source.get("code")
    if code is None and source.get("type") != "error":
        code = source.get("type")
    return Failed(
        text or "the provider reported an error without a message",
        str(code) if isinstance(code, str | int) else None,
        body=source,
    )


def read_ending(
    response: dict[str, Any], word: str, *, called: bool, refused: bool
) -> Finished | Failed:
    """What ended a response; `word` is its status where it does not say one itself."""
    status = response.get("status")
    if not isinstance(status, str):
        status = word
    if status == "failed" or isinstance(response.get("error"), dict):
        return read_failure(response)
    if status == "cancelled":
        return Failed("the response was cancelled", "cancelled", "interrupted")
    if status in ("queued", "in_progress"):
        return CUT
    if status == "incomplete":
        # A call cut short must not run, so tool calls do not change this reason.
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        reason = reason if isinstance(reason, str) else "incomplete"
        return Finished(_REASONS.get(reason, reason))
    if called:
        return Finished("tool_calls")
    if refused:
        return Finished("refusal")
    return Finished("stop" if status == "completed" else status)
