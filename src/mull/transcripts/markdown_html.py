"""Renders Markdown as safe HTML.

Raw HTML is escaped, and a link leads to http, https or mailto unless the caller knows better. Line
breaks and indents are kept for a page that shows them (`white-space: pre-wrap`), so that text laid
out by hand survives; only sentences broken at a margin are joined. References (`[a][b]`), which a
reader of a stream leaves as they are, lead to what is defined in a paragraph of its own (`[b]: …`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from itertools import groupby
from typing import TypeAlias, assert_never

from mull.markdown import events as md
from mull.markdown.highlight import Highlighter
from mull.markdown.reader import read
from mull.transcripts.contain import visible

__all__ = ["Link", "markdown_html", "web_link"]

_FIRST_HEADING = 3
"""Headings in a message rank below those of the page: its title and its turns."""
_LISTS = ("ul", "ol")
_SIDES = {"<": "", ">": ' class="right"', "^": ' class="middle"'}
_DEFINED = re.compile(r""" {0,3}\[([^\[\]]+)\]: *<?([^\s<>]+)>?(?: +(?:".*"|'.*'|\(.*\)))?""")
_REFERENCE = re.compile(r"(!?)\[([^\[\]]+)\](?:\[([^\[\]]*)\])?")
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)

_Mark: TypeAlias = tuple[str, str]
Link: TypeAlias = Callable[[str, bool], _Mark]
"""Gives the HTML before and after a link's text, from its address and whether it is an image."""
_MARKS: tuple[tuple[int, _Mark], ...] = (
    (md.BOLD, ("<strong>", "</strong>")),
    (md.ITALIC, ("<em>", "</em>")),
    (md.STRIKE, ("<del>", "</del>")),
    (md.CODE, ("<code>", "</code>")),
)


def markdown_html(
    text: str, *, first_heading: int = _FIRST_HEADING, link: Link | None = None
) -> str:
    """Render the text as HTML blocks, `#` as `<h{first_heading}>`; `link` replaces `web_link`."""
    page = _Page(first_heading, link or web_link)
    events = read(visible(text))
    if "]:" in text:
        events = _with_references(events)
    for event in events:
        page.add(event)
    return page.html()


def _with_references(events: list[md.Event]) -> list[md.Event]:
    """The events with references as links; definitions that one refers to are not shown."""
    defined: dict[int, dict[str, str]] = {}
    for at, event in enumerate(events):
        if isinstance(event, md.Pieces) and events[at - 1 : at] == [md.Text(0)]:
            lines = _plain_text(event.pieces).split("\n")
            found = [_DEFINED.fullmatch(line.rstrip()) for line in lines]
            if all(found):
                defined[at] = {_label(one[1]): one[2] for one in found if one}
    links = {label: url for one in reversed(defined.values()) for label, url in one.items()}
    if not links:
        return events
    used: set[str] = set()
    for at, event in enumerate(events):
        if isinstance(event, md.Pieces) and at not in defined:
            events[at] = md.Pieces(_linked(event.pieces, links, used))
        elif isinstance(event, md.Row):
            events[at] = md.Row([_linked(cell, links, used) for cell in event.cells])
        elif isinstance(event, md.Table):
            header = [_linked(cell, links, used) for cell in event.header]
            events[at] = md.Table(header, event.aligned)
    for at in reversed([at for at, own in defined.items() if own.keys() <= used]):
        del events[at - 1 : at + 2]
    return events


def _plain_text(pieces: Iterable[md.Piece]) -> str:
    return "".join(piece.text for piece in pieces if not piece.flags & md.URL)


def _label(text: str) -> str:
    return " ".join(text.casefold().split())


def _linked(pieces: list[md.Piece], links: Mapping[str, str], used: set[str]) -> list[md.Piece]:
    """The pieces with their references as links; what is code or a link stays as it is."""
    closed = md.CODE | md.LINK | md.URL
    text = "".join("\0" * len(p.text) if p.flags & closed else p.text for p in pieces)
    gone: set[int] = set()
    leads: dict[int, tuple[str, int]] = {}
    for found in _REFERENCE.finditer(text):
        label = _label(found[3] or found[2])
        if label not in links:
            continue
        used.add(label)
        inside = range(*found.span(2))
        gone.update(at for at in range(*found.span()) if at not in inside)
        flags = md.LINK | md.IMAGE if found[1] else md.LINK
        leads.update(dict.fromkeys(inside, (links[label], flags)))
    if not leads:
        return pieces
    made: list[md.Piece] = []
    start = 0
    for piece in pieces:
        places = range(start, start := start + len(piece.text))
        for lead, run in groupby((at for at in places if at not in gone), leads.get):
            part = "".join(piece.text[at - places.start] for at in run)
            address, flags = lead or (piece.address, 0)
            made.append(md.Piece(part, piece.flags | flags, address))
    return made


class _Page:
    """Turns events into tags. A list stays open until something other than its item follows."""

    def __init__(self, first_heading: int, link: Link) -> None:
        self._first_heading = first_heading
        self._link = link
        self._out: list[str] = []
        self._open: list[str] = []
        self._is_first = True  # whether the next block is the first in what is open
        self._leaf_end = ""
        self._highlighter = Highlighter("")

    def html(self) -> str:
        self._end_list()
        return "".join(self._out)

    def add(self, event: md.Event) -> None:
        match event:
            case md.Text() | md.Code() | md.Table() | md.Sign.RULE | md.Sign.QUOTE:
                self._block(event)
            case md.Item():
                self._item(event)
            case md.Pieces(pieces):
                self._out.append(_inline(pieces, self._link))
            case md.CodeLine(text):
                self._out.append(self._coloured(text) + "\n")
            case md.CodePart(text, is_last):
                self._out.append(escape(text, quote=False) + "\n" * is_last)
            case md.Row(cells):
                self._out.append(_row("td", cells, self._sides, self._link))
            case md.Sign.DONE:
                self._out.append(self._leaf_end)
            case md.Sign.END:
                self._end_list()
                self._out.append(f"</{self._open.pop()}>")
                self._is_first = False
            case md.Sign.BLANK:
                pass
            case _:
                assert_never(event)

    def _block(self, event: md.Text | md.Code | md.Table | md.Sign) -> None:
        self._end_list()
        is_first, self._is_first = self._is_first, False
        if not is_first:
            self._out.append("\n")
        match event:
            case md.Text(level):
                tag = f"h{min(6, level + self._first_heading - 1)}" if level else "p"
                if not level and is_first and self._open and self._open[-1] == "li":
                    tag = "span"  # the first paragraph of an item needs no frame of its own
                self._out.append(f"<{tag}>" if tag == "span" else f'<{tag} dir="auto">')
                self._leaf_end = f"</{tag}>"
            case md.Code(info):
                self._highlighter = Highlighter(info)
                label = f' data-language="{escape(info.split()[0])}"' if info else ""
                self._out.append(f'<pre tabindex="0"{label}><code>')
                self._leaf_end = "</code></pre>"
            case md.Table(header, aligned):
                self._sides = [_SIDES[side] for side in aligned]
                head = f"<thead>{_row('th', header, self._sides, self._link)}</thead><tbody>"
                self._out.append(f'<div class="wide" tabindex="0"><table>{head}')
                self._leaf_end = "</tbody></table></div>"
            case md.Sign.RULE:
                self._out.append("<hr>")
            case md.Sign.QUOTE:
                self._out.append("<blockquote>")
                self._open.append("blockquote")
                self._is_first = True

    def _item(self, item: md.Item) -> None:
        if item.is_first:
            self._end_list()
            start = "" if item.number in (None, 1) else f' start="{item.number}"'
            tag = "ul" if item.number is None else "ol"
            self._out.append(f"{'' if self._is_first else chr(10)}<{tag}{start}>")
            self._open.append(tag)
        box = "" if item.done is None else "☑ " if item.done else "☐ "
        self._out.append(f'<li dir="auto">{box}')
        self._open.append("li")
        self._is_first = True

    def _end_list(self) -> None:
        if self._open and self._open[-1] in _LISTS:
            self._out.append(f"</{self._open.pop()}>")

    def _coloured(self, line: str) -> str:
        return "".join(
            escape(text, quote=False)
            if role == "code_block"
            else f'<span class="{role}">{escape(text, quote=False)}</span>'
            for text, role in self._highlighter.line(line)
        )


def _row(tag: str, cells: list[list[md.Piece]], sides: list[str], link: Link) -> str:
    shown = (
        f"<{tag}{side}>{_inline(cell, link)}</{tag}>"
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _inline(pieces: Iterable[md.Piece], link: Link) -> str:
    """Marked text. A mark that continues from one piece to the next stays open."""
    out: list[str] = []
    opened: list[_Mark] = []
    for text, flags, address in pieces:
        if flags & md.URL:
            continue  # the link before it can be followed
        wanted = _marks(flags, address, link)
        same = 0
        while same < len(opened) and opened[same] in wanted:
            same += 1
        out += [closing for _, closing in reversed(opened[same:])]
        del opened[same:]
        fresh = [mark for mark in wanted if mark not in opened]
        out += [opening for opening, _ in fresh]
        opened += fresh
        if text[0] != "\n":
            out.append(escape(text))
            continue
        if out:
            out[-1] = out[-1].rstrip(" ")
        out.append(" " if flags & md.SOFT else text)
    return "".join((*out, *(closing for _, closing in reversed(opened)))).rstrip(" ")


def _marks(flags: int, address: str, link: Link) -> list[_Mark]:
    if not flags:
        return []
    marks = [mark for flag, mark in _MARKS if flags & flag]
    if flags & md.LINK:
        marks.insert(0, link(address, bool(flags & md.IMAGE)))
    return marks


def web_link(address: str, is_image: bool) -> _Mark:
    """A link to the web; any other is shown as it was written."""
    if not _SAFE.fullmatch(address):
        return "![" if is_image else "[", f"]({escape(address)})"
    picture = "🖼 " if is_image else ""
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{picture}', "</a>"
