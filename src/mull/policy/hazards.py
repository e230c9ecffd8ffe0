"""Detects words of a command that write files or run programs, although the command looks harmless.

`git diff` shows a diff, but `git diff --output=FILE` overwrites a file: a rule such as `git diff *`
was not meant to allow that. What a star stands for may contain none of the words listed here for
its program, however they are written: quoted, abbreviated (`--outp`), combined (`-uo`), or as a
pattern that the shell would expand to one. Programs without a row are judged by common option
names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import MappingProxyType

from msgspec.structs import replace

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern
from mull.policy.hazard_table import (
    ALIASES,
    CARRIERS,
    DOCKER_ACTS,
    GIT_ACTS,
    HANDING_ON,
    KUBECTL_ACTS,
    READERS,
    RUNNERS,
    SED_SCRIPT,
    TABLE,
    USUAL,
    USUAL_LETTERS,
)

__all__ = ["is_hazardous"]


class _Row(Value, frozen=True):
    """Words of one program. `letters` are short options, which may be combined; `options` are long
    ones, without their dashes, which may be abbreviated; `words` stand for themselves; `acts` are
    subcommands that run or configure what runs. The first word that is not an option is a `script`
    for some, and some write to the second one; one reads files instead of its repository if a path
    leads outside, one takes `CC=…` as an instruction, some pass on what follows `--` to another
    program, and words with certain `marks` before them are instructions.
    """

    letters: str = ""
    options: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    acts: frozenset[str] = frozenset()
    script: str = ""
    operands: int | None = None
    is_bundled: bool = False
    stays_inside: bool = False
    assigns: bool = False
    marks: tuple[str, ...] = ()
    hands_on: bool = False


_QUOTED = pattern(r"'[^']*'|\"[^\"]*\"")
_GLOB = pattern(r"[*?\[]")
_OUTSIDE = pattern(r"^[/~]|(?:^|/)\.\.(?:/|$)")
_SHORTEST = 3
_MOST_WORDS = 1000
"""Longer commands are left to the user."""


def is_hazardous(command: str, star: int) -> bool:
    """Whether the command contains a word that writes or executes, from the place that a pattern's
    first star stands for. True also if that is uncertain.
    """
    try:
        words = _words(command)
    except ValueError:  # an unclosed quotation mark
        return True
    if len(words) > _MOST_WORDS:
        return True
    named = [word for word in words if word.end <= star]
    covered = [word for word in words if word.end > star]
    if not named:  # the star stands for the program itself, or for a part of its name
        named, covered = words[:1], words[1:]
        if not covered:
            return _program(words[0].text) in RUNNERS if words else True
    carriers = _carriers([word.text for word in words])
    if not carriers:
        return _holds(_program(words[0].text), named, covered)
    if not any(_is_program(word.text) for word in named[carriers:]):
        return True  # the star may stand for what is run
    return any(
        _holds(_program(words[at].text), words[at : max(at + 1, len(named))], covered)
        for at in range(carriers, len(words))
        if not words[at].text.startswith("-")
    )


class _Word(Value, frozen=True):
    text: str
    raw: str
    end: int


def _words(command: str) -> list[_Word]:
    """The words as the shell would pass them on, and where each ends.

    Raises:
        ValueError: a quotation mark is not closed.
    """
    found: list[_Word] = []
    start, quote = None, ""
    for at, char in enumerate(command + " "):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
            start = at if start is None else start
        elif char.isspace():
            if start is not None:
                raw = command[start:at]
                text = _QUOTED.sub(lambda quoted: quoted[0][1:-1], raw)
                found.append(_Word(text, raw, at))
            start = None
        elif start is None:
            start = at
    if quote:
        raise ValueError("unclosed quotation mark")
    return found


def _carriers(words: Sequence[str]) -> int:
    """How many words at the beginning only say that what follows is to be run."""
    first = _program(words[0])
    if first in RUNNERS:
        return 1
    return 2 if words[1:2] and words[1] in CARRIERS.get(first, ()) else 0


def _is_program(word: str) -> bool:
    """Whether the word certainly names a program, and not an option's value."""
    name = _program(word)
    return "/" in word or name in READERS or (name in _rows() and name not in CARRIERS)


def _program(word: str) -> str:
    name = word.rpartition("/")[2]
    bare = (
        name.rstrip("0123456789.") if name.startswith(("python", "perl", "ruby", "php")) else name
    )
    return ALIASES.get(name, ALIASES.get(bare, bare))


def _holds(program: str, named: Sequence[_Word], covered: Sequence[_Word]) -> bool:
    if program in READERS:
        return any(_has_braces(_unquoted(word.raw)) for word in covered)
    if any(_may_become_an_option(word) for word in covered):
        return True
    before, behind = [word.text for word in named], [word.text for word in covered]
    row = _rows().get(program)
    if row is None:
        return any(_is_usually_hazardous(word) for word in behind)
    if not row.acts:
        return _holds_of(row, before, behind)
    act, before, first, behind = _at_act(before, behind)
    rows = (row, *((own,) if (own := _rows().get(f"{program} {act}")) else ()))
    return any(word.partition("=")[0] in row.words for word in first) or any(
        _holds_of(replace(one, words=frozenset()), before, behind) for one in rows
    )


def _at_act(before: list[str], behind: list[str]) -> tuple[str, list[str], list[str], list[str]]:
    """The subcommand, what is named from it on, and what a star stands for before and from it."""
    words = [*before, *behind]
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-c", "-C") else 1
    star = len(before)
    act = words[at] if at < len(words) else ""
    return act, [words[0], *words[at:star]], words[star:at], words[max(star, at) :]


def _holds_of(row: _Row, before: Sequence[str], behind: Sequence[str]) -> bool:
    return any(_is_hazard(word, row) for word in behind) or _bad_operands(row, before, behind)


def _may_become_an_option(word: _Word) -> bool:
    """A pattern that file names may turn into an option, or braces that expand to several words."""
    bare = _unquoted(word.raw)
    globs = bare[:1] in ("*", "?", "[") or (bare.startswith("-") and _GLOB.search(bare) is not None)
    return globs or _has_braces(bare)


def _has_braces(bare: str) -> bool:
    """Whether the shell may expand this to several words: `a{b,c}`, `{1..9}`."""
    inside = bare.partition("{")[2].rpartition("}")[0]
    return "," in inside or ".." in inside


def _unquoted(raw: str) -> str:
    """The word without its quoted parts: the shell expands nothing there."""
    return _QUOTED.sub("", raw)


def _is_hazard(word: str, row: _Row) -> bool:
    if word[:1] in row.marks:
        return True
    if not word.startswith("-"):
        return False
    name, _, _ = word.partition("=")
    if name in row.words:
        return True
    if word.startswith("--"):
        name = name[2:]
        return bool(name) and any(option.startswith(name) for option in row.options)
    return any(letter in word[1:] for letter in row.letters)


def _is_usually_hazardous(word: str) -> bool:
    if not word.startswith("-") or word == "-":
        return False
    if not word.startswith("--"):
        return word[1] in USUAL_LETTERS or any(
            part in USUAL for part in word[1:].partition("=")[0].split("-")
        )
    parts = word[2:].partition("=")[0].replace("_", "-").lower().split("-")
    if parts[0] == "no":
        return False
    return any(
        part in USUAL or (len(part) >= _SHORTEST and any(one.startswith(part) for one in USUAL))
        for part in parts
    )


def _bad_operands(row: _Row, named: Sequence[str], covered: Sequence[str]) -> bool:
    """Scripts, subcommands, outputs and old-style options that a star stands for."""
    before = [word for word in named[1:] if not word.startswith("-")]
    operands = [word for word in covered if not word.startswith("-")]
    first = None if before or not operands else operands[0]
    if first is not None:
        if first in row.acts or (row.is_bundled and any(c in row.letters for c in first)):
            return True
        if row.script and pattern(row.script).fullmatch(first) is None:
            return True
    if row.assigns and any("=" in word for word in operands):
        return True
    if row.hands_on and any(_is_usually_hazardous(word) for word in _behind_dashes(covered)):
        return True
    if row.stays_inside and any(_OUTSIDE.search(word) for word in operands):
        return True
    return row.operands is not None and len(before) + len(operands) > row.operands


def _behind_dashes(words: Sequence[str]) -> Sequence[str]:
    return words[words.index("--") + 1 :] if "--" in words else ()


@cache
def _rows() -> MappingProxyType[str, _Row]:
    return MappingProxyType(dict(_read_table()))


def _lines() -> list[str]:
    return TABLE.strip().replace("\n    ", " ").splitlines()


def _read_table() -> Iterator[tuple[str, _Row]]:
    more: dict[str, dict[str, object]] = {
        "awk": {"script": r"[^@]*"},
        "docker": {"acts": DOCKER_ACTS},
        "git": {"acts": GIT_ACTS},
        "kubectl": {"acts": KUBECTL_ACTS},
        "less": {"marks": ("+",)},
        "git diff": {"stays_inside": True},
        "sed": {"script": SED_SCRIPT},
        "make": {"assigns": True},
        "tar": {"is_bundled": True},
        **{name: {"hands_on": True} for name in HANDING_ON},
        "uniq": {"operands": 1},
        "xxd": {"operands": 1},
    }
    for line in _lines():
        program, letters, options, words = (part.strip() for part in line.split("|"))
        row = {"letters": letters, "options": tuple(options.split())}
        yield program, _Row(**row, words=frozenset(words.split()), **more.get(program, {}))  # type: ignore[arg-type]
