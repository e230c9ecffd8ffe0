"""Error responses for clients: the status, the message, and when to retry."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from mull.dialects.serving import write_failure
from mull.gateway.http import TooLarge, TooSlow
from mull.gateway.too_long import told_too_long
from mull.neutral.errors import (
    CatalogError,
    LocalError,
    MullError,
    NetworkError,
    RefusedError,
    SilenceError,
)
from mull.neutral.events import Failed
from mull.neutral.messages import Dialect

__all__ = ["Refusal", "refusal_of"]

BAD_REQUEST, NOT_FOUND, SERVER_ERROR, BAD_GATEWAY, TIMED_OUT = 400, 404, 500, 502, 504
SLOW, TOO_LARGE = 408, 413
_ERRORS = range(400, 600)
_KEPT = ("retry-after", "retry-after-ms", "x-should-retry")
_SOUND = re.compile(r"[\w ,:.+-]{1,64}", re.ASCII)
"""A number, a date or a word: the values that are passed on in retry headers."""


class Refusal(NamedTuple):
    """An error response in a client's dialect."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


def refusal_of(error: BaseException, dialect: Dialect, source: Dialect | None = None) -> Refusal:
    """The error in the client's dialect. A provider's message is passed on unchanged, because
    clients parse such messages to repair their requests. Only a message about length is reworded:
    clients recognise one wording of it."""
    match error:
        case RefusedError() if error.status not in _ERRORS:  # such as a redirect or a web page
            status, text = BAD_GATEWAY, str(error)
        case RefusedError():
            failed = told_too_long(error, dialect) or Failed(error.text or str(error), error.code)
            status, body = write_failure(failed, dialect, error.status, source)
            return Refusal(status, body, _retry_headers(error))
        case SilenceError():
            status, text = TIMED_OUT, str(error)
        case NetworkError():
            status, text = BAD_GATEWAY, str(error)
        case TooLarge():
            status, text = TOO_LARGE, str(error)
        case TooSlow():
            status, text = SLOW, str(error)
        case CatalogError():
            status, text = NOT_FOUND, str(error)
        case LocalError():
            status, text = BAD_REQUEST, str(error)
        case MullError():
            status, text = BAD_GATEWAY, str(error)
        case _:
            status, text = SERVER_ERROR, "the gateway failed with an internal error: see its log"
    return Refusal(*write_failure(Failed(text), dialect, status))


def _retry_headers(error: RefusedError) -> tuple[tuple[str, str], ...]:
    kept = {
        name: value
        for name in _KEPT
        if (value := error.headers.get(name)) is not None and _SOUND.fullmatch(value)
    }
    if "retry-after" not in kept and error.retry_after is not None:
        kept["retry-after"] = str(math.ceil(error.retry_after))
    return tuple(kept.items())
