"""How an answer ended, in neutral terms: stop reasons, rejections and errors."""

from __future__ import annotations

from typing import Any

from mull.dialects.tables import Statuses, Words
from mull.neutral.events import Failed, Warned

__all__ = [
    "STATUSES",
    "neutral_stop_reason",
    "read_error",
    "read_stop_details",
    "read_transformations",
    "write_stop_reason",
]

_STOP_REASONS = Words(
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("tool_use", "tool_calls"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("refusal", "refusal"),
    ("refusal", "content_filter"),
)
STATUSES = Statuses(
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (402, "billing_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
    (413, "request_too_large"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
    (503, "overloaded_error"),
    other="api_error",
)


def neutral_stop_reason(word: str | None, *, calls: bool) -> str | None:
    """The neutral word; calls turn a plain stop into `tool_calls`, but not a truncation or a
    refusal.
    """
    reason = word if word is None else _STOP_REASONS.read(word)
    return "tool_calls" if calls and reason in (None, "stop") else reason


def write_stop_reason(reason: str | None) -> str:
    """The wire's word; an answer without a reason ended normally."""
    return _STOP_REASONS.write(reason or "stop")


def read_error(value: dict[str, Any]) -> Failed:
    """An error object in the provider's own words."""
    error = value.get("error")
    told: dict[str, Any] = error if isinstance(error, dict) else value
    text = error if isinstance(error, str) else told.get("message")
    code = told.get("type") if told is error else None
    if code is None:
        code = told.get("code")
    said = text if isinstance(text, str) and text else "the endpoint reported an error"
    return Failed(said, None if code is None else str(code), body=value)


def read_stop_details(value: Any) -> list[Warned]:
    """Why the model was stopped, if the endpoint says so."""
    if not isinstance(value, dict):
        return []
    said = [value.get(name) for name in ("category", "explanation")]
    text = ": ".join(part for part in said if isinstance(part, str) and part)
    kind = value.get("type")
    return [Warned(kind if isinstance(kind, str) else "stop_details", text or "no reason given")]


def read_transformations(value: Any) -> list[Warned]:
    """What the endpoint did to the request's thinking blocks before it answered."""
    return [
        Warned(str(row.get("type")), f"{row.get('path')}: {row.get('reason')}")
        for row in (value if isinstance(value, list) else [])
        if isinstance(row, dict)
    ]
