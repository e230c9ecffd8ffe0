"""The server surface of the Responses API; the Chat Completions surface lists its models."""

from __future__ import annotations

from mull.dialects.surface import Path, Surface, TooLong
from mull.dialects.writer import encode

__all__ = ["SURFACE"]

SURFACE = Surface(
    paths=(
        Path("POST", r"(?:/v1)?/responses", "respond"),
        Path("POST", r"(?:/v1)?/responses/compact", "compact"),
        Path("POST", r"(?:/v1)?/responses/input_tokens", "respond_count"),
        Path("GET", r"(?:/v1)?/responses/(?P<name>[\w-]+)", "response"),
        Path("DELETE", r"(?:/v1)?/responses/(?P<name>[\w-]+)", "response"),
        Path("GET", r"(?:/v1)?/responses/(?P<name>[\w-]+)/input_items", "items"),
        Path("POST", r"(?:/v1)?/responses/(?P<name>[\w-]+)/cancel", "cancel"),
    ),
    header=None,
    write_count=lambda tokens: encode({"object": "response.input_tokens", "input_tokens": tokens}),
    write_models=lambda models: b"",
    write_model=lambda one: b"",
    too_long=TooLong(
        "context_length_exceeded",
        "This model's maximum context length is {limit} tokens. However, your messages resulted in"
        " {held} tokens. Please reduce the length of the messages.",
    ),
)
