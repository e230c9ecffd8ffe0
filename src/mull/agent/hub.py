"""Publishes the events of a turn to any number of independent subscribers.

A subscriber is called on the event loop with the events that arrived together, in order, and must
return immediately. A slower one uses an `Inbox`, which is filled as events arrive and emptied as
its owner reads, so that a slow reader delays nobody. A subscriber that raises is dropped: that is
logged, and the turn continues.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from mull.logs import log_warning
from mull.neutral.events import Event

__all__ = ["Hub", "Inbox", "Subscriber"]

Subscriber: TypeAlias = Callable[[Sequence[Event]], None]


class Hub:
    """The subscribers of one turn, in order."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def add(self, subscriber: Subscriber) -> None:
        """Add a subscriber."""
        self._subscribers.append(subscriber)

    def publish(self, events: Sequence[Event]) -> None:
        """Publish to everybody. Call it only on the turn's event loop."""
        for subscriber in self._subscribers if events else ():
            try:
                subscriber(events)
            except Exception as error:
                self._leave_out(subscriber, error)

    def _leave_out(self, subscriber: Subscriber, error: Exception) -> None:
        self._subscribers = [one for one in self._subscribers if one is not subscriber]
        from mull.agent.tools.tool import explain

        log_warning(f"a subscriber failed and receives no more events: {explain(error)}")


class Inbox(deque[Event]):
    """A queue of events for one reader, who may wait for them."""

    _waiting: asyncio.Future[None] | None = None

    @property
    def is_awaited(self) -> bool:
        """Whether its reader is waiting now."""
        return self._waiting is not None

    def put(self, events: Sequence[Event]) -> None:
        """Add events: a subscriber of a hub."""
        self.extend(events)
        self.wake()

    def wake(self, _: object = None) -> None:
        """Wake the reader."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def wait(self) -> None:
        """Return when `put` or `wake` is called."""
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None
