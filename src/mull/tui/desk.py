"""Opens sessions at one terminal: the store, the tools, and the initial model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.agent.opening import Opening, find_session, open_kept

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.agent.session import Session
    from mull.agent.toolbox import Toolbox
    from mull.store.sessions.values import SessionStore

__all__ = ["SessionDesk"]


class SessionDesk:
    """Opens and closes sessions. `begin` is what the command line asks for; `equip` makes the tools
    when the first one is opened.
    """

    def __init__(
        self,
        engine: Engine,
        store: SessionStore,
        begin: Opening,
        equip: Callable[[], Toolbox | None],
        warn: Callable[[str], None],
        **more: Any,
    ) -> None:
        self.engine = engine
        self.store = store
        self.toolbox: Toolbox | None = None
        self._equip: Callable[[], Toolbox | None] | None = equip
        self._begin = begin
        self._warn = warn
        self._more = more
        self._session: Session | None = None

    @property
    def model(self) -> str | None:
        """The model a new session would use; None if none was given."""
        begin = self._begin
        if begin.model is not None:
            return begin.model
        found = find_session(self.store, begin)
        return (found and found.model) or self.engine.setup.settings.snapshot().model

    def use(self, model: str, base_url: str | None = None) -> None:
        """Use this model for new sessions, since none was named: anything said now goes before a
        level in its name.
        """
        self.engine.setup.settings.set_model(model, "stored")
        if self._begin.base_url is None:
            self._begin = replace(self._begin, base_url=base_url)

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> Session:
        """The requested session: by reference, new, or as the command line says.

        Raises:
            LocalError: it cannot be opened, or is already open here.
        """
        if self._equip is not None:
            from mull.agent.instructions import BASE  # brings tools: the prompt is drawn by now

            self._begin = replace(self._begin, base=BASE)
            self.toolbox, self._equip = self._equip(), None
        self._session = await open_kept(
            self.store,
            self.engine,
            self._meant(reference, fork_at) if reference else self._anew() if new else self._begin,
            toolbox=self.toolbox,
            shares_tools=True,
            warn=self._warn,
            **self._more,
        )
        return self._session

    async def close(self) -> None:
        """End the processes that the tools have started."""
        if self.toolbox is not None:
            await self.toolbox.close()

    def _meant(self, reference: str, fork_at: int | None) -> Opening:
        """The session of a reference, or a copy of its beginning."""
        folder = self._begin.folder
        if fork_at is not None:
            found = self.store.find(reference, folder)
            reference = self.store.fork(found.id, fork_at).id
        return Opening(folder=folder, reference=reference)

    def _anew(self) -> Opening:
        """Another session like the last one: with the same model, address and settings."""
        last = self._session
        if last is None:
            return replace(self._begin, reference=None, last=False, name=None)
        return Opening(
            folder=self._begin.folder,
            model=last.info.model,
            base_url=last.address,
            base=self._begin.base,
            settings=last.info.settings,
            layers=last.settings,
        )
