"""What happens in a turn, told to everybody who wants to know, each on its own.

A subscriber is called on the event loop with the events that came together, in their order, and
returns at once. Whoever may take longer has an `Inbox`: it is filled as fast as events come and
emptied as fast as its owner reads, so that a slow reader holds up nobody. A subscriber that raises
is left out from then on: that is logged, and the turn goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mull.agent.tools.tool import explain
from mull.logs import log_warning
from mull.neutral.events import Event

__all__ = ["Hub", "Inbox", "Subscriber"]

Subscriber: TypeAlias = Callable[[Sequence[Event]], None]


class Hub:
    """The subscribers of one turn, in the order in which they are told."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def add(self, subscriber: Subscriber) -> None:
        """Tell one more from now on."""
        self._subscribers.append(subscriber)

    def publish(self, events: Sequence[Event]) -> None:
        """Tell everybody. Only on the turn's own event loop."""
        for subscriber in self._subscribers if events else ():
            try:
                subscriber(events)
            except Exception as error:
                self._leave_out(subscriber, error)

    def _leave_out(self, subscriber: Subscriber, error: Exception) -> None:
        self._subscribers = [one for one in self._subscribers if one is not subscriber]
        log_warning(f"a subscriber failed and is told nothing more: {explain(error)}")


class Inbox(deque[Event]):
    """Events that wait for one reader, who may wait for them."""

    _waiting: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether its reader waits right now."""
        return self._waiting is not None

    def put(self, events: Sequence[Event]) -> None:
        """Take events in: a subscriber of a hub."""
        self.extend(events)
        self.wake()

    def wake(self, _: object = None) -> None:
        """Let the reader look again."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self) -> None:
        """Return when `put` or `wake` was called."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
