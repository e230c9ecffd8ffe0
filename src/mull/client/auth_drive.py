"""Does what login flows ask for: sends their requests, waits, and holds sessions until they age.

Only the standard library's urllib is used: a login happens once, a session every half hour.
Redirects are not followed, because urllib would take the token along to wherever they lead.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from msgspec.structs import replace

from mull.auth.flow import Flow, HttpReply, HttpRequest, Session, Show, Wait
from mull.auth.logins import LOGINS
from mull.auth.secret import Secret
from mull.client.access import Access
from mull.client.certificates import Trust
from mull.neutral.errors import NetworkError, RemoteError

__all__ = ["Send", "Sessions", "drive", "send"]

_T = TypeVar("_T")
Send = Callable[[HttpRequest], HttpReply]

_TIMEOUT = 30.0
_LONGEST = 1_000_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def send(request: HttpRequest, timeout: float = _TIMEOUT) -> HttpReply:
    """Send one request; any status is an answer.

    Raises:
        NetworkError: no answer came.
        RemoteError: the answer is too large to be one.
    """
    host = urlsplit(request.url).netloc
    prepared = urllib.request.Request(
        request.url, request.body, dict(request.headers), method=request.method
    )
    try:
        with _open(prepared, timeout) as response:
            body = response.read(_LONGEST + 1)
            status = response.status
    except (OSError, http.client.HTTPException, ValueError) as error:
        # a ValueError of http.client would quote the header it does not like
        raise NetworkError(f"{host} cannot be reached: {_reason(error)}") from None
    if len(body) > _LONGEST:
        raise RemoteError(f"the response of {host} is larger than {_LONGEST:,} bytes")
    return HttpReply(status, body, time.time())


def _open(request: urllib.request.Request, timeout: float) -> Any:
    try:
        trusting = urllib.request.HTTPSHandler(context=Trust().for_endpoint())
        return urllib.request.build_opener(_NoRedirect, trusting).open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        return error


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return "it took too long to answer"
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return type(cause).__name__


def drive(
    flow: Flow[_T],
    *,
    show: Callable[[Show], None],
    send: Send = send,
    wait: Callable[[float], None] = time.sleep,
) -> _T:
    """Run a flow to its end.

    Raises:
        RemoteError: the flow ends in one.
    """
    try:
        step = next(flow)
        while True:
            reply = None
            if isinstance(step, Show):
                show(step)
            elif isinstance(step, Wait):
                wait(step.seconds)
            else:
                try:
                    reply = send(step)
                except NetworkError as error:
                    step = flow.throw(error)
                    continue
            step = flow.send(reply)
    except StopIteration as end:
        value: _T = end.value
        return value


class Sessions:
    """The sessions of this process. Safe to use from several threads."""

    def __init__(self, send: Send = send, clock: Callable[[], float] = time.time) -> None:
        self._send = send
        self._clock = clock
        self._lock = threading.Lock()
        self._held: dict[tuple[str, Secret], Session] = {}

    def enter(self, way: Access) -> Access:
        """The way with a session's token in place of a login's key; others are as they were.

        Blocks while a session is fetched.

        Raises:
            RefusedError: the login is no longer good.
            RemoteError: the provider cannot be reached or is not understood.
        """
        if way.login is None or way.key is None:
            return way
        at = (way.login, way.key)
        with self._lock:
            flow = LOGINS[way.login]().session(way.key, self._held.get(at), self._clock())
            session = drive(flow, show=_nothing, send=self._send)
            self._held[at] = session
        base_url = way.base_url
        if session.api is not None and _is_default(base_url, session.api):
            base_url = session.api
        return replace(way, key=session.token, base_url=base_url, login=None)

    def forget(self, way: Access) -> None:
        """Fetch a new session next time: the token was refused before its time."""
        if way.login is not None and way.key is not None:
            with self._lock:
                self._held.pop((way.login, way.key), None)


def _nothing(step: Show) -> None:
    """A session is fetched without a person."""


def _is_default(base_url: str, api: str) -> bool:
    """Whether the session's address is the same service as the one in use, for this account:
    api.githubcopilot.com becomes api.individual.githubcopilot.com, a proxy stays as it is."""
    ours, theirs = urlsplit(base_url).hostname or "", urlsplit(api).hostname or ""
    name, _, domain = ours.partition(".")
    return theirs.startswith(f"{name}.") and theirs.endswith(f".{domain}")
