"""What another HTTP library raises, in mull's errors.

Libraries wrap what happened several times, and some quote addresses, whose user and password are
nobody's business: so the operating system's own word is taken if there is one, and from any other
text what stands before an @ in an address is left out.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

from mull.client.connection import say_error, untrusted
from mull.neutral.errors import NetworkError, UnusableError

__all__ = ["cannot_connect", "connection_broke"]

_LOGIN = re.compile(r"(?<=://)[^\s/@]*@")


def cannot_connect(name: str, error: BaseException) -> NetworkError:
    """The error for a connection that could not be made."""
    for cause in _causes(error):
        if not hasattr(cause, "reason"):  # aiohttp's own are of the same types, and empty
            continue
        if isinstance(cause, ssl.SSLCertVerificationError):
            return untrusted(name, cause)
        if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
            return UnusableError(f"cannot speak TLS with {name}: {say_error(cause)}")
    return NetworkError(f"cannot connect to {name}: {_why(error)}")


def connection_broke(name: str, error: BaseException) -> NetworkError:
    """The error for a connection that broke."""
    return NetworkError(f"the connection to {name} broke: {_why(error)}")


def _why(error: BaseException) -> str:
    known = [cause for cause in _causes(error) if isinstance(cause, OSError) and cause.errno]
    if known:
        return _LOGIN.sub("", say_error(known[-1]))
    return _LOGIN.sub("", str(error)).strip() or type(error).__name__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it, the first cause last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        error = inner or error.__cause__ or error.__context__
