"""Closes connections that send no request.

The HTTP server starts its timeout at the first bytes of a request, so a connection that sends
nothing would stay open forever. The kernel reports how much each connection has sent (`TCP_INFO`,
Linux).
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from contextlib import suppress

__all__ = ["close_silent"]

_LEAST = 18
"""The length of the shortest request, `GET / HTTP/1.0` and two line ends."""
_FILES = "/proc/self/fd"
_TIMES, _COUNTS = 44, 120  # offsets of tcpi_last_data_sent and tcpi_bytes_acked
_LENGTH = 136


def close_silent(port: int, seconds: float) -> int:
    """Close the connections on this port that have not sent a request within `seconds`; return the
    number of other connections on the port."""
    if sys.platform != "linux":
        return 0
    return sum(_stays(int(name), port, seconds) for name in os.listdir(_FILES))


def _stays(number: int, port: int, seconds: float) -> bool:
    """Whether this file descriptor is a connection on the port that stays open."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return False
        # A duplicate stays valid if the server closes the original.
        one = socket.socket(fileno=os.dup(number))
    except OSError:  # it was closed in the meantime
        return False
    with one, suppress(OSError):
        if one.family not in (socket.AF_INET, socket.AF_INET6) or one.getsockname()[1] != port:
            return False
        one.getpeername()  # raises for a listening socket
        if not _is_silent(one, seconds):
            return True
        one.shutdown(socket.SHUT_RDWR)
    return False


def _is_silent(one: socket.socket, seconds: float) -> bool:
    info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    if len(info) < _LENGTH:  # an old kernel
        return False
    silent: int = struct.unpack_from("=4I", info, _TIMES)[2]
    received: int = struct.unpack_from("=2Q", info, _COUNTS)[1]
    return received < _LEAST and silent >= seconds * 1_000
