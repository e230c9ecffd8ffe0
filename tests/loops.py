"""An event loop whose time only a test moves, with real sockets: nothing waits for its timeouts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any


class MovedLoop(asyncio.SelectorEventLoop):
    """However long a machine takes, no limit is reached unless time is moved there."""

    moved = 0.0

    def time(self) -> float:
        return self.moved

    async def advance(self, seconds: float) -> None:
        """Move time and let everything that is due then happen."""
        self.moved += seconds
        for _ in range(5):
            await asyncio.sleep(0)


def run_moved(make: Callable[[MovedLoop], Coroutine[Any, Any, Any]]) -> Any:
    with asyncio.Runner(loop_factory=MovedLoop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, MovedLoop)
        return runner.run(make(loop))


async def until(condition: Callable[[], object]) -> None:
    """Wait for what happens elsewhere."""
    while not condition():
        await asyncio.to_thread(time.sleep, 0.002)


class FakeClock:
    """A clock for exchanges: sleeping takes no time and is written down."""

    def __init__(self, rand: float = 0.5) -> None:
        self.time = 1_000.0
        self.slept: list[float] = []
        self._rand = rand

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return 1_800_000_000 + self.time

    def rand(self) -> float:
        return self._rand

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
