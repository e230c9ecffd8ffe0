"""Asks a person at the terminal whether a tool may run, with what it would do before their eyes,
and what the model wants to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.agent.tools.approve import LETTERS, ApprovalAnswer, ApprovalRequest, UserQuestion
from mull.tui.screen.front import Choice, Question
from mull.tui.text.lines import BLANK, Line, Span
from mull.tui.text.safe import neutralise
from mull.tui.text.width import fitted
from mull.tui.text.wrap import wrapped

if TYPE_CHECKING:
    from mull.tui.screen.front import Front
    from mull.tui.screen.painter import Painter
    from mull.tui.screen.theme import Theme

__all__ = ["FrontApprover", "preview_lines"]

MOST_LINES = 40


class FrontApprover:
    """Shows the diff or the command, and waits for a key."""

    def __init__(self, front: Front, painter: Painter) -> None:
        self._front = front
        self._painter = painter

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask, and give the answer."""
        rule = request.rules[0]
        self._painter.show(preview_lines(request, self._front.theme, self._front.width))
        question = Question(
            f"Run {request.tool}?",
            (
                Choice("y", "yes, once"),
                Choice("s", f"for this session: {rule}"),
                Choice("a", "always"),
                Choice("x", "never in this session"),
                Choice("t", "no, and tell it why", wants_text=True),
                Choice("n", "no"),
            ),
        )
        key, text = await self._asked(question)
        if key == "t":
            return ApprovalAnswer("no", feedback=text)
        return ApprovalAnswer(LETTERS[key])

    async def question(self, question: UserQuestion) -> str | None:
        """Show what the model wants to know, and give the answer."""
        shown = wrapped(neutralise(question.text), self._front.theme.heading, self._front.width)
        self._painter.show(shown)
        options = {str(number): text for number, text in enumerate(question.options, 1)}
        choices = [Choice(key, neutralise(text)) for key, text in options.items()]
        own = Choice("t", "your own words" if options else "answer", wants_text=True)
        key, text = await self._asked(Question("Answer?", (*choices, own, Choice("n", "none"))))
        return options.get(key, text.strip()) or None

    async def _asked(self, question: Question) -> tuple[str, str]:
        self._painter.asks = True
        try:
            return await self._front.ask(question)
        finally:
            self._painter.asks = False


def preview_lines(request: ApprovalRequest, theme: Theme, width: int) -> list[Line]:
    """What a call would do: its title, and the diff or the command below it."""
    preview = request.preview
    out: list[Line] = [(Span(fitted(neutralise(preview.title), width), theme.heading),)]
    rows = preview.detail.splitlines()
    if preview.kind == "diff" and rows[:1] and rows[0].startswith("--- "):
        rows = rows[2:]  # the title names the file already
    for row in rows[:MOST_LINES]:
        style = theme.code
        if preview.kind == "diff":
            style = {"+": theme.added, "-": theme.removed}.get(row[:1], theme.tool_output)
        out += wrapped(neutralise(f"  {row}"), style, width) or [BLANK]
    if len(rows) > MOST_LINES:
        out.append((Span(f"  … {len(rows) - MOST_LINES} more lines", theme.faint),))
    return out
