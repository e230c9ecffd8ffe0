"""Picking one of many items: a fuzzy search, the best match first."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mull.tui.screen.front import Item, Mark, Preview
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.width import cell_width, fitted

__all__ = ["Picker", "matching", "score"]

ROWS = 10


_FOLDED = str.maketrans("._", "--")
"""People write 4.5 for what is called 4-5."""
_INSIDE, _SPREAD = 1, 100


def score(name: str, wanted: str) -> int | None:
    """How well a name matches the typed text, lower is better; None if it does not match.

    Equal matches have the same score, so that items keep their order.
    """
    name, wanted = name.lower().translate(_FOLDED), wanted.lower().translate(_FOLDED)
    if wanted in (name, name.partition("/")[2], name.rpartition("/")[2]):
        return -1
    total = 0
    for word in wanted.split():
        at = name.find(word)
        if at >= 0:
            total += 0 if _begins(name, word, at) else _INSIDE
            continue
        spread = _spread(name, word)
        if spread is None:
            return None
        total += _SPREAD + spread
    return total


def _begins(name: str, word: str, at: int) -> bool:
    """Whether the word starts a part of the name, here or further on."""
    while at >= 0:
        if at == 0 or not name[at - 1].isalnum():
            return True
        at = name.find(word, at + 1)
    return False


def _spread(name: str, word: str) -> int | None:
    """How far apart the letters of a word are in a name, in order."""
    at, first = -1, -1
    for letter in word:
        at = name.find(letter, at + 1)
        if at < 0:
            return None
        first = at if first < 0 else first
    return at - first


def matching(items: Sequence[Item], wanted: str) -> list[Item]:
    """The matching items, the best first; all of them for an empty search."""
    scored = [
        (fit, at, item)
        for at, item in enumerate(items)
        if (fit := score(item.name, wanted)) is not None
    ]
    return (
        [item for _, _, item in sorted(scored, key=lambda one: one[:2])]
        if wanted.strip()
        else list(items)
    )


class Picker:
    """The items, the typed text, and the current choice."""

    def __init__(
        self,
        title: str,
        items: Sequence[Item],
        mark: Mark | None = None,
        preview: Preview | None = None,
    ) -> None:
        self.title = title if mark is None else f"{title}  Ctrl-F marks a favourite."
        self._mark = mark
        self._preview = preview
        self._items = items
        self._shown: list[Item] = list(items)
        self._at = self._start = next((at for at, one in enumerate(items) if one.current), 0)
        self._seen = self.chosen

    def search(self, text: str) -> None:
        """Show what matches; for an empty search everything, starting at the item in use."""
        self._shown = matching(self._items, text)
        self._at = 0 if text.strip() else self._start
        self._show()

    def move(self, steps: int) -> None:
        """Move the choice up or down."""
        self._at = max(0, min(len(self._shown) - 1, self._at + steps))
        self._show()

    def _show(self) -> None:
        name = self.chosen
        if self._preview is not None and name is not None and name != self._seen:
            self._seen = name
            self._preview(name)

    def mark(self) -> None:
        """Toggle the mark of the current item."""
        if self._mark is None or not self._shown:
            return
        before = self._shown[self._at]
        after = replace(before, marked=self._mark(before.name))
        self._shown[self._at] = after
        self._items = [after if item is before else item for item in self._items]

    @property
    def chosen(self) -> str | None:
        """The name of the current item."""
        return self._shown[self._at].name if self._shown else None

    def lines(self, theme: Theme, width: int) -> list[Line]:
        """The items around the current choice."""
        first = max(0, min(self._at - ROWS // 2, len(self._shown) - ROWS))
        rows = self._shown[first : first + ROWS]
        wide = min(max((cell_width(item.name) for item in rows), default=0), width * 2 // 3)
        out: list[Line] = [(Span(fitted(self.title, width), theme.heading),)]
        for at, item in enumerate(rows, first):
            here = at == self._at
            name = fitted(item.name, wide)
            gap = " " * (wide - cell_width(name) + 2)
            star = "" if not item.marked else "favourite · " if theme.marks else "★ "
            about = fitted(star + item.remark, max(0, width - wide - 4))
            style = theme.accent if here else theme.text
            out.append(
                (
                    Span("❯ " if here else "  ", theme.accent),
                    Span(name + gap, style),
                    Span(about, theme.faint),
                )
            )
        rest = len(self._shown) - len(rows)
        said = "no match" if not rows else f"{rest} more; type to search" if rest else ""
        if said:
            out.append((Span(fitted(f"  {said}", width), theme.faint),))
        return out
