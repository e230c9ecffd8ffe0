"""Light colours for code: comments, strings, numbers and keywords, a line at a time.

One small pattern for each family of languages, no grammar: what it gets wrong stays readable. A
string or comment that goes on in the next line is carried by `Highlighter`; a language that is not
known is left plain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Span, Style

__all__ = ["Highlighter"]


class _Family(NamedTuple):
    """`long` maps what opens a stretch over several lines to what closes it."""

    names: str
    comment: str
    keywords: str
    quotes: str = "\"'"
    long: Mapping[str, str] = {}


_C_COMMENT = {"/*": "*/"}
_FAMILIES = (
    _Family(
        "python py python3 pycon starlark",
        "#",
        "False None True and as assert async await break case class continue def del elif else"
        " except finally for from global if import in is lambda match nonlocal not or pass raise"
        " return self try while with yield",
        long={'"""': '"""', "'''": "'''"},
    ),
    _Family(
        "sh bash zsh fish shell console make makefile dockerfile ruby rb perl r elixir nix",
        r"(?<!\S)#",
        "begin break case def do done echo elif else elsif end esac exit export fi for function if"
        " in local module require return set sudo then until when while FROM RUN COPY CMD",
    ),
    _Family(
        "yaml yml toml ini conf cfg properties json jsonc json5",
        r"(?<!\S)(?:#|//)",
        "true false null yes no on off",
    ),
    _Family(
        "javascript js jsx typescript ts tsx java kotlin kt swift scala dart php c h cpp c++ cc cs"
        " csharp css scss groovy",
        "//",
        "abstract as async await bool boolean break case catch char class const constexpr continue"
        " default delete do double else enum export extends extern false final finally float for"
        " from fun function if implements import in instanceof int interface internal let long"
        " namespace new null nullptr of operator override package private protected public return"
        " short signed sizeof static struct super switch template this throw throws true try"
        " typedef typename typeof undefined union unsigned using val var virtual void volatile when"
        " where while yield",
        long={**_C_COMMENT, "`": "`"},
    ),
    _Family(
        "go golang rust rs zig",
        "//",
        "as async await break case chan const continue crate default defer dyn else enum error"
        " extern fallthrough false fn for func go goto if impl import in interface let loop map"
        " match mod move mut nil package pub range ref return select self Self static string struct"
        " super switch trait true type unsafe use var where while",
        quotes='"',
        long={**_C_COMMENT, "`": "`"},
    ),
    _Family(
        "sql postgresql mysql sqlite plsql",
        "--",
        "add all alter and as asc begin between by case commit constraint create cross default"
        " delete desc distinct drop else end exists foreign from full group having if in index"
        " inner insert into is join key left like limit not null offset on or order outer"
        " primary references right select set table then union unique update using values view"
        " when where with",
        long=_C_COMMENT,
    ),
    _Family(
        "lua haskell hs",
        "--",
        "and break case class data do else elseif end false for function if import in instance let"
        " local module nil not of or repeat return then true type until where while",
    ),
)


class _Lexer(NamedTuple):
    pattern: re.Pattern[str]
    keywords: frozenset[str]
    long: Mapping[str, str]


@cache
def _lexer(language: str) -> _Lexer | None:
    family = next((one for one in _FAMILIES if language in one.names.split()), None)
    if family is None:
        return None
    long = "|".join(map(re.escape, family.long)) or "(?!)"
    strings = "|".join(rf"{q}(?:[^{q}\\]|\\.)*(?:{q}|$)" for q in family.quotes)
    pattern = re.compile(
        rf"(?P<long>{long})|(?P<comment>{family.comment}.*)|(?P<string>{strings})"
        r"|(?P<number>\b\d[\w.]*)|(?P<word>[^\W\d]\w*)"
    )
    keywords = family.keywords.split()
    if "sql" in family.names:
        keywords += [word.upper() for word in keywords]
    return _Lexer(pattern, frozenset(keywords), family.long)


class Highlighter:
    """Colours the lines of one block of code, in order."""

    __slots__ = ("_language", "_open", "_theme")

    def __init__(self, language: str, theme: Theme) -> None:
        self._language = language.lower()
        self._theme = theme
        self._open = ""  # what the stretch that is open began with

    def line(self, text: str) -> list[Span]:
        """The next line, without its newline."""
        if self._language in ("diff", "patch"):
            return [Span(text, self._changed(text))] if text else []
        lexer = _lexer(self._language)
        if lexer is None:
            return [Span(text, self._theme.code_block)] if text else []
        return self._read(text, lexer)

    def fork(self) -> Highlighter:
        """A copy that can go on without this one."""
        twin = Highlighter(self._language, self._theme)
        twin._open = self._open
        return twin

    def _changed(self, text: str) -> Style:
        if text.startswith(("+++", "---", "@@", "diff ", "index ")):
            return self._theme.note
        plain = self._theme.code_block
        return {"+": self._theme.added, "-": self._theme.removed}.get(text[:1], plain)

    def _read(self, text: str, lexer: _Lexer) -> list[Span]:
        theme = self._theme
        spans: list[Span] = []
        at = 0
        if self._open:
            at = self._stretch(text, 0, 0, lexer, spans)
        while found := lexer.pattern.search(text, at):
            kind = found.lastgroup
            if kind == "word" and found[0] not in lexer.keywords:
                _put(spans, text[at : found.end()], theme.code_block)
                at = found.end()
                continue
            _put(spans, text[at : found.start()], theme.code_block)
            at = found.end()
            if kind == "long":
                self._open = found[0]
                at = self._stretch(text, found.start(), at, lexer, spans)
            else:
                _put(spans, found[0], getattr(theme, "keyword" if kind == "word" else str(kind)))
        _put(spans, text[at:], theme.code_block)
        return spans

    def _stretch(self, text: str, start: int, at: int, lexer: _Lexer, spans: list[Span]) -> int:
        """Read what goes over several lines, from `start`; its end is looked for from `at` on."""
        style = self._theme.comment if self._open in _C_COMMENT else self._theme.string
        closing = lexer.long[self._open]
        end = text.find(closing, at)
        if end < 0:
            _put(spans, text[start:], style)
            return len(text)
        self._open = ""
        _put(spans, text[start : end + len(closing)], style)
        return end + len(closing)


def _put(spans: list[Span], text: str, style: Style) -> None:
    """Add text; a span of the same style before it grows."""
    if not text:
        return
    if spans and spans[-1].style == style:
        text = spans.pop().text + text
    spans.append(Span(text, style))
