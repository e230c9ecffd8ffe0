"""Ends a thought before the model does: when somebody asks for it, or when its time is up.

Where the endpoint has a call for that, the stream goes on and the answer follows. Elsewhere the
stream is stopped, what came is kept, and the answer is asked for with thinking off. Which of the
two it was is told in the notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from typing import Any

from mull.neutral.events import Event, Started, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.messages import Message
from mull.policy.reasoning import thinking_to_reasoning_field

__all__ = ["ASK_NOW", "ENDED_BY_SERVER", "STOPPED", "Hurried", "Hurry", "ask_now"]

ASK_NOW = "Stop thinking and answer now."
ENDED_BY_SERVER = "the thought was ended by the server's own call"
STOPPED = "the thought was stopped, and the answer asked for with thinking off"


class Hurried(Exception):
    """The stream was stopped in the middle of a thought."""


class Hurry:
    """Watches one answer. `now` may be called at any time; outside a thought it does nothing."""

    def __init__(
        self,
        seconds: float | None = None,
        control: Callable[[str], Coroutine[Any, Any, bool]] | None = None,
    ) -> None:
        self._seconds = seconds
        self._control = control
        self._loop = asyncio.get_running_loop()
        self._id: str | None = None
        self._thinking = False
        self._due = False
        self._stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[Any] | None = None
        self._waiting: asyncio.Timeout | None = None
        self.ended_by_server = False

    def now(self) -> bool:
        """End the thought; False if there is none to end."""
        if not self._thinking or self._due:
            return self._due
        self._due = True
        if self._control is not None and self._id is not None:
            self._asking = self._loop.create_task(self._ask_server(self._control, self._id))
        else:
            self._stop()
        return True

    async def watch(self, events: AsyncIterator[Event]) -> AsyncGenerator[Event, None]:
        """The events, until a thought is stopped.

        Raises:
            Hurried: the thought was stopped, and the stream with it.
        """
        try:
            while not self._stopped:
                try:
                    async with asyncio.timeout(None) as self._waiting:
                        event = await anext(events)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    break
                finally:
                    self._waiting = None
                self._take(event)
                yield event
            raise Hurried
        finally:
            self._end_thought()
            if self._asking is not None:
                self._asking.cancel()

    def _take(self, event: Event) -> None:
        if isinstance(event, Started):
            self._id = event.id or self._id
        elif isinstance(event, ThinkingDelta) and not self._thinking:
            self._thinking = True
            if self._seconds is not None:
                self._timer = self._loop.call_later(self._seconds, self.now)
        elif isinstance(event, TextDelta | ToolCallDelta):
            self._end_thought()

    def _end_thought(self) -> None:
        self._thinking = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _ask_server(
        self, control: Callable[[str], Coroutine[Any, Any, bool]], answer: str
    ) -> None:
        self.ended_by_server = await control(answer)
        if not self.ended_by_server and self._thinking:  # it may have ended by itself meanwhile
            self._stop()

    def _stop(self) -> None:
        self._stopped = True
        if self._waiting is not None:
            self._waiting.reschedule(self._loop.time())


def ask_now(unfinished: Message) -> str:
    """What the model is told after its thought was stopped, with what it had thought so far."""
    thought = thinking_to_reasoning_field(unfinished.thinking)
    if not thought or not thought.strip():
        return ASK_NOW
    return f"{ASK_NOW} Your thoughts so far:\n\n{thought.strip()}"
