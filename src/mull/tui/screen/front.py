"""What a conversation needs from its terminal, however that is drawn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from mull.neutral.blocks import Value
from mull.tui.screen.keys import Key
from mull.tui.screen.theme import Theme

if TYPE_CHECKING:
    from mull.tui.screen.viewer import Document

__all__ = ["LOOK", "WHOLE", "Choice", "Front", "Item", "Mark", "Preview", "Question", "Unfolded"]

Unfolded: TypeAlias = Literal["all", "last", "none"]
"""Which documents are open at first."""
WHOLE = "Full text"
"""The title of the viewer that shows what a question is about."""
LOOK = "look"
"""The choice that opens that viewer."""


class Choice(Value, frozen=True):
    """One way to answer: what is given for it, and its words."""

    key: str
    word: str
    takes_text: bool = False
    """It is answered with what is typed."""
    refuses: bool = False
    """It is what Esc answers. Typing selects it, unless another choice takes text."""


class Question(Value, frozen=True):
    """Something the user must decide before work continues."""

    title: str
    """What is to be decided, in one line."""
    choices: tuple[Choice, ...]
    """The answers to choose from, in the order in which they are shown."""
    about: tuple[str, ...] = ()
    """Lines below the title."""
    quoted: str = ""
    """Text below them, shown as it is."""
    esc: str = "refuses"
    """What Esc does."""
    start: int = 0
    """The choice that is selected at first."""
    numbered: bool = True
    """Whether digits select; otherwise they are text."""
    look: Callable[[], Awaitable[None]] | None = None
    """What the choice `LOOK` does before the question is asked again."""
    follows: bool = False
    """It continues a question that the user has just answered, so it counts keys at once."""

    @property
    def text_row(self) -> int | None:
        """The choice that takes text."""
        return next((at for at, one in enumerate(self.choices) if one.takes_text), None)

    @property
    def refusal(self) -> int:
        """The choice that Esc answers."""
        return next(at for at, one in enumerate(self.choices) if one.refuses)


class Item(Value, frozen=True):
    """One of several items to pick; `name` is searched and returned."""

    name: str
    about: str = ""
    marked: bool = False
    """It is a favourite."""
    current: bool = False
    """It is the one in use."""

    @property
    def remark(self) -> str:
        """What is said beside its name."""
        return " · ".join(filter(None, ("in use" if self.current else "", self.about)))


Mark: TypeAlias = Callable[[str], bool]
"""Toggles the mark of an item by name; returns whether it is now marked."""
Preview: TypeAlias = Callable[[str], None]
"""Shows, by its name, what an item would look like."""


class Front(Protocol):
    """A way to show things and to ask for them."""

    theme: Theme
    keys: Sequence[Key]
    """The active keys."""

    @property
    def width(self) -> int:
        """The columns that a line may take."""

    def refresh(self) -> None:
        """Draw what has changed, soon."""

    def clear(self) -> None:
        """Start at the top of an empty screen."""

    def repaint(self, change: Callable[[int], int]) -> None:
        """Redraw the screen. `change` gets the number of last lines that can be replaced, and
        returns how many will be; their replacements are drawn next.
        """

    async def view(
        self, title: str, documents: Callable[[], Sequence[Document]], *, unfolded: Unfolded
    ) -> None:
        """Let the user read documents, which may still grow, until they close the viewer."""

    def set_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            LocalError: there is none of this name.
        """

    async def ask(self, question: Question) -> tuple[str, str]:
        """The key of the choice, and the text typed for it."""

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        found: str = "",
        mark: Mark | None = None,
        preview: Preview | None = None,
    ) -> str | None:
        """The name of the picked item; None if none was. `found` starts the search, `mark` toggles
        a favourite, and `preview` is called for each item that the selection moves to.
        """

    async def secret(self, title: str) -> str | None:
        """A line typed without being shown; None if there is none, or nobody to ask."""

    @property
    def has_keys(self) -> bool:
        """Whether single keys have a meaning."""

    @property
    def echoes(self) -> bool:
        """Whether typed text stays on the screen as typed."""

    @property
    def draft(self) -> str:
        """What stands in the input line."""

    def put(self, text: str) -> None:
        """Insert text into the input line."""

    def copy(self, text: str) -> bool:
        """Have the terminal copy text to the clipboard; False if it cannot."""

    def alert(self, text: str, seconds: float) -> None:
        """Alert a user who is looking elsewhere that something has finished after this long."""

    def leave(self) -> None:
        """Quit the program."""
