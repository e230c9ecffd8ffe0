"""Who may come in: names that this server is called by, and tokens of its clients.

Without tokens the gateway listens on loopback alone, and still checks by which name it was called:
a page in a browser can have any name lead here.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256

from mull.neutral.blocks import Value
from mull.neutral.errors import RefusedError

__all__ = ["Door", "Token", "hashed", "token_in"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d+)?")
_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


class Token(Value, frozen=True):
    """What a client shows, known by its hash alone."""

    name: str
    hash: str


def hashed(token: str) -> str:
    """What is stored of a token. It is random and long, so that no salt is needed."""
    return sha256(token.encode()).hexdigest()


def token_in(headers: Mapping[str, str], query: Mapping[str, list[str]]) -> str | None:
    """The token that a request shows, in whichever place its client puts a key."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and value:
        return value.strip()
    for name in _HEADERS:
        if headers.get(name):
            return headers[name]
    return next(iter(query.get("key", ())), None)


class Door:
    """Lets requests in, or says why not."""

    def __init__(self, tokens: tuple[Token, ...] = (), hosts: tuple[str, ...] = ()) -> None:
        self._tokens = tokens
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Check the name that this server is called by.

        Raises:
            RefusedError: it is a foreign one.
        """
        found = _HOST.fullmatch(headers.get("host", ""))
        host = found[1].strip("[]").lower() if found else ""
        if host not in self._hosts:
            raise _refused(403, f"this server is not called {host[:100]!r}: name it in hosts")

    def enter(self, headers: Mapping[str, str], query: Mapping[str, list[str]]) -> Token | None:
        """The client's token; None where none is needed.

        Raises:
            RefusedError: the token is missing or unknown.
        """
        if not self._tokens:
            return None
        shown = token_in(headers, query)
        if shown is None:
            raise _refused(401, "a token is needed: ask whoever runs this gateway for one")
        mine = hashed(shown)
        for token in self._tokens:
            if hmac.compare_digest(token.hash, mine):
                return token
        raise _refused(401, "this token is not known here, or was revoked")


def _refused(status: int, text: str) -> RefusedError:
    return RefusedError(text, status=status, text=text)
