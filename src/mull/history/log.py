"""The append-only log of a conversation: whole, in order, never edited (BR-002).

What is sent is a view that policy makes of it; what is shown is another. Ids and times are
given by whoever appends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mull.neutral.blocks import Value
from mull.neutral.messages import Message

__all__ = ["Entry", "Log"]


class Entry(Value, frozen=True):
    """One message and when it was added."""

    message: Message
    id: str | None = None
    at: float | None = None


class Log:
    """Entries in the order they came. It can only grow, so a view of its start stays valid."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._entries: list[Entry] = [Entry(message) for message in messages]

    def append(self, message: Message, *, id: str | None = None, at: float | None = None) -> Entry:
        """Add a message at the end."""
        entry = Entry(message, id, at)
        self._entries.append(entry)
        return entry

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int) -> Entry:
        return self._entries[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages as they were stored."""
        return tuple(entry.message for entry in self._entries)
