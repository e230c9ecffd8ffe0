"""generateContent as a server offers it, under the versions that its SDKs use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mull.dialects.surface import Listed, Path, Surface, TooLong
from mull.dialects.writer import encode

__all__ = ["SURFACE"]

_METHODS = ("generateContent", "streamGenerateContent", "countTokens")
_MODELS = r"/v1(?:beta|alpha)?/models"


def _model(one: Listed) -> dict[str, Any]:
    limits = {"inputTokenLimit": one.window, "outputTokenLimit": one.output}
    return {
        "name": f"models/{one.name}",
        "displayName": one.label or one.name,
        "supportedGenerationMethods": [*_METHODS],
        "thinking": True,
        **{name: value for name, value in limits.items() if value},
    }


def _models(models: Sequence[Listed]) -> bytes:
    return encode({"models": [_model(one) for one in models]})


def _as_list(query: Mapping[str, Sequence[str]]) -> bool:
    return list(query.get("alt", ())) != ["sse"]


SURFACE = Surface(
    paths=(
        Path(
            "POST", _MODELS + r"/(?P<name>.+):(?:generateContent|streamGenerateContent)", "answer"
        ),
        Path("POST", _MODELS + r"/(?P<name>.+):countTokens", "count"),
        Path("GET", _MODELS, "models"),
        Path("GET", _MODELS + r"/(?P<name>[^:]+)", "model"),
    ),
    header="x-goog-api-key",
    write_count=lambda tokens: encode({"totalTokens": tokens}),
    write_models=_models,
    write_model=lambda one: encode(_model(one)),
    as_list=_as_list,
    too_long=TooLong(
        None,
        "The input token count ({held}) exceeds the maximum number of tokens allowed ({limit}).",
    ),
)
