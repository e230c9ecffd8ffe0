"""What a login is made of, without doing any of it.

A flow is a generator that yields steps and is sent what came of them: for an HttpRequest the
HttpReply, for Wait and Show nothing. It knows no clock; each reply says when it came. Whoever
drives it does the waiting and the sending, and throws in a NetworkError where nothing came back.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from mull.auth.secret import Secret
from mull.neutral.errors import RemoteError

__all__ = [
    "Flow",
    "HttpReply",
    "HttpRequest",
    "LoggedIn",
    "Session",
    "Show",
    "Step",
    "Wait",
    "ask",
    "json_of",
]

_T = TypeVar("_T")


class HttpRequest(Struct, frozen=True):
    """A request to send. Its headers and body may hold secrets, so its repr has neither."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.url})"


class HttpReply(Struct, frozen=True):
    """What came back, and when: `at` is in seconds since 1970."""

    status: int
    body: bytes
    at: float

    def __repr__(self) -> str:
        return f"HttpReply({self.status}, {len(self.body)} bytes)"


class Wait(Struct, frozen=True):
    """Wait so many seconds before going on."""

    seconds: float


class Show(Struct, frozen=True):
    """Show the person the code to enter at the address, within so many seconds."""

    code: str
    url: str
    seconds: float


Step: TypeAlias = HttpRequest | Wait | Show
Flow: TypeAlias = Generator[Step, HttpReply | None, _T]


class Session(Struct, frozen=True):
    """A short-lived token, when to fetch the next, and the address it is for."""

    token: Secret
    refresh_at: float
    api: str | None = None

    def is_fresh(self, now: float) -> bool:
        """Whether it can be used without fetching a new one."""
        return now < self.refresh_at


class LoggedIn(Struct, frozen=True):
    """The outcome of a login: the key to store, and a first session that proves it."""

    key: Secret
    session: Session


def ask(request: HttpRequest) -> Flow[HttpReply]:
    """Send one request and get its reply."""
    reply = yield request
    if reply is None:
        raise TypeError("a flow was not sent the reply to its request")
    return reply


def json_of(reply: HttpReply, who: str) -> dict[str, Any]:
    """The JSON object in a reply.

    Raises:
        RemoteError: it holds anything else.
    """
    try:
        return msgspec.json.decode(reply.body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RemoteError(
            f"{who} answered {reply.status} with something other than JSON: try again later"
        ) from None
