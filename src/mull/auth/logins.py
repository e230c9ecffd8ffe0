"""The providers whose key is a login, and what each login can do. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from mull.auth import copilot
from mull.auth.flow import Flow, LoggedIn, Session
from mull.auth.secret import Secret
from mull.neutral.messages import Message

__all__ = ["LOGINS", "Login"]


class Login(Struct, frozen=True):
    """The flows of one provider and the headers of its requests."""

    log_in: Callable[[], Flow[LoggedIn]]
    session: Callable[[Secret, Session | None, float], Flow[Session]]
    request_headers: Callable[[Sequence[Message]], dict[str, str]]


LOGINS: Mapping[str, Login] = {
    "github-copilot": Login(copilot.log_in, copilot.session, copilot.request_headers),
}
