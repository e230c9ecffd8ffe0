"""Asks at the terminal whether a tool may run, showing what it would do, and asks the model's
questions to the user.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.tools.approve import ApprovalAnswer, ApprovalRequest, UserQuestion, offered
from mull.agent.trust import TRUST_WORDS, TrustAnswer, TrustRequest
from mull.tui.conversation.sections import Look
from mull.tui.screen.front import LOOK, WHOLE, Choice, Question
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
_LONGEST = 500
"""Characters of a row."""
_KEEPS: tuple[Choice, ...] = (
    Choice("yes", "No, allow it only this time"),
    Choice("always", "Yes, keep the rule"),
    Choice("back", "Back", refuses=True),
)
"""The first does not keep it: Enter twice must not be enough."""


class FrontApprover:
    """Shows the diff or the command, and asks."""

    def __init__(self, front: Front, painter: Painter) -> None:
        self._front = front
        self._painter = painter

    async def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Ask and return the answer. Long content is shown from its start, and can be read whole;
        without keys, all of it is shown. A rule that is kept is confirmed once more.
        """
        hidden = self._show(request, MOST_LINES if self._front.has_keys else None)
        question = self._question(request, hidden)
        while True:
            key, text = await self._asked(question)
            if key == "always":
                key, _ = await self._asked(_keeping(request))
            match key:
                case "yes" | "session" | "always":
                    return ApprovalAnswer(key)
                case "no":
                    return ApprovalAnswer("no", text)
            start = next(at for at, one in enumerate(question.choices) if one.key == "always")
            question = replace(question, start=start, follows=True)

    async def _view(self, title: str, lines: Callable[[Look], list[Line]]) -> None:
        """Show the full content over the screen."""
        document = Document(one_line(title), lines, 0, "")
        await self._front.view(WHOLE, lambda: [document], unfolded="all")

    def _look(self, hidden: int) -> list[Choice]:
        """The choice to read everything; without keys everything is on the screen."""
        more = f" ({hidden:,} more lines)" if hidden > 0 else ""
        return [Choice(LOOK, f"Look at the whole{more}")] if self._front.has_keys else []

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
        choices = [
            Choice(key, one_line(word, _LONGEST), takes_text=key == "no", refuses=key == "no")
            for key, word in offered(request)
        ]
        which = "" if self._painter.is_only(request.call_id) else preview.title
        about = (which, request.wants, request.altered)
        return Question(
            _TITLES.get(preview.kind) or f"Allow {one_line(request.tool)}?",
            (*choices, *self._look(hidden)),
            about=tuple(one_line(line, _LONGEST) for line in about if line),
            look=lambda: self._view(preview.title, lambda look: whole_lines(request, look)),
        )

    async def question(self, question: UserQuestion) -> str | None:
        """Show the model's question and return the answer."""
        shown = wrapped(neutralise(question.text), self._front.theme.heading, self._front.width)
        self._painter.show(shown)
        options = {str(number): text for number, text in enumerate(question.options, 1)}
        choices = (
            *(Choice(key, one_line(text, _LONGEST)) for key, text in options.items()),
            Choice("own", "Your own answer" if options else "", takes_text=True),
            Choice("none", "No answer", refuses=True),
        )
        asked = Question("Answer?", choices, esc="answers nothing", numbered=bool(options))
        key, text = await self._asked(asked)
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
        choices = (
            *(Choice(key, word, refuses=key == "no") for key, word in TRUST_WORDS.items()),
            *self._look(len(rows) - most),
        )
        question = Question(
            "Give these instructions to the model?",
            choices,
            look=lambda: self._view("Instructions", lambda _: self._plain_rows(rows)),
        )
        key, _ = await self._asked(question)
        return next(answer for answer in TRUST_WORDS if answer == key)

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


def _keeping(request: ApprovalRequest) -> Question:
    """Whether to write a rule that holds for ever, shown as it will be written."""
    where, _, text = request.kept.partition("\n")
    return Question(
        "Keep this rule for ever?",
        _KEEPS,
        about=(f"It will be written to {one_line(where)}",),
        quoted=text,
        esc="goes back",
        follows=True,
    )


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
