"""Every error mull raises on purpose.

    MullError
    ├── LocalError            what was asked cannot be done; nothing was changed
    │   ├── SettingError      a setting's key or value is not allowed (ERR-001)
    │   ├── ConfigError       a file of the user's cannot be read as what it should be
    │   │   └── NoModelError  no model is named anywhere
    │   ├── ProfileError      a profile is missing, damaged or not a profile
    │   ├── SessionError      a session is missing, or cannot be written as asked
    │   │   └── SessionBusy   another process has it open; `pid` says which
    │   ├── CatalogError      model facts are missing, damaged or refused
    │   │   ├── UnknownModel  no such model; `candidates` are close names
    │   │   │   └── UnknownLevel  the model is there, the level behind its name is none
    │   │   └── AmbiguousModel  several providers have it; `candidates` lists them
    │   └── BudgetError       two numbers the user gave cannot both hold
    └── RemoteError           the other side refused or broke off
        ├── NetworkError      it could not be reached, or the connection broke
        │   ├── SilenceError  it sent nothing for too long
        │   └── UnusableError what it says cannot be used: another try would not help
        ├── RefusedError      it answered, and the answer was no
        │   ├── RateLimitError       too many requests: wait for `retry_after`, then ask again
        │   ├── QuotaError           the account is out of credit: waiting does not help
        │   ├── AuthenticationError  the key is wrong, or may not do this
        │   ├── TooLongError         the request is longer than the model can read
        │   ├── ContentFilterError   the provider's filter declined the request
        │   └── ServerError          the problem is on the provider's side
        │       └── OverloadedError  it has no capacity, or took too long
        └── MisfitError       it answered, and the answer does not fit the schema

The text of an error is one or two lines for a person: what happened, why, what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mull.neutral.rate_limit import RateLimit

__all__ = [
    "AmbiguousModel",
    "AuthenticationError",
    "BudgetError",
    "CatalogError",
    "ConfigError",
    "ContentFilterError",
    "LocalError",
    "MisfitError",
    "MullError",
    "NetworkError",
    "NoModelError",
    "OverloadedError",
    "ProfileError",
    "QuotaError",
    "RateLimitError",
    "RefusedError",
    "RemoteError",
    "ServerError",
    "SessionBusy",
    "SessionError",
    "SettingError",
    "SilenceError",
    "TooLongError",
    "UnknownLevel",
    "UnknownModel",
    "UnusableError",
    "UnwritableError",
    "request_id_of",
]


class MullError(Exception):
    """Base of all errors that mull raises on purpose. `exit_status` is the command's."""

    exit_status = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors can be pickled, whatever their arguments are."""
        return _rebuilt, (type(self), self.args, dict(vars(self)))


def _rebuilt(kind: type[MullError], args: tuple[Any, ...], said: dict[str, Any]) -> MullError:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(said)
    return error


class LocalError(MullError):
    """The request cannot be done as asked."""

    exit_status = 2


class SettingError(LocalError):
    """A setting's key or value is not allowed."""


class ConfigError(LocalError):
    """A user's file is invalid or cannot be read."""


class UnwritableError(ConfigError):
    """The disk is full or read-only, or mull may not write there; existing files can be read."""


class NoModelError(ConfigError):
    """No model is given anywhere."""


class ProfileError(LocalError):
    """A profile is missing, damaged, or not a profile."""


class SessionError(LocalError):
    """A session is missing, or cannot be written as asked."""


class SessionBusy(SessionError):
    """Another process has the session open; `pid` is its id, if known."""

    def __init__(self, message: str, pid: int | None = None) -> None:
        super().__init__(message)
        self.pid: int | None = pid


class CatalogError(LocalError):
    """Facts about models are missing, damaged or rejected."""


class _ModelError(CatalogError):
    def __init__(self, message: str, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.candidates: tuple[str, ...] = tuple(candidates)


class UnknownModel(_ModelError):
    """No model has this name; `candidates` contains similar ones."""


class UnknownLevel(UnknownModel):
    """What follows the name of `model` is not a level; `candidates` contains the name with each of
    its levels.
    """

    def __init__(self, message: str, model: str, word: str, levels: Sequence[str]) -> None:
        super().__init__(message, [f"{model}/{level}" for level in levels])
        self.model: str = model
        self.word: str = word


class AmbiguousModel(_ModelError):
    """Several providers offer a model of this name; `candidates` lists them in full."""


class BudgetError(LocalError):
    """A thinking budget from the user is not possible."""


class RemoteError(MullError):
    """The endpoint rejected the request or broke off. `retryable` is whether the same request may
    succeed later.
    """

    retryable: bool = False


class NetworkError(RemoteError):
    """The endpoint could not be reached, or the connection broke."""

    exit_status = 5
    retryable = True


class SilenceError(NetworkError):
    """The endpoint sent nothing for too long. It may still be working on the request, so it is not
    retried: that could be paid twice.
    """

    retryable = False


class UnusableError(NetworkError):
    """The endpoint was reached, but its response cannot be used: a retry would not help."""

    retryable = False


class RefusedError(RemoteError):
    """The endpoint responded with an error. `text` and `code` are its own words.

    `status` is that of its response; inside a stream, where there is none, it is what the code
    stands for. `headers` are those of its response, without secrets; `request_id` is its id of the
    request, `retry_after` the seconds it asks to wait, and `rate_limit` what is left of the
    account's limits, if it says so. Its subclasses say what it is about.
    """

    exit_status = 3

    def __init__(  # noqa: PLR0913 - what a response says, by keyword
        self,
        message: str,
        *,
        status: int,
        text: str = "",
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        rate_limit: RateLimit | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.status: int = status
        self.text: str = text
        self.code: str | None = code
        self.headers: dict[str, str] = dict(headers or {})
        self.retry_after: float | None = retry_after
        self.rate_limit: RateLimit | None = rate_limit
        self.retryable: bool = retryable

    @property
    def request_id(self) -> str | None:
        """The endpoint's id of the request, for questions to its support."""
        return request_id_of(self.headers)


class RateLimitError(RefusedError):
    """Too many requests or tokens in a short time."""


class QuotaError(RefusedError):
    """The account is out of credit, or a quota of a day or longer is used up."""


class AuthenticationError(RefusedError):
    """The key is missing or not accepted, or it lacks permission for this."""


class ContentFilterError(RefusedError):
    """The provider's content filter declined the request."""


class ServerError(RefusedError):
    """The provider failed to process the request."""


class OverloadedError(ServerError):
    """The provider has no capacity at the moment, or took too long."""


class TooLongError(RefusedError):
    """The endpoint says that the request is too long; `overflow` is what it says about its limits
    (`mull.policy.lengths.Overflow`), None if the request is far below those of the model.
    """

    def __init__(self, message: str, *, overflow: Any = None, **said: Any) -> None:
        super().__init__(message, **said)
        self.overflow: Any = overflow


class MisfitError(RemoteError):
    """The answer does not match its schema, nor did a second one; or the model declined to give
    one, or it was cut off. `text` is the last answer as it came.
    """

    exit_status = 6

    def __init__(self, message: str, text: str = "") -> None:
        super().__init__(message)
        self.text: str = text


_REQUEST_IDS = ("request-id", "x-request-id", "x-ms-request-id", "x-amzn-requestid", "cf-ray")


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The endpoint's id of a request, from the headers of its response."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
