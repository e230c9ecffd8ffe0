"""Closes connections that were opened and then say nothing.

The server below counts time from the first bytes of a request; a connection without any would
stay for good. The kernel knows how much each has sent (`TCP_INFO`, Linux).
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
"""Bytes of the shortest request, `GET / HTTP/1.0` and two line ends."""
_FILES = "/proc/self/fd"
_TIMES, _COUNTS = 44, 120  # where tcpi_last_data_sent and tcpi_bytes_acked stand
_LENGTH = 136


def close_silent(port: int, seconds: float) -> int:
    """Close what was accepted on this port and has sent less than a request for so long; how many
    others were accepted there."""
    if sys.platform != "linux":
        return 0
    return sum(_stays(int(name), port, seconds) for name in os.listdir(_FILES))


def _stays(number: int, port: int, seconds: float) -> bool:
    """Whether this file is such a connection, and stays open."""
    try:
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            return False
        one = socket.socket(fileno=os.dup(number))  # stays the same, whoever closes the other
    except OSError:  # it was closed just now
        return False
    with one, suppress(OSError):
        if one.family not in (socket.AF_INET, socket.AF_INET6) or one.getsockname()[1] != port:
            return False
        one.getpeername()  # what listens has none
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
