"""The Markdown within a line or paragraph, as HTML in which everything is escaped.

Less than CommonMark on purpose. Marks inside a word are text (`2*3*4`, `snake_case`), only those
backslashes go that hide a mark (`\\[` stays, as mathematics needs it), line ends stay line ends,
and a link goes to http, https or mailto or is no link. The cost grows with the text alone.
"""

from __future__ import annotations

import re
from html import escape

__all__ = ["inline_html"]

_TOKEN = re.compile(
    r"""
    \\(?P<escaped>[`*_#|~<>\\])
  | (?P<ticks>`+)
  | (?P<marks>\*{1,3}|_+|~~)
  | (?P<image>!?)\[(?P<label>[^\[\]\n]{0,2000})\]\((?P<target>[^()\s]{0,2000}
        (?:\([^()\s]{0,500}\)[^()\s]{0,2000}){0,8})(?:[ ]+"[^"\n]{0,500}")?\)
  | <(?P<auto>(?:https?://|mailto:)[^\s<>]{1,2000})>
  | (?P<bare>https?://[^\s<>"'`|*]{1,2000})
  | [ ]+(?=\n)
    """,
    re.VERBOSE,
)
_SAFE = re.compile(r"(?:https?://|mailto:)[^\s]+", re.IGNORECASE)
_TAGS = {
    1: ("<em>", "</em>"),
    2: ("<strong>", "</strong>"),
    3: ("<strong><em>", "</em></strong>"),
}
_STRIKE = ("<del>", "</del>")


def inline_html(text: str, *, links: bool = True) -> str:
    """The text as HTML."""
    return _Line(text, links=links).html()


class _Line:
    def __init__(self, text: str, *, links: bool) -> None:
        self._text = text
        self._links = links
        self._out: list[str] = []
        self._open: list[tuple[str, int]] = []
        self._waiting: dict[str, int] = {}
        self._ticks = _closers(text)

    def html(self) -> str:
        at = 0
        while found := _TOKEN.search(self._text, at):
            self._out.append(escape(self._text[at : found.start()]))
            at = self._token(found)
        self._out.append(escape(self._text[at:]))
        return "".join(self._out)

    def _token(self, found: re.Match[str]) -> int:
        """Write one token; where the text goes on."""
        kind = found.lastgroup
        if found["ticks"]:
            return self._code(found)
        if found["marks"]:
            self._mark(found)
        elif kind == "escaped":
            self._out.append(escape(found["escaped"]))
        elif found["label"] is not None:
            self._link(found)
        elif found["auto"]:
            self._out.append(_anchor(found["auto"], escape(found["auto"]), self._links))
        elif found["bare"]:
            address = found["bare"].rstrip(".,;:!?)]}")
            self._out.append(_anchor(address, escape(address), self._links))
            return found.start() + len(address)
        return found.end()

    def _code(self, found: re.Match[str]) -> int:
        ticks = found["ticks"]
        places = self._ticks.get(len(ticks), [])
        while places and places[-1] < found.end():
            places.pop()
        if not places:
            self._out.append(ticks)
            return found.end()
        start, end = found.end(), places.pop()
        code = self._text[start:end].replace("\n", " ")
        if len(code) > 2 and code[0] == code[-1] == " ":
            code = code[1:-1]
        self._out.append(f"<code>{escape(code)}</code>")
        return end + len(ticks)

    def _mark(self, found: re.Match[str]) -> None:
        marks = found["marks"]
        if marks[:2] == "__":  # a name of Python's more often than bold text
            self._out.append(marks)
            return
        before = self._text[found.start() - 1 : found.start()]
        after = self._text[found.end() : found.end() + 1]
        closes = bool(before.strip()) and not _is_word(after) and after != marks[0]
        opens = bool(after.strip()) and not _is_word(before) and before != marks[0]
        if closes and self._waiting.get(marks):
            self._close(marks)
        else:
            if opens:
                self._open.append((marks, len(self._out)))
                self._waiting[marks] = self._waiting.get(marks, 0) + 1
            self._out.append(marks)

    def _close(self, marks: str) -> None:
        """What was opened since is text after all."""
        opened, at = self._open.pop()
        while opened != marks:
            self._waiting[opened] -= 1
            opened, at = self._open.pop()
        self._waiting[marks] -= 1
        start, end = _STRIKE if marks == "~~" else _TAGS[len(marks)]
        self._out[at] = start
        self._out.append(end)

    def _link(self, found: re.Match[str]) -> None:
        label, target = found["label"], found["target"]
        if not _SAFE.fullmatch(target):
            self._out.append(escape(found[0]))
            return
        said = inline_html(label, links=False) or escape(target)
        self._out.append(_anchor(target, f"🖼 {said}" if found["image"] else said, self._links))


def _closers(text: str) -> dict[int, list[int]]:
    """Where the runs of backticks of each length are, the last first."""
    places: dict[int, list[int]] = {}
    for run in re.finditer(r"`+", text):
        places.setdefault(len(run[0]), []).append(run.start())
    for found in places.values():
        found.reverse()
    return places


def _anchor(address: str, said: str, links: bool) -> str:
    if not links or not _SAFE.fullmatch(address):
        return said
    return f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{said}</a>'


def _is_word(character: str) -> bool:
    """Whether a mark beside it is inside a word; scripts without spaces do not count."""
    return character.isascii() and character.isalnum()
