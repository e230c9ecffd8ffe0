"""Where a key can be, and which environment variables hold one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from mull.auth.secret import Secret

__all__ = ["Found", "KeyPlace", "key_variables"]

_KEY_WORDS = frozenset(("KEY", "TOKEN", "PAT"))
_NOT_SENT = frozenset(("SECRET", "SESSION"))


class KeyPlace(Struct, frozen=True):
    """Somewhere a key is; `variable` is the environment variable that holds it. A cloud's login is
    no key: `login` says where it was found."""

    kind: Literal["argument", "environment", "keyring", "file", "login"]
    variable: str | None = None
    login: str | None = None


class Found(Struct, frozen=True):
    """A key and where it came from."""

    key: Secret
    place: KeyPlace


def key_variables(names: Sequence[str]) -> tuple[str, ...]:
    """Those of a provider's variables that hold a key to be sent.

    The catalog lists all that a provider reads: AZURE_RESOURCE_NAME and AWS_REGION are parts of
    an address, AWS_SECRET_ACCESS_KEY signs and is never sent, AWS_SESSION_TOKEN goes with it.
    """
    if len(names) == 1:
        return tuple(names)
    return tuple(name for name in names if _holds_key(name.upper().split("_")))


def _holds_key(words: Sequence[str]) -> bool:
    of_key = bool(_KEY_WORDS.intersection(words)) and words[-1] != "ID"
    return of_key and _NOT_SENT.isdisjoint(words)
