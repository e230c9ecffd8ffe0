"""A unified diff as lines: numbers, syntax colours, and marks on changed words.

The language comes from the file name. If the theme has backgrounds for diffs, code keeps its own
colours on them; otherwise the colour of a line shows whether it was added or removed. What is not a
diff (a note that a file is binary) is shown unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from mull.markdown.highlight import Highlighter
from mull.neutral.patterns import pattern
from mull.tui.screen.colour import LEAST_CONTRAST, Rgb, readable
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style, padded
from mull.tui.text.safe import neutralise
from mull.tui.text.wrap import chopped, expanded, wrapped

__all__ = ["diff_lines", "diff_rows"]

_HUNK = pattern(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_WORDS = pattern(r"\w+|\s+|[^\w\s]")
_NO_BREAK = "\\ No newline at end of file"
_INDENT = "  "
_ALIKE = 0.5
"""How similar two lines must be before differing words are marked."""
_LONGEST_MARKED = 500
_LANGUAGES = {
    "py": "python", "rs": "rust", "rb": "ruby", "kt": "kotlin", "h": "c", "cs": "csharp",
    "hs": "haskell", "yml": "yaml", "mjs": "js", "cjs": "js", "hpp": "cpp", "pyi": "python",
}  # fmt: skip


class _Row(NamedTuple):
    """One row of a diff: ` `, `+` or `-`, its line number, and its text.

    `sign` is empty for rows between hunks.
    """

    sign: str
    number: int
    text: str
    language: str = ""


def diff_rows(text: str) -> Sequence[object]:
    """The rows of a diff."""
    return list(_parsed(text))


def diff_lines(text: str, theme: Theme, width: int, most: int | None = None) -> list[Line]:
    """The diff, or the lines of its first `most` rows and how many more there are."""
    rows = list(_parsed(text))
    shown = rows if most is None else rows[:most]
    digits = len(str(max((row.number for row in shown), default=0)))
    marks = _marked_words(shown)
    drawing = _Drawing(theme, width, digits)
    out: list[Line] = []
    for at, row in enumerate(shown):
        out += drawing.row(row, marks.get(at, ()))
    if len(rows) > len(shown):
        rest = len(rows) - len(shown)
        more = "line" if rest == 1 else "lines"
        out.append((Span(f"{_INDENT}… {rest:,} more {more}", theme.faint),))
    return out


def _parsed(text: str) -> Iterator[_Row]:
    """The rows with their numbers; the header of a hunk after the first becomes a gap."""
    old = new = 0
    language, in_hunk, several = "", False, text.count("\n--- a/") > 0
    for row in text.split("\n"):
        if row.startswith("--- a/") and (not in_hunk or several):
            language, in_hunk = _language(row[6:]), False
            if several:
                yield _Row("", 0, row[6:])
        elif row.startswith("+++ b/") and not in_hunk:
            continue
        elif head := _HUNK.match(row):
            if in_hunk:
                yield _Row("", 0, "⋯")
            old, new, in_hunk = int(head[1]), int(head[2]), True
        elif in_hunk and row[1:] == _NO_BREAK:
            yield _Row("", 0, row[1:])
        elif in_hunk and row[:1] in (" ", "+", "-"):
            sign = row[0]
            yield _Row(sign, old if sign == "-" else new, row[1:], language)
            old, new = old + (sign != "+"), new + (sign != "-")
        elif row:
            yield _Row("", 0, row)


def _language(name: str) -> str:
    ending = PurePosixPath(name).suffix.lstrip(".").lower()
    return _LANGUAGES.get(ending, ending)


def _marked_words(rows: Sequence[_Row]) -> dict[int, list[tuple[int, int]]]:
    """The changed characters of each row, for lines that replace similar ones."""
    marks: dict[int, list[tuple[int, int]]] = {}
    at = 0
    while at < len(rows):
        gone = _run(rows, at, "-")
        come = _run(rows, at + gone, "+")
        if gone and gone == come:
            for one in range(at, at + gone):
                marks[one], marks[one + gone] = _changed(rows[one].text, rows[one + gone].text)
        at += gone + come or 1
    return marks


def _run(rows: Sequence[_Row], start: int, sign: str) -> int:
    end = start
    while end < len(rows) and rows[end].sign == sign:
        end += 1
    return end - start


def _changed(before: str, after: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    if max(len(before), len(after)) > _LONGEST_MARKED:
        return [], []
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return [], []
    gone: list[tuple[int, int]] = []
    come: list[tuple[int, int]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            gone.append((len("".join(old[:a])), len("".join(old[:b]))))
            come.append((len("".join(new[:c])), len("".join(new[:d]))))
    return gone, come


class _Drawing:
    """Rows as lines; strings and comments that continue in the next line are tracked."""

    def __init__(self, theme: Theme, width: int, digits: int) -> None:
        self._theme = theme
        self._width = width
        self._digits = digits
        self._readers: dict[tuple[str, bool], Highlighter] = {}

    def row(self, row: _Row, marks: Sequence[tuple[int, int]]) -> list[Line]:
        theme = self._theme
        if not row.sign:
            self._readers.clear()
            return wrapped(_INDENT + neutralise(row.text), theme.faint, self._width) or [BLANK]
        line, word = {
            "+": (theme.added_line, theme.added_word),
            "-": (theme.removed_line, theme.removed_word),
        }.get(row.sign, (theme.tool_output, theme.tool_output))
        gutter = f"{_INDENT}{row.number:>{self._digits}} {row.sign} "
        room = max(self._width - len(gutter), 8)
        spans = _with_marks(self._coloured(row, line), marks, word)
        out: list[Line] = []
        for at, part in enumerate(chopped(_expanded(spans), room)):
            before = gutter if not at else " " * (len(gutter) - 2) + "↪ "
            whole = (Span(before, _on(self._sign(row.sign), line)), *part)
            out.append(padded(whole, self._width, line) if line.bg is not None else whole)
        return out

    def _sign(self, sign: str) -> Style:
        return {"+": self._theme.added, "-": self._theme.removed}.get(sign, self._theme.faint)

    def _coloured(self, row: _Row, line: Style) -> list[Span]:
        """The text in the colours of its language, on the line's background; in one colour if an
        added or removed line has no background.
        """
        text = neutralise(row.text)
        if (row.sign != " " and line.bg is None) or not row.language:
            return [Span(text, line)]
        key = (row.language, row.sign == "-")
        if key not in self._readers:
            self._readers[key] = Highlighter(row.language)
        runs = list(self._readers[key].line(text))
        if row.sign == " ":  # an unchanged line continues in both texts
            other = (row.language, True)
            self._readers.setdefault(other, Highlighter(row.language)).line(text)
        plain = self._theme.text if row.sign != " " else line
        roles = {"code_block": plain}
        return [
            Span(run, _on(roles.get(role, getattr(self._theme, role)), line)) for run, role in runs
        ]


@lru_cache(512)
def _on(style: Style, line: Style) -> Style:
    """The style on the background of its line, made readable."""
    fg = style.fg
    if isinstance(fg, Rgb) and isinstance(line.bg, Rgb):
        fg = readable(fg, line.bg, LEAST_CONTRAST)
    return style._replace(fg=fg, bg=line.bg)


def _with_marks(spans: Sequence[Span], marks: Sequence[tuple[int, int]], word: Style) -> list[Span]:
    """The spans with the changed parts in the style of a changed word."""
    if not marks:
        return list(spans)
    out: list[Span] = []
    at = 0
    for text, style in spans:
        for start, end, is_marked in _cut(at, at + len(text), marks):
            part = text[start - at : end - at]
            marked = _on(style, word)._replace(bold=word.bold, underline=word.underline)
            out.append(Span(part, marked if is_marked else style))
        at += len(text)
    return out


def _cut(start: int, end: int, marks: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """A stretch split into marked and unmarked parts."""
    for first, last in marks:
        first, last = max(first, start), min(last, end)
        if first >= last:
            continue
        if start < first:
            yield start, first, False
        yield first, last, True
        start = last
    if start < end:
        yield start, end, False


def _expanded(spans: Sequence[Span]) -> Iterator[Span]:
    for text, style in spans:
        yield Span(expanded(text), style)
