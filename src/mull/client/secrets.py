"""What was sent as a secret, and texts without it: an endpoint may quote what it was sent."""

from __future__ import annotations

from typing import Any

from mull.auth.static import MASK
from mull.neutral.patterns import pattern

__all__ = ["scrub", "secrets_in"]

_SECRET = pattern(r"\S{8,}")


def secrets_in(headers: dict[str, str]) -> tuple[str, ...]:
    """What must never be shown of these headers, longest first."""
    found = {word for value in headers.values() for word in _SECRET.findall(value)}
    return tuple(sorted(found, key=len, reverse=True))


def scrub(value: Any, secrets: tuple[str, ...]) -> Any:
    """The value without the secrets, wherever in it they are."""
    match value:
        case str():
            for secret in secrets:
                value = value.replace(secret, MASK)
            return value
        case dict():
            return {scrub(k, secrets): scrub(v, secrets) for k, v in value.items()}
        case list():
            return [scrub(item, secrets) for item in value]
        case _:
            return value
