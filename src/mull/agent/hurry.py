"""Ends thinking early: on request, or at its time limit.

If the endpoint has a call for that, the stream continues with the answer. Otherwise the stream is
stopped, unless there is a reason to let it continue (`mull.agent.hurry_plan`). What was done is
reported (`mull.neutral.events.Hurried`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from mull.agent.hurry_plan import ABOUT
from mull.agent.turn import Cause, ThoughtStopped
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    Hurried,
    Started,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

__all__ = ["ASKED_SERVER", "ENDED_BY_SERVER", "Hurry", "Refuse"]

ASKED_SERVER = "asking the server to end the thinking"
ENDED_BY_SERVER = "the server ended the thinking"
LAST_WORD = 1.0
"""Seconds that the end of an answer waits for the server's reply about ending its thinking."""

Refuse: TypeAlias = Callable[[Cause], str | None]
"""Why a stream is not stopped for this cause, "" for no message; None if it is stopped."""


def _never(cause: Cause) -> None:
    return None


def _unheard(event: Hurried) -> None:
    pass


class Hurry:
    """Watches one answer. `now` may be called at any time; outside thinking it does nothing."""

    def __init__(
        self,
        seconds: float | None = None,
        control: Callable[[str], Coroutine[Any, Any, bool]] | None = None,
        refuse: Refuse = _never,
        tell: Callable[[Hurried], None] = _unheard,
    ) -> None:
        self._seconds = seconds
        self._control = control
        self._refuse = refuse
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._id: str | None = None
        self._thought = 0
        self._granted = 0
        self._thinking = self._ending = False
        self._stopped: Cause | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._asking: set[asyncio.Task[None]] = set()
        self._scope: asyncio.Timeout | None = None
        self._refused: set[Cause] = set()

    def now(self, cause: Cause = "hurried") -> bool:
        """End the thinking, or say why it continues; False if there is none."""
        if not self._thinking or self._ending:
            return self._thinking
        self._ending = True
        if self._control is not None and self._id is not None and self._granted != self._thought:
            self._tell(Hurried(ABOUT[cause], "asked", ASKED_SERVER))
            task = self._loop.create_task(self._ask_server(self._control, self._id, cause))
            self._asking.add(task)
        else:
            self._stop(cause)
        return True

    @asynccontextmanager
    async def watch(self) -> AsyncGenerator[None, None]:
        """The time in which the answer arrives, until its thinking is stopped.

        Raises:
            ThoughtStopped: the thinking was stopped, and the stream with it.
        """
        try:
            async with asyncio.timeout(None) as self._scope:
                yield
                if self._asking:  # the server may still reply
                    await asyncio.wait(self._asking, timeout=LAST_WORD)
        except TimeoutError:
            if self._stopped is None:
                raise
            raise ThoughtStopped(self._stopped) from None
        finally:
            self._scope = None
            self._end_thought()
            for task in self._asking:
                task.cancel()

    def take(self, events: Sequence[Event]) -> None:
        """Note whether thinking starts or ends."""
        for event in events:
            if isinstance(event, ThinkingDelta):
                if not self._thinking:
                    self._begin_thought()
            elif isinstance(event, TextDelta | ToolCallDelta | Finished | Failed):
                self._end_thought()
            elif isinstance(event, Started):
                self._id = event.id or self._id

    def _begin_thought(self) -> None:
        self._thinking = True
        self._thought += 1
        if self._seconds is not None:
            self._timer = self._loop.call_later(self._seconds, self.now, "overdue")

    def _end_thought(self) -> None:
        """The thinking has ended; it no longer needs to be stopped."""
        self._thinking = self._ending = False
        if self._stopped is not None and self._scope is not None:
            self._scope.reschedule(None)
        self._stopped = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _ask_server(
        self, control: Callable[[str], Coroutine[Any, Any, bool]], answer: str, cause: Cause
    ) -> None:
        thought = self._thought
        if await control(answer):
            self._tell(Hurried(ABOUT[cause], "server", ENDED_BY_SERVER))
            if thought == self._thought:  # if it continues, asking again stops it
                self._granted, self._ending = thought, False
            return
        self._control = None
        if self._thinking and thought == self._thought:  # it may have ended by itself meanwhile
            self._stop(cause)

    def _stop(self, cause: Cause) -> None:
        why = self._refuse(cause)
        if why is None:
            self._stopped = cause
            if self._scope is not None:
                self._scope.reschedule(self._loop.time())
            return
        self._ending = False
        if why and cause not in self._refused:
            self._tell(Hurried(ABOUT[cause], "left", why))
        self._refused.add(cause)
