"""A question in progress: what has arrived, what it cost, and where it is stored."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mull.cli.draw import Kept, Show
from mull.neutral.errors import LocalError, MisfitError
from mull.neutral.events import Started
from mull.store.sessions.sqlite import this_folder

if TYPE_CHECKING:
    from mull.agent.given import Said
    from mull.agent.session import Session
    from mull.agent.streams import AsyncStream
    from mull.agent.structured import Shape
    from mull.neutral.messages import Message
    from mull.store.sessions.values import SessionStore

__all__ = ["Asking"]

_TICK = 0.125
"""Seconds between updates of the clock."""


async def _tick(show: Show) -> None:
    while True:
        await asyncio.sleep(_TICK)
        show.tick()


class Asking:
    """One question until it is answered; `show` displays the answer for as long as necessary."""

    def __init__(self, *, is_saved: bool, show: Show | None) -> None:
        self.show = show
        self.shape: Shape | None = None
        self.store: SessionStore | None = None
        self.session: Session | None = None
        self._is_saved = is_saved
        self._since = time.monotonic()
        self._stream: AsyncStream | None = None
        self._answers: list[Message] = []
        self._value: Any = None
        self._request_id: str | None = None

    @property
    def is_untold(self) -> bool:
        """Whether nothing was sent yet."""
        return self._stream is None

    def begin(self, session: Session, said: Said) -> None:
        """Ask; earlier messages stay."""
        if self._stream is not None:
            self._answers += self._stream.result.messages
        self._stream = session.submit(said)

    async def listen(self) -> None:
        """Show the answer as it arrives."""
        assert self._stream is not None
        assert self.show is not None
        clock = asyncio.get_running_loop().create_task(_tick(self.show))
        try:
            async with self._stream as stream:
                async for event in stream:
                    if isinstance(event, Started) and event.request_id is not None:
                        self._request_id = event.request_id
                    self.show.event(event)
        finally:
            clock.cancel()

    async def settle(self, shape: Shape) -> None:
        """Parse the answered value; ask again once if it does not match the schema.

        Raises:
            MisfitError: it does not match either time.
        """
        assert self._stream is not None
        assert self.session is not None
        assert self.show is not None
        result = self._stream.result
        if result.status in ("interrupted", "error"):
            return
        try:
            value = shape.read(result.message)
        except MisfitError as misfit:
            self.show.corrected(f"{misfit}; asking again")
            self.begin(self.session, shape.correction(result.message, misfit))
            await self.listen()
            result = self._stream.result
            if result.status in ("interrupted", "error"):
                return
            value = self._read_again(shape, result.message)
        self._value = shape.plain(value)
        self.session.take(shape.receipt(result.message))

    def _read_again(self, shape: Shape, message: Message) -> Any:
        try:
            return shape.read(message)
        except MisfitError as misfit:
            told = f"{misfit} (asked twice"
            if self.session is not None and self._is_saved:
                told += f"; `mull sessions show {self.session.info.id}` shows both answers"
            raise MisfitError(f"{told})") from None

    @property
    def kept(self) -> Kept:
        """The answer so far."""
        session = self.session
        result = self._stream.result if self._stream else None
        return Kept(
            result=result,
            session=session.info.id if session and self._is_saved and result else None,
            model=session.target.name if session else None,
            value=self._value,
            cost=self._cost(),
            seconds=round(time.monotonic() - self._since, 3),
            request_id=self._request_id,
        )

    def _cost(self) -> float | None:
        """The cost of all answers in dollars; None if it is unknown."""
        if self._stream is None or self.session is None:
            return None
        from mull.policy.cost import add_costs, cost_of

        prices = self.session.target.facts.cost
        said = (*self._answers, *self._stream.result.messages)
        costs = [cost_of(one.usage, prices) for one in said if one.role == "assistant"]
        total = add_costs(costs)
        return None if total.unknown or not costs else total.known

    def left(self) -> str:
        """What remains of an interrupted answer, and how to continue."""
        if not self._is_saved:
            return "nothing is stored (--no-save)"
        if self.session is None or self.store is None:
            return ""
        info = self.session.info
        try:
            _, records = self.store.load(info.id)
        except LocalError:
            return ""
        if len(records) < len(self.session.log):  # what could not be saved was reported
            return ""
        is_last = info.folder == this_folder() and info.kind == "ask"
        said = self.session.log.messages[-1:]
        kept = "the question" if said and said[0].is_spoken else "what arrived"
        return f"{kept} is stored (mull ask {'--continue' if is_last else f'--session {info.id}'})"
