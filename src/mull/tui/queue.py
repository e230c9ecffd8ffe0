"""Messages typed while the model works: sent with the next tool results, or after the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.neutral.messages import Message
    from mull.tui.screen.painter import Painter

__all__ = ["Queue", "Waiting"]


class Waiting:
    """One message; `steers` if it is sent with tool results."""

    def __init__(self, text: str, *, steers: bool = False) -> None:
        self.text = text
        self.steers = steers
        self.message: Message | None = None
        """What the session has of it."""

    @property
    def shown(self) -> str:
        """It, above the input line."""
        return f"{'next' if self.steers else 'queued'}: {self.text}"


class Queue:
    """The messages in order, shown by a painter."""

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self._waiting: list[Waiting] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, waiting: Waiting) -> bool:
        return waiting in self._waiting

    def add(self, waiting: Waiting) -> None:
        """Queue a message."""
        self._waiting.append(waiting)
        self._show()

    def sent(self) -> None:
        """The oldest that the session has was sent with tool results."""
        for waiting in self._waiting:
            if waiting.message is not None:
                self._waiting.remove(waiting)
                self._painter.said(waiting.message)
                break
        self._show()

    def take_last(self, session: Session | None) -> str:
        """The text of the last message, removed; the session keeps the others it has."""
        taken = self._waiting.pop()
        if taken.message is not None and session is not None:
            session.take_back()
            for waiting in self._waiting:
                if waiting.message is not None:
                    session.steer(waiting.message)
        self._show()
        return taken.text

    def take_all(self, session: Session | None) -> list[str]:
        """The texts of all messages, removed."""
        texts = [waiting.text for waiting in self._waiting]
        self.clear()
        if session is not None:
            session.take_back()
        self._show()
        return texts

    def take_next(self, session: Session) -> str:
        """What the turn ended without: everything meant for it, or the next message."""
        session.take_back()
        steering = [waiting for waiting in self._waiting if waiting.steers]
        said = steering or self._waiting[:1]
        self._waiting = [waiting for waiting in self._waiting if waiting not in said]
        self._show()
        return "\n\n".join(waiting.text for waiting in said)

    def clear(self) -> None:
        """Forget all messages."""
        self._waiting.clear()

    def _show(self) -> None:
        self._painter.queued([waiting.shown for waiting in self._waiting])
