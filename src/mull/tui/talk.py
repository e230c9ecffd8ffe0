"""One session at the terminal: takes input, runs turns, shows what happens.

This module does not know how the terminal is drawn. Messages typed while the model works are sent
with the next tool results, or wait until the turn ends; an interrupt keeps what arrived and returns
queued messages to the input line; an error is reported, and an unanswered question goes back into
the line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeAlias

from mull.neutral.errors import LocalError, MullError
from mull.neutral.messages import user
from mull.tui.compose import compose
from mull.tui.conversation.standing import Standing
from mull.tui.conversation.thought import MODES, SHOWN, Mode
from mull.tui.early import Early
from mull.tui.queue import Queue, Waiting
from mull.tui.tasks import Tasks, Work
from mull.tui.text.lines import Line
from mull.tui.turn import draw_turn, is_answered, show_working

if TYPE_CHECKING:
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.streams import AsyncStream
    from mull.agent.turn import State
    from mull.neutral.blocks import MediaBlock, TextBlock
    from mull.neutral.messages import Message, Status
    from mull.policy.prepare import Prepared
    from mull.tui.commands.host import Host
    from mull.tui.desk import SessionDesk
    from mull.tui.screen.front import Front, Unfolded
    from mull.tui.screen.painter import Painter
    from mull.tui.screen.viewer import Document

__all__ = ["Talk"]

Command: TypeAlias = "Callable[[Host, str], Work]"

BROKEN: tuple[Status, ...] = ("interrupted", "error")


class Talk:
    """A session, its terminal, and the work between them.

    The painter starts with the configured way to draw thinking.
    """

    def __init__(self, desk: SessionDesk, front: Front, painter: Painter, command: Command) -> None:
        self.front = front
        self.last: Result | None = None
        self.sent: Prepared | None = None
        self.attached: list[MediaBlock] = []
        self.ran: list[TextBlock] = []
        self.standing = Standing()
        self.failure: MullError | None = None
        self.unsent = ""
        """Why there is no session; the program ends with it."""
        self._desk = desk
        self._painter = painter
        self._shape = painter.mode
        self._command = command
        self._queue = Queue(painter)
        self._session: Session | None = None
        self._tasks = Tasks(self._guard, self._ended)
        self._leaving = False
        self._came = True
        self.early = Early()
        """What waits until the first session is open."""

    # The session

    @property
    def session(self) -> Session:
        """The open session."""
        if self._session is None:
            raise LocalError("no session is open yet")
        return self._session

    @session.setter
    def session(self, session: Session) -> None:
        session.interactive = session.patient = True
        self._session, self.last, self.sent = session, None, None

    @property
    def is_open(self) -> bool:
        """Whether there is a session."""
        return self._session is not None

    @property
    def something_said(self) -> bool:
        """Whether there is anything to continue later."""
        return self._session is not None and bool(self._session.log)

    def start(self, begin: Callable[[], Work]) -> None:
        """Open the first session; input typed meanwhile waits. Without a session there is no
        conversation.
        """

        async def opening() -> None:
            try:
                await begin()
            except MullError as error:
                self.failure = error
            finally:
                self.early.end()
                if not self.is_open:
                    entered = [*self._give_back(), *self.early.clear(), self.front.draft]
                    self.unsent = "\n".join(filter(None, entered))
                    self.front.leave()

        self.early.begin()
        self._start(opening())

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> None:
        """Switch to another session, or to a copy of one.

        Raises:
            LocalError: it cannot be opened; the previous one stays open.
        """
        before = self._session
        self.session = await self._desk.open(reference, new=new, fork_at=fork_at)
        if before is not None:
            await before.aclose()
            self.front.clear()
        title = _opened(self.session, is_first=before is None)
        self._painter.open(self.session.log, title, mode=self.view)

    # Messages

    @property
    def busy(self) -> bool:
        """Whether the model is working."""
        return self._tasks.is_busy

    def enter(self, text: str) -> None:
        """Process input: a command, a message, or a message for later."""
        self.early.do(lambda: self._enter(text), text)

    def _enter(self, text: str) -> None:
        if text.startswith("/"):
            if not self.front.echoes:
                self._painter.commanded(text)
            self._start(self._command(self, text[1:]), beside=self.busy)
        elif text.startswith("!"):
            from mull.tui.commands.shell import run_shell

            if not self.front.echoes:
                self._painter.commanded(text)
            self._start(run_shell(self, text[1:]), beside=self.busy)
        else:
            self.say(text)

    def say(self, text: str) -> None:
        """Send a message to the model: now, or with the next tool results."""
        if not self.busy:
            self._start(self._say(text), is_turn=True)
            return
        waiting = Waiting(text, steers=self._tasks.is_turn)
        self._queue.add(waiting)
        if waiting.steers:
            self._start(self._steer(waiting), beside=True)

    def queue(self, text: str) -> None:
        """Send a message when the turn ends; a command runs immediately."""
        if self.busy and not text.startswith(("/", "!")):
            self._queue.add(Waiting(text))
        else:
            self.enter(text)

    async def _steer(self, waiting: Waiting) -> None:
        message = await self._message(waiting.text)
        if waiting in self._queue and self.session.steer(message):
            waiting.message = message
            self.attached.clear()
            self.ran.clear()

    @property
    def has_waiting(self) -> bool:
        """Whether messages are queued."""
        return bool(self._queue)

    def take_back(self) -> None:
        """Move the last queued message back into the line."""
        if self._queue:
            self.front.put(self._queue.take_last(self._session))

    def _give_back(self) -> list[str]:
        """The queued messages, removed from the queue."""
        return self._queue.take_all(self._session)

    async def _say(self, text: str) -> None:
        message = await self._message(text)
        if not self.front.echoes:
            self._painter.said(message)
        try:
            stream = await self._submit(message)
        except (LocalError, asyncio.CancelledError):  # nothing was sent or stored
            self.front.put(text)
            raise
        attached, self.attached = self.attached, []
        ran, self.ran = self.ran, []
        try:
            await self._answer(stream, text)
        except (MullError, asyncio.CancelledError):
            if not is_answered(stream):
                self.attached[:0], self.ran[:0] = attached, ran
            raise

    async def _submit(self, message: Message) -> AsyncStream:
        """Start the turn; a missing key is asked for first."""
        try:
            return self.session.submit(message)
        except LocalError:
            from mull.tui.commands.model import offer_key

            if not await offer_key(self):
                raise
        return self.session.submit(message)

    def send(self, text: str) -> None:
        """Send a text from a command, as if it had been typed."""
        self._start(self._say(text), is_turn=True)

    def submit(self, message: Message) -> None:
        """Send a message that a command created, unchanged."""
        self._painter.said(message)
        self._start(self._answer(self.session.submit(message)), is_turn=True)

    async def _message(self, text: str) -> Message:
        """The message for the typed text."""
        if "@" not in text and not self.attached and not self.ran:
            return user(text)
        return await compose(text, self.session, self.ran, self.attached, self._warn)

    def _warn(self, text: str) -> None:
        self.tell(text, warning=True)

    def retry(self) -> None:
        """Ask for another answer."""
        self._start(self._answer(self.session.retry()), is_turn=True)

    def stop(self) -> bool:
        """Interrupt the model and keep what arrived; queued messages go back into the line."""
        if not self.busy or (self.early.is_loading and not self._leaving):
            return False
        self._tasks.stop()
        for text in reversed(self._give_back()):
            self.front.put(text)
        return True

    def answer_now(self) -> bool:
        """End the current thinking."""
        ended = self.is_open and self.session.answer_now()
        if not ended and self.busy:
            self.tell("The model is not thinking right now.")
        return ended

    def next_level(self) -> None:
        """Switch to the next level of the model; bound to a key."""
        from mull.tui.commands.thinking import cycle_level

        if self.is_open:
            self._change(lambda: cycle_level(self))

    def read_thoughts(self) -> None:
        """Open the thinking of the conversation; bound to a key."""
        unfolded: Mapping[Mode, Unfolded] = {"full": "all", "preview": "last", "hidden": "none"}
        if self._painter.thoughts:
            self._read("Thoughts", lambda: self._painter.thoughts, unfolded[self.view])
        else:
            self.tell("There is no thinking to read yet.")

    def read_output(self) -> None:
        """Open the tool calls and their output; bound to a key."""
        if self._painter.tool_uses:
            self._read("Tools", lambda: self._painter.tool_uses, "last")
        else:
            self.tell("No tools have been used yet.")

    def _read(
        self, title: str, documents: Callable[[], Sequence[Document]], unfolded: Unfolded
    ) -> None:
        self._start(self.front.view(title, documents, unfolded=unfolded), beside=True)

    def next_mode(self) -> None:
        """Switch to the next approval mode; bound to a key."""
        from mull.tui.commands.tools import cycle_mode

        if self.is_open:
            self._change(lambda: cycle_mode(self))

    def working(self, state: State) -> AbstractAsyncContextManager[None]:
        """Show progress as during a turn."""
        return show_working(self._painter, state)

    # Display

    @property
    def view(self) -> Mode:
        """How to show thinking: the settings decide whether it is shown at all."""
        shown = self._session is None or self._session.snapshot()[SHOWN]
        return self._shape if shown else "hidden"

    def cycle_view(self) -> Mode:
        """Switch to the next way to show thinking."""
        after = MODES[(MODES.index(self.view) + 1) % len(MODES)]
        self.show_thoughts(after)
        return after

    def show_thoughts(self, view: Mode) -> None:
        """Show thinking this way from now on: the setting is changed too, and thinking still on the
        screen follows.
        """
        shown = view != "hidden"
        if shown:
            self._shape = view
        if self.session.snapshot()[SHOWN] != shown:
            self.session.set(SHOWN, shown)
        self._see()

    def _see(self) -> None:
        """Apply the current way to show thinking, whatever has changed it."""
        view = self.view
        if view != self._painter.mode:
            self.front.repaint(lambda lines: self._painter.restyle(lines, mode=view))

    def redraw(self) -> None:
        """Make the screen follow the stored conversation: undone turns are removed, and restored
        turns are drawn.
        """
        self.front.repaint(lambda lines: self._painter.follow(self.session.log, lines))

    def resized(self, replaceable: int) -> int:
        """Redraw the last lines of the screen for another width, as far as they can be replaced;
        returns how many are.
        """
        return self._painter.restyle(replaceable, width=self.front.width)

    def set_theme(self, name: str) -> None:
        """Use another theme for the screen and for what follows.

        Raises:
            LocalError: there is no theme of this name.
        """
        self.front.set_theme(name)
        theme = self.front.theme
        self.front.repaint(lambda lines: self._painter.restyle(lines, theme=theme))

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Show a message from mull to the user."""
        self._painter.tell(text, warning=warning)

    def show(self, lines: Sequence[Line]) -> None:
        """Show the lines of a command."""
        self._painter.show(lines)

    def status(self, tick: int) -> Line:
        """The status line."""
        session = self._session
        painter, front = self._painter, self.front
        return self.standing.line(
            session, painter.state, painter.mode, front.theme, front.width, tick
        )

    # Work

    async def wait(self) -> None:
        """Return when nothing is running."""
        await self._tasks.wait()

    async def close(self) -> None:
        """Interrupt what is running and close the session."""
        self._leaving = True
        self._give_back()
        self.early.clear()
        self.stop()
        self._tasks.stop_beside()
        await self.wait()
        if self._session is not None:
            await self._session.aclose()
            await self._session.engine.close()
        await self._desk.close()

    def _change(self, change: Callable[[], object]) -> None:
        """Make an immediate change, whatever else is running."""

        async def work() -> None:
            change()

        self._start(work(), beside=True)

    def _start(self, work: Work, *, beside: bool = False, is_turn: bool = False) -> None:
        if not beside:
            self._came = True
        self._tasks.start(work, beside=beside, is_turn=is_turn)

    async def _guard(self, work: Work, is_turn: bool) -> None:
        """Report any error, and let nothing else end because of it."""
        try:
            try:
                await work
            finally:
                if not is_turn:  # the user's action may have changed any setting
                    self._see()
        except MullError as error:
            self._painter.failed(str(error))
        except asyncio.CancelledError:
            if is_turn:
                self._painter.stopped(came=self._came)
        except Exception as error:  # a bug in mull must not cost the conversation
            self.mistake(repr(error))

    def mistake(self, what: str) -> None:
        """Report a bug in mull."""
        self._painter.failed(f"This is a bug in mull, please report it: {what}")

    def _ended(self) -> None:
        self._painter.idle()
        if self._queue:
            self.say(self._queue.take_next(self.session))
        self.early.opened()

    async def _answer(self, stream: AsyncStream, asked: str = "") -> None:
        """One turn, drawn as it arrives. If it fails, queued messages go back into the line, and so
        does an unanswered question.
        """
        try:
            await self._draw(stream)
        except (MullError, asyncio.CancelledError):
            if not self._leaving:
                self._came = is_answered(stream)
                back = [] if self._came else [asked]
                for text in reversed([*back, *self._give_back()]):
                    if text:
                        self.front.put(text)
            raise
        if stream.result.status in BROKEN:
            self.tell("/retry asks again.")

    async def _draw(self, stream: AsyncStream) -> None:
        began = time.monotonic()
        try:
            await draw_turn(stream, self._painter, self._queue.sent)
        finally:
            self.front.alert("the turn is over", time.monotonic() - began)
            self.last, self.sent = stream.result, stream.prepared
        self._painter.end(stream.result)


def _opened(session: Session, *, is_first: bool) -> str:
    """The message about a session that was started or resumed."""
    info = session.info
    if not session.log:
        return "" if is_first else f"New session with {session.target.name}."
    name = f"session {info.label}" if info.label else f"session {info.id}"
    cut = "; it ended in the middle of an answer, and what had arrived is kept"
    return f"Resumed {name}{cut if session.was_cut_off else ''}."


if TYPE_CHECKING:

    def _is_host(talk: Talk) -> Host:
        return talk
