"""A question in progress: what has arrived, what it cost, and where it is stored."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from mull.cli.draw import Kept
from mull.neutral.errors import LocalError, MisfitError
from mull.store.sessions.sqlite import this_folder

if TYPE_CHECKING:
    from mull.agent.given import Said
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.streams import AsyncStream
    from mull.agent.structured import Shape
    from mull.cli.draw import Show
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

    @property
    def is_untold(self) -> bool:
        """Whether nothing was sent yet."""
        return self._stream is None

    def begin(self, session: Session, said: Said) -> None:
        """Ask; an answer that does not match the schema is asked for again once."""
        self._stream = session.submit(said, schema=self.shape)

    async def listen(self) -> None:
        """Show the answer as it arrives.

        Raises:
            MisfitError: it does not match the schema either time.
        """
        assert self._stream is not None
        assert self.show is not None
        clock = asyncio.get_running_loop().create_task(_tick(self.show))
        try:
            async with self._stream as stream:
                async for event in stream:
                    self.show.event(event)
        except MisfitError as misfit:
            if self.session is None or not self._is_saved:
                raise
            shown = f"`mull sessions show {self.session.info.id}` shows what it answered"
            raise MisfitError(f"{misfit}; {shown}") from None
        finally:
            clock.cancel()

    @property
    def kept(self) -> Kept:
        """The answer so far."""
        session = self.session
        result = self._stream.result if self._stream else None
        return Kept(
            result=result,
            session=session.info.id if session and self._is_saved and result else None,
            model=session.target.name if session else None,
            value=self._plain_value(result),
            cost=result.cost if result else None,
            seconds=round(time.monotonic() - self._since, 3),
            request_id=result.request_id if result else None,
        )

    def _plain_value(self, result: Result | None) -> Any:
        if self.shape is None or result is None or result.value is None:
            return None
        return self.shape.plain(result.value)

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
