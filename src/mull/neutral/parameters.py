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
    """The parameters that options, requests and received requests have in common."""

    temperature: float | None = None
    """How random the choice of tokens is; most dialects accept 0 to 2, some only 0 to 1."""
    top_p: float | None = None
    """Nucleus sampling: tokens are chosen from the most likely ones that make up this share (0 to
    1).
    """
    top_k: int | None = None
    """Tokens are chosen from this many of the most likely ones."""
    presence_penalty: float | None = None
    """Discourages tokens that have occurred at all; usually -2 to 2."""
    frequency_penalty: float | None = None
    """Discourages tokens in proportion to how often they have occurred; usually -2 to 2."""
    seed: int | None = None
    """A number that makes answers repeatable, as far as the provider supports it."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer where the model writes one of them."""
    parallel_calls: bool | None = None
    """Whether an answer may contain several tool calls."""
    verbosity: str | None = None
    """How long answers should be: `low`, `medium` or `high`."""
    user: str | None = None
    """An id of the end user, for the provider's records."""
    metadata: dict[str, Any] = {}
    """Labels that the provider stores with the request."""
    cache_key: str | None = None
    """A name by which the provider groups requests that share a prompt cache."""


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
