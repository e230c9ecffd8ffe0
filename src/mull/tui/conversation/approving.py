"""Asks at the terminal whether a tool may run, showing what it would do, and asks the model's
questions to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mull.agent.tools.approve import LETTERS, ApprovalAnswer, ApprovalRequest, UserQuestion
from mull.agent.trust import TRUST_LETTERS, TrustAnswer, TrustRequest
from mull.store.approvals import rules_file
from mull.tui.conversation.sections import Look
from mull.tui.screen.front import WHOLE, Choice, Question
from mull.tui.screen.viewer import Document
from mull.tui.text.diff_lines import diff_lines, diff_rows
from mull.tui.text.lines import BLANK, Line, Span
from mull.tui.text.safe import neutralise, one_line
from mull.tui.text.wrap import wrapped

if TYPE_CHECKING:
    from mull.tui.screen.front import Front
    from mull.tui.screen.painter import Painter
    from mull.tui.screen.theme import Theme

__all__ = ["FrontApprover", "preview_lines"]

MOST_LINES = 40
_TITLES = {"command": "Run this command?", "diff": "Make this change?"}
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
        """Ask and return the answer. Long content is shown from its start, with a key to read all
        of it first; without keys, all of it is shown.
        """
        hidden = self._show(request, MOST_LINES if self._front.has_keys else None)
        while True:
            key, text = await self._asked(self._question(request, hidden))
            if key != _WHOLE:
                break
            await self._view(request.preview.title, lambda look: whole_lines(request, look))
        if key == "t":
            return ApprovalAnswer("no", feedback=text)
        return ApprovalAnswer(LETTERS[key])

    async def _view(self, title: str, lines: Callable[[Look], list[Line]]) -> None:
        """Show the full content over the screen."""
        document = Document(one_line(title), lines, 0, "")
        await self._front.view(WHOLE, lambda: [document], unfolded="all")

    def _show(self, request: ApprovalRequest, most: int | None) -> int:
        """Show at most this many lines of what a call would do, unless they are right above;
        returns how many are hidden.
        """
        theme, width = self._front.theme, self._front.width
        preview = request.preview
        if preview.kind == "diff":
            shown = preview_lines(request, theme, width, most)
            self._painter.show_diff(request.call_id, preview.detail, shown)
        elif not self._painter.tells_all(request.call_id, preview.detail or preview.title):
            self._painter.show(preview_lines(request, theme, width, most))
        return 0 if most is None else max(0, len(_rows(request)) - most)

    def _question(self, request: ApprovalRequest, hidden: int) -> Question:
        preview = request.preview
        rule = one_line(request.rules[0], max(_SHORTEST_RULE, self._front.width - _BESIDE_RULE))
        if preview.kind == "command" and rule == f"{request.tool}({preview.detail})":
            rule = "this exact command"
        whole = [Choice(_WHOLE, f"view the other {hidden:,} lines")] if hidden else []
        title = _TITLES.get(preview.kind) or f"Allow {one_line(request.tool)}?"
        return Question(
            title,
            (
                *whole,
                Choice("y", "yes, once"),
                Choice("s", f"for this session: {rule}"),
                Choice("a", f"always in this folder (saved in {rules_file()})"),
                Choice("x", "never in this session"),
                Choice("t", "no, and tell the model why", wants_text=True),
                Choice("n", "no"),
            ),
        )

    async def question(self, question: UserQuestion) -> str | None:
        """Show the model's question and return the answer."""
        shown = wrapped(neutralise(question.text), self._front.theme.heading, self._front.width)
        self._painter.show(shown)
        options = {str(number): text for number, text in enumerate(question.options, 1)}
        for key, text in options.items():
            row = neutralise(f"{key}. {text}")
            self._painter.show(wrapped(row, self._front.theme.text, self._front.width))
        width = max(_SHORTEST_RULE, self._front.width - _BESIDE_RULE)
        choices = [Choice(key, one_line(text, width)) for key, text in options.items()]
        own = Choice("t", "type your own answer" if options else "answer", wants_text=True)
        key, text = await self._asked(Question("Answer?", (*choices, own, Choice("n", "none"))))
        return options.get(key, text.strip()) or None

    async def trust(self, request: TrustRequest) -> TrustAnswer | None:
        """Show a project's instructions for models, and ask whether to use them."""
        if not (self._front.has_keys or self._front.echoes):
            return None  # a pipe is not a user
        rows = [
            row
            for one in request.files
            for row in ("", f"{one.path} tells the model:", *one.text.rstrip().split("\n"))
        ]
        most = MOST_LINES if self._front.has_keys else len(rows)
        self._painter.show(self._plain_rows(rows[:most]))
        hidden = len(rows) - most
        while True:
            whole = [Choice(_WHOLE, f"view the other {hidden:,} lines")] if hidden > 0 else []
            choices = (
                *whole,
                Choice("y", "yes, until it changes"),
                Choice("o", "only this time"),
                Choice("n", "no"),
            )
            key, _ = await self._asked(Question("Give these instructions to the model?", choices))
            if key != _WHOLE:
                return TRUST_LETTERS[key]
            await self._view("Instructions", lambda _: self._plain_rows(rows))

    def _plain_rows(self, rows: Sequence[str]) -> list[Line]:
        theme, width = self._front.theme, self._front.width
        return [
            line
            for row in rows
            for line in wrapped(neutralise(f"  {row}"), theme.code, width) or [BLANK]
        ]

    async def _asked(self, question: Question) -> tuple[str, str]:
        self._painter.asks = True
        try:
            return await self._front.ask(question)
        finally:
            self._painter.asks = False


def preview_lines(
    request: ApprovalRequest, theme: Theme, width: int, most: int | None = None
) -> list[Line]:
    """What a call would do: the diff with its title, or the command; or the first `most` lines of
    it.
    """
    preview = request.preview
    out: list[Line] = []
    if preview.kind != "command":
        out += wrapped(neutralise(preview.title), theme.heading, width)
    if preview.kind == "diff":
        return [*out, *diff_lines(preview.detail, theme, width, most)]
    rows = _rows(request)
    for row in rows[:most]:
        out += wrapped(neutralise(f"  {row}"), theme.code, width) or [BLANK]
    if most is not None and len(rows) > most:
        out.append((Span(f"  … {len(rows) - most:,} more lines", theme.faint),))
    return out


def whole_lines(request: ApprovalRequest, look: Look) -> list[Line]:
    """Everything a call would do."""
    title = wrapped(neutralise(request.preview.title), look.theme.heading, look.width)
    above = title if request.preview.kind == "command" else []
    return [*above, *preview_lines(request, look.theme, look.width)]


def _rows(request: ApprovalRequest) -> Sequence[object]:
    preview = request.preview
    if preview.kind == "diff":
        return diff_rows(preview.detail)
    return preview.detail.splitlines()
