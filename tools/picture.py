"""Draws what a terminal shows as an SVG: `tmux capture-pane -ep | python -m tools.picture > x.svg`.

It reads text with the escape sequences for faint, bold, italic and plain, which is all that
`mull ask` writes, and draws every line at its place. Lines at the end that are empty are cut off.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape

__all__ = ["main", "picture"]

COLUMN, LINE, SIZE = 8.4, 19, 14
MARGIN, TOP = 18, 46
_BACK, _BAR, _TEXT, _FAINT = "#16181d", "#22252c", "#d8dbe2", "#8d95a5"
_FONT = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")
_WIDTH = 84


def picture(text: str, title: str = "") -> str:
    """The SVG of a terminal that shows this text."""
    lines = [list(_runs(line)) for line in _carried(text.rstrip("\n $").split("\n"))]
    columns = max(_WIDTH, *(sum(len(words) for words, _ in line) for line in lines))
    width = round(columns * COLUMN + 2 * MARGIN)
    height = TOP + len(lines) * LINE + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="{_FONT}" font-size="{SIZE}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="{_BACK}"/>',
        f'<path d="M0 30V8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v22z" fill="{_BAR}"/>',
        *(f'<circle cx="{20 + 18 * n}" cy="15" r="5" fill="#4b515e"/>' for n in range(3)),
    ]
    for number, line in enumerate(lines):
        column = 0
        for words, styles in line:
            parts.append(_text(words, styles, column, TOP + number * LINE + 6))
            column += len(words)
    return "\n".join([*filter(None, parts), "</svg>", ""])


def _carried(lines: list[str]) -> Iterator[str]:
    """Each line with the styles that hold where it begins."""
    holding = ""
    for line in lines:
        whole = holding + line
        yield whole
        last = _ESCAPE.findall(whole)
        holding = f"\x1b[{last[-1]}m" if last else ""


def _runs(line: str) -> Iterator[tuple[str, frozenset[str]]]:
    styles: frozenset[str] = frozenset()
    first, *rest = _ESCAPE.split(line)
    yield first, styles
    for codes, words in zip(rest[::2], rest[1::2], strict=True):
        for code in codes.split(";"):
            styles = styles | {code} if code in ("1", "2", "3") else _without(styles, code)
        yield words, styles


def _without(styles: frozenset[str], code: str) -> frozenset[str]:
    """Colours of the terminal's own (39, 49) change nothing; the rest makes it plain."""
    return styles if code in ("39", "49") else frozenset()


def _text(words: str, styles: frozenset[str], column: int, y: int) -> str:
    if not words.strip():
        return ""
    look = f' fill="{_FAINT if "2" in styles else _TEXT}"'
    look += ' font-style="italic"' if "3" in styles else ""
    look += ' font-weight="bold"' if "1" in styles else ""
    x, length = MARGIN + column * COLUMN, len(words) * COLUMN
    return (
        f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" xml:space="preserve"{look}>'
        f"{escape(words, quote=False)}</text>"
    )


def main() -> int:
    """Draw what comes in."""
    title = " ".join(sys.argv[1:]) or "mull in a terminal"
    sys.stdout.write(picture(sys.stdin.read(), title))
    return 0


if __name__ == "__main__":
    sys.exit(main())
