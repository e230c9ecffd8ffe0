"""One session that this process writes: held from when it is opened until it is released.

A session that begins is stored with the first thing that is said in it, in one transaction: one in
which nothing was said is never on disk. A name makes the exception: it is stored at once, so that
nobody else can take it. What was given when a stored one was opened is stored the same way, with
the next thing that is said or changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from msgspec.structs import replace

from mull.history.log import Record
from mull.neutral.errors import SessionError
from mull.neutral.events import Event
from mull.neutral.messages import Origin
from mull.store.sessions.rows import tidied
from mull.store.sessions.values import Changes, Hold, SessionInfo, SessionStore

__all__ = ["Writing", "begin_writing", "go_on_writing"]


class Writing:
    """The right to write one session, and how it stands.

    `records` are those that it was opened with; the last of them are `recovered` where the process
    that wrote them was killed.
    """

    def __init__(
        self,
        store: SessionStore,
        info: SessionInfo,
        hold: Hold,
        *,
        records: Iterable[Record] = (),
        recovered: Iterable[Record] = (),
        is_stored: bool = True,
    ) -> None:
        self.store = store
        self.info: SessionInfo = info
        self.records: tuple[Record, ...] = tuple(records)
        self.recovered: tuple[Record, ...] = tuple(recovered)
        self.is_stored: bool = is_stored
        self._hold = hold
        self._given: Changes = {}

    def give(self, **changes: Unpack[Changes]) -> None:
        """Change the session with the next thing that is stored of it."""
        self._given |= changes
        self.info = replace(self.info, **tidied(changes))

    def change(self, **changes: Unpack[Changes]) -> None:
        """Change the session; on disk when this returns, if anything of it is.

        Raises:
            SessionError: it was released, or its name is taken or cannot be one.
        """
        self._check_held()
        if self.is_stored:
            self.info = self.store.update(self.info.id, **(self._given | changes))
            self._given = {}
        else:
            info = replace(self.info, **tidied(changes))
            if info.name is None:
                self.info = info
            else:
                self._begin(info)

    def reserve_name(self) -> None:
        """Store the session if it has a name; then nobody else can get that.

        Raises:
            SessionError: somebody has got it meanwhile.
        """
        if self.info.name is not None and not self.is_stored:
            self._begin(self.info)

    def append(self, position: int, *records: Record) -> None:
        """Add records at the end, which must be at `position`; on disk when this returns.

        Raises:
            SessionError: it was released, or somebody else wrote it.
            ConfigError: the store cannot be written.
        """
        self._check_held()
        if self.is_stored:
            self.info = self.store.append(self.info.id, position, *records, **self._given)
            self._given = {}
        else:
            self._begin(self.info, *records)

    def journal(self, events: Iterable[Event], origin: Origin | None) -> None:
        """Put events of the answer that is coming on disk."""
        self._check_held()
        self.store.journal(self.info.id, events, origin)

    @property
    def is_held(self) -> bool:
        """Whether it was not released yet."""
        return self._hold.is_held

    def release(self) -> None:
        """Let others write."""
        self._hold.release()

    def _begin(self, info: SessionInfo, *records: Record) -> None:
        self.info = self.store.begin(info, *records)
        self.is_stored, self._given = True, {}

    def _check_held(self) -> None:
        if not self.is_held:
            raise SessionError("this session is closed: open it again to continue")


def begin_writing(store: SessionStore, *, folder: str, **given: Unpack[Changes]) -> Writing:
    """A new session.

    Raises:
        SessionError: its name is taken or cannot be one.
        ConfigError: the store cannot be written.
    """
    info, hold = store.draft(folder=folder, **given)
    return Writing(store, info, hold, is_stored=False)


def go_on_writing(store: SessionStore, session: str) -> Writing:
    """A stored session, with what the process before had not finished.

    Raises:
        SessionBusy: somebody else writes it.
    """
    hold = store.hold(session)
    try:
        recovered = store.recover(session, hold)
        info, records = store.load(session)
    except BaseException:
        hold.release()
        raise
    return Writing(store, info, hold, records=records, recovered=recovered)
