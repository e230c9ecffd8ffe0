"""What commands need from the conversation they run in.

`mull.tui.talk.Talk` implements it, and so do tests. A command shows lines, changes the session, and
raises LocalError for errors the user can correct.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from mull.neutral.blocks import Value
from mull.tui.commands.page import Page
from mull.tui.text.lines import Line

if TYPE_CHECKING:
    from mull.agent.results import Result
    from mull.agent.session import Session
    from mull.agent.turn import State
    from mull.neutral.blocks import MediaBlock, TextBlock
    from mull.neutral.messages import Message
    from mull.policy.prepare import Prepared
    from mull.tui.commands.known import Known
    from mull.tui.conversation.thought import Mode
    from mull.tui.screen.front import Front, Item

__all__ = ["Command", "Host", "Offers", "Run", "page", "path_of", "path_words"]


class Host(Protocol):
    """A session, its terminal, and what commands may do with the two."""

    front: Front
    last: Result | None
    sent: Prepared | None
    """The last request sent from here."""
    attached: list[MediaBlock]
    """Attachments of the next message."""
    ran: list[TextBlock]
    """Output of the user's own shell commands, which is sent with the next message too."""

    @property
    def session(self) -> Session:
        """The open session."""

    @property
    def busy(self) -> bool:
        """Whether the model is working."""

    def show(self, lines: Sequence[Line]) -> None:
        """Show the lines of a command."""

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Show a message from mull to the user."""

    def submit(self, message: Message) -> None:
        """Send a message that a command created, unchanged."""

    def send(self, text: str) -> None:
        """Send a text to the model as if it had been typed."""

    def retry(self) -> None:
        """Ask for another answer."""

    def working(self, state: State) -> AbstractAsyncContextManager[None]:
        """Show progress as during a turn."""

    def redraw(self) -> None:
        """Redraw the whole conversation."""

    def show_thoughts(self, mode: Mode) -> None:
        """Show thinking this way from now on, including earlier thinking."""

    def cycle_view(self) -> Mode:
        """Switch to the next way to show thinking, and return it."""

    def set_theme(self, name: str) -> None:
        """Use another theme from now on."""

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> None:
        """Continue with another session, a new one, or a copy of one up to a record."""


Run: TypeAlias = Callable[[Host, str], Coroutine[Any, Any, None]]
"""Runs a command; the text is what was typed after its name."""
Offers: TypeAlias = "Callable[[Known, Sequence[str]], Iterable[Item]]"
"""Completions for the last word typed after the name."""


def _no_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    return ()


class Command(Value, frozen=True):
    """One row of the command table."""

    name: str
    """The word after the slash."""
    usage: str
    """What may follow it, as help shows it: `[KEY [VALUE]]`."""
    line: str
    """What it does, in one line of help."""
    run: Run
    """Runs it with the text that was typed after its name."""
    offers: Offers = _no_offers
    """Completions for what is typed after its name."""
    while_busy: bool = True
    """Whether it may run while the model is working; otherwise it is rejected then."""
    forms: tuple[tuple[str, str], ...] = ()
    """Its variants, one line of help each: what is typed, and what that does."""
    aliases: tuple[str, ...] = ()
    """Other words for it."""

    @property
    def shown(self) -> str:
        """`/model [NAME]`."""
        return f"/{self.name} {self.usage}".rstrip()


def page(host: Host) -> Page:
    """An empty page as wide as the terminal."""
    return Page(host.front.theme, host.front.width)


def path_of(host: Host, name: str) -> Path:
    """The path the user means: absolute, or relative to the session's folder."""
    return Path(host.session.info.folder) / Path(name).expanduser()


def path_words(host: Host, path: Path) -> str:
    """The path as shown to the user: relative to the session's folder if it is inside."""
    folder = Path(host.session.info.folder)
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
