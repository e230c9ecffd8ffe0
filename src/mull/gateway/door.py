"""Checks whether a request is allowed: by its Host header, its Origin header and its token.

Without tokens, the gateway listens only on loopback. It still checks Host and Origin, because any
web page can send requests to loopback, and can make its own host name resolve to loopback.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from mull.gateway.keyring import Keyring
from mull.gateway.tokens import ClientToken
from mull.neutral.errors import RefusedError

__all__ = ["Door", "tokens_in"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d+)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(.+)", re.IGNORECASE)
_HEADERS = ("x-api-key", "x-goog-api-key", "api-key")


def tokens_in(headers: Mapping[str, str], query: Mapping[str, list[str]]) -> Iterator[str]:
    """The tokens in a request, from all places where clients put a key. Some clients use several
    of them, not all with a key for this server."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and value.strip():
        yield value.strip()
    for name in _HEADERS:
        if headers.get(name):
            yield headers[name]
    yield from query.get("key", ())[:1]


class Door:
    """Checks requests. `hosts` are the names of this server, besides those of loopback. `origins`
    are the web origins that may send requests; `*` allows all. If a token `is_needed`, requests
    without one are rejected even while no token exists."""

    def __init__(
        self,
        tokens: Keyring | Iterable[ClientToken] = (),
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        *,
        is_needed: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._keyring = tokens if isinstance(tokens, Keyring) else Keyring(tokens=tokens)
        self.answer_to(hosts, origins)
        self._is_needed = is_needed
        self._clock = clock
        self._failures = _Failures(clock)

    def answer_to(self, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        """Accept these host names, besides those of loopback, and these web origins."""
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def refresh(self) -> None:
        """Read the tokens again if they may have changed."""
        await self._keyring.refresh()

    @property
    def is_open(self) -> bool:
        """Whether anybody can be let in: not before the tokens were read."""
        return self._keyring.known

    @property
    def is_failing(self) -> bool:
        """Whether the tokens could not be read the last time."""
        return self._keyring.is_failing

    def recognizes(
        self, headers: Mapping[str, str], query: Mapping[str, list[str]], address: str = ""
    ) -> bool:
        """Whether a client would be let in. One that shows no token is not counted as an attempt:
        a health check shows none."""
        if next(tokens_in(headers, query), None) is None:
            return self.is_open and not self._keyring and not self._is_needed
        try:
            self.enter(headers, query, address)
        except RefusedError:
            return False
        return True

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Check the Host header.

        Raises:
            RefusedError: it names another server.
        """
        if not self.knows_host(headers):
            host = _host_in(headers)[:100]
            raise _refused(403, f"unknown host {host!r}: add it to the gateway's hosts")

    def knows_host(self, headers: Mapping[str, str]) -> bool:
        """Whether the Host header names this server."""
        return _host_in(headers) in self._hosts

    def check_origin(self, headers: Mapping[str, str]) -> str | None:
        """The origin to name in the CORS headers of the response; None if the request comes from
        no web page, or from one of this server.

        Raises:
            RefusedError: this origin is not allowed.
        """
        origin = headers.get("origin")
        if origin is None:
            return None
        if origin.lower() in self._origins or "*" in self._origins:
            return origin
        found = _ORIGIN.fullmatch(origin)
        if found is not None and found[1].lower() == headers.get("host", "").lower():
            return None
        raise _refused(
            403, f"origin {origin[:100]!r} is not allowed: add it to the gateway's origins"
        )

    def enter(
        self, headers: Mapping[str, str], query: Mapping[str, list[str]], address: str = ""
    ) -> ClientToken | None:
        """The client's token; None if none is needed. `address` is the client's IP address:
        invalid tokens from one address are rate-limited.

        Raises:
            RefusedError: the token is missing, unknown, revoked or expired.
        """
        if not self._keyring.known:
            text = "the client tokens cannot be read at the moment: try again in 2 s"
            raise RefusedError(text, status=503, text=text, retry_after=2)
        if not self._keyring and not self._is_needed:
            return None
        found = [self._keyring.find(text) for text in tokens_in(headers, query)]
        now = self._clock()
        for token in found:
            if token is not None and token.is_valid(now):
                return token
        wait = self._failures.add(address)
        if wait is not None:
            text = f"too many requests without a valid token: try again in {wait} s"
            raise RefusedError(text, status=429, text=text, retry_after=wait)
        raise _refused(401, _why(found))


class _Failures:
    """Counts the failed attempts of the most recent addresses in the current minute."""

    _MOST = 20
    _ADDRESSES = 10_000

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def add(self, address: str) -> int | None:
        """Count a failed attempt; return how many seconds to wait if there were too many."""
        minute, second = divmod(int(self._clock()), 60)
        then, count = self._counts.pop(address, (minute, 0))
        count = count + 1 if then == minute else 1
        self._counts[address] = minute, count
        if len(self._counts) > self._ADDRESSES:
            self._counts.popitem(last=False)
        return 60 - second if count > self._MOST else None


def _why(found: Sequence[ClientToken | None]) -> str:
    if not found:
        return "a token is required: ask the operator of this gateway for one"
    token = next(filter(None, found), None)
    if token is None:
        return "unknown token: ask the operator of this gateway for a valid one"
    return "this token was revoked" if token.revoked is not None else "this token has expired"


def _host_in(headers: Mapping[str, str]) -> str:
    found = _HOST.fullmatch(headers.get("host", ""))
    return found[1].strip("[]").lower() if found else ""


def _refused(status: int, text: str) -> RefusedError:
    return RefusedError(text, status=status, text=text)
