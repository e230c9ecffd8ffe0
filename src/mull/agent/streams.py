"""The events of one turn for whoever asked: iterators that own what they started.

Leaving one, by `break`, an exception, `close` or the end of its block, stops the endpoint at once
and keeps what came as interrupted. Nothing but the caller holds them, so that one that is dropped
ends like one that is closed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TYPE_CHECKING, Self

from mull.agent.results import Result, result_of
from mull.agent.run import Turn
from mull.neutral.events import Event

if TYPE_CHECKING:
    from mull.client.sync import BlockingLoop
    from mull.policy.prepare import Prepared

__all__ = ["AsyncStream", "Stream"]


class AsyncStream:
    """The events of a turn as they happen; `result` is there at any time, whole at the end."""

    def __init__(self, turn: Turn, events: AsyncGenerator[Event, None]) -> None:
        self._turn = turn
        self._events = events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop: the socket is closed and what came is kept as interrupted."""
        await self._events.aclose()

    @property
    def prepared(self) -> Prepared | None:
        """The last request that was made."""
        return self._turn.prepared

    @property
    def result(self) -> Result:
        """What has come so far."""
        return result_of(self._turn)


class Stream:
    """The same for code that blocks."""

    def __init__(
        self, turn: Turn, events: Callable[[], AsyncGenerator[Event, None]], loop: BlockingLoop
    ) -> None:
        self._turn = turn
        self._events = loop.stream(events)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop: the socket is closed and what came is kept as interrupted."""
        if close := getattr(self._events, "close", None):
            close()

    @property
    def result(self) -> Result:
        """What has come so far."""
        return result_of(self._turn)
