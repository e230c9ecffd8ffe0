"""Which commands only look, and which words of a command a star in a rule may stand for.

A command is taken apart, and each word is compared with what is known of its program
(`mull.policy.programs`): what is not known to be harmless is not. Of a program that is not in the
table, a star may stand for paths in the folder and for no option. What words lead to is looked up
by a `Look`, because a link or a pattern may lead anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern
from mull.policy.commands import (
    RUNNERS,
    SUBSTITUTION,
    NotUnderstoodError,
    Redirection,
    SimpleCommand,
    Word,
    parse,
)
from mull.policy.globs import fixed_start
from mull.policy.programs import ALIASES, KINDS, Option, Row, rows
from mull.policy.protected import is_protected

__all__ = ["Judged", "LexicalLook", "Look", "Part", "judge"]

_NUMBERED = pattern(r"(python|pip|perl|ruby|php)[\d.]+")
_PLAIN = pattern(r"\.|(?:\./|/)?(?:\.\.\.|[\w*?\[][\w./+*?\[\]-]*)?")
"""A path that no program takes for anything else."""
_NUMBER = pattern(r"-\d+")
_DESCRIPTOR = pattern(r"[0-9]+|-")
_OUTSIDE = pattern(r"^[/~]|(?:^|/)\.\.(?:/|$)")
_NULL = "/dev/null"
_SYSTEM = ("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")
_MOVING = ("cd", "pushd", "popd")
_EXPANDING = ("mypy", "pytest", "ruff", "strings")
"""Programs that take words from the file behind an `@`."""


class Look(Protocol):
    """Looks up what words of a command lead to. Every answer is why not, or empty."""

    def program(self, name: str) -> str:
        """Why this could be a program of the project."""

    def folder(self, base: str, text: str) -> str | None:
        """The folder that the text leads to from the base; None if it is outside or none."""

    def path(self, base: str, word: Word, kind: str) -> str:
        """Why what the word leads to may not be used as one of this kind; `e` is a path that may
        be written to, and that is one: a bare word that leads nowhere may be an address.
        """

    def git(self, base: str, *, shows: bool) -> str:
        """Why git could run a program of the project there, or show what is denied."""

    def tracked(self, base: str) -> str:
        """Why git could show what is denied."""


class Part(Value, frozen=True):
    """A simple command, as rules are matched against it.

    `bad` are the places of words that are not known to be harmless, `programs` those of programs:
    a rule has to name them. The first `name` words are the program and its subcommand, if these are
    known. One that is `wide` reads what is denied without naming it, or gets input that may be
    code: a star covers none of it. `reason` says why it does not run unasked; empty if it does.
    """

    words: tuple[str, ...]
    bad: tuple[int, ...] = ()
    programs: tuple[int, ...] = (0,)
    name: int = 0
    is_redirected: bool = False
    wide: bool = False
    reason: str = ""

    @property
    def text(self) -> str:
        """The command in one line."""
        return " ".join(self.words)


class Judged(Value, frozen=True):
    """The parts of a command; none if it is not understood. `reason` says why it does not run
    unasked; empty if it is harmless.
    """

    parts: tuple[Part, ...] = ()
    reason: str = ""


class LexicalLook:
    """Judges paths by what they look like, where nothing can be looked up: no command is harmless
    by this alone.
    """

    def __init__(self, is_denied: Callable[[str], bool] = lambda path: False) -> None:
        self._is_denied = is_denied

    def program(self, name: str) -> str:
        """It is unknown where programs are."""
        return "its program was not looked up"

    def folder(self, base: str, text: str) -> str | None:
        """Any folder below."""
        return None if not text or _OUTSIDE.search(text) else f"{base}{text}/"

    def path(self, base: str, word: Word, kind: str) -> str:
        """Outside, protected, or not clear."""
        text = word.text.partition(":")[2] or word.text if kind in "gk" else word.text
        if word.glob and word.text[:1] in ("*", "?", "["):
            return f"{word.raw} may become an option"
        if text != _NULL and (_OUTSIDE.search(word.text) or _OUTSIDE.search(text)):
            return f"{word.raw} leads out of the folder"
        if kind in "re" and is_protected(text):
            return f"{word.raw} is protected"
        return f"{word.raw} is denied" if self._is_denied(base + text) else ""

    def git(self, base: str, *, shows: bool) -> str:
        """The repository is unknown."""
        return "its repository was not looked up"

    def tracked(self, base: str) -> str:
        """So is what it has."""
        return ""


def judge(command: str, look: Look) -> Judged:
    """The parts of a command, and whether all of them are harmless."""
    try:
        found = parse(command)
    except NotUnderstoodError as error:
        return Judged((), str(error))
    parts: list[Part] = []
    base: str | None = ""
    is_leading = True
    for place, simple in enumerate(found):
        if not simple.words or simple.words[0].text not in _MOVING:
            is_leading = False
            parts.append(_Judge(simple, base, look).part)
            continue
        is_leading = is_leading and not simple.inner and not _is_aside(found[place + 1 :])
        part, base = _moving(simple, base if is_leading else None, look)
        parts.append(part)
    reasons = (part.reason for part in parts if part.reason)
    return Judged(tuple(parts), next(reasons, "" if parts else "there is nothing to run"))


def _is_aside(following: Sequence[SimpleCommand]) -> bool:
    """Whether what follows does not run in the folder that this command goes to."""
    for one in following:
        if one.after in ("|", "||"):
            return True
        if not one.inner:
            return False
    return False


def _moving(simple: SimpleCommand, base: str | None, look: Look) -> tuple[Part, str | None]:
    """`cd` to a folder inside, before anything else; otherwise nobody knows where the rest runs."""
    words = tuple(word.raw for word in (*simple.assignments, *simple.words))
    to = simple.words[-1]
    is_plain = words[:-1] == ("cd",) and not to.text.startswith("-")
    is_plain = is_plain and not (simple.redirections or to.open or to.glob)
    moved = look.folder(base, to.text) if is_plain and base is not None else None
    if moved is None:
        return Part(words, tuple(range(len(words))), reason="it leaves the folder"), None
    return Part(words), moved


class _Judge:
    """Goes through the words of one simple command."""

    def __init__(self, simple: SimpleCommand, base: str | None, look: Look) -> None:
        self._words = (*simple.assignments, *simple.words)
        self._base = base
        self._look = look
        given = any(each.operator.startswith("<") for each in simple.redirections)
        self._has_input = simple.after == "|" or given or simple.inner
        self._bad: dict[int, str] = {}
        self._programs: list[int] = []
        self._name = 0
        self._reasons: list[str] = []
        self._wide = False
        for place in range(len(simple.assignments)):
            self._bad[place] = f"it sets {self._words[place].raw}"
        redirected = [reason for each in simple.redirections if (reason := self._leads(each))]
        if simple.words:
            self._program(len(simple.assignments))
        self.part = Part(
            tuple(word.raw for word in self._words),
            tuple(self._bad),
            tuple(self._programs),
            self._name,
            bool(redirected),
            self._wide,
            next(iter((*redirected, *self._bad.values(), *self._reasons)), ""),
        )

    def _leads(self, redirection: Redirection) -> str:
        """Why a redirection is not harmless."""
        target, operator = redirection.target, redirection.operator
        if target.open or target.glob:
            return "it is redirected to what is not known"
        if operator.startswith("<<"):
            return ""
        if operator in (">&", "<&") and _DESCRIPTOR.fullmatch(target.text):
            return ""
        if operator == "<":
            return self._path(target, "f")
        return "" if target.text == _NULL and operator != "<>" else f"it writes to {target.raw}"

    def _program(self, at: int) -> None:
        """Judge the program at this place and the words after it."""
        self._programs.append(at)
        word = self._words[at]
        folder, _, name = word.text.rpartition("/")
        numbered = _NUMBERED.fullmatch(name)
        name = numbered[1] if numbered else name
        name = ALIASES.get(name, name)
        if word.open or word.glob:
            self._bad[at] = f"{word.raw} is not known"
            name = ""
        elif "/" in word.text and folder not in _SYSTEM:
            self._reasons.append(f"{word.raw} may be a program of the project")
        elif reason := self._look.program(word.text):
            self._reasons.append(reason)
        if name in _EXPANDING:
            for place in range(at + 1, len(self._words)):
                if self._words[place].text.startswith("@"):
                    self._bad[place] = f"{self._words[place].raw} stands for words in a file"
        if name not in _names():
            self._name = 0
            self._reasons.append(f"{name} is not known to be harmless")
            self._wide = self._has_input
            self._rest(at + 1, is_runner=name in RUNNERS or not name)
            return
        self._known(name, at + 1)

    def _rest(self, at: int, *, is_runner: bool = False) -> None:
        """The words of an unknown program: only paths are harmless."""
        for place in range(at, len(self._words)):
            word = self._words[place]
            # behind an option it may be a value, and a bare word may be a subcommand
            is_path = not is_runner and ("/" in word.text or "." in word.text)
            before = self._words[place - 1].text
            is_path = is_path and ("=" in before or not before.startswith("-"))
            if reason := self._value("e", word) if is_path else f"{word.raw} is not known":
                self._bad[place] = reason

    def _known(self, name: str, at: int) -> None:
        """The words of a program in the table, from this place on."""
        row = rows().get(name)
        self._name = at if row else 0
        named: list[int] = []
        operands: list[int] = []
        marks = ""
        is_over = is_unsure = False
        while at < len(self._words):
            word = self._words[at]
            if not operands or word.text == "--":
                longer = f"{name} {word.text}"
                if longer in _names() and not (word.open or word.glob or is_over):
                    name, row, at = longer, rows().get(longer), at + 1
                    self._name = at
                    named += [at - 1] if word.text != "--" else []
                    continue
            if row is None or (not row.operands and name in _prefixes() and word.text[:1] != "-"):
                self._bad[at] = f"{name} {word.raw} is not known to be harmless"
                self._reasons.append(self._bad[at])
                self._name = 0
                self._rest(at + 1)
                return
            if word.text == "--" and not (is_over or row.is_exact):
                is_over, at = True, at + 1
            elif _is_operand(row, word, is_over):
                operands.append(at)
                is_over = is_over or row.ends_options
                kind = row.operands[min(len(operands), len(row.operands)) - 1 :][:1]
                if kind == ("c",):
                    self._programs += named if row.is_asked else []
                    self._judge_row(row, operands[:-1], marks, is_unsure)
                    self._program(at)
                    return
                at += 1
            else:
                taken, more = self._option(row, at)
                is_unsure = is_unsure or not taken
                marks += more
                at += max(taken, 1)
        if row is None:
            self._programs += named
            self._reasons.append(f"{name} alone is not known to be harmless")
            return
        self._programs += named if row.is_asked else []
        self._judge_row(row, operands, marks, is_unsure)

    def _judge_row(self, row: Row, operands: Sequence[int], marks: str, is_unsure: bool) -> None:
        kinds = list(row.operands[1:] if "!" in marks and len(row.operands) > 1 else row.operands)
        if "^" in marks or "." in marks:
            kinds = ["a" if kind in "fv" else kind for kind in kinds]
        if "&" not in marks and any("&" in option.marks for option in row.options.values()):
            kinds = []
        for number, place in enumerate(operands):
            word = self._words[place]
            if number >= len(kinds) and not (row.repeats and kinds):
                self._bad[place] = f"{row.name} with {word.raw} is not known to be harmless"
                continue
            is_last = row.repeats and number >= len(kinds) - 1
            if word.glob and not is_last:  # it may become several words
                self._bad[place] = f"it is not known what {word.raw} becomes"
                continue
            # after an option that is not known, a word may be any of the operands
            fitting = kinds if is_unsure else kinds[min(number, len(kinds) - 1) :][:1]
            if reason := next((why for kind in fitting if (why := self._value(kind, word))), ""):
                self._bad[place] = reason
        if ("." in marks or row.reads_folder) and len(operands) < len(kinds):
            self._reasons.append(self._path(Word(".", "."), kinds[-1]))
            self._wide = bool(self._reasons[-1])
        if row.is_asked:
            self._wide = self._wide or self._has_input
            self._reasons.append(f"{row.name} may change something, or run what the project says")
        if "g" in row.operands and self._base is not None:
            self._wide = self._wide or bool(self._look.tracked(self._base))
        is_git = row.name.startswith("git ") and not self._bad and not any(self._reasons)
        if is_git and self._base is not None:
            self._reasons.append(self._look.git(self._base, shows="g" in row.operands))
        if self._base is None:
            self._reasons.append("it is not known where it runs")
        self._reasons[:] = [reason for reason in self._reasons if reason]

    def _option(self, row: Row, at: int) -> tuple[int, str]:
        """How many words the option at this place takes with its values, and its marks. Nothing if
        it is not known; then the next word may be its value.
        """
        word = self._words[at]
        text = word.text
        found = row.options.get(text)
        attached: str | None = None
        marks = ""
        if found is None and (text.startswith("--") or row.is_exact):
            name, equals, value = text.partition("=")
            found = row.options.get(name)
            attached = value if equals else None
            if found is not None and equals and not found.values:
                found = None
        elif found is None:
            if _NUMBER.fullmatch(text) and "-#" in row.options:
                return 1, ""
            found, attached, marks = _letters(row, text)
        # what a pattern in the value becomes is that option again; as a path it may lead elsewhere
        is_fixed = attached is not None and "=" in fixed_start(word.glob)
        is_path = found is not None and not KINDS.keys() >= set(found.values)
        if found is None or word.open or (word.glob and (is_path or not is_fixed)):
            self._bad[at] = f"{row.name} {word.raw} is not known to be harmless"
            if attached is not None:
                return 1, ""
            if at + 1 < len(self._words):
                self._bad[at + 1] = self._bad[at]
            return 0, ""
        kinds = found.values
        taken = 1
        if attached is not None and kinds:
            if reason := self._value(kinds[0], Word(word.raw, attached)):
                self._bad[at] = reason
            kinds = kinds[1:]
        for kind in () if found.attached else kinds:
            place = at + taken
            taken += 1
            is_there = place < len(self._words)
            if is_there and (why := self._next_value(kind, self._words[place], found.marks)):
                self._bad[place] = why
        return taken, marks + found.marks

    def _next_value(self, kind: str, word: Word, marks: str) -> str:
        """Why the word after an option is not harmless as its value. One with a dash may be the
        next option: some programs read clusters and missing values in their own way.
        """
        if word.glob:
            return f"it is not known what {word.raw} becomes"
        is_dashed = len(word.text) > 1 and word.text[0] == "-" and not KINDS["i"](word.text)
        if is_dashed and "!" not in marks:
            return f"{word.raw} may be an option"
        return self._value(kind, word)

    def _value(self, kind: str, word: Word) -> str:
        """Why the word is not harmless as one of this kind."""
        if kind == "x" and word.open in ("", SUBSTITUTION):
            return self._path(word, "p") if word.glob else ""
        if word.open:
            return f"{word.raw} contains {word.open}"
        if kind == "d":
            moved = None if self._base is None else self._look.folder(self._base, word.text)
            self._base = None if word.glob else moved
            return "" if self._base is not None else f"{word.raw} leads out of the folder"
        if kind in KINDS or kind.startswith("{"):
            listed = kind[1:-1].split(",")
            fits = KINDS[kind](word.text) if kind in KINDS else word.text in listed
            if fits and kind == "test" and "/" in word.text:
                return self._path(word, "p")
            return "" if fits and not word.glob else f"{word.raw} is not known to be harmless"
        if kind == "t":
            file, glob = word.text.partition("::")[0], word.glob.partition("::")[0]
            word = Word(word.raw, file, glob if any(char in glob for char in "*?[") else "")
        if kind in "ret" and word.text and not _PLAIN.fullmatch(word.text):
            return f"{word.raw} is not a plain path"
        if kind == "n" and not KINDS["ref"](word.text):
            return f"{word.raw} is not known to be harmless"
        return self._path(word, "r" if kind == "t" else kind)

    def _path(self, word: Word, kind: str) -> str:
        if self._base is None:
            return f"it is not known where {word.raw} is"
        if word.text == "-" or (word.text == _NULL and not word.glob):
            return ""
        return self._look.path(self._base, word, kind)


def _is_operand(row: Row, word: Word, is_over: bool) -> bool:
    if is_over or row.operands[:1] in (("x",), ("test",), ("printf",)):
        return True
    if word.text in row.options:
        return False
    return not word.text.startswith("-") or word.text == "-"


def _letters(row: Row, text: str) -> tuple[Option | None, str | None, str]:
    """Flags in one word, `-la`; the last of them may have a value."""
    marks = ""
    found = None
    for place, letter in enumerate(text[1:], 2):
        found = row.options.get(f"-{letter}")
        if found is None:
            return None, None, ""
        if found.values and place < len(text):
            return found, text[place:], marks
        marks += found.marks
    return found, None, marks


@cache
def _prefixes() -> frozenset[str]:
    """What begins the name of a subcommand."""
    split = (name.split() for name in rows())
    return frozenset(" ".join(words[:length]) for words in split for length in range(1, len(words)))


@cache
def _names() -> frozenset[str]:
    return _prefixes() | rows().keys()
