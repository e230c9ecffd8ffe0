"""The parameters of a request that shape its answer or tell whom it is for, in neutral form.

Each dialect names those that it knows, and where they stand in its body, in the `parameters` of
its traits. What is None or empty is not said.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from mull.neutral.blocks import Value

__all__ = ["PARAMETERS", "SAMPLING", "ParameterName", "Parameters", "is_said"]

ParameterName: TypeAlias = Literal[
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "stop",
    "parallel_calls",
    "verbosity",
    "user",
    "metadata",
    "cache_key",
]
PARAMETERS: tuple[ParameterName, ...] = get_args(ParameterName)
SAMPLING: tuple[ParameterName, ...] = PARAMETERS[:5]
"""How the next token is chosen: a model that refuses one of these refuses them all."""


class Parameters(Value, frozen=True, kw_only=True):
    """What options, requests and questions have in common.

    `stop` are texts that end the answer, `parallel_calls` says whether it may hold several calls.
    `user` and `metadata` are for the provider's records, `cache_key` for its cache of prompts.
    """

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    parallel_calls: bool | None = None
    verbosity: str | None = None
    user: str | None = None
    metadata: dict[str, Any] = {}
    cache_key: str | None = None


def is_said(value: object) -> bool:
    """Whether a parameter has a value."""
    return value is not None and value not in ((), {})
