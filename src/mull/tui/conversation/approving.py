"""Asks a person at the terminal whether a tool may run, with what it would do before their eyes,
and what the model wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.agent.tools.approve import LETTERS, ApprovalAnswer, ApprovalRequest, UserQuestion
from mull.tui.screen.front import Choice, Question
from mull.tui.text.lines import BLANK, Line, Span
from mull.tui.text.safe import neutralise, one_line
from mull.tui.text.wrap import wrapped

if TYPE_CHECKING:
    from mull.tui.screen.front import Front
    from mull.tui.screen.painter import Painter
    from mull.tui.screen.theme import Theme

__all__ = ["FrontApprover", "preview_lines"]

MOST_LINES = 40
_WHOLE = "v"
_SHORTEST_RULE = 20
_BESIDE_RULE = 24
"""Columns of the choice that names a rule, without the rule."""


class FrontApprover:
    """Shows the diff or the command, and waits for a key."""

    def __init__(self, front: Front, painter: Painter) -> None:
        self._front = front
        self._painter = painter

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask, and give the answer. What is long is shown from its beginning, with a key to see all
        of it first; where there are no keys all of it is shown."""
        hidden = self._show(request, MOST_LINES if self._front.has_keys else None)
        while True:
            key, text = await self._asked(self._question(request, hidden))
            if key != _WHOLE:
                break
            hidden = self._show(request, None)
        if key == "t":
            return ApprovalAnswer("no", feedback=text)
        return ApprovalAnswer(LETTERS[key])

    def _show(self, request: ApprovalRequest, most: int | None) -> int:
        """Show so many lines of what a call would do; how many more there are."""
        theme, width = self._front.theme, self._front.width
        self._painter.show(preview_lines(request, theme, width, most))
        return 0 if most is None else max(0, len(_rows(request)) - most)

    def _question(self, request: ApprovalRequest, hidden: int) -> Question:
        rule = one_line(request.rules[0], max(_SHORTEST_RULE, self._front.width - _BESIDE_RULE))
        whole = [Choice(_WHOLE, f"view the other {hidden:,} lines")] if hidden else []
        return Question(
            f"Run {one_line(request.tool)}?",
            (
                *whole,
                Choice("y", "yes, once"),
                Choice("s", f"for this session: {rule}"),
                Choice("a", "always"),
                Choice("x", "never in this session"),
                Choice("t", "no, and tell it why", wants_text=True),
                Choice("n", "no"),
            ),
        )

    async def question(self, question: UserQuestion) -> str | None:
        """Show what the model wants to know, and give the answer."""
        shown = wrapped(neutralise(question.text), self._front.theme.heading, self._front.width)
        self._painter.show(shown)
        options = {str(number): text for number, text in enumerate(question.options, 1)}
        for key, text in options.items():
            row = neutralise(f"{key}. {text}")
            self._painter.show(wrapped(row, self._front.theme.text, self._front.width))
        width = max(_SHORTEST_RULE, self._front.width - _BESIDE_RULE)
        choices = [Choice(key, one_line(text, width)) for key, text in options.items()]
        own = Choice("t", "your own words" if options else "answer", wants_text=True)
        key, text = await self._asked(Question("Answer?", (*choices, own, Choice("n", "none"))))
        return options.get(key, text.strip()) or None

    async def _asked(self, question: Question) -> tuple[str, str]:
        self._painter.asks = True
        try:
            return await self._front.ask(question)
        finally:
            self._painter.asks = False


def preview_lines(
    request: ApprovalRequest, theme: Theme, width: int, most: int | None = None
) -> list[Line]:
    """What a call would do: its title, and the diff or the command below it, or the first `most`
    lines of that."""
    preview = request.preview
    out: list[Line] = wrapped(neutralise(preview.title), theme.heading, width)
    rows = _rows(request)
    for row in rows[:most]:
        style = theme.code
        if preview.kind == "diff":
            style = {"+": theme.added, "-": theme.removed}.get(row[:1], theme.tool_output)
        out += wrapped(neutralise(f"  {row}"), style, width) or [BLANK]
    if most is not None and len(rows) > most:
        out.append((Span(f"  … {len(rows) - most:,} more lines", theme.faint),))
    return out


def _rows(request: ApprovalRequest) -> list[str]:
    preview = request.preview
    rows = preview.detail.splitlines()
    if preview.kind == "diff" and rows[:1] and rows[0].startswith("--- "):
        return rows[2:]  # the title names the file already
    return rows
