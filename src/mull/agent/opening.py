"""How a session begins: a new one, one that is known by name, or the last one of the folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.agent.session import Session
from mull.neutral.blocks import Value
from mull.neutral.errors import SessionError

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.store.session_values import SessionInfo, SessionStore

__all__ = ["Opening", "find_session", "open_session"]


class Opening(Value, frozen=True):
    """Which session is meant, and what a new one is given. What is given overrules a stored one."""

    folder: str
    reference: str | None = None
    last: bool = False
    name: str | None = None
    model: str | None = None
    base_url: str | None = None
    system: str = ""

    def given_system(self, system: str) -> Opening:
        """The same with another system prompt for a new session."""
        return replace(self, system=system)


def find_session(store: SessionStore, opening: Opening) -> SessionInfo | None:
    """The stored session that is meant; None for a new one.

    Raises:
        SessionError: it is not there.
    """
    if opening.reference is not None:
        return store.find(opening.reference, opening.folder)
    if not opening.last:
        return None
    found = store.last(opening.folder)
    if found is None:
        raise SessionError(
            "there is no session of this folder to go on with: `mull sessions list --all` shows"
            " those of others"
        )
    return found


def open_session(
    store: SessionStore,
    engine: Engine,
    opening: Opening,
    found: SessionInfo | None = None,
    **more: Any,
) -> Session:
    """Open the session that was found, or a new one.

    Raises:
        LocalError: the model is unknown, or another process has the session open.
    """
    if found is None:
        found = store.create(
            folder=opening.folder,
            name=opening.name,
            model=opening.model or engine.setup.settings.snapshot().model,
            base_url=opening.base_url,
            system=opening.system,
        )
    if opening.model is not None:
        found = store.update(found.id, model=opening.model)
    if opening.base_url is not None:
        found = store.update(found.id, base_url=opening.base_url)
    return Session(store, found, engine=engine, **more)
