"""What the user does before the first session is open, done when it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Early"]


class Early:
    """Actions on the conversation: each is done at once, or waits in order until a session that is
    still loading is open.
    """

    def __init__(self) -> None:
        self.is_loading = False
        self._actions: list[tuple[Callable[[], None], str]] = []

    def begin(self) -> None:
        """A session is about to be loaded."""
        self.is_loading = True

    async def load(self, work: Callable[[], None]) -> None:
        """Do what the first session needs in a thread; keys are processed meanwhile."""
        self.begin()
        try:
            await asyncio.to_thread(work)
        finally:
            self.end()

    def end(self) -> None:
        """From now on actions are done at once; those that wait are done when it is open."""
        self.is_loading = False

    def do(self, action: Callable[[], None], text: str = "") -> None:
        """Do this, or let it wait; the text is what the user has entered."""
        if self.is_loading:
            self._actions.append((action, text))
        else:
            action()

    def opened(self) -> None:
        """Do what has waited."""
        actions, self._actions = self._actions, []
        for action, _ in actions:
            action()

    def clear(self) -> list[str]:
        """Forget what has waited: there will be no session. Returns what was entered."""
        actions, self._actions = self._actions, []
        return [text for _, text in actions if text]
