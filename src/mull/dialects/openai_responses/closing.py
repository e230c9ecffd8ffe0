"""The end of a response: its usage, its stop reason and its errors."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from mull.dialects.tables import Counts, Statuses, Words
from mull.neutral.events import Failed, Finished
from mull.neutral.usage import Usage

__all__ = [
    "CUT",
    "STATUSES",
    "read_ending",
    "read_failure",
    "read_usage",
    "write_ending",
    "write_usage",
]

CUT = Failed("the stream ended before the response was complete", "incomplete", "interrupted")

_REASONS = Words(
    ("max_output_tokens", "length"),
    ("max_tokens", "length"),
    ("content_filter", "content_filter"),
    ("content_filter", "refusal"),
)
"""Why a response is incomplete."""
_COMPLETED = frozenset({"stop", "tool_calls"})
STATUSES = Statuses(
    (400, "invalid_request_error"),
    (400, "invalid_prompt"),
    (401, "invalid_api_key"),
    (402, "insufficient_quota"),
    (403, "permission_denied"),
    (400, "previous_response_not_found"),
    (400, "unsupported_parameter"),
    (400, "websocket_connection_limit_reached"),
    (404, "not_found"),
    (413, "request_too_large"),
    (413, "context_length_exceeded"),
    (429, "rate_limit_exceeded"),
    (500, "server_error"),
    (503, "server_is_overloaded"),
    (529, "server_is_overloaded"),
    other="server_error",
)
"""Error codes that clients of this API check."""
_COUNTS = Counts(
    ("input", "input_tokens"),
    ("output", "output_tokens"),
    ("total", "total_tokens"),
    ("reasoning", "output_tokens_details.reasoning_tokens"),
    ("cache_read", "input_tokens_details.cached_tokens"),
    ("cache_write", "input_tokens_details.cache_write_tokens"),
)


def read_usage(value: Any) -> Usage | None:
    """The usage of a response, if reported. Output tokens include reasoning tokens in this API."""
    return Usage(**_COUNTS.read(value)) if isinstance(value, dict) else None


def write_usage(usage: Usage) -> dict[str, Any]:
    """The usage in this API; clients expect all counts, so unknown ones are 0."""
    counts = {name: count or 0 for name, count in asdict(usage).items()}
    if usage.total is None:
        counts["total"] = counts["input"] + counts["output"]
    return _COUNTS.write({**counts})


def read_failure(value: dict[str, Any]) -> Failed:
    """An error in any of its forms: nested, flat, or a plain string."""
    error = value.get("error")
    source = error if isinstance(error, dict) else value
    text = error if isinstance(error, str) else None
    for key in ("message", "detail"):
        if text is None and isinstance(found := source.get(key), str):
            text = found
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
    """What ended a response; `word` is its status if it does not contain one itself."""
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
        # A truncated call must not run, so tool calls do not change this reason.
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        reason = reason if isinstance(reason, str) else "incomplete"
        return Finished(_REASONS.read(reason))
    if called:
        return Finished("tool_calls")
    if refused:
        return Finished("refusal")
    return Finished("stop" if status == "completed" else status)


def write_ending(reason: str | None, *, refused: bool) -> dict[str, Any]:
    """The status of a response with this stop reason, and why it is incomplete if it is."""
    if reason is None or reason in _COMPLETED or (refused and reason == "refusal"):
        return {"status": "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": _REASONS.write(reason)}}
