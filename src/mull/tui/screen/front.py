"""What a conversation needs of the terminal it is held at, whichever way that is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from mull.neutral.blocks import Value
from mull.tui.screen.keys import Key
from mull.tui.screen.theme import Theme

if TYPE_CHECKING:
    from mull.tui.screen.viewer import Document

__all__ = ["WHOLE", "Choice", "Front", "Item", "Mark", "Preview", "Question", "Unfolded"]

Unfolded: TypeAlias = Literal["all", "last", "none"]
"""Which documents are open when one begins to read."""
WHOLE = "All of it"
"""What the viewer is called that shows what a question is about."""


class Choice(Value, frozen=True):
    """One way to answer: a key, and what it stands for."""

    key: str
    word: str
    wants_text: bool = False


class Question(Value, frozen=True):
    """Something that a person must decide before work goes on."""

    title: str
    choices: tuple[Choice, ...]


class Item(Value, frozen=True):
    """One of several things to pick; `name` is what is searched and given back."""

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
"""Marks an item by its name, or takes the mark away; whether it is marked now."""
Preview: TypeAlias = Callable[[str], None]
"""Shows what an item would be like, by its name."""


class Front(Protocol):
    """A way to show things and to ask for them."""

    theme: Theme
    keys: Sequence[Key]
    """The keys that mean something here."""

    @property
    def width(self) -> int:
        """The columns that a line may take."""

    def refresh(self) -> None:
        """Draw what has changed, soon."""

    def clear(self) -> None:
        """Begin anew at the top of an empty screen."""

    def repaint(self, change: Callable[[int], int]) -> None:
        """Draw what is on the screen anew. `change` is told how many of the last lines can be
        replaced, and says how many will be; what takes their place is drawn next."""

    async def view(
        self, title: str, documents: Callable[[], Sequence[Document]], *, unfolded: Unfolded
    ) -> None:
        """Let a person read documents that may still grow, until they have seen enough."""

    def set_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            LocalError: there is none of this name.
        """

    async def ask(self, question: Question) -> tuple[str, str]:
        """The key of the choice that was made, and the text given with it."""

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        found: str = "",
        mark: Mark | None = None,
        preview: Preview | None = None,
    ) -> str | None:
        """The name of the item that was picked; None if none was. `found` begins the search,
        `mark` is what a key does that marks favourites, and `preview` is called for each item that
        the choice moves to."""

    async def secret(self, title: str) -> str | None:
        """A line that was typed without being shown; None if there is none, or nobody to ask."""

    @property
    def has_keys(self) -> bool:
        """Whether single keys mean something."""

    @property
    def echoes(self) -> bool:
        """Whether what is typed stays on the screen as it was typed."""

    def put(self, text: str) -> None:
        """Put text into the line that is being typed."""

    def copy(self, text: str) -> bool:
        """Have the terminal put text into the clipboard; False if it cannot be asked."""

    def alert(self, text: str, seconds: float) -> None:
        """Tell somebody who looks elsewhere that something took so long and is over."""

    def leave(self) -> None:
        """End the program."""
