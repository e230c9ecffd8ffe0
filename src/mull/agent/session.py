"""A conversation that is stored: every record is on disk before it is shown as done.

Its settings and its model are restored with it. What the model sees can be undone or summarised;
what is stored stays. One process at a time has it open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from mull.agent.given import Said, as_message
from mull.agent.library import Conversation
from mull.agent.options import TurnParameters
from mull.agent.reach import Key, Reach
from mull.agent.recording import TimedRecorder
from mull.agent.run import LIMITS, Turn, prepare_quickly
from mull.agent.streams import AsyncStream, end_task, end_task_now
from mull.agent.turn import Limits
from mull.agent.undoing import last_turn, turn_starts
from mull.history.log import Entry, Log, Record, Undone
from mull.logs import log_warning
from mull.neutral.errors import LocalError, SettingError
from mull.neutral.events import Event
from mull.neutral.messages import Message
from mull.neutral.target import Target
from mull.policy.prepare import Prepared, prepare
from mull.settings.layers import Settings, said_by_name, standing, told
from mull.settings.model import split_model
from mull.settings.registry import SettingValue, find, parse_all
from mull.store.sessions.recorder import Recorder

if TYPE_CHECKING:
    from mull.agent.calls import Approve
    from mull.agent.checkpoints import Keeper, Restored
    from mull.agent.engine import Engine
    from mull.agent.toolbox import Toolbox
    from mull.agent.tools.tool import PreparedCall, RunnableTool
    from mull.policy.compress.plan import Strategy
    from mull.settings.profile import Parameters, Profile
    from mull.store.sessions.values import Changes, SessionInfo, SessionStore
    from mull.store.sessions.writing import Writing

__all__ = ["Session", "restored"]


class Session(Conversation):
    """One stored conversation, open in this process."""

    def __init__(
        self,
        kept: Writing,
        *,
        engine: Engine,
        toolbox: Toolbox | None = None,
        warn: Callable[[str], None] = log_warning,
        messages: Iterable[Message] = (),
        base_url: str | None = None,
        layers: Settings | None = None,
        **more: Any,
    ) -> None:
        """`base_url` is the address as given: the stored one contains no key. `layers` are the
        settings, if not just those of the engine and the stored ones.
        """
        info = kept.info
        if layers is None:
            layers = restored(engine.setup.settings, info, warn)
        address = base_url or info.base_url
        self._given, self._kept = layers, kept
        super().__init__(engine=engine, system=info.system, base_url=address, **more)
        self.log: Log = Log(records=kept.records)
        self._written = Recorder(kept)
        self._recorder: TimedRecorder = TimedRecorder(self._written, warn)
        self.toolbox = toolbox
        self._owned: Toolbox | None = None
        self._gathers = False
        self.restored: tuple[Restored, ...] = ()
        """What the last `undo` or `redo` did to files."""
        if toolbox is not None:
            self._admission = _admission(toolbox, self._admission)
            toolbox.snapshot = self.snapshot
            toolbox.workspace.keeper = self._keeper(warn)
        self._begin_with(tuple(messages))

    def _layers(self, model: str | None, settings: Mapping[str, object]) -> Settings:
        return self._given

    def _begin_with(self, messages: Sequence[Message]) -> None:
        """Let a new session continue from messages of another conversation."""
        if messages and self.log:
            raise LocalError("`messages` is for a new session: this one has its own")
        for message in messages:
            self._keep(Entry(message))

    def submit(self, said: Said, **options: Unpack[TurnParameters]) -> AsyncStream:
        """Send a message; yields the events of the answer as they happen."""
        turn, message = self._turn(options), as_message(said)
        return AsyncStream(turn, partial(self._run, turn, message, takes_back=False))

    def take(self, message: Message | None) -> None:
        """Add something to the session without asking for an answer, such as a result."""
        if message is not None:
            self._keep(Entry(message, time.time()))

    def retry(self) -> AsyncStream:
        """Discard the last answer and ask again. If no new answer arrives, the old one is restored.

        Raises:
            LocalError: the session is empty, or an answer is still in progress.
        """
        self._check_idle()
        start = last_turn(self.log)
        turn = self._turn()  # a missing key is reported before the answer is discarded
        return AsyncStream(turn, partial(self._run_again, turn, start))

    async def _run_again(self, turn: Turn, start: int) -> None:
        self._check_idle()
        end = len(self.log)
        if start + 1 < end:
            self._keep(Undone(start + 1, end, time.time()))
        try:
            await self._run(turn, None)
        except BaseException:
            if not turn.messages and len(self.log) > end:  # what was discarded is restored
                self._keep(Undone(end, len(self.log), time.time()))
            raise

    def undo(self, turns: int = 1) -> Message:
        """`Conversation.undo`; changes that tools made to files are undone too, and `restored`
        reports them.
        """
        self.restored = ()
        before = set(turn_starts(self.log))
        message = super().undo(turns)
        self._restore(before - set(turn_starts(self.log)))
        return message

    def redo(self) -> Message:
        """`Conversation.redo`, including changes to files."""
        self.restored = ()
        before = set(turn_starts(self.log))
        message = super().redo()
        self._restore(set(turn_starts(self.log)) - before, again=True)
        return message

    def _keeper(self, warn: Callable[[str], None]) -> Keeper:
        """Stores what the tools of this session change."""
        from mull.agent.checkpoints import Keeper
        from mull.store.checkpoints import checkpoints_of

        return Keeper(checkpoints_of(self.info.id), lambda: last_turn(self.log), warn)

    def _restore(self, turns: Iterable[int], *, again: bool = False) -> None:
        from mull.agent.checkpoints import plan_restoring
        from mull.store.checkpoints import checkpoints_of

        restoring = plan_restoring(checkpoints_of(self.info.id), turns, again=again)
        if restoring is not None:
            self.restored = tuple(restoring.run())

    async def compress(
        self, say: Callable[[Event], None], strategy: Strategy | None = None
    ) -> None:
        """Replace the conversation so far with a summary, or say why that is not possible.

        Raises:
            LocalError: the session is empty, or an answer is still in progress.
        """
        self._check_open()
        self._check_idle()
        shortener = self._shortener()
        if shortener is None:
            raise LocalError("there is nothing to compress yet")
        for record in await shortener.compress(self._situation(), say, strategy):
            self._keep(record)

    def undo_compression(self) -> bool:
        """Undo the last summary; False if there is none."""
        from mull.agent.compress import undo_compression

        record = undo_compression(self.log, time.time())
        if record is not None:
            self._keep(record)
        return record is not None

    @property
    def address(self) -> str | None:
        """The address given for the current model, if there is one."""
        provider = self.target.provider
        return self._reaches.of(self.target).base_url or self._engine.setup.address_of(provider)

    def switch(
        self,
        model: str,
        *,
        key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Target:
        """`Conversation.switch`; the session stores model and address, never a key.

        Raises:
            CatalogError: no model, or more than one, has this name; nothing has changed.
        """
        self._check_open()
        target = super().switch(model, key=key, base_url=base_url, headers=headers)
        said = said_by_name(model, thinks=target.wants_thinking)
        settings = standing(self.info.settings, said)
        self._change(model=model, base_url=self.address, settings=settings)
        return target

    def set(self, key: str, value: object) -> SettingValue:
        """Change a setting of this session from the next request on.

        Raises:
            SettingError: the key or value is not allowed; nothing has changed.
        """
        self._check_open()
        parsed = super().set(key, value)
        model, settings = told(self.info.model, self.info.settings, {find(key).key: parsed})
        self._change(model=model, settings=settings)
        return parsed

    def unset(self, key: str) -> None:
        """Remove a setting of this session, so that the layers below decide.

        Raises:
            SettingError: there is no such setting.
        """
        self._check_open()
        super().unset(key)
        self.settings.unset(key, "stored")
        name, model = find(key).key, self.info.model
        if name in said_by_name(model):
            model = self.settings.snapshot().model
        settings = {k: v for k, v in self.info.settings.items() if k != name}
        self._change(settings=settings, model=model)

    def load_profile(self, profile: Profile) -> tuple[str, ...]:
        """Go on with a profile instead of what the session has chosen; returns the settings that
        it gave up.

        Raises:
            CatalogError: the profile's model is unknown; nothing has changed.
        """
        self._check_open()
        name = profile.model_name or self.settings.snapshot().model or self.target.name
        given = Reach(base_url=profile.base_url)
        target = self._reaches.target(name, given if profile.base_url else None)
        gone = self.settings.load_profile(profile.settings, profile.model_name)
        self._reaches.take(target, given)
        self.target = target
        self.use_parameters(profile.parameters)
        model = self.settings.model_name
        self._change(model=model, base_url=self.address, settings=profile.settings)
        return gone

    def use_parameters(self, parameters: Parameters) -> None:
        """Use these parameters from the next request on; None leaves one to the provider."""
        self._change_requests(max_tokens=parameters.max_tokens, temperature=parameters.temperature)

    def rename(self, name: str | None) -> None:
        """Name the session.

        Raises:
            SessionError: another session has this name, or it is not a valid name.
        """
        self._check_open()
        self._kept.change(name=name)

    def prepared(self) -> Prepared:
        """The request that would be sent now, counted; nothing is sent."""
        target = self._engine.learnt(self.target)
        counter = self._engine.counter_for(target)
        return prepare(self.log, self.snapshot(), target, self.options, counter=counter)

    def estimated(self) -> Prepared:
        """The same, counted as a turn does: a short one by its characters."""
        target = self._engine.learnt(self.target)
        counter = self._engine.counter_for(target)
        return prepare_quickly(self.log, self.snapshot(), target, self.options, counter=counter)

    def _own_tools(self) -> Mapping[str, RunnableTool]:
        toolbox = self.offered_toolbox
        offered = toolbox.offered(self.target.facts.taught_tools) if toolbox else {}
        return {**self._tools, **offered}

    @property
    def offered_toolbox(self) -> Toolbox | None:
        """Where the tools come from; None for a model that gets them only on request."""
        if self.toolbox is not None and self.toolbox.unasked and not self.target.facts.offer_tools:
            return None
        return self.toolbox

    @property
    def _name(self) -> str | None:
        return self.info.id

    @property
    def engine(self) -> Engine:
        """The session's engine."""
        return self._engine

    @property
    def info(self) -> SessionInfo:
        """The session's name, folder, model and so on."""
        return self._kept.info

    @property
    def store(self) -> SessionStore:
        """Where the session is stored."""
        return self._kept.store

    @property
    def recovered(self) -> Sequence[Record]:
        """The part of an answer that had arrived when the previous process was killed."""
        return self._kept.recovered

    @property
    def was_cut_off(self) -> bool:
        """Whether the previous process was killed in the middle of an answer."""
        entries = (one for one in self.recovered if isinstance(one, Entry))
        return any(one.message.status == "interrupted" for one in entries)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Store all changes of model and settings made inside in one write."""
        self._gathers = True
        try:
            yield
        finally:
            self._gathers = False
            self._kept.change()

    async def start_tools(self, *, owned: bool) -> tuple[str, ...]:
        """Start the tool servers, unless they are running; returns remarks about them.

        Servers that belong to the session end with it.
        """
        if self.toolbox is None or self.toolbox.is_started:
            return ()
        if owned:
            self._owned = self.toolbox
        await self.toolbox.start()
        return (*self.toolbox.warnings, *self.toolbox.trouble)

    def instruct(self, system: str) -> None:
        """Give the session another system prompt; it is stored with the next message."""
        self._kept.give(system=system)
        self._change_requests(system=system)

    def close(self) -> None:
        """Write pending data, end what the session started and let others open it.

        An active stream ends, and what arrived is stored as interrupted. The session can no longer
        be used or changed. Closing twice is harmless.
        """
        if self._running is not None and self._running.task is not None:
            end_task_now(self._running.task)
        self._release()
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.close_now()
        super().close()

    async def aclose(self) -> None:
        """`close` on the caller's event loop."""
        try:
            if self._running is not None and self._running.task is not None:
                await end_task(self._running.task)
        finally:
            self._release()
        owned, self._owned = self._owned, None
        if owned is not None:
            await owned.close()
        await super().aclose()

    def _release(self) -> None:
        if self._kept.is_held:
            self._recorder.close()
            self._kept.release()

    def _keep(self, record: Record) -> None:
        self._check_open()
        if self._kept.is_stored:
            super()._keep(record)
        else:  # if not even the first one can be stored, nothing is sent
            self._written.append(record)
            self.log.add(record)

    def _change(self, **changes: Unpack[Changes]) -> None:
        self._check_open()
        if self._gathers:
            self._kept.give(**changes)
        else:
            self._kept.change(**changes)

    def _check_open(self) -> None:
        if not self._kept.is_held:
            raise LocalError("this session is closed: open it again to continue")

    def _turn(self, options: TurnParameters | None = None, limits: Limits = LIMITS) -> Turn:
        self._check_open()
        return super()._turn(options, limits)


def _admission(
    toolbox: Toolbox, given: Callable[[], Approve | None]
) -> Callable[[], Approve | None]:
    """A toolbox decides on its own tools, and on others if nothing else was given for those."""

    def admission() -> Approve:
        others = given()

        async def admit(call: PreparedCall) -> str | None:
            if others is None or call.asked.tool in toolbox.all:
                return await toolbox.gate.admit(call)
            return await others(call)

        return admit

    return admission


def restored(settings: Settings, info: SessionInfo, warn: Callable[[str], None]) -> Settings:
    """These settings with those of a stored session in their layer."""
    made, model = settings.fork(), info.model
    said: dict[str, SettingValue] = {}
    for key, value in info.settings.items():
        try:
            said |= parse_all({key: value}, unset=True)
        except SettingError as error:  # settings change between versions
            warn(f"ignoring a setting of this session: {error}")
    if model is not None and said.keys() & said_by_name(model).keys():
        model = split_model(model)[0]  # older versions kept a level that no longer stood
    made.replace("stored", said, model)
    return made
