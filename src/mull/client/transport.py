"""What carries requests: the one method a transport needs, and the values that go through it.

This is public and stable. mull's own transport is `http.HttpClient`; the clients of httpx and
aiohttp become transports in `foreign_httpx` and `foreign_aiohttp`; anything else that has `send`
is one as it is. Retries, time limits and the meaning of a status are mull's part, so a transport
sends each request once and returns what came.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct

__all__ = ["HttpRequest", "HttpResponse", "Transport", "host_of"]


class HttpRequest(Struct, frozen=True):
    """One request. Its headers contain keys, so its `repr` does not show them."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {host_of(self.url)})"


class HttpResponse:
    """A response whose head has arrived. `chunks` are its body, as it arrives.

    If the headers name a content encoding, mull decompresses the chunks: a transport that has done
    so itself leaves that header out.
    """

    status: int
    headers: Mapping[str, str]

    def __init__(
        self, status: int, headers: Mapping[str, str], chunks: AsyncIterable[bytes]
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks

    @property
    def chunks(self) -> AsyncIterable[bytes]:
        """The body, without transfer encoding. It can be read once."""
        return self._chunks

    def __repr__(self) -> str:
        return f"HttpResponse({self.status})"


class Transport(Protocol):
    """Sends requests. Give one to mull as `http_client`."""

    def send(self, request: HttpRequest, /) -> AbstractAsyncContextManager[HttpResponse]:
        """The response to a request, for `async with`: entering sends the request and waits for the
        head of the response; leaving, or being cancelled, ends it at once.

        It follows no redirects, because the next host would get the API key, and does not retry.

        Raises:
            NetworkError: the endpoint cannot be reached, or the connection broke; an `OSError`
                counts as one. mull retries it before the first event.
            UnusableError: another attempt would not help.
        """


@lru_cache(maxsize=256)
def host_of(url: str) -> str:
    """The host and port of an address, as a person may see it: no user, password or query."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2] or "the endpoint"
    except ValueError:
        return "the endpoint"
