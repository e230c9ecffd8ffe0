"""The parameters of a request that shape its answer or identify its user, in neutral form.

The `parameters` in the traits of a dialect list those that it supports and their places in its
body. A parameter that is None or empty is not set.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Literal, TypeAlias, get_args

from mull.neutral.blocks import Value

__all__ = ["NUCLEUS", "PARAMETERS", "SAMPLING", "ParameterName", "Parameters", "is_said", "said_in"]

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
"""Sampling parameters: a model that rejects one of these rejects them all."""
NUCLEUS: tuple[ParameterName, ...] = PARAMETERS[:2]
"""Those that some models accept while they do not think."""


class Parameters(Value, frozen=True, kw_only=True):
    """The parameters that options, requests and received requests have in common.

    `stop` holds texts that end the answer, `parallel_calls` says whether the answer may contain
    several calls. `user` and `metadata` are for the provider's records, `cache_key` is for its
    prompt cache.
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


_values = attrgetter(*PARAMETERS)
_UNSAID = _values(Parameters())


def said_in(parameters: Parameters) -> dict[ParameterName, Any]:
    """The parameters that are set, in their order."""
    values = _values(parameters)
    if values == _UNSAID:  # as in most requests
        return {}
    pairs = zip(PARAMETERS, values, strict=True)
    return {name: value for name, value in pairs if is_said(value)}


def is_said(value: object) -> bool:
    """Whether a parameter is set."""
    return value is not None and value not in ((), {})
