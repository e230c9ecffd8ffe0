"""Shell commands, taken apart as bash would.

`parse` understands simple commands with quotes, pipes, lists, groups, substitutions, redirections,
assignments, patterns of file names, here-documents and comments. It raises where it does not:
keywords, background jobs, arithmetic, process substitution. What a substitution or a variable will
be is not known; a word that has one is `open`.

For deny rules, a command is also split at everything that could start another command, and after a
word that runs what follows (`sudo`, `then`, `sh`) at every word.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern
from mull.policy.globs import escape

__all__ = [
    "RUNNERS",
    "NotUnderstoodError",
    "Redirection",
    "SimpleCommand",
    "Word",
    "deny_parts",
    "parse",
]

RUNNERS = frozenset(
    """! . bash builtin busybox chronic chroot command coproc dash do doas elif else env eval exec
    fish flock if ionice ksh nice nohup parallel setsid sh source ssh stdbuf strace sudo su then
    time timeout unshare until watch while uvx vi vim view nvim emacs nano ed ex
    bunx npx pipx xargs zsh
    """.split()
)
"""Programs and words that run what follows them."""

SUBSTITUTION = "a substitution"
"""Why a word is open that is one word, whatever the substitution gives."""
_LONGEST = 20_000
_DEEPEST = 8
_LONGEST_NUMBER = 9
_KEYWORDS = frozenset(
    "if then elif else fi for while until do done case esac select function coproc [[ time".split()
)
_ASSIGNMENT = pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*", 16)
_VARIABLE = pattern(r"\{[A-Za-z_]\w*\}|[A-Za-z_]\w*|[0-9?$!#@*_-]")
_OPERATOR = pattern(r"((?:[0-9]+(?!&))?)(&>>?|<<<|<<-?|>>|>&|<&|>\||<>|[<>])")
_GLOB = pattern(r"[*?]|\[.+\]")
_HOME = pattern(r"(?:^|[=:])~")
_BREAK = " \t\n;&|<>()"


class NotUnderstoodError(ValueError):
    """Why a command cannot be taken apart."""


class Word(Value, frozen=True):
    """A word as it is `raw` in the command, and the `text` that a program gets.

    If it is a pattern of file names, `glob` is that pattern. If it is `open`, what a program gets
    is not known: says why.
    """

    raw: str
    text: str
    glob: str = ""
    open: str = ""


class Redirection(Value, frozen=True):
    """Where input comes from or output goes to; a here-document has its text as the target."""

    operator: str
    target: Word


class SimpleCommand(Value, frozen=True):
    """A program with its words. `after` is the operator before it: `|`, `&&`, `||`, `;`, or nothing
    for the first. It is `inner` in a group or a substitution.
    """

    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    after: str = ""
    inner: bool = False


def parse(command: str) -> tuple[SimpleCommand, ...]:
    """All simple commands in it, including those in substitutions.

    Raises:
        NotUnderstoodError: it has something else; says what.
    """
    if len(command) > _LONGEST:
        raise NotUnderstoodError("it is too long")
    strange = next((char for char in command if not (char.isprintable() or char in "\t\n")), "")
    if strange:
        raise NotUnderstoodError(f"it contains the character {strange!a}")
    parser = _Parser(command)
    parser.read_list("")
    return tuple(parser.found)


class _Parser:
    """Reads a command from left to right; `found` are its simple commands so far."""

    def __init__(self, text: str, depth: int = 0) -> None:
        if depth > _DEEPEST:
            raise NotUnderstoodError("it is nested too deeply")
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[SimpleCommand] = []
        self._has_document = False

    def read_list(self, end: str, after: str = "") -> None:
        """Commands joined by operators, up to a closing bracket."""
        while True:
            self._skip(newlines=True)
            if self._closes(end):
                return
            while self._word_is("!"):
                self._skip()
            self._command(after)
            self._skip()
            after = self._joined(end)
            if not after:
                return

    def _command(self, after: str) -> None:
        if self._here("((", "(\\\n"):  # lines may be joined within an operator
            raise NotUnderstoodError("it has arithmetic")
        if self._here("("):
            self._group(")", after)
        elif self._word_is("{"):
            self._group("}", after)
        else:
            self._simple(after)

    def _group(self, end: str, after: str) -> None:
        inside = _Parser(self.text, self.depth + 1)
        inside.at = self.at + (end == ")")
        inside.read_list(end, after)
        if not inside.found:
            raise NotUnderstoodError("a group is empty")
        self.found += inside.found
        self.at = inside.at
        self._skip()
        redirections = list(self._redirections())
        if redirections:  # they hold for every command inside
            self.found.append(SimpleCommand((), (), tuple(redirections), after, True))

    def _joined(self, end: str) -> str:
        """The operator that comes next; nothing at the end."""
        for operator in ("&&", "||", "|&", "|", ";"):
            if self._here(operator):
                self.at += len(operator)
                if operator != ";":
                    self._skip(newlines=True)
                    if self.at >= len(self.text):
                        raise NotUnderstoodError(f"nothing follows {operator}")
                return "|" if operator == "|&" else operator
        if self._here("\n"):
            self._skip(newlines=True)
            return ";"
        if self._here("&"):
            raise NotUnderstoodError("it starts something in the background")
        if not self._closes(end):
            raise NotUnderstoodError("its brackets do not match")
        return ""

    def _closes(self, end: str) -> bool:
        """Whether this is where the list ends; then it is passed."""
        if end == "}":
            return self._word_is("}")
        if self._here(")") and end == ")":
            self.at += 1
            return True
        return not end and self.at >= len(self.text)

    def _simple(self, after: str) -> None:
        words: list[Word] = []
        assignments: list[Word] = []
        redirections: list[Redirection] = []
        begin = self.at
        while True:
            self._skip()
            more = list(self._redirections())
            redirections += more
            word = self._word()
            if word is None:
                if not more:
                    break
            elif not words and _ASSIGNMENT.fullmatch(word.raw):
                assignments.append(word)
            elif not words and word.raw in _KEYWORDS:
                raise NotUnderstoodError(f"it has the keyword {word.raw}")
            else:
                words.append(word)
        if self._here("("):
            raise NotUnderstoodError("it has a bracket inside a command")
        if self.at == begin:
            raise NotUnderstoodError("a command is missing")
        made = SimpleCommand(
            tuple(words), tuple(assignments), tuple(redirections), after, self.depth > 0
        )
        self.found.append(made)

    def _redirections(self) -> Iterator[Redirection]:
        while True:
            operator = _OPERATOR.match(self.text, self.at)
            if operator is None:
                return
            if len(operator[1]) > _LONGEST_NUMBER:  # to bash it is a word
                raise NotUnderstoodError("it has a number too large for a file")
            self.at = operator.end()
            if self._here("("):
                raise NotUnderstoodError("it has a process substitution")
            self._skip()
            target = self._word()
            if target is None:
                raise NotUnderstoodError("a redirection leads nowhere")
            if operator[2] in ("<<", "<<-"):
                target = self._document(target, strip=operator[2] == "<<-")
            yield Redirection(operator[2], target)
            self._skip()

    def _document(self, mark: Word, *, strip: bool) -> Word:
        """The here-document with this mark: it begins on the next line."""
        line = self.text.find("\n", self.at)
        between = set(self.text[self.at : line])
        if line < 0 or self.depth or self._has_document or between & set("'\"\\`$(#"):
            raise NotUnderstoodError("it has a here-document that is hard to find")
        lines = self.text[line + 1 :].split("\n")
        bare = [each.lstrip("\t") if strip else each for each in lines]
        if mark.open or mark.text not in bare:
            raise NotUnderstoodError("a here-document has no end")
        length = bare.index(mark.text)
        body = "\n".join(lines[:length])
        if mark.raw == mark.text and any(char in body for char in "$`\\"):
            raise NotUnderstoodError("a here-document has a substitution")
        self._has_document = True
        self.text = "\n".join((self.text[:line], *lines[length + 1 :]))
        return Word(mark.raw, body)

    def _skip(self, *, newlines: bool = False) -> None:
        """Pass blanks, line continuations and comments."""
        while self.at < len(self.text):
            if self._here("\\\n"):
                self.at += 2
            elif self.text[self.at] in " \t" or (newlines and self.text[self.at] == "\n"):
                self._has_document = self._has_document and self.text[self.at] != "\n"
                self.at += 1
            elif self.text[self.at] == "#" and self.text[self.at - 1 : self.at] in ("", *_BREAK):
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _here(self, *texts: str) -> bool:
        return self.text.startswith(texts, self.at)

    def _word_is(self, word: str) -> bool:
        """Whether the next word is this one, unquoted; then it is passed."""
        after = self.text[self.at + len(word) : self.at + len(word) + 1]
        if not self._here(word) or after not in ("", *_BREAK):
            return False
        self.at += len(word)
        return True

    def _word(self) -> Word | None:
        """The next word; None if there is none."""
        made = _Made()
        start = self.at
        while self.at < len(self.text) and (char := self.text[self.at]) not in _BREAK:
            self.at += 1
            if char == "\\":
                if self.at >= len(self.text):
                    raise NotUnderstoodError("it ends in a backslash")
                if not self._here("\n"):
                    made.add(self.text[self.at], quoted=True)
                self.at += 1
            elif char == "'":
                made.add(self._until("'"), quoted=True)
            elif char == '"':
                self._double(made)
            elif char in "$`":
                self._expanded(char, made)
            else:
                made.add(char, quoted=False)
        if self.at == start:
            return None
        raw = self.text[start : self.at].replace("\\\n", "")
        return made.word(raw)

    def _double(self, made: _Made) -> None:
        made.add("", quoted=True)
        while not self._here('"'):
            if self.at >= len(self.text):
                raise NotUnderstoodError("a quotation mark is not closed")
            char = self.text[self.at]
            self.at += 1
            if char == "\\" and self.text[self.at : self.at + 1] in tuple('$`"\\\n'):
                made.add(self.text[self.at].replace("\n", ""), quoted=True)
                self.at += 1
            elif char in "$`":
                self._expanded(char, made, quoted=True)
            else:
                made.add(char, quoted=True)
        self.at += 1

    def _expanded(self, char: str, made: _Made, *, quoted: bool = False) -> None:
        """A variable or a substitution; a dollar sign alone is itself."""
        if char == "`":
            inner = self._until("`")
            if "\\" in inner:
                raise NotUnderstoodError("it has an escape between backquotes")
            self._substituted(_Parser(inner, self.depth + 1), "")
        elif self._here("((", "(\\\n"):
            raise NotUnderstoodError("it has arithmetic")
        elif self._here("("):
            inside = _Parser(self.text, self.depth + 1)
            inside.at = self.at + 1
            self._substituted(inside, ")")
            self.at = inside.at
        elif variable := _VARIABLE.match(self.text, self.at):
            self.at = variable.end()
            made.open = "a variable"
            return
        elif self._here("{", "[", "'", "\\\n") or (self._here('"') and not quoted):
            raise NotUnderstoodError("it has an expansion")
        else:
            made.add("$", quoted=True)
            return
        made.open = made.open or (SUBSTITUTION if quoted else "an unquoted substitution")

    def _substituted(self, inside: _Parser, end: str) -> None:
        inside.read_list(end)
        self.found += inside.found

    def _until(self, mark: str) -> str:
        end = self.text.find(mark, self.at)
        if end < 0:
            raise NotUnderstoodError("a quotation mark is not closed")
        inside, self.at = self.text[self.at : end], end + 1
        return inside


class _Made:
    """A word in the making: what is quoted means itself."""

    def __init__(self) -> None:
        self.text = ""
        self.glob = ""
        self.bare = ""
        self.open = ""

    def add(self, text: str, *, quoted: bool) -> None:
        self.text += text
        self.glob += escape(text) if quoted else text
        self.bare += "x" if quoted else text

    def word(self, raw: str) -> Word:
        inside = self.bare.partition("{")[2].rpartition("}")[0]
        braces = "braces" if "," in inside or ".." in inside else ""
        home = "a home" if _HOME.search(self.bare) else ""
        globs = _GLOB.search(self.bare) is not None
        return Word(raw, self.text, self.glob if globs else "", self.open or braces or home)


_ANY_BREAK = pattern(r"[;&|<>(){}$`\n\r]+")
_ASSIGNMENTS = pattern(r"""(?:\w+=(?:"[^"]*"|'[^']*'|[^\s"'])* )+""")
_QUOTING = str.maketrans("", "", "'\"\\")
_MOST_STARTS = 64
"""Maximum words of one piece at which a command may start: enough for people, and bounded."""


def deny_parts(command: str) -> list[str]:
    """Everything in it that may be a command, also by its name without a folder."""
    found = [command.strip()]
    for piece in _ANY_BREAK.split(command):
        part = " ".join(piece.split())
        assigned = _ASSIGNMENTS.match(part)
        part = part[assigned.end() :] if assigned else part
        found.append(part)
        for bare in _commands_in(part.translate(_QUOTING)):
            found += [bare, _without_folder(bare)]
    with suppress(NotUnderstoodError):
        for one in parse(command):
            text = " ".join(word.text for word in one.words)
            found += [text, _without_folder(text)]
    return [part for part in dict.fromkeys(found) if part]


def _commands_in(piece: str) -> Iterator[str]:
    """The piece, and its rest from each word on if its first word runs that."""
    yield piece
    program, _, rest = _without_folder(piece).partition(" ")
    if program not in RUNNERS and program != "find":
        return
    for _ in range(_MOST_STARTS):
        if not rest:
            return
        yield rest
        _, _, rest = rest.partition(" ")


def _without_folder(command: str) -> str:
    program, space, rest = command.partition(" ")
    return f"{program.rpartition('/')[2]}{space}{rest}"
