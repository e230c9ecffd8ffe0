"""One session at the terminal: takes what is typed, runs turns, shows what happens.

Nothing here knows how the terminal is drawn. What is typed while the model works waits in a queue;
a stop keeps what came; an error is told and the conversation goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec.structs import replace

from mull.neutral.errors import LocalError, MullError
from mull.neutral.messages import Message, user
from mull.tui.lines import Line
from mull.tui.standing import Standing
from mull.tui.status import next_level
from mull.tui.thought import MODES, Mode

if TYPE_CHECKING:
    from mull.agent.library import AsyncStream
    from mull.agent.mcp.servers import McpServers
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.toolbox import Toolbox
    from mull.agent.tools.approve import Gate
    from mull.agent.tools.tool import RunnableTool
    from mull.neutral.blocks import MediaBlock
    from mull.policy.prepare import Prepared
    from mull.tui.front import Front
    from mull.tui.painter import Painter

__all__ = ["Desk", "Talk"]

Command: TypeAlias = "Callable[[Talk, str], Coroutine[Any, Any, None]]"

TICK = 0.25
"""Seconds between two looks at the clock while the model works."""


class Desk(Protocol):
    """Opens sessions at this terminal, with their tools."""

    toolbox: Toolbox | None

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> Session:
        """The session that is meant; `fork_at` copies its first so many records."""

    async def close(self) -> None:
        """End what the tools have started."""


class Talk:
    """A session, the terminal it is held at, and what is going on between them."""

    def __init__(self, desk: Desk, front: Front, painter: Painter, command: Command) -> None:
        self.desk = desk
        self.front = front
        self.painter = painter
        self.queue: deque[str | Message] = deque()
        self.last: Result | None = None
        self.sent: Prepared | None = None
        self.attached: list[MediaBlock] = []
        self.standing = Standing()
        self._command = command
        self._session: Session | None = None
        self._work: asyncio.Task[None] | None = None

    @property
    def session(self) -> Session:
        """The session that is open."""
        if self._session is None:
            raise LocalError("no session is open yet")
        return self._session

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    def start(self, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Open the first session; what is typed meanwhile waits."""
        self._start(begin())

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> None:
        """Go over to another session, or to a copy of one.

        Raises:
            LocalError: it cannot be opened; the one before stays open.
        """
        before, same = self._session, None
        if before is not None:
            same = before.info.id
            before.release()  # a copy of it, or the same one, may be what is meant
        try:
            session = await self.desk.open(reference, new=new, fork_at=fork_at)
        except BaseException:
            self._session = await self.desk.open(same) if same else None
            raise
        session.interactive = True
        self._session, self.last = session, None
        self.front.clear()
        self.painter.open(session.log, _opened(session))

    @property
    def busy(self) -> bool:
        """Whether the model works."""
        return self._work is not None

    def enter(self, text: str) -> None:
        """Take what was typed: a command, a message, or a message for later."""
        if text.startswith("/"):
            self._start(self._command(self, text[1:]), beside=self.busy)
        else:
            self.say(text)

    def say(self, said: str | Message) -> None:
        """Say something to the model, now or when it has finished."""
        if self.busy:
            self.queue.append(said)
            self._show_queue()
            return
        message = self._with_attached(user(said) if isinstance(said, str) else said)
        self.painter.said(message)
        self._start(self._answer(lambda: self.session.submit(message)))

    def _with_attached(self, message: Message) -> Message:
        attached, self.attached = self.attached, []
        return replace(message, blocks=(*attached, *message.blocks)) if attached else message

    def retry(self) -> None:
        """Ask for another answer."""
        self._start(self._answer(self.session.retry))

    def stop(self) -> bool:
        """Stop the model and keep what came; what waits is put back into the line."""
        if self._work is None:
            return False
        self._work.cancel()
        for said in reversed(self.queue):
            self.front.put(said if isinstance(said, str) else said.text)
        self.queue.clear()
        self._show_queue()
        return True

    def answer_now(self) -> bool:
        """End the thought that is going on."""
        ended = self.is_open and self.session.answer_now()
        if not ended and self.busy:
            self.tell("the model is not thinking just now")
        return ended

    def cycle_view(self) -> Mode:
        """Show thoughts in the next way, the past ones too."""
        after = MODES[(MODES.index(self.painter.mode) + 1) % len(MODES)]
        self.show_thoughts(after)
        return after

    def next_level(self) -> None:
        """Think at the next level that the model has."""
        session = self.session
        level = next_level(session.target, session.snapshot())
        if level is None:
            self.tell(f"{session.target.name} has no levels to choose from")
            return
        session.set("reasoning.effort", level)
        self.tell(f"Thinking: {session.prepared().thinking}")

    def show_thoughts(self, mode: Mode) -> None:
        """Show thoughts this way from now on, and draw the past ones anew."""
        self.front.clear()
        self.painter.restyle(mode=mode)

    def redraw(self) -> None:
        """Draw the whole conversation anew."""
        self.front.clear()
        self.painter.restyle(width=self.front.width)

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Say something to the user in mull's own name."""
        self.painter.tell(text, warning=warning)

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines that a command has made."""
        self.painter.show(lines)

    def set_theme(self, name: str) -> None:
        """Draw everything in another theme.

        Raises:
            LocalError: there is none of this name.
        """
        self.front.set_theme(name)
        self.front.clear()
        self.painter.restyle(theme=self.front.theme)

    @property
    def gate(self) -> Gate | None:
        """What decides about tool calls; None without tools."""
        return self.desk.toolbox.gate if self.desk.toolbox else None

    @property
    def all_tools(self) -> Mapping[str, RunnableTool]:
        """Every tool that could be offered."""
        return self.desk.toolbox.all if self.desk.toolbox else {}

    @property
    def mcp(self) -> McpServers | None:
        """The servers of tools."""
        return self.desk.toolbox.mcp if self.desk.toolbox else None

    def choose_tools(self, wanted: str) -> None:
        """Offer other tools from the next request on.

        Raises:
            LocalError: a word fits no tool, or mull was started without any.
        """
        if self.desk.toolbox is None:
            raise LocalError("mull was started without tools: begin it with --tools all")
        self.desk.toolbox.choose(wanted)

    async def wait(self) -> None:
        """Return when nothing is going on any more."""
        while self._work is not None:
            await asyncio.wait({self._work})
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop what is going on and close the session."""
        self.queue.clear()
        self.stop()
        await self.wait()
        if self._session is not None:
            await self._session.aclose()
        await self.desk.close()

    def _start(self, work: Coroutine[Any, Any, None], *, beside: bool = False) -> None:
        task = asyncio.get_running_loop().create_task(self._guard(work))
        if not beside:
            self._work = task
            task.add_done_callback(self._ended)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Whatever goes wrong is told, and nothing else ends by it."""
        try:
            await work
        except MullError as error:
            self.painter.failed(str(error))
        except asyncio.CancelledError:
            self.painter.stopped()

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._work = None
        if self.queue:
            said = self.queue.popleft()
            self._show_queue()
            self.say(said)
        self.painter.idle()

    async def _answer(self, begin: Callable[[], AsyncStream]) -> None:
        """One turn, drawn as it comes."""
        stream = begin()
        self.painter.begin()
        clock = asyncio.get_running_loop().create_task(self._tick())
        try:
            async for event in stream:
                self.painter.event(event)
        finally:
            clock.cancel()
            await stream.aclose()
            self.last, self.sent = stream.result, stream.prepared
            if self.sent is not None:
                self.standing.learn(self.sent, self.last.message.usage)
        self.painter.end(stream.result)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self.painter.tick()

    def _show_queue(self) -> None:
        self.painter.queued([said if isinstance(said, str) else said.text for said in self.queue])


def _opened(session: Session) -> str:
    """What is said of a session that goes on."""
    info = session.info
    if not session.log:
        return ""
    name = f"session {info.label}" if info.label else f"session {info.id}"
    found = ""
    if session.recovered:
        found = "; it ended in the middle of an answer, and what came of that is here"
    return f"Going on with {name}{found}."
