"""A session of aiohttp as a transport.

Its connector, proxies, certificates, cookies and tracing apply as they are set. A timeout that
somebody has set applies as well; the default, five minutes for the whole response, does not: models
think longer. Redirects are not followed whatever the session would do. A session belongs to the
event loop that it was created on, so blocking calls cannot use one.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from mull.client.connection import running_loop
from mull.client.foreign_errors import cannot_connect, connection_broke
from mull.client.http import CONNECT_SECONDS, USER_AGENT
from mull.client.transport import HttpRequest, HttpResponse, host_of
from mull.neutral.errors import ConfigError, LocalError, NetworkError, SilenceError, UnusableError

__all__ = ["AiohttpTransport"]


class AiohttpTransport:
    """Sends through a `ClientSession`, which is not closed."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._package: Any = sys.modules["aiohttp"]

    @asynccontextmanager
    async def send(self, request: HttpRequest, /) -> AsyncGenerator[HttpResponse, None]:
        """The response to a request.

        Raises:
            LocalError: the session is closed, or belongs to another event loop.
            NetworkError: the endpoint cannot be reached.
        """
        self._check_usable()
        with self._errors(request):
            response = await self._session.request(
                request.method,
                sys.modules["yarl"].URL(request.url, encoded=True),
                headers=self._headers(request),
                data=request.body or None,
                timeout=self._timeout(),
                allow_redirects=False,
                raise_for_status=False,
            )
        try:
            headers = _joined(response.headers)
            if self._session.auto_decompress:
                headers.pop("content-encoding", None)
            yield HttpResponse(response.status, headers, self._pieces(request, response))
        finally:
            response.close()

    async def _pieces(self, request: HttpRequest, response: Any) -> AsyncIterator[bytes]:
        with self._errors(request):
            async for piece in response.content.iter_any():
                yield piece

    def _headers(self, request: HttpRequest) -> dict[str, str]:
        mine = {"accept-encoding": "identity"}
        if "user-agent" not in self._session.headers:
            mine["user-agent"] = USER_AGENT
        return {**mine, **request.headers}

    def _timeout(self) -> Any:
        make, own = self._package.ClientTimeout, self._session.timeout
        usual = self._package.client.DEFAULT_TIMEOUT
        return make(total=None, sock_connect=CONNECT_SECONDS) if own == usual else own

    def _check_usable(self) -> None:
        if self._session.closed:
            raise LocalError("the http_client was closed: give one that is open")
        if getattr(self._session, "_loop", None) is not running_loop():
            raise LocalError(
                "an aiohttp session can only be used on the event loop that it was created on: use"
                " the asynchronous functions there; for blocking calls, give an httpx.AsyncClient"
            )

    @contextmanager
    def _errors(self, request: HttpRequest) -> Iterator[None]:
        name, package = host_of(request.url), self._package
        try:
            yield
        except (package.InvalidURL, package.NonHttpUrlClientError):
            raise ConfigError(f"the http_client cannot send to {name}") from None
        except package.SocketTimeoutError:
            raise SilenceError(
                f"{name} sent nothing for too long by the timeout of the http_client"
            ) from None
        except package.ClientHttpProxyError as error:
            said = f"cannot connect to {name}: the proxy answered {error.status}"
            raise NetworkError(said) from None
        except package.ClientResponseError:  # its text would quote the address
            said = f"the connection to {name} broke: its response is not HTTP"
            raise UnusableError(said) from None
        except (package.ClientConnectorError, package.ConnectionTimeoutError) as error:
            raise cannot_connect(name, error) from None
        except package.ClientError as error:
            raise connection_broke(name, error) from None
        except TimeoutError:
            said = f"{name} was not finished in time by the timeout of the http_client"
            raise NetworkError(said) from None
        except ValueError as error:
            if "AUTHORIZATION" not in str(error):
                raise
            raise ConfigError(
                f"the http_client has credentials of its own for {name} (auth= or .netrc), which"
                " cannot be sent beside the API key: give one without them"
            ) from None


def _joined(headers: Any) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, text in headers.items():
        low = name.lower()
        joined[low] = f"{joined[low]}, {text}" if low in joined else text
    return joined
