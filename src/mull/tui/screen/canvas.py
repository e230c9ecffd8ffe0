"""The sections of a conversation on the screen: which are drawn, and which one is open.

It keeps one blank line between sections, and knows how many lines of each are written, so that
those still on the screen can be redrawn in another look.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mull.tui.conversation.sections import Answer, Look, Section, Thought
from mull.tui.text.lines import BLANK, Line

__all__ = ["Canvas", "Redrawn"]

_TOGETHER = ("tool", "remark")


class Redrawn(NamedTuple):
    """How many of the last lines to remove from the screen, and the lines that replace them."""

    gone: int
    lines: list[Line]


class _Placed:
    """A section, and how many lines are written for it: its own, and a blank one before them."""

    def __init__(self, section: Section, lines: int = 0) -> None:
        self.section = section
        self.lines = lines


class Canvas:
    """Lines to commit, and one section that may still grow."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self._placed: list[_Placed] = []
        self._undrawn: list[_Placed] = []
        self._open: _Placed | None = None
        self._last: Section | None = None  # the last section that has lines on the screen
        self._out: list[Line] = []

    @property
    def current(self) -> Answer | Thought | None:
        """The section that may still grow."""
        section = self._open.section if self._open else None
        return section if isinstance(section, Answer | Thought) else None

    @property
    def sections(self) -> Iterator[Section]:
        """All of them, in order."""
        for placed in self._placed:
            yield placed.section
        if self._open is not None:
            yield self._open.section

    def add(self, section: Section) -> None:
        """Add a complete section. It is drawn when its lines are needed."""
        placed = _Placed(section)
        self._placed.append(placed)
        self._undrawn.append(placed)

    def begin(self, section: Answer | Thought) -> None:
        """Start a section that arrives in chunks."""
        self._open = _Placed(section)

    def end(self, now: float | None) -> None:
        """Close the open section."""
        section, placed = self.current, self._open
        if section is not None and placed is not None:
            self._draw()
            self._emit(placed, section.commit())
            self._emit(placed, section.close(now))
            self._placed.append(placed)
            self._open = None

    def replace_current(self, section: Section) -> bool:
        """Replace the open section; returns whether lines of it were already written."""
        placed, self._open = self._open, None
        if placed is None or not placed.lines:
            self.add(section)
            return False
        self._placed.append(_Placed(section, placed.lines))
        return True

    def commit(self) -> list[Line]:
        """The lines that became final since the last call."""
        self._draw()
        if self._open is not None and self.current is not None:
            self._emit(self._open, self.current.commit())
        out, self._out = self._out, []
        return out

    def commit_last(self, most: int) -> list[Line]:
        """The same, but of what was never drawn only the last sections: about `most` lines."""
        count, first = 0, len(self._undrawn)
        while first and count < most:
            first -= 1
            count += len(self._undrawn[first].section.draw(self.look))
        del self._undrawn[:first]
        return self.commit()[-most:]

    def open_lines(self, now: float | None) -> list[Line]:
        """The open section as it looks now."""
        if self.current is None:
            return []
        self._draw()
        lines = self.current.open_lines(now)
        return [BLANK, *lines] if lines and self._parted(self.current) else lines

    def redraw(self, look: Look, replaceable: int) -> Redrawn:
        """Redraw in another look the sections completely within the last lines.

        A section with lines above them stays as it is, and an open one continues from there.
        """
        self.look = look
        gone = self._open.lines if self._open else 0
        if gone > replaceable:
            if self.current is not None:
                self.current.go_on(look)
            return Redrawn(0, [])
        kept = len(self._placed)
        while kept and gone + self._placed[kept - 1].lines <= replaceable:
            kept -= 1
            gone += self._placed[kept].lines
        return Redrawn(gone, self._draw_from(kept))

    def cut(self, first: Section, replaceable: int) -> int | None:
        """Remove a section and all after it; returns how many of their lines are on the screen, or
        None if some are above the last `replaceable` ones: then nothing is removed.
        """
        at = next(at for at, placed in enumerate(self._placed) if placed.section is first)
        gone = sum(placed.lines for placed in self._placed[at:])
        if gone > replaceable or self._open is not None:
            return None
        del self._placed[at:]
        self._undrawn = [placed for placed in self._undrawn if placed in self._placed]
        self._last = self._last_before(at)
        return gone

    def _draw_from(self, kept: int) -> list[Line]:
        self._last = self._last_before(kept)
        self._undrawn = []
        for placed in self._placed[kept:]:
            placed.lines = 0
            self._emit(placed, placed.section.draw(self.look))
        if self._open is not None and self.current is not None:
            self._open.lines = 0
            self.current.restart(self.look)
        return self.commit()

    def _last_before(self, at: int) -> Section | None:
        return next((p.section for p in reversed(self._placed[:at]) if p.lines), None)

    def _draw(self) -> None:
        undrawn, self._undrawn = self._undrawn, []
        for placed in undrawn:
            self._emit(placed, placed.section.draw(self.look))

    def _parted(self, section: Section) -> bool:
        """Whether a blank line precedes the section's next line."""
        last = self._last
        if last is None or last is section:
            return False
        return not (last.family == section.family and section.family in _TOGETHER)

    def _emit(self, placed: _Placed, lines: Iterable[Line]) -> None:
        lines = list(lines)
        if not lines:
            return
        if self._parted(placed.section):
            lines.insert(0, BLANK)
        self._last = placed.section
        placed.lines += len(lines)
        self._out += lines
