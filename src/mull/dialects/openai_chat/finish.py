"""Why an answer ended: the many words servers have for it, and the errors they send instead."""

from __future__ import annotations

from typing import Any

import msgspec

from mull.dialects.tables import Statuses, Words
from mull.neutral.events import Failed
from mull.neutral.messages import Status

__all__ = ["BROKEN", "STATUSES", "as_error", "broken", "stop_reason", "write_stop_reason"]

_WORDS = Words(
    ("stop", "stop"),
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("eos", "stop"),
    ("eos_token", "stop"),
    ("tool_calls", "tool_calls"),
    ("tool_call", "tool_calls"),
    ("tool_use", "tool_calls"),
    ("function_call", "tool_calls"),
    ("length", "length"),
    ("max_tokens", "length"),
    ("max_output_tokens", "length"),
    ("model_length", "length"),
    ("model_context_window_exceeded", "length"),
    ("content_filter", "content_filter"),
    ("safety", "content_filter"),
    ("sensitive", "content_filter"),
    ("refusal", "refusal"),
)
STATUSES = Statuses(
    (400, "invalid_request_error"),
    (401, "invalid_api_key"),
    (401, "authentication_error"),
    (402, "insufficient_quota"),
    (403, "permission_denied"),
    (404, "model_not_found"),
    (404, "not_found"),
    (413, "request_too_large"),
    (413, "context_length_exceeded"),
    (429, "rate_limit_exceeded"),
    (429, "rate_limit_error"),
    (500, "server_error"),
    (503, "overloaded"),
    (529, "overloaded"),
    other="server_error",
)
BROKEN = frozenset({"error", "network_error", "insufficient_system_resource", "abort"})
"""Words for an answer that the server could not finish."""

_CUT = frozenset({"length", "content_filter", "refusal"})
"""Reasons that apply even if there are calls: the last of them may be cut off."""


def stop_reason(word: str | None, *, calls: bool, refused: bool) -> str | None:
    """The canonical reason; a provider's own word if there is none."""
    reason = _WORDS.read(word.lower().replace("-", "_"), word) if word else None
    if refused and reason in (None, "stop"):
        return "refusal"
    if calls and reason not in _CUT:
        # Some servers say `stop`, or an empty word, despite calls (microclaw/microclaw#230).
        return "tool_calls"
    return reason


def write_stop_reason(reason: str | None, *, refused: bool) -> str:
    """The wire's word; with a refusal in its own field the answer ends as usual."""
    if reason == "refusal":
        return "stop" if refused else "content_filter"
    return _WORDS.write(reason or "stop")


def broken(word: str) -> Failed:
    """The end of an answer that the server says it could not finish."""
    status: Status = "error" if word == "error" else "interrupted"
    return Failed(f"the provider ended the answer early: {word}", word, status)


def as_error(value: dict[str, Any], event: str | None = None) -> Failed | None:
    """The error that a chunk or response contains instead of an answer, or beside it."""
    error = value.get("error")
    if not error:
        error = _unwrapped(value, event)
    if not error:
        return None
    if not isinstance(error, dict):
        return Failed(str(error), None, body=value)
    text = error.get("message") or error.get("detail") or error.get("msg")
    if quoted := _quoted(error.get("metadata")):
        text = f"{text}: {quoted}"
    code = error.get("code")
    if code is None or code == "":
        code = error.get("type")
    return Failed(
        text if isinstance(text, str) else str(text or error),
        None if code is None else str(code),
        body=value,
    )


def _quoted(metadata: Any) -> str | None:
    """What the provider behind OpenRouter said, of which the message says only that it is an error
    (OpenRouterTeam/ai-sdk-provider#418)."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str):
        return None
    try:
        value = msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return raw
    said = as_error(value) if isinstance(value, dict) else None
    return raw if said is None else said.text


def _unwrapped(value: dict[str, Any], event: str | None) -> Any:
    """Errors that are not under `error`: named by the stream, by vLLM, MiniMax or FastAPI."""
    if event == "error" or value.get("object") == "error":
        return value
    if value.get("choices"):
        return None
    state = value.get("base_resp")
    if isinstance(state, dict) and state.get("status_code"):
        return {"message": state.get("status_msg"), "code": state["status_code"]}
    return None if "choices" in value else value.get("detail")
