"""How hard a property is tried: a multiple of what MULL_EXAMPLES asks for."""

from __future__ import annotations

from hypothesis import settings


def tried(times: float) -> settings:
    return settings(max_examples=max(5, round(times * settings().max_examples)))
