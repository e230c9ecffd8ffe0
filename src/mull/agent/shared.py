"""The shared engine and event loop of conversations that have none of their own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from mull.agent.engine import Engine

if TYPE_CHECKING:
    from mull.client.sync import BlockingLoop

__all__ = ["engine", "loop"]


@cache
def engine() -> Engine:
    """The shared engine."""
    return Engine()


@cache
def loop() -> BlockingLoop:
    """The event loop of the blocking methods."""
    from mull.client.sync import BlockingLoop

    return BlockingLoop()
