"""How a session begins: a new one, one that is known by name, or the last one of the folder."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

from msgspec.structs import replace

from mull.agent.session import Session
from mull.neutral.blocks import Value
from mull.neutral.errors import SessionError

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.agent.library import ConversationOptions
    from mull.agent.toolbox import Toolbox
    from mull.store.sessions.values import SessionInfo, SessionStore

__all__ = ["Opening", "begin_session", "find_session", "of_another_folder", "open_session"]


class Opening(Value, frozen=True):
    """Which session is meant, and what a new one is given. What is given overrules a stored one."""

    folder: str
    reference: str | None = None
    last: bool = False
    name: str | None = None
    model: str | None = None
    base_url: str | None = None
    system: str | None = None

    def given_system(self, system: str) -> Opening:
        """The same with another system prompt."""
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


def of_another_folder(found: SessionInfo | None, opening: Opening) -> str | None:
    """What to tell where a session goes on elsewhere than it was begun, and tools with it."""
    if found is None or found.folder == opening.folder:
        return None
    return f"session {found.id} was begun in {found.folder}: tools work in {opening.folder} now"


def begin_session(
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
            system=opening.system or "",
        )
    else:
        given = {key: getattr(opening, key) for key in ("model", "base_url", "system")}
        changes = {key: value for key, value in given.items() if value is not None}
        store.hold(found.id).release()  # one that is open elsewhere stays as it is
        found = store.update(found.id, **changes) if changes else found
    return Session(store, found, engine=engine, **more)


def open_session(
    name: str | None = None,
    *,
    model: str | None = None,
    last: bool = False,
    folder: str | None = None,
    store: SessionStore | None = None,
    toolbox: Toolbox | None = None,
    **more: Unpack[ConversationOptions],
) -> Session:
    """The stored session of this name or id, begun if there is none.

    Without a name it is a new one, or the `last` one of the folder. Takes what `Conversation`
    takes.

    Raises:
        LocalError: the model is unknown, or another process has the session open.
    """
    from mull.agent.library import shared_engine
    from mull.store.sessions.sqlite import open_sessions, this_folder

    kept = store or open_sessions()
    given: dict[str, Any] = {**more}
    opening = Opening(
        folder or this_folder(),
        last=last,
        name=name,
        model=model,
        base_url=given.pop("base_url", None),
        system=given.pop("system", None),
    )
    found = find_session(kept, opening)
    if name is not None:
        with suppress(SessionError):  # there is none yet
            found = _called(name, kept.find(name, opening.folder))
    engine = given.pop("engine", None) or shared_engine()
    return begin_session(kept, engine, opening, found, toolbox=toolbox, **given)


def _called(name: str, found: SessionInfo) -> SessionInfo | None:
    """The session that was found, unless only its id begins like the name of a new one."""
    return found if name.strip().lower() in (found.id, (found.name or "").lower()) else None
