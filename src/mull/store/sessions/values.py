"""What a session is, and what any store of sessions can do.

The embedded store is `mull.store.sessions.sqlite.SqliteSessions`; a database on a server would be
another class with these methods.
"""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, TypedDict, Unpack

from mull.history.log import Record
from mull.neutral.blocks import Value
from mull.neutral.events import Event
from mull.neutral.messages import Origin

__all__ = [
    "Changes",
    "Hit",
    "Hold",
    "JournalBatch",
    "SearchKind",
    "SessionInfo",
    "SessionKind",
    "SessionStore",
]

SearchKind: TypeAlias = Literal["thinking", "answer", "question", "tool"]
"""Where a search looks."""

SessionKind: TypeAlias = Literal["conversation", "ask"]
"""A conversation that one comes back to, or a single question of `mull ask`."""


class SessionInfo(Value, frozen=True):
    """A session without what was said in it."""

    id: str
    """The id that mull gave it; the beginning of it is enough to name the session."""
    folder: str
    """The folder that it was started in."""
    created: float
    """When it was created, in seconds since 1970."""
    updated: float
    """When it last changed, in seconds since 1970."""
    name: str | None = None
    """The name that the user gave it; None if it has none."""
    title: str = ""
    """How it began: the first words of the first question."""
    model: str | None = None
    """The model of the next request, as `-m` takes it; None is the configured one."""
    base_url: str | None = None
    """The address used instead of the provider's; None uses that."""
    system: str = ""
    """The system prompt."""
    settings: dict[str, Any] = {}
    """The settings of the session's own layer, by key."""
    parent: str | None = None
    """The id of the session that it is a fork of; None if it is not a fork."""
    parent_at: int | None = None
    """How many of the parent's records it began with."""
    records: int = 0
    """The number of its records, messages and others."""
    turns: int = 0
    """The number of turns ever begun: one that was taken back keeps its number."""
    kind: SessionKind = "conversation"
    """Whether it is a conversation, or a single question of `mull ask`."""

    @property
    def label(self) -> str:
        """What a person knows it by: its name, or how it began."""
        return self.name or self.title


class Changes(TypedDict, total=False):
    """What can be changed of a session; what is not there stays."""

    name: str | None
    model: str | None
    base_url: str | None
    system: str
    settings: Mapping[str, Any]
    kind: SessionKind


class Hit(Value, frozen=True):
    """A place where the searched words stand.

    `parts` is the text around them: every second part, from the second on, is a match.
    """

    session: SessionInfo
    position: int
    turn: int
    kind: SearchKind
    parts: tuple[str, ...]


class JournalBatch(Value, frozen=True):
    """Some events of an answer that is still coming; `number` grows from batch to batch."""

    number: int
    at: float
    origin: Origin | None
    events: tuple[Event, ...]


class Hold(Protocol):
    """The right to write a session, until it is released or the process ends."""

    @property
    def is_held(self) -> bool:
        """Whether it has not been released yet."""

    def release(self) -> None:
        """Let others write the session."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


class SessionStore(Protocol):
    """Sessions, each a row of records that only grows.

    Every method raises SessionError for a session that is not there and for what cannot be done
    with it, and ConfigError where the storage itself cannot be read or written. Whatever it
    raises, nothing was changed.
    """

    def create(self, *, folder: str, **given: Unpack[Changes]) -> SessionInfo:
        """Store a session that is empty so far."""

    def draft(self, *, folder: str, **given: Unpack[Changes]) -> tuple[SessionInfo, Hold]:
        """A session that is not stored yet, and the right to write it.

        Its id is its own from now on. A name is its own when it is stored: `begin` does that.
        """

    def begin(self, info: SessionInfo, *records: Record) -> SessionInfo:
        """Store a draft together with its first records; on disk when this returns."""

    def find(self, reference: str, folder: str | None = None) -> SessionInfo:
        """The session that a person means by an id, its beginning, or a name.

        A name counts in `folder` first, then anywhere.
        """

    def info(self, session: str) -> SessionInfo:
        """The session of exactly this id, as it is now."""

    def last(self, folder: str, kind: SessionKind | None = None) -> SessionInfo | None:
        """The session that was last written in a folder, of one kind or of any."""

    def list(
        self,
        folder: str | None = None,
        limit: int | None = None,
        kind: SessionKind | None = None,
    ) -> builtins.list[SessionInfo]:
        """The sessions of a folder or of all, of one kind or of any, the last written first."""

    def load(self, session: str) -> tuple[SessionInfo, builtins.list[Record]]:
        """A session and all its records."""

    def append(
        self, session: str, position: int, *records: Record, **changes: Unpack[Changes]
    ) -> SessionInfo:
        """Add records at the end, which must be at `position`, and change what is given; on disk
        when this returns.

        With an answer, or the results of tools, the journal of the session ends.
        """

    def update(self, session: str, **changes: Unpack[Changes]) -> SessionInfo:
        """Change what is given and leave the rest."""

    def fork(self, session: str, at: int | None = None, name: str | None = None) -> SessionInfo:
        """A new session with the first `at` records of this one, or all of them."""

    def delete(self, session: str) -> None:
        """Delete a session for good; not while somebody writes it."""

    def search(
        self,
        words: Sequence[str],
        kind: SearchKind | None = None,
        folder: str | None = None,
        limit: int = 50,
    ) -> builtins.list[Hit]:
        """Where all of these words or phrases stand together, the newest first."""

    def journal(self, session: str, events: Iterable[Event], origin: Origin | None = None) -> None:
        """Put events of the answer that is coming on disk."""

    def news(
        self, session: str, position: int, after: int = 0
    ) -> tuple[builtins.list[Record], builtins.list[JournalBatch]]:
        """What came since: the records from `position` on, and the journal's batches with higher
        numbers than `after`. The journal begins where the records end."""

    def recover(self, session: str, hold: Hold | None = None) -> builtins.list[Record]:
        """Append what a process that is gone had journaled; returns it.

        Whoever holds the session says so with `hold`. Without one, a session that somebody
        writes is left alone.
        """

    def hold(self, session: str) -> Hold:
        """Become the one writer of a session.

        Raises:
            SessionBusy: somebody else is.
        """

    def holder(self, session: str) -> int | None:
        """The number of the process that writes the session, 0 if unknown, None if nobody does."""

    def close(self) -> None:
        """Let go of what is open; it is opened again when needed."""
