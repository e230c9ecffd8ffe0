"""Chat Completions as a server offers it, with the list of models of all of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mull.dialects.surface import Listed, Path, Surface, TooLong
from mull.dialects.writer import encode

__all__ = ["SURFACE"]


def _model(one: Listed) -> dict[str, Any]:
    # context_length is OpenRouter's name, max_model_len vLLM's: clients look for either
    window = {"context_length": one.window, "max_model_len": one.window} if one.window else {}
    return {
        "id": one.name,
        "object": "model",
        "created": one.created,
        "owned_by": one.owner or "mull",
        **window,
    }


def _models(models: Sequence[Listed]) -> bytes:
    return encode({"object": "list", "data": [_model(one) for one in models]})


SURFACE = Surface(
    paths=(
        Path("POST", r"(?:/v1)?/chat/completions", "answer"),
        Path("GET", r"(?:/v1)?/models", "models"),
        Path("GET", r"(?:/v1)?/models/(?P<name>.+)", "model"),
    ),
    header=None,
    write_count=lambda tokens: encode({"input_tokens": tokens}),
    write_models=_models,
    write_model=lambda one: encode(_model(one)),
    too_long=TooLong(
        "context_length_exceeded",
        "This model's maximum context length is {limit} tokens. However, your messages resulted in"
        " {held} tokens. Please reduce the length of the messages.",
    ),
)
