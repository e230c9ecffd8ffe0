"""The Messages API as a server offers it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from mull.dialects.surface import Listed, Path, Surface, TooLong
from mull.dialects.writer import encode

__all__ = ["SURFACE"]


def _model(one: Listed) -> dict[str, Any]:
    created = datetime.fromtimestamp(one.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    limits = {"max_input_tokens": one.window, "max_tokens": one.output}
    return {
        "type": "model",
        "id": one.name,
        "display_name": one.label or one.name,
        "created_at": created,
        **{name: value for name, value in limits.items() if value},
    }


def _models(models: Sequence[Listed]) -> bytes:
    names = [one.name for one in models]
    first, last = (names[0], names[-1]) if names else (None, None)
    listed = [_model(one) for one in models]
    return encode({"data": listed, "has_more": False, "first_id": first, "last_id": last})


SURFACE = Surface(
    paths=(
        Path("POST", r"(?:/v1)?/messages", "answer"),
        Path("POST", r"(?:/v1)?/messages/count_tokens", "count"),
        Path("GET", r"(?:/v1)?/models", "models"),
        Path("GET", r"(?:/v1)?/models/(?P<name>.+)", "model"),
    ),
    header="anthropic-version",
    write_count=lambda tokens: encode({"input_tokens": tokens}),
    write_models=_models,
    write_model=lambda one: encode(_model(one)),
    too_long=TooLong(
        "invalid_request_error",
        "prompt is too long: {held} tokens > {limit} maximum",
        "input length and `max_tokens` exceed context limit: {held} + {asked} > {limit}, decrease"
        " input length or `max_tokens` and try again",
        "prompt is too long: ",
    ),
    budget_status=402,
)
