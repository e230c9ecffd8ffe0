"""Opens sessions at one terminal: the store, the tools, and the model to begin with."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.agent.opening import Opening, begin_session, find_session, of_another_folder

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.agent.session import Session
    from mull.agent.toolbox import Toolbox
    from mull.store.sessions.values import SessionStore

__all__ = ["SessionDesk"]


class SessionDesk:
    """Where sessions are taken from and put back. `begin` is what the command line asks for."""

    def __init__(
        self,
        engine: Engine,
        store: SessionStore,
        begin: Opening,
        toolbox: Toolbox | None,
        warn: Callable[[str], None],
        **more: Any,
    ) -> None:
        self.engine = engine
        self.store = store
        self.toolbox = toolbox
        self._begin = begin
        self._warn = warn
        self._more = more
        self._started = False
        self._session: Session | None = None

    @property
    def model(self) -> str | None:
        """The model that a session would be begun with; None if nobody has named one."""
        begin = self._begin
        if begin.model is not None:
            return begin.model
        found = find_session(self.store, begin)
        return (found and found.model) or self.engine.setup.settings.snapshot().model

    def use(self, model: str) -> None:
        """Begin sessions with this model."""
        self._begin = replace(self._begin, model=model)

    def last_model(self) -> str | None:
        """The model of the newest session anywhere."""
        newest = self.store.list(limit=1)
        return newest[0].model if newest else None

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> Session:
        """The session that is meant: by reference, new, or as the command line says."""
        await self._start()
        begin, kept = self._begin, {}
        if reference is not None:
            info = self.store.find(reference, begin.folder)
            if fork_at is not None:
                info = self.store.fork(info.id, fork_at)
            opening, found = Opening(folder=begin.folder), info
        elif new:
            opening, found = self._anew(), None
            kept = dict(self._session.info.settings) if self._session else {}
        else:
            opening, found = begin, find_session(self.store, begin)
        if self.toolbox is not None and (moved := of_another_folder(found, begin)):
            self._warn(moved)
        if found is None or opening.system is not None:
            opening = opening.given_system(self._system(opening.system or ""))
        self._session = begin_session(
            self.store,
            self.engine,
            opening,
            found,
            toolbox=self.toolbox,
            warn=self._warn,
            **self._more,
        )
        for key, value in kept.items():
            self._session.set(key, value)
        return self._session

    async def close(self) -> None:
        """End what the tools have started."""
        if self.toolbox is not None:
            await self.toolbox.close()

    def _anew(self) -> Opening:
        """Another session like the last one: the same model, at the same address."""
        last = self._session.settings if self._session else self.engine.setup.settings
        model = last.snapshot().model
        address = self._session.info.base_url if self._session else None
        return Opening(folder=self._begin.folder, model=model, base_url=address)

    async def _start(self) -> None:
        if self.toolbox is None or self._started:
            return
        self._started = True
        await self.toolbox.start()
        for warning in (*self.toolbox.warnings, *self.toolbox.trouble):
            self._warn(warning)

    def _system(self, given: str) -> str:
        if self.toolbox is not None:
            return self.toolbox.system(given, today=date.today())
        if given:
            return given
        from mull.agent.instructions import BASE, system_prompt

        return system_prompt(BASE, (), (), None, date.today())
