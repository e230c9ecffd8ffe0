"""A conversation: a history that grows turn by turn, and its settings.

Everything runs on one asynchronous core. Blocking methods use a private event loop; methods that
end in `_async` run on the caller's. Settings come from the same layers as those of the command:
config file, profile, environment, then arguments.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import (
    Callable,
    Mapping,
    Sequence,
)
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Self, Unpack

from msgspec.structs import replace

from mull.agent import shared
from mull.agent.equipment import (
    admission_from,
    connection_from,
    reach_from,
    servers_from,
    tools_from,
    with_tools,
)
from mull.agent.given import Said, as_message, check_message, check_reach
from mull.agent.hub import Hub, Subscriber
from mull.agent.options import (
    ConversationOptions,
    Parameterized,
    TurnParameters,
    check_names,
    limited,
    parameters_over,
)
from mull.agent.reach import Key, Reach, Reaches
from mull.agent.results import Result, result_of
from mull.agent.run import LIMITS, Situation, Turn, run_turn
from mull.agent.streams import AsyncStream, Stream, end_task
from mull.agent.turn import Limits
from mull.agent.undoing import question_at, redone, turn_starts, undone
from mull.client.connection import running_loop
from mull.history.log import Entry, Log, Record, Undone
from mull.neutral.errors import ConfigError, LocalError
from mull.neutral.events import Event
from mull.neutral.messages import Message
from mull.neutral.request import RequestOptions
from mull.neutral.target import Target
from mull.settings.layers import Settings, Snapshot, check_agreement, said_by_name, said_words
from mull.settings.presets import preset_values
from mull.settings.registry import SettingValue, parse_all

if TYPE_CHECKING:
    from mull.agent.run import Recorder
    from mull.agent.shorten import Shortener
    from mull.agent.tools.tool import RunnableTool
    from mull.client.access import Access

SHORTEST_TO_SHORTEN = 3
"""Messages: the task, an answer, and more."""

__all__ = ["Conversation"]


class Conversation:
    """A history that grows turn by turn, and its model.

    All thinking is kept in `log`; which of it is sent is decided for each request. The model can be
    switched at any time: what only the old one understands is left out, and is sent again when you
    switch back. With `interactive`, thinking can be ended early (`answer_now`); with `patient`,
    unless `limits` say otherwise, a failing server is tried up to ten times.
    """

    def __init__(self, model: str | None = None, **options: Unpack[ConversationOptions]) -> None:
        check_names(options, ConversationOptions.__optional_keys__, "Conversation")
        self.log: Log = Log(map(check_message, options.get("messages", ())))
        self._engine = options.get("engine") or shared.engine()
        self.settings: Settings = self._layers(model, options.get("settings") or {})
        given = reach_from(options)
        approve = options.get("approve")
        self._admission = admission_from(approve)
        self._tools = tools_from(options.get("tools") or (), guarded=approve is not None)
        self._context = options.get("context")
        self._mcp = servers_from(options.get("mcp"), self._engine)
        self._limits = options.get("limits")
        usual = self._engine.setup.parameters
        self._parameters = parameters_over(
            Parameterized(
                RequestOptions(max_tokens=usual.max_tokens, temperature=usual.temperature)
            ),
            options,
        )
        self.interactive = self.patient = False
        self._recorder: Recorder | None = None
        self._is_single = False
        self._shorten: Shortener | None = None
        self._running: Turn | None = None
        self._steering: deque[Message] = deque()
        self._subscribers: list[Subscriber] = []
        self._reaches = Reaches(self._engine, options.get("keys"), connection_from(options))
        self.target: Target = self._reaches.target(self.settings.snapshot().model, given)
        self._reaches.take(self.target, given)
        if model is not None and self.target.wants_thinking:
            words = said_words(parse_all(options.get("settings") or {}))
            check_agreement(words, said_words(said_by_name(model, thinks=True), model))

    def _layers(self, model: str | None, settings: Mapping[str, object]) -> Settings:
        """The settings of the engine, with what is said of this conversation on top."""
        layers = self._engine.setup.settings.fork()
        layers.say(parse_all(settings), model)
        return layers

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages so far."""
        return self.log.messages

    def switch(
        self,
        model: str,
        *,
        key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Target:
        """Use another model from the next request on, even between two tool rounds.

        A key, an address and headers apply to that model's provider. They are remembered, so you
        need not give them again when you switch back.

        Raises:
            CatalogError: no model, or more than one, has this name; nothing has changed.
        """
        check_reach(base_url, headers)
        given = Reach(key, base_url, headers)
        target = self._reaches.target(model, given if base_url else None)
        self.settings.set_model(model, thinks=target.wants_thinking)
        self._reaches.take(target, given)
        self.target = target
        return target

    def set(self, key: str, value: object) -> SettingValue:
        """Change a setting of this conversation from the next request on.

        Raises:
            SettingError: the key or value is not allowed; nothing has changed.
        """
        return self.settings.set(key, value)

    def unset(self, key: str) -> None:
        """Remove a setting of this conversation, so that the layers below decide.

        Raises:
            SettingError: there is no such setting.
        """
        self.settings.unset(key)

    def snapshot(self) -> Snapshot:
        """The settings of the next request."""
        target = self.target
        return self.settings.snapshot(
            preset=preset_values(target.facts), thinks=target.wants_thinking
        )

    def ask(self, text: Said, **options: Unpack[TurnParameters]) -> Result:
        """Send a message and wait for the answer, including tool calls.

        The options apply to this turn. A question that fails before any answer arrives is removed,
        so that it can be asked again.

        Raises:
            RemoteError: the endpoint rejected the request or could not be reached, or the answer
                does not match the schema.
            LocalError: the request cannot be made as asked, or an answer is still in progress.
        """
        message = as_message(text)
        return shared.loop().run(lambda: self._finish(message, options))

    async def ask_async(self, text: Said, **options: Unpack[TurnParameters]) -> Result:
        """`ask` on the caller's event loop."""
        return await self._finish(as_message(text), options)

    def stream(self, text: Said, **options: Unpack[TurnParameters]) -> Stream:
        """Send a message and get the answer's events as they arrive."""
        message, turn = as_message(text), self._turn(options)
        return Stream(turn, partial(self._run, turn, message), shared.loop())

    def stream_async(self, text: Said, **options: Unpack[TurnParameters]) -> AsyncStream:
        """`stream` on the caller's event loop."""
        message, turn = as_message(text), self._turn(options)
        return AsyncStream(turn, partial(self._run, turn, message))

    def add(self, message: Message) -> None:
        """Put a message at the end of the history without asking for an answer."""
        # without a time it was not asked here, and so is no question that failed
        self._keep(Entry(check_message(message)))

    def steer(self, said: Said) -> bool:
        """Send a message while the model works: it is sent with the next tool results (`Steered`
        reports it). False if no turn is in progress; then nothing is sent.

        If the model calls no more tools, the message waits for those of the next turn; `take_back`
        withdraws it before that.
        """
        message = as_message(said)
        if self._running is None:
            return False
        self._steering.append(message)
        return True

    def take_back(self) -> tuple[Message, ...]:
        """Withdraw messages from `steer` that were not sent yet."""
        taken: list[Message] = []
        while self._steering:
            taken.append(self._steering.popleft())
        return tuple(taken)

    def subscribe(self, hear: Callable[[Event], None]) -> Callable[[], None]:
        """Call `hear` with every event of the turns that start from now on; call the returned
        function to end that.

        It is called on the event loop of the turn and must return immediately. If it raises, it is
        dropped for the rest of that turn and the error is logged; nothing else is affected.

        Raises:
            LocalError: it is asynchronous.
        """

        if iscoroutinefunction(hear):
            raise LocalError(
                "a subscriber must be an ordinary function: nothing would await this one"
            )
        subscribed = True

        def take(events: Sequence[Event]) -> None:
            for event in events:
                if subscribed:  # a subscriber may unsubscribe itself
                    hear(event)

        def end() -> None:
            nonlocal subscribed
            if subscribed:
                subscribed = False
                self._subscribers.remove(take)

        self._subscribers.append(take)
        return end

    def undo(self, turns: int = 1) -> Message:
        """Undo the last turns; returns the user message of the first of them.

        Raises:
            LocalError: there are not that many turns, or one is in progress.
        """
        self._check_idle()
        record = undone(self.log, turns, time.time())
        self._keep(record)
        return question_at(self.log, record.start)

    def redo(self) -> Message:
        """Redo what the last `undo` removed; returns the user message of its first turn.

        Raises:
            LocalError: nothing was undone, a message was sent since, or a turn is in progress.
        """
        self._check_idle()
        before = set(turn_starts(self.log))
        self._keep(redone(self.log, time.time()))
        return question_at(self.log, min(set(turn_starts(self.log)) - before))

    def clear(self) -> None:
        """Undo all turns; the log keeps them.

        Raises:
            LocalError: an answer is still in progress.
        """
        self._check_idle()
        if len(self.log):
            self._keep(Undone(0, len(self.log), time.time()))

    def fork(self) -> Conversation:
        """Another conversation that starts with the messages and settings of this one.

        It is not stored on disk, and the two are independent from then on.
        """
        made = object.__new__(Conversation)
        made.log = Log(records=self.log)
        made.settings = self.settings.fork()
        made.target = self.target
        made.interactive = made.patient = False
        made._engine, made._limits, made._parameters = self._engine, self._limits, self._parameters
        made._tools, made._admission = dict(self._own_tools()), self._admission
        made._context, made._mcp = self._context, self._mcp and self._mcp.lent()
        made._reaches = self._reaches.fork()
        made._recorder = made._shorten = made._running = None
        made._is_single = False
        made._steering, made._subscribers = deque(), []
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def close(self) -> None:
        """Release what belongs to the conversation: its MCP servers end. Connections belong to its
        engine, which others may be using: they are closed with their event loop, or with the
        engine.
        """
        if self._mcp is not None:
            self._mcp.close_now()

    async def aclose(self) -> None:
        """`close` on the caller's event loop."""
        if self._mcp is not None:
            await self._mcp.close()

    @property
    def options(self) -> RequestOptions:
        """The parameters of a request beside history and settings; tools may change."""
        return with_tools(self._parameters.request, self.tools)

    @property
    def tools(self) -> Mapping[str, RunnableTool]:
        """The tools offered to the model; those of MCP servers once they have started."""
        own = self._own_tools()
        return own if self._mcp is None else {**own, **self._mcp.tools(self.snapshot())}

    def _own_tools(self) -> Mapping[str, RunnableTool]:
        return self._tools

    def resolve(self, model: str | None) -> Target:
        """The target `switch` would use.

        Raises:
            CatalogError: no model, or more than one, has this name.
        """
        return self._reaches.target(model)

    def way(self) -> Access:
        """How the current model is reached.

        Raises:
            ConfigError: a key or an address is missing; says how to provide it.
        """
        return self._reaches.way_to(self.target)

    def _change_requests(self, **fields: Any) -> None:
        """Change fields of the requests from the next one on."""
        request = replace(self._parameters.request, **fields)
        self._parameters = replace(self._parameters, request=request)

    def _situation(self, options: TurnParameters | None = None) -> Situation:
        """The situation of the next request; determined for each, so that a switch takes effect
        immediately. The options are those of the turn.
        """
        given = parameters_over(self._parameters, options) if options else self._parameters
        target = self.target = self._engine.learnt(self.target)
        way, tools = self.way(), self.tools
        if given.headers:
            way = replace(way, headers={**way.headers, **given.headers})
        if given.query:
            way = replace(way, query={**way.query, **given.query})
        limits = limited(self._limits, given.timeout)
        return Situation(
            target=target,
            snapshot=self.snapshot(),
            options=with_tools(given.request, tools),
            counter=self._engine.counter_for(target),
            send=self._engine.sender(way, limits, patient=self.patient),
            tools=tools,
            interactive=self.interactive,
            end_thought=self._engine.thought_ender(target, way),
        )

    async def _look_around(self) -> bool:
        """Start the MCP servers, and query a server of the user's own; returns whether the next
        request is different for it.
        """
        started = self._mcp is not None and await self._mcp.start()
        return await self.inspect_server() or started

    async def inspect_server(self) -> bool:
        """Query a server of the user's own about the current model; returns whether that is
        news.
        """
        news = False
        if self._engine.may_inspect(self.target):
            try:
                way = self.way()
            except ConfigError:  # a missing key is reported when it is needed
                return False
            news = await self._engine.inspect_server(self.target, way)
        self.target = self._engine.learnt(self.target)
        return news

    def answer_now(self) -> bool:
        """End the current thinking and get the answer; False if there is none.

        A model that was told to answer and thinks again is allowed to (`Hurried` reports it).
        Requires `interactive`, and the event loop of the turn.
        """
        hurry = self._running.hurry if self._running else None
        return hurry is not None and hurry.now()

    def _shortener(self) -> Shortener | None:
        """What keeps requests short; there is nothing to shorten at first."""
        if self._shorten is None and len(self.log.active) >= SHORTEST_TO_SHORTEN:
            from mull.agent.shorten import Shortener

            self._shorten = Shortener(self._engine, self.log)
        return self._shorten

    def _keep(self, record: Record) -> None:
        """Append a record to the log, and store it if there is a store."""
        if self._recorder is not None:
            self._recorder.append(record)
        self.log.add(record)

    def _turn(self, options: TurnParameters | None = None, limits: Limits = LIMITS) -> Turn:
        parameters = self._parameters
        if options:
            check_names(options, TurnParameters.__optional_keys__, "ask")
            parameters = parameters_over(parameters, options)
            options["schema"] = parameters.shape  # read once
        situation = partial(self._situation, options)
        if parameters.rounds is not None:
            limits = replace(limits, rounds=parameters.rounds)
        turn = Turn(
            log=self.log,
            situation=situation,
            inspect=self._look_around,
            now=situation(),  # a missing key is reported before anything is sent
            limits=limits,
            shape=parameters.shape,
            approve=self._admission(),
            context=self._context,
            shorten=self._shortener,
            recorder=self._recorder,
            steering=self._steering,
            hub=Hub(*self._subscribers),
            debug=self._engine.setup.environment.debug,
        )
        self._engine.watch(turn, self._name)
        return turn

    @property
    def _name(self) -> str | None:
        """The id under which it is stored."""
        return None

    async def _run(self, turn: Turn, said: Message | None, *, takes_back: bool = True) -> None:
        """Run the turn that starts with this message; None continues from the end of the log.

        Raises:
            LocalError: another turn of this conversation is in progress.
        """
        running_loop()
        running = self._running
        if running is not None and running.task is not None and running.task.cancelling():
            await end_task(running.task)  # its stream was dropped
        self._check_idle()
        self._running, start = turn, len(self.log)
        try:
            if said is not None:
                self._keep(Entry(said, time.time()))
            await run_turn(turn)
        except BaseException:
            gone = takes_back or turn.too_long  # asked again, it would be just as long
            if gone and not turn.messages and len(self.log) > start:
                self._keep(Undone(start, len(self.log), time.time()))
            raise
        finally:
            self._running = None
            if self._is_single:
                await self.aclose()

    def _check_idle(self) -> None:
        if self._running is not None:
            raise LocalError(
                "this conversation is already answering: wait for it, close its "
                "stream, or continue in a fork()"
            )

    async def _finish(self, said: Message, options: TurnParameters) -> Result:
        turn = self._turn(options)
        await self._run(turn, said)
        return result_of(turn)
