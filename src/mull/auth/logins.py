"""The providers whose key is a login, and what each login can do. Nothing else lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from mull.auth.secret import Secret
from mull.neutral.messages import Message

if TYPE_CHECKING:
    from mull.auth.flow import Flow, LoggedIn, Session

__all__ = ["LOGINS", "Login"]


class Login(Struct, frozen=True):
    """The flows of one provider and the headers of its requests."""

    log_in: Callable[[], Flow[LoggedIn]]
    session: Callable[[Secret, Session | None, float], Flow[Session]]
    request_headers: Callable[[Sequence[Message]], dict[str, str]]


def _copilot() -> Login:
    from mull.auth import copilot

    return Login(copilot.log_in, copilot.session, copilot.request_headers)


LOGINS: Mapping[str, Callable[[], Login]] = {"github-copilot": _copilot}
