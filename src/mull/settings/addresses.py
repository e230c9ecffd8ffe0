"""Addresses that hold a key, as they may be stored and shown: with the name of a variable instead.

`https://HOST/KEY/v1` becomes `https://HOST/${BASE_URL_KEY}/v1`. Whoever goes on with such an
address has to set that variable or give the address again, and is told so.
"""

from __future__ import annotations

from mull.neutral.patterns import pattern
from mull.settings.words import looks_secret

__all__ = ["ADDRESS_KEY", "hidden_key", "is_secret_pair", "is_secret_part", "without_secrets"]

ADDRESS_KEY = "BASE_URL_KEY"
_RANDOM = pattern(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[A-Za-z0-9_~.-]{20,}")
_WORD = pattern(r"[a-z]+|[A-Z]?[a-z]+|[A-Z]+|v?\d{1,4}|[a-z0-9]{1,3}")
_BETWEEN = pattern(r"[_~.-]")
_HIDDEN = "${" + ADDRESS_KEY + "}"
_SECRET_NAME = pattern(r"(?i)key|token|secret|sig|auth|passw|credential|code")


def without_secrets(url: str) -> str:
    """The address without login and fragment, and with a variable in place of each part of its path
    and query that looks like a key."""
    scheme, slashes, rest = url.partition("://")
    if not slashes:
        return url
    bare, asked, query = rest.partition("#")[0].partition("?")
    host, *parts = bare.split("/")
    kept = [_HIDDEN if is_secret_part(part) else part for part in parts]
    pairs = "&".join(map(_hidden_value, query.split("&"))) if asked else ""
    return f"{scheme}://{'/'.join((host.rpartition('@')[2], *kept))}{asked}{pairs}"


def hidden_key(stored: str | None) -> str | None:
    """What to tell the user if an address was stored without the key that it holds."""
    if ADDRESS_KEY not in (stored or ""):
        return None
    return (
        f"the base URL contains what looks like a key; it is stored as {stored}: give it again, "
        f"or set {ADDRESS_KEY}, to continue later"
    )


def _hidden_value(pair: str) -> str:
    name, given, value = pair.partition("=")
    is_secret = is_secret_pair(name, value)
    return f"{name if given else 'key'}={_HIDDEN}" if is_secret else pair


def is_secret_pair(name: str, value: str) -> bool:
    """Whether a part of a query looks like a key, by its name or its value."""
    return bool(_SECRET_NAME.search(name)) or is_secret_part(value) or is_secret_part(name)


def is_secret_part(part: str) -> bool:
    """Whether a part of a path looks like a key: a known shape, or long, mixed and no words."""
    if "${" in part:
        return False
    if looks_secret(part):
        return True
    return _RANDOM.fullmatch(part) is not None and not _are_words(part)


def _are_words(text: str) -> bool:
    """Whether it is made of words and short numbers: `my-team-2024-reports` is no key."""
    return all(_WORD.fullmatch(part) for part in _BETWEEN.split(text))
