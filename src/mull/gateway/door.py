"""Who may come in: names that this server is called by, pages that may call it, tokens of clients.

Without tokens the gateway listens on loopback alone, and still checks by which name it was called
and from which page: a page in a browser can have any name lead here, and send to any address.
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
    """What a request shows, in all places where clients put a key. Some fill several of them, and
    not all with a key that is meant for this server."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and value.strip():
        yield value.strip()
    for name in _HEADERS:
        if headers.get(name):
            yield headers[name]
    yield from query.get("key", ())[:1]


class Door:
    """Lets requests in, or says why not. `origins` are the pages that may call; `*` stands for all.
    Where a token `is_needed` nobody comes in without, even while there is none."""

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
        """From now on the server is called by these names, and those that it always has, and
        these pages may call it."""
        self._hosts = _LOOPBACK | {host.lower() for host in hosts}
        self._origins = frozenset(origin.lower().rstrip("/") for origin in origins)

    async def refresh(self) -> None:
        """Have the tokens be those of now."""
        await self._keyring.refresh()

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Check the name that this server is called by.

        Raises:
            RefusedError: it is a foreign one.
        """
        found = _HOST.fullmatch(headers.get("host", ""))
        host = found[1].strip("[]").lower() if found else ""
        if host not in self._hosts:
            raise _refused(403, f"this server is not called {host[:100]!r}: name it in hosts")

    def check_origin(self, headers: Mapping[str, str]) -> str | None:
        """The page that calls, where it may read what it is answered; None where no page does, or
        it is one of this server's own.

        Raises:
            RefusedError: pages from there may not call.
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
            403, f"pages of {origin[:100]!r} may not call this server: name it in origins"
        )

    def enter(
        self, headers: Mapping[str, str], query: Mapping[str, list[str]], address: str = ""
    ) -> ClientToken | None:
        """The client's token; None where none is needed. `address` is where the request is from:
        wrong tokens from one address are soon answered by a request to wait.

        Raises:
            RefusedError: the token is missing, unknown, revoked or expired.
        """
        if not self._keyring.known:
            text = "the client tokens cannot be read now: try again soon"
            raise RefusedError(text, status=503, text=text, retry_after=2)
        if not self._keyring and not self._is_needed:
            return None
        found = [self._keyring.find(shown) for shown in tokens_in(headers, query)]
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
    """Counts failed attempts of each address in the current minute, of the last addresses."""

    _MOST = 20
    _ADDRESSES = 10_000

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def add(self, address: str) -> int | None:
        """Count one more; seconds to wait where they are too many."""
        minute, second = divmod(int(self._clock()), 60)
        then, count = self._counts.pop(address, (minute, 0))
        count = count + 1 if then == minute else 1
        self._counts[address] = minute, count
        if len(self._counts) > self._ADDRESSES:
            self._counts.popitem(last=False)
        return 60 - second if count > self._MOST else None


def _why(found: Sequence[ClientToken | None]) -> str:
    if not found:
        return "a token is needed: ask whoever runs this gateway for one"
    token = next(filter(None, found), None)
    if token is None:
        return "this token is not known here"
    return "this token was revoked" if token.revoked is not None else "this token has expired"


def _refused(status: int, text: str) -> RefusedError:
    return RefusedError(text, status=status, text=text)
