"""What conversations share that were given none of their own: an engine, and a loop to block on."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mull.agent.engine import Engine

if TYPE_CHECKING:
    from mull.client.sync import BlockingLoop

__all__ = ["engine", "loop"]


@cache
def engine() -> Engine:
    """The engine of everything that is not given one of its own."""
    return Engine()


@cache
def loop() -> BlockingLoop:
    """The event loop of the names that block."""
    from mull.client.sync import BlockingLoop

    return BlockingLoop()
