"""What commands need of the conversation that they are given in.

`mull.tui.talk.Talk` is one; a test can be another. A command shows lines, changes the session, and
raises LocalError for what the user can mend.
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
    """A session, the terminal it is held at, and what commands may do with the two."""

    front: Front
    last: Result | None
    sent: Prepared | None
    """The last request that went out from here."""
    attached: list[MediaBlock]
    """What goes with the next message."""
    ran: list[TextBlock]
    """What commands of the user's own have printed: it goes with the next message too."""

    @property
    def session(self) -> Session:
        """The session that is open."""

    @property
    def busy(self) -> bool:
        """Whether the model works."""

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines that a command has made."""

    def tell(self, text: str, *, warning: bool = False) -> None:
        """Say something to the user in mull's own name."""

    def submit(self, message: Message) -> None:
        """Say a message that a command has made, as it is."""

    def send(self, text: str) -> None:
        """Say a text to the model as if it had been typed."""

    def retry(self) -> None:
        """Ask for another answer."""

    def working(self, state: State) -> AbstractAsyncContextManager[None]:
        """Show that something goes on, as it is shown of a turn."""

    def redraw(self) -> None:
        """Draw the whole conversation anew."""

    def show_thoughts(self, mode: Mode) -> None:
        """Show thoughts this way from now on, past ones too."""

    def cycle_view(self) -> Mode:
        """Show thoughts in the next way; which one that is."""

    def set_theme(self, name: str) -> None:
        """Draw in another theme from now on."""

    async def open(
        self, reference: str | None = None, *, new: bool = False, fork_at: int | None = None
    ) -> None:
        """Go on with another session, a new one, or a copy of one up to so many records."""


Run: TypeAlias = Callable[[Host, str], Coroutine[Any, Any, None]]
"""Does what a command is for; the text is what was typed behind its name."""
Offers: TypeAlias = "Callable[[Known, Sequence[str]], Iterable[Item]]"
"""What can stand in the place of the last of the words typed behind the name."""


def _no_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    return ()


class Command(Value, frozen=True):
    """One row of the table. `usage` is what follows the name; `forms` are its ways, each in a line.

    A command that is not for `while_busy` waits until the model has finished.
    """

    name: str
    usage: str
    line: str
    run: Run
    offers: Offers = _no_offers
    while_busy: bool = True
    forms: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """`/model [NAME]`."""
        return f"/{self.name} {self.usage}".rstrip()


def page(host: Host) -> Page:
    """An empty page as wide as the terminal."""
    return Page(host.front.theme, host.front.width)


def path_of(host: Host, name: str) -> Path:
    """The path that a person means: from the session's folder, or from the top."""
    return Path(host.session.info.folder) / Path(name).expanduser()


def path_words(host: Host, path: Path) -> str:
    """The path as it is told: from the session's folder where it lies in it."""
    folder = Path(host.session.info.folder)
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
