"""Assembles the terminal interface and runs it."""

from __future__ import annotations

import os
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mull.neutral.blocks import Value
from mull.policy.approval import Mode as Approval
from mull.policy.thinking.plan import feedback, plan_thinking
from mull.tui.conversation.thought import SHOWN, Mode
from mull.tui.desk import SessionDesk
from mull.tui.screen.keymap import keymap
from mull.tui.screen.look import Surroundings, look_around
from mull.tui.screen.painter import Painter
from mull.tui.talk import Talk

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

    from mull.agent.engine import Engine
    from mull.agent.opening import Opening
    from mull.agent.session import Session
    from mull.agent.toolbox import Toolbox
    from mull.store.sessions.values import SessionStore
    from mull.tui.commands.complete import SlashCompleter
    from mull.tui.commands.host import Host
    from mull.tui.screen.app import TerminalFront
    from mull.tui.screen.keys import Key
    from mull.tui.screen.plain import PlainFront
    from mull.tui.screen.theme import Theme

__all__ = ["Wishes", "run_terminal"]

USUAL: Mode = "preview"
"""How visible thinking is shown by default."""

_HELP = "/help lists commands and keys. Ctrl-T opens the thinking, Esc interrupts the model."
_PLAIN_HELP = "/help lists commands. /view shows or hides thinking, Ctrl-C interrupts the model."


class Wishes(Value, frozen=True):
    """What the command line says about the terminal and the tools."""

    theme: str = "auto"
    """The name of the colour theme; `auto` fits the terminal's background."""
    plain: bool = False
    """Whether to print plain lines, as for screen readers and simple terminals."""
    view: Mode | None = None
    """How to show thinking; None leaves it to the settings."""
    tools: str | None = None
    """The tools to offer, as `--tools` takes them; None offers all, except to models that get tools
    only on request.
    """
    mode: Approval | None = None
    """Which tool calls need approval; None leaves it to the configuration."""
    max_tokens: int | None = None
    """The most tokens of an answer; None sets no limit."""
    temperature: float | None = None
    """How random answers are; None leaves it to the model."""
    question: str = ""
    """A first question, asked when the terminal opens; empty for none."""


async def run_terminal(
    engine: Engine, store: SessionStore, begin: Opening, wishes: Wishes, told: list[str]
) -> str | None:
    """Run the conversation until the user quits; returns the session to continue, None if it is
    empty.

    Raises:
        MullError: no session can be opened.
    """
    plain = wishes.plain or os.environ.get("TERM") == "dumb"
    around = (
        Surroundings("none", None)
        if plain
        else look_around(engine.setup.config.themes, wishes.theme)
    )
    theme = _spoken_theme() if plain else around.theme(wishes.theme)
    if wishes.view is not None:
        engine.setup.settings.set(SHOWN, wishes.view != "hidden")
    shape = USUAL if wishes.view in (None, "hidden") else wishes.view
    # the parts know each other: the picture asks the terminal to draw, the terminal asks for it
    parts = _Parts()
    painter = parts.painter = Painter(theme, 80, shape, refresh=lambda: parts.front.refresh())
    keys = keymap(engine.setup.config.keys)
    front = parts.front = _plain_front(parts) if plain else _front(parts, around, theme, keys)
    painter.restyle(width=front.width)
    desk = SessionDesk(
        engine,
        store,
        begin,
        lambda: _toolbox(engine, wishes, parts),
        lambda text: painter.tell(text, warning=True),
        max_tokens=wishes.max_tokens,
        temperature=wishes.temperature,
    )
    talk = parts.talk = Talk(desk, front, painter, _run_command)
    for text in told:
        talk.tell(text, warning=True)
    try:
        await front.run(talk, lambda: _begin(desk, talk, wishes.question))
    finally:
        await talk.close()
        with suppress(OSError):  # a closed terminal accepts no more output
            front.finish()
    if talk.failure is not None:
        _keep_unsent(talk.unsent)
        raise talk.failure
    return talk.session.info.id if talk.something_said else None


def _keep_unsent(text: str) -> None:
    """Have what was typed told beside the error."""
    from mull.tui.instant import prompt

    if (early := prompt.current()) is not None:
        early.unsent = text


def _run_command(host: Host, text: str) -> Coroutine[Any, Any, None]:
    from mull.tui.commands.table import run_command

    return run_command(host, text)


class _Parts:
    """The parts, created one after the other and used together."""

    painter: Painter
    front: TerminalFront | PlainFront
    talk: Talk | None = None
    _completer: SlashCompleter | None = None
    _titled = ("", "")

    def taken(self, typed: str) -> str:
        """What Enter accepts for the typed text."""
        self.completer()
        return typed if self._completer is None else self._completer.taken(typed)

    def title(self) -> str:
        """The window title: the folder, the session, and whether mull is working or asking."""
        talk = self.talk
        if talk is None or not talk.is_open:
            return ""
        sign = "? " if self.painter.asks else "… " if talk.busy else ""
        info = talk.session.info
        text = sign + " · ".join(filter(None, ("mull", Path(info.folder).name, info.label)))
        if text != self._titled[0]:  # it is requested whenever something is drawn
            wanted = talk.session.snapshot()["terminal.title"]
            self._titled = text, text if wanted else ""
        return self._titled[1]

    def alerts(self) -> tuple[str, float]:
        """How to alert a user who is looking elsewhere, and after how many seconds."""
        if self.talk is None or not self.talk.is_open:
            return "none", 0.0
        snapshot = self.talk.session.snapshot()
        after = snapshot["terminal.notifyAfter"]
        assert isinstance(after, float)
        return str(snapshot["terminal.notify"]), after

    def completer(self) -> Completer | None:
        """The completer, once there is a session."""
        if self._completer is None and self.talk is not None and self.talk.is_open:
            from mull.tui.commands.complete import SlashCompleter

            self._completer = SlashCompleter(lambda: self.talk)
        return self._completer


def _load() -> None:
    """Import what opening a session needs; in a thread, what is typed is shown meanwhile."""
    import mull.agent.toolbox
    import mull.catalog.resolve
    import mull.tui.conversation.approving
    import mull.tui.first  # noqa: F401


async def _begin(desk: SessionDesk, talk: Talk, question: str) -> None:
    """Open the first session. The prompt is drawn by then; what is typed meanwhile waits."""
    await talk.early.load(_load)
    from mull.tui.first import choose_model

    await choose_model(desk, talk)
    await talk.open()
    greet(talk)
    if question:
        talk.say(question)  # when this is done: it waits like anything typed meanwhile


def greet(talk: Talk) -> None:
    """The first lines of a new session: the model, and how to get help."""
    if talk.session.log:
        return
    target, snapshot = talk.session.target, talk.session.snapshot()
    said = feedback(target, plan_thinking(target, snapshot))
    keys = _HELP if talk.front.has_keys else _PLAIN_HELP
    lines = "\n".join(said)
    if talk.front.theme.words:
        lines = lines.removeprefix("✓ ")
    talk.tell("\n".join((lines, *target.notes, *_withheld(talk.session), keys)))


def _withheld(session: Session) -> tuple[str, ...]:
    """A remark about tools that could be offered but are not."""
    if session.toolbox is None or session.offered_toolbox is not None:
        return ()
    return (
        (
            f"{session.target.name} is too small to use tools well, so none are offered. "
            "/tools all offers them."
        ),
    )


def _toolbox(engine: Engine, wishes: Wishes, parts: _Parts) -> Toolbox | None:
    if wishes.tools == "none":
        return None
    from mull.agent.toolbox import Toolbox
    from mull.tui.conversation.approving import FrontApprover

    toolbox = Toolbox(
        engine.setup,
        Path.cwd(),
        wanted=wishes.tools or "all",
        mode=wishes.mode,
        approver=FrontApprover(parts.front, parts.painter),
        warn=lambda text: parts.painter.tell(text, warning=True),
    )
    toolbox.unasked = wishes.tools is None
    return toolbox


def _front(parts: _Parts, around: Surroundings, theme: Theme, keys: Sequence[Key]) -> TerminalFront:
    from prompt_toolkit.completion import DynamicCompleter

    from mull.tui.screen.app import TerminalFront

    return TerminalFront(
        around,
        theme,
        keys=keys,
        frame=lambda: parts.painter.frame(),
        status=lambda: parts.talk.status(int(time.monotonic() * 8)) if parts.talk else (),
        completer=DynamicCompleter(parts.completer),
        take=parts.taken,
        title=parts.title,
        alerts=parts.alerts,
        history=_history(),
    )


def _history() -> History:
    """The input history; if it cannot be stored, only that of this run."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    from mull.store.files import make_parents
    from mull.store.paths import data_dir

    path = data_dir() / "typed"
    try:
        make_parents(path.parent)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))  # readable only by its owner
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _spoken_theme() -> Theme:
    from mull.tui.screen.plain import spoken_theme

    return spoken_theme()


def _plain_front(parts: _Parts) -> PlainFront:
    from mull.tui.screen.plain import PlainFront

    return PlainFront(lambda: parts.painter.frame(), lambda: parts.painter.progress())
