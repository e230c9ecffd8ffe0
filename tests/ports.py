"""Ports for tests: one that a server may take later, and one where nobody will ever listen.

A port that the kernel gave and that was closed again belongs to nobody: any other test may be given
the same one, and so may the near end of any connection. So these are taken from below the range
that the kernel gives from, each process beginning elsewhere.
"""

from __future__ import annotations

import os
import socket
from itertools import count

__all__ = ["closed_port", "free_port"]

_FIRST, _PORTS = 10_000, 22_000
"""Linux gives ports from 32,768 on, others from 49,152 on."""
_numbers = count(os.getpid() * 997)
_held: list[socket.socket] = []


def free_port() -> int:
    """A port of loopback that nobody has, and that no other test is given."""
    while True:
        port = _FIRST + next(_numbers) % _PORTS
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def closed_port() -> int:
    """A port of loopback where nobody listens: it is held until the tests end."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    _held.append(held)
    port: int = held.getsockname()[1]
    return port
