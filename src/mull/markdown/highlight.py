"""Light colours for code: comments, strings, numbers and keywords, a line at a time.

One small pattern for each family of languages, no grammar: what it gets wrong stays readable. A
string or comment that goes on in the next line is carried by `Highlighter`. A language that is not
known here is left to pygments, and where that is not installed, plain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias, cast

from mull.markdown.pygments_roles import pygments_reader

__all__ = ["Highlighter", "Role", "Run"]

Role: TypeAlias = Literal[
    "code_block", "keyword", "string", "number", "comment", "added", "removed", "note"
]
"""What a run of code is, by the names that themes have for it; `code_block` is all the rest."""
Run: TypeAlias = tuple[str, Role]


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
    """Tells the roles in one block of code, a line at a time; `info` begins with its language."""

    __slots__ = ("_language", "_open")

    def __init__(self, info: str) -> None:
        found = re.match(r"[\w+#.-]+", info)
        self._language = found[0].lower() if found else ""
        self._open = ""  # what the stretch that is open began with

    def line(self, text: str) -> list[Run]:
        """The next line, without its newline."""
        if self._language in ("diff", "patch"):
            return [(text, _changed(text))] if text else []
        if lexer := _lexer(self._language):
            return self._read(text, lexer)
        if text and self._language and (reader := pygments_reader(self._language)):
            return cast("list[Run]", reader(text))
        return [(text, "code_block")] if text else []

    def _read(self, text: str, lexer: _Lexer) -> list[Run]:
        runs: list[Run] = []
        at = 0
        if self._open:
            at = self._stretch(text, 0, 0, lexer, runs)
        while found := lexer.pattern.search(text, at):
            kind = found.lastgroup
            if kind == "word" and found[0] not in lexer.keywords:
                _put(runs, text[at : found.end()], "code_block")
                at = found.end()
                continue
            _put(runs, text[at : found.start()], "code_block")
            at = found.end()
            if kind == "long":
                self._open = found[0]
                at = self._stretch(text, found.start(), at, lexer, runs)
            else:
                _put(runs, found[0], "keyword" if kind == "word" else cast("Role", kind))
        _put(runs, text[at:], "code_block")
        return runs

    def _stretch(self, text: str, start: int, at: int, lexer: _Lexer, runs: list[Run]) -> int:
        """Read what goes over several lines, from `start`; its end is looked for from `at` on."""
        role: Role = "comment" if self._open in _C_COMMENT else "string"
        closing = lexer.long[self._open]
        end = text.find(closing, at)
        if end < 0:
            _put(runs, text[start:], role)
            return len(text)
        self._open = ""
        _put(runs, text[start : end + len(closing)], role)
        return end + len(closing)


def _changed(text: str) -> Role:
    """The role of a line of a diff."""
    if text.startswith(("+++", "---", "@@", "diff ", "index ")):
        return "note"
    roles: dict[str, Role] = {"+": "added", "-": "removed"}
    return roles.get(text[:1], "code_block")


def _put(runs: list[Run], text: str, role: Role) -> None:
    """Add text; a run of the same role before it grows."""
    if not text:
        return
    if runs and runs[-1][1] == role:
        text = runs.pop()[0] + text
    runs.append((text, role))
