"""The sections of a conversation on the screen: which are drawn, which one is open.

It keeps one blank line between sections and can draw all of them again.
"""

from __future__ import annotations

from collections.abc import Iterable

from mull.tui.conversation.sections import Answer, Look, Section, Thought
from mull.tui.text.lines import BLANK, Line

__all__ = ["Canvas"]

_TOGETHER = ("tool", "remark")


class Canvas:
    """Lines to commit, and one section that may still grow."""

    def __init__(self, look: Look) -> None:
        self.look = look
        self.current: Answer | Thought | None = None
        self._sections: list[Section] = []
        self._undrawn: list[Section] = []
        self._last: Section | None = None  # the last section that has lines on the screen
        self._out: list[Line] = []

    def add(self, section: Section) -> None:
        """A section that is over. It is drawn when lines are asked for, if ever."""
        self._sections.append(section)
        self._undrawn.append(section)

    def keep(self, section: Section) -> None:
        """A section that is on the screen already, or in whose place something else is."""
        self._sections.append(section)

    def begin(self, section: Answer | Thought) -> None:
        """A section that arrives piece by piece."""
        self.current = section

    def end(self, now: float | None) -> None:
        """The open section is over."""
        section, self.current = self.current, None
        if section is not None:
            self._draw()
            self._emit(section, section.commit())
            self._emit(section, section.close(now))
            self._sections.append(section)

    def drop(self) -> bool:
        """Forget the open section; whether lines of it are out."""
        section, self.current = self.current, None
        return section is not None and self._last is section

    def commit(self) -> list[Line]:
        """The lines that became final since the last time."""
        self._draw()
        if self.current is not None:
            self._emit(self.current, self.current.commit())
        out, self._out = self._out, []
        return out

    def open_lines(self, now: float | None) -> list[Line]:
        """The open section as it looks now."""
        if self.current is None:
            return []
        self._draw()
        lines = self.current.open_lines(now)
        return [BLANK, *lines] if lines and self._parted(self.current) else lines

    def redraw(self, look: Look, most: int | None) -> list[Line]:
        """All lines again in another look; of old sections only the last, about `most` lines."""
        self.look, self._out, self._undrawn, self._last = look, [], [], None
        drawn: list[tuple[Section, list[Line]]] = []
        count = 0
        for section in reversed(self._sections):
            if most is not None and count >= most:
                break
            drawn.append((section, section.draw(look)))
            count += len(drawn[-1][1])
        for section, lines in reversed(drawn):
            self._emit(section, lines)
        if self.current is not None:
            self.current.restart(look)
        return self.commit()

    def _draw(self) -> None:
        undrawn, self._undrawn = self._undrawn, []
        for section in undrawn:
            self._emit(section, section.draw(self.look))

    def _parted(self, section: Section) -> bool:
        """Whether a blank line stands before the section's next line."""
        last = self._last
        if last is None or last is section:
            return False
        return not (last.family == section.family and section.family in _TOGETHER)

    def _emit(self, section: Section, lines: Iterable[Line]) -> None:
        lines = list(lines)
        if not lines:
            return
        if self._parted(section):
            self._out.append(BLANK)
        self._last = section
        self._out += lines
