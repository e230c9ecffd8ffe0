"""Markdown as safe HTML, as far as models use it: a small reader of blocks.

Paragraphs, headings, lists, quotes, tables, rules and code; no raw HTML, everything is escaped.
Line ends and spaces are kept for a page that shows them (`white-space: pre-wrap`), so that
nothing a model laid out by hand is lost; only sentences broken at a margin are joined. Lists are
taken as nested from two spaces on, as models write them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from mull.transcripts.contain import visible
from mull.transcripts.markdown_inline import inline_html

__all__ = ["markdown_html"]

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^`\n]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
_QUOTE = re.compile(r" {0,3}>[ ]?")
_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)])(?:([ \t]+)|$)")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_ALIGNMENT = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_CELL_EDGE = re.compile(r"(?<!\\)\|")

_MARGINS = range(60, 121)
_SENTENCE_ENDS = ".!?:;…。！？\\"
_DEEPEST = 12
_FIRST_HEADING = 3
"""Headings of a text are below those of the page: its title and its turns."""


def markdown_html(text: str) -> str:
    """The text as HTML blocks."""
    return _blocks(visible(text).expandtabs(4).split("\n"), 0)


def _blocks(lines: Sequence[str], depth: int) -> str:
    return _Blocks(lines, depth).html()


class _Blocks:
    """Reads lines from top to bottom; each step takes one block."""

    def __init__(self, lines: Sequence[str], depth: int) -> None:
        self._lines = lines
        self._depth = depth
        self._at = 0
        self._out: list[str] = []

    def html(self) -> str:
        while self._at < len(self._lines):
            if self._lines[self._at].strip():
                self._out.append(self._block(self._lines[self._at]))
            else:
                self._at += 1
        return "\n".join(self._out)

    def _block(self, line: str) -> str:
        if found := _opens_fence(line):
            return self._fence(found)
        if found := _HEADING.fullmatch(line):
            self._at += 1
            return _heading(len(found[1]), found[2] or "")
        if _RULE.fullmatch(line):
            self._at += 1
            return "<hr>"
        if self._depth < _DEEPEST and _QUOTE.match(line):
            return self._quote()
        if self._depth < _DEEPEST and (found := _ITEM.match(line)) and len(found[1]) < 4:
            return self._list(found)
        if self._is_table():
            return self._table()
        return self._indented() if line.startswith("    ") else self._paragraph()

    def _fence(self, found: re.Match[str]) -> str:
        indent, mark, language = len(found[1]), found[2], found[3].strip()
        code: list[str] = []
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            bare = line.strip()
            if len(bare) >= len(mark) and not bare.strip(mark[0]):
                break
            code.append(line[min(indent, _indent_of(line)) :])
        return _code(code, language.split(" ")[0])

    def _indented(self) -> str:
        code: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line.startswith("    "):
                break
            code.append(line[4:])
            self._at += 1
        while not code[-1].strip():
            code.pop()
        return _code(code, "")

    def _quote(self) -> str:
        inner: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            found = _QUOTE.match(line)
            if not found and not (inner and inner[-1].strip() and self._goes_on(line)):
                break
            inner.append(line[found.end() :] if found else line)
            self._at += 1
        return f"<blockquote>{_blocks(inner, self._depth + 1)}</blockquote>"

    def _list(self, first: re.Match[str]) -> str:
        ordered = first[2][0].isdigit()
        marker = first[2][-1]
        items: list[str] = []
        while self._at < len(self._lines):
            found = _ITEM.match(self._lines[self._at])
            if not found or found[2][-1] != marker or _RULE.fullmatch(self._lines[self._at]):
                break
            items.append(self._item(found))
            self._skip_blanks_before(marker)
        number = int(first[2][:-1]) if ordered else 1
        start = f' start="{number}"' if number != 1 else ""
        tag = "ol" if ordered else "ul"
        return f"<{tag}{start}>{''.join(items)}</{tag}>"

    def _skip_blanks_before(self, marker: str) -> None:
        at = self._at
        while at < len(self._lines) and not self._lines[at].strip():
            at += 1
        found = _ITEM.match(self._lines[at]) if at < len(self._lines) else None
        if found and found[2][-1] == marker:
            self._at = at

    def _item(self, found: re.Match[str]) -> str:
        outer = len(found[1])
        width = found.end() if len(found[3] or " ") <= 4 else found.end(2) + 1
        nested = min(width, outer + 2)
        inner = [self._lines[self._at][width:]]
        self._at += 1
        while self._at < len(self._lines):
            line = self._lines[self._at]
            indent = _indent_of(line)
            lazy = inner[-1].strip() and self._goes_on(line) and not _ITEM.match(line)
            if line.strip() and indent < nested and not lazy:
                break
            inner.append(line[min(indent, width) :])
            self._at += 1
        while len(inner) > 1 and not inner[-1].strip():
            inner.pop()
            self._at -= 1
        return _item_html(inner, self._depth)

    def _is_table(self) -> bool:
        lines = self._lines[self._at : self._at + 2]
        if len(lines) < 2 or "|" not in lines[0] or "|" not in lines[1]:
            return False
        if not _ALIGNMENT.fullmatch(lines[1]):
            return False
        return len(_cells(lines[0])) == len(_cells(lines[1]))

    def _table(self) -> str:
        head, alignment = _cells(self._lines[self._at]), _cells(self._lines[self._at + 1])
        sides = [_side(cell) for cell in alignment]
        self._at += 2
        rows: list[str] = []
        while self._at < len(self._lines) and "|" in self._lines[self._at]:
            rows.append(_row("td", _cells(self._lines[self._at])[: len(head)], sides))
            self._at += 1
        body = f"<tbody>{''.join(rows)}</tbody>" if rows else ""
        head_html = f"<thead>{_row('th', head, sides)}</thead>"
        return f'<div class="wide" tabindex="0"><table>{head_html}{body}</table></div>'

    def _paragraph(self) -> str:
        said = [self._lines[self._at]]
        self._at += 1
        while self._at < len(self._lines) and self._lines[self._at].strip():
            line = self._lines[self._at]
            if under := _UNDERLINE.fullmatch(line):
                self._at += 1
                return _heading(1 if under[1][0] == "=" else 2, "\n".join(said))
            if not self._goes_on(line) or self._is_table():
                break
            said.append(line)
            self._at += 1
        text = _unwrapped(said).strip()
        return f'<p dir="auto">{inline_html(text)}</p>'

    def _goes_on(self, line: str) -> bool:
        """Whether a line can be one more of the paragraph before it."""
        item = _ITEM.match(line)
        starts_list = item and item[3] and item[2] in ("-", "*", "+", "1.", "1)")
        return not (
            _opens_fence(line)
            or not line.strip()
            or _HEADING.fullmatch(line)
            or _RULE.fullmatch(line)
            or _QUOTE.match(line)
            or starts_list
        )


def _unwrapped(lines: Sequence[str]) -> str:
    """Lines as one text. A line that was only broken at a margin, in the middle of a sentence,
    goes on: at another width its end would stand anywhere."""
    text = lines[0]
    for before, line in pairwise(lines):
        broken = before.rstrip()
        at_margin = len(broken) in _MARGINS and broken[-1] not in _SENTENCE_ENDS
        goes_on = at_margin and before == broken and not line.startswith(" ")
        text += (" " if goes_on else "\n") + line
    return text


def _opens_fence(line: str) -> re.Match[str] | None:
    found = _FENCE.fullmatch(line)
    return found if found and (found[2][0] == "~" or "`" not in found[3]) else None


def _heading(level: int, text: str) -> str:
    level = min(6, level + _FIRST_HEADING - 1)
    return f'<h{level} dir="auto">{inline_html(text.strip())}</h{level}>'


def _code(lines: list[str], language: str) -> str:
    label = f' data-language="{escape(language)}"' if language else ""
    code = escape("\n".join(lines), quote=False)
    return f'<pre tabindex="0"{label}><code>{code}\n</code></pre>'


def _item_html(lines: list[str], depth: int) -> str:
    box = ""
    if task := _TASK.match(lines[0]):
        box = "☑ " if task[1] in "xX" else "☐ "
        lines = [lines[0][task.end() :], *lines[1:]]
    inner = _blocks(lines, depth + 1)
    opener, closer = '<p dir="auto">', "</p>"
    if inner.startswith(opener):  # the first paragraph of an item needs no frame of its own
        end = inner.index(closer)
        inner = f"<span>{inner[len(opener) : end]}</span>{inner[end + len(closer) :]}"
    return f'<li dir="auto">{box}{inner}</li>'


def _cells(line: str) -> list[str]:
    return [
        cell.strip().replace("\\|", "|")
        for cell in _CELL_EDGE.split(line.strip().removeprefix("|").removesuffix("|"))
    ]


def _side(cell: str) -> str:
    if cell.startswith(":") and cell.endswith(":"):
        return ' class="middle"'
    return ' class="right"' if cell.endswith(":") else ""


def _row(tag: str, cells: list[str], sides: list[str]) -> str:
    cells = cells + [""] * (len(sides) - len(cells))
    return (
        "<tr>"
        + "".join(
            f"<{tag}{side}>{inline_html(cell)}</{tag}>"
            for cell, side in zip(cells, sides, strict=True)
        )
        + "</tr>"
    )


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
