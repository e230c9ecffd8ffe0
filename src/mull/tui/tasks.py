"""What runs for a conversation: one task at a time, and short ones beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

__all__ = ["Tasks", "Work"]

Work: TypeAlias = Coroutine[Any, Any, None]


class Tasks:
    """The running tasks. `guard` runs the work of each and is told whether it is a turn; `ended` is
    called when the main one has ended and no other has taken its place, as a command does that
    starts a turn.
    """

    def __init__(self, guard: Callable[[Work, bool], Work], ended: Callable[[], None]) -> None:
        self.is_turn = False
        """Whether the main task is a turn of the model."""
        self._guard = guard
        self._ended = ended
        self._main: asyncio.Task[None] | None = None
        self._beside: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether there is a main task."""
        return self._main is not None

    def start(self, work: Work, *, beside: bool = False, is_turn: bool = False) -> None:
        """Do this as the main task, or beside whatever else is running."""
        task = asyncio.get_running_loop().create_task(self._guard(work, is_turn))
        task.add_done_callback(lambda _: work.close())  # it may be cancelled before it starts
        if beside:
            self._beside.add(task)
            task.add_done_callback(self._beside.discard)
        else:
            self._main, self.is_turn = task, is_turn
            task.add_done_callback(self._done)

    def stop(self) -> None:
        """Cancel the main task."""
        if self._main is not None:
            self._main.cancel()

    def stop_beside(self) -> None:
        """Cancel the others."""
        for task in self._beside:
            task.cancel()

    async def wait(self) -> None:
        """Return when nothing is running."""
        while self._main is not None or self._beside:
            await asyncio.wait({*self._beside, *([self._main] if self._main else [])})
            await asyncio.sleep(0)

    def _done(self, task: asyncio.Task[None]) -> None:
        if self._main is task:
            self._main = None
            self._ended()
