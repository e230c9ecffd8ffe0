"""How a session is opened: a new one, one given by name, or the last one of the folder.

The command, the terminal and the library share this, and differ in what they pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from typing import TYPE_CHECKING, Any, Unpack, cast

from mull.agent.session import Session, restored
from mull.client.connection import running_loop
from mull.logs import log_warning
from mull.neutral.blocks import Value
from mull.neutral.errors import SessionError, UnwritableError
from mull.settings.addresses import hidden_key
from mull.settings.layers import said_by_name, standing, told
from mull.settings.model import is_same_model, split_model
from mull.settings.registry import parse_all
from mull.store.sessions.values import SessionKind
from mull.store.sessions.writing import Writing, begin_writing, go_on_writing

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.agent.options import ConversationOptions
    from mull.agent.toolbox import Toolbox
    from mull.settings.layers import Settings
    from mull.settings.profile import Profile
    from mull.store.sessions.values import SessionInfo, SessionStore

__all__ = ["Opening", "find_session", "open_kept", "open_session", "open_session_async"]


class Opening(Value, frozen=True):
    """Which session to open, and with what. Given values override stored ones, and are stored."""

    folder: str
    """The folder that the session belongs to; its tools work there."""
    reference: str | None = None
    """The session to continue, by its id, the beginning of its id, or its name."""
    last: bool = False
    """Whether to continue the last session of the folder."""
    name: str | None = None
    """The name of a new session."""
    goes_on: bool = False
    """Whether an existing session of that name is continued."""
    model: str | None = None
    """The model, as `-m` takes it; None keeps the stored or configured one."""
    base_url: str | None = None
    """The address to use instead of the provider's."""
    system: str | None = None
    """The system prompt; None keeps the stored one."""
    base: str = ""
    """The system prompt if neither a prompt nor tools are given."""
    settings: Mapping[str, Any] = {}
    """Settings by key, such as `reasoning.effort`."""
    profile: bool = False
    """Whether the engine's profile was named for this session, so that it goes before what is
    stored.
    """
    layers: Settings | None = None
    """The settings of a session that the new one is like; None builds them from what is said and
    stored.
    """
    kind: SessionKind = "conversation"
    """What is opened. A single question that is continued as a conversation becomes one."""


def find_session(store: SessionStore, opening: Opening) -> SessionInfo | None:
    """The stored session to open; None for a new one.

    Raises:
        SessionError: it does not exist.
    """
    if opening.reference is not None:
        return store.find(opening.reference, opening.folder)
    if opening.goes_on and opening.name is not None:
        with suppress(SessionError):  # there is none yet
            return _called(opening.name, store.find(opening.name, opening.folder))
        return None
    if not opening.last:
        return None
    found = store.last(opening.folder, opening.kind)
    if found is None:
        raise SessionError(_nothing_last(store, opening))
    return found


def _nothing_last(store: SessionStore, opening: Opening) -> str:
    """The message if there is nothing to continue, or only something of the other kind."""
    other = store.last(opening.folder)
    if other is None:
        return (
            "there is no session of this folder to continue: `mull sessions list "
            "--all` shows those of other folders"
        )
    if other.kind == "ask":
        return (
            "there is no conversation of this folder to continue, only single "
            f"questions: `mull --session {other.id}` continues the last of them "
            f"({other.label})"
        )
    return (
        "there is no question of `mull ask` in this folder yet: `mull ask --session "
        f"{other.id}` continues the last conversation ({other.label})"
    )


def _called(name: str, found: SessionInfo) -> SessionInfo | None:
    """The session found, unless only its id starts like the name of a new one."""
    return found if name.strip().lower() in (found.id, (found.name or "").lower()) else None


async def open_kept(
    store: SessionStore,
    engine: Engine,
    opening: Opening,
    *,
    toolbox: Toolbox | None = None,
    shares_tools: bool = False,
    warn: Callable[[str], None] = log_warning,
    **more: Any,
) -> Session:
    """Open the session, start its tools and write its prompt.

    A new session is not on disk before its first message, unless it has a name. Servers started
    here end with the session, unless it `shares_tools` with others.

    Raises:
        LocalError: there is no such session or model, or another process has the session open;
            nothing was started or stored.
    """
    found = find_session(store, opening)
    try:
        kept = _held(store, opening, found, engine)
    except UnwritableError as error:
        warn(f"{error}. This conversation is kept only in memory")
        kept = _held(*_in_memory(store, opening, found), engine)
    try:
        session = Session(
            kept,
            engine=engine,
            toolbox=toolbox,
            warn=warn,
            base_url=opening.base_url,
            layers=_layers(engine, opening, found, warn),
            **more,
        )
    except BaseException:
        kept.release()
        raise
    if opening.base_url is not None and (told := hidden_key(kept.info.base_url)):
        warn(told)
    try:
        for trouble in await session.start_tools(owned=not shares_tools):
            warn(trouble)
        if toolbox is not None and found is not None and found.folder != opening.folder:
            warn(
                f"session {found.id} was started in {found.folder}: tools now work in "
                f"{opening.folder}"
            )
        if found is None or opening.system is not None:
            offered = session.offered_toolbox
            for told in await offered.settle_instructions() if offered is not None else ():
                warn(told)
            session.instruct(_system(opening, offered, session.target.facts.taught_tools))
        await session.inspect_server()
        kept.reserve_name()
    except BaseException:
        await session.aclose()
        raise
    return session


def _layers(
    engine: Engine,
    opening: Opening,
    found: SessionInfo | None,
    warn: Callable[[str], None],
) -> Settings:
    """The settings of the session: what is said now goes before what was stored."""
    if opening.layers is not None:
        return opening.layers.fork()
    layers, profile = engine.setup.settings.fork(), _profile(engine, opening)
    if found is not None and profile is None:
        layers = restored(layers, found, warn)
    elif found is not None and found.model is not None and profile and not profile.model_name:
        layers.replace("stored", {}, split_model(found.model)[0])
    if found is not None and opening.model is None:
        layers.set_model(None)  # the command named it for the session that it began with
        if profile is None:
            _tell_of_variable(engine, layers, warn)
    layers.say(opening.settings, opening.model, thinks=_thinks(engine, opening))
    return layers


def _thinks(engine: Engine, opening: Opening) -> bool:
    """Whether the name of the given model itself asks for thinking."""
    name = opening.model
    return name is not None and engine.target(name, base_url=opening.base_url).wants_thinking


def _tell_of_variable(engine: Engine, layers: Settings, warn: Callable[[str], None]) -> None:
    """Say that a session keeps its model where the environment names another one."""
    named, own = engine.setup.environment.model, layers.snapshot().model
    if named is not None and own is not None and not is_same_model(split_model(named)[0], own):
        warn(
            f"this session continues with {own}: MULL_MODEL applies to new sessions;"
            f" to switch, use -m {named}"
        )


def _profile(engine: Engine, opening: Opening) -> Profile | None:
    """The profile that was named for this session."""
    return engine.setup.profile if opening.profile else None


def _held(
    store: SessionStore, opening: Opening, found: SessionInfo | None, engine: Engine
) -> Writing:
    """The session found, or a new one, with the given values; nobody else can write it."""
    profile, setup = _profile(engine, opening), engine.setup
    by_name = said_by_name(opening.model, thinks=_thinks(engine, opening))
    said = {**by_name, **opening.settings}
    if found is None:
        model = opening.model or setup.settings.model_name
        return begin_writing(
            store,
            folder=opening.folder,
            name=opening.name,
            model=model,
            base_url=opening.base_url or (model and setup.address_for(model)) or None,
            settings=_over(profile.settings if profile else {}, opening.settings, said),
            kind=opening.kind,
        )
    kept = go_on_writing(store, found.id)
    if opening.kind == "conversation" and kept.info.kind != opening.kind:
        kept.give(kind=opening.kind)
    model = opening.model or (profile.model_name if profile else None)
    if model is not None:
        if kept.info.base_url is not None and not _is_at_home(model, kept.info, engine):
            kept.give(base_url=None)
        kept.give(model=model)
        if profile is not None and (address := setup.address_for(model)):
            kept.give(base_url=address)
    if opening.base_url is not None:
        kept.give(base_url=opening.base_url)
    if said or profile is not None:
        before = kept.info.settings if profile is None else profile.settings
        if opening.model is None:
            model, before = told(kept.info.model, before, said)
            kept.give(model=model)
        kept.give(settings=_over(before, opening.settings, said))
    return kept


def _over(
    before: Mapping[str, Any], settings: Mapping[str, Any], said: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that are stored: the older ones as far as they stand, and the given ones."""
    return {**standing(before, said), **settings}


def _in_memory(
    store: SessionStore, opening: Opening, found: SessionInfo | None
) -> tuple[SessionStore, Opening, SessionInfo | None]:
    """A store in memory that contains the session, for a disk that cannot be written."""
    from mull.store.sessions.memory import MemorySessions

    memory = MemorySessions()
    if found is None:
        return memory, opening, None
    info, records = store.load(found.id)
    return memory, opening, memory.begin(info, *records)


def _is_at_home(model: str, info: SessionInfo, engine: Engine) -> bool:
    """Whether the session's address belongs to this model's provider: no other provider's key is
    sent there.
    """
    return info.model is not None and (
        engine.target(model).provider == engine.target(info.model).provider
    )


def _system(opening: Opening, toolbox: Toolbox | None, taught: tuple[str, ...] | None) -> str:
    """The system prompt."""
    if toolbox is not None:
        return toolbox.system(opening.system or "", today=date.today(), taught=taught)
    if opening.system is not None or not opening.base:
        return opening.system or ""
    from mull.agent.instructions import system_prompt

    return system_prompt(opening.base, (), (), None, date.today())


def open_session(
    name: str | None = None,
    *,
    model: str | None = None,
    last: bool = False,
    folder: str | None = None,
    store: SessionStore | str | None = None,
    toolbox: Toolbox | None = None,
    **more: Unpack[ConversationOptions],
) -> Session:
    """The stored session of this name or id; it is created if it does not exist.

    Without a name it is a new one, or the `last` one of the folder. Takes what `Conversation`
    takes. A `store` may be the name under which a package has installed one. The servers of a
    `toolbox` are started, and end when the session is closed.

    Raises:
        LocalError: the model is unknown, or another process has the session open.
    """
    from mull.agent import shared

    return shared.loop().run(lambda: _open(name, model, last, folder, store, toolbox, **more))


async def open_session_async(
    name: str | None = None,
    *,
    model: str | None = None,
    last: bool = False,
    folder: str | None = None,
    store: SessionStore | str | None = None,
    toolbox: Toolbox | None = None,
    **more: Unpack[ConversationOptions],
) -> Session:
    """`open_session` on the caller's event loop, where the servers of a `toolbox` then run."""
    running_loop()
    return await _open(name, model, last, folder, store, toolbox, **more)


async def _open(
    name: str | None,
    model: str | None,
    last: bool,
    folder: str | None,
    store: SessionStore | str | None,
    toolbox: Toolbox | None,
    **more: Unpack[ConversationOptions],
) -> Session:
    from mull.agent import shared
    from mull.store.sessions.sqlite import open_sessions, this_folder

    given: dict[str, Any] = {**more}
    opening = Opening(
        folder or this_folder(),
        last=last,
        name=name,
        goes_on=True,
        model=model,
        base_url=given.pop("base_url", None),
        system=given.pop("system", None),
        settings=parse_all(given.pop("settings", None) or {}),
    )
    engine = given.pop("engine", None) or shared.engine()
    if isinstance(store, str):
        from mull.plugins import create

        store = cast("SessionStore", create("mull.stores", store))
    return await open_kept(store or open_sessions(), engine, opening, toolbox=toolbox, **given)
