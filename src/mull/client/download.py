"""Fetches one public file: a plain GET without any key, bounded in size and in time.

Only the standard library's urllib is used, because this runs once in a while and must not make
anything else heavier. Redirects are followed to http and https only.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from mull._version import __version__
from mull.client.certificates import Trust
from mull.neutral.errors import ConfigError, RemoteError

__all__ = ["download"]

_PIECE = 64 * 1024


class _HttpOnly(urllib.request.HTTPRedirectHandler):
    """urllib would follow a redirect to ftp."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not _is_http(newurl):
            fp.close()
            raise RemoteError(f"{req.host} redirects to {newurl!r}, which is not a web address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(url: str, limit_bytes: int, timeout: float) -> bytes:
    """The body at `url`, at most `limit_bytes` of it, within `timeout` seconds in all.

    Raises:
        ConfigError: it is not an http or https address, or the certificates cannot be read.
        RemoteError: it cannot be reached, refuses, is too large or too slow.
    """
    if not _is_http(url):
        raise ConfigError(f"{url!r} is not an http or https address")
    request = urllib.request.Request(url, headers={"User-Agent": f"mull/{__version__}"})
    host = urlsplit(url).netloc.rpartition("@")[2]
    try:
        trusting = urllib.request.HTTPSHandler(context=Trust().for_endpoint())
        opener = urllib.request.build_opener(_HttpOnly, trusting)
        with opener.open(request, timeout=timeout) as response:
            return _body(response, host, limit_bytes, time.monotonic() + timeout)
    except urllib.error.HTTPError as error:
        error.close()
        reason = str(error.reason).partition("\n")[0]
        raise RemoteError(f"{host} answered {error.code} {reason}") from None
    except TimeoutError:
        raise _too_slow(host) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(cause, TimeoutError):
            raise _too_slow(host) from None
        told = str(cause).strip() or type(cause).__name__
        raise RemoteError(f"{host} cannot be reached: {told}") from None


def _body(response: Any, host: str, limit: int, until: float) -> bytes:
    told = response.length
    pieces: list[bytes] = []
    size = 0
    while piece := response.read1(_PIECE):
        size += len(piece)
        if size > limit:
            raise RemoteError(f"the response of {host} is larger than {limit:,} bytes")
        if time.monotonic() > until:  # the socket's own timeout starts anew with every byte
            raise _too_slow(host)
        pieces.append(piece)
    if told is not None and size < told:
        raise RemoteError(f"{host} broke off after {size:,} of {told:,} bytes")
    return b"".join(pieces)


def _too_slow(host: str) -> RemoteError:
    return RemoteError(f"{host} took too long to answer")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)
