"""`search`: lines that match a regular expression, with ripgrep if it is installed.

Both implementations print the same, and `Matches` makes a page of it. An expression that only
Python supports (lookahead or lookbehind) is searched by Python.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mull.agent.tools.builtin import LOOKING, BuiltinTool, Plan, path_subject
from mull.agent.tools.files import kind_of
from mull.agent.tools.grep import Wanted
from mull.agent.tools.list import fits
from mull.agent.tools.nearest import missing
from mull.agent.tools.process import Command
from mull.agent.tools.shown import one_line
from mull.agent.tools.text import Encoding, encoding_of
from mull.agent.tools.tool import Outcome, Preview, ToolFailure
from mull.agent.tools.walk import PASSED_OVER
from mull.agent.tools.workspace import Located
from mull.policy.allowance import room
from mull.policy.approval import Subject
from mull.store.paths import find_program

__all__ = ["Matches", "Search"]

_USUAL = 100
_MOST = 1000
_MOST_CONTEXT = 20
_BAD_EXPRESSION = 2
# the parent's own search path: the searched folder must not be able to add modules
_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split('\\n');"
    " from mull.agent.tools.grep import main; sys.exit(main())"
)
_PLAIN_GLOB = re.compile(r"[\w.*?{},-]+", re.ASCII)

_LONGEST_LINE = 500
_MOST_BYTES = 60_000
_MOST_WORDS = 1000
_ROW = re.compile(rb"(\d+)([:-])(.*)", re.DOTALL)


class SearchArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to search for, and where."""

    pattern: Annotated[str, Meta(min_length=1, description="a regular expression")]
    path: Annotated[str, Meta(description="a folder or file, relative to the working folder")] = "."
    glob: Annotated[
        str | None,
        Meta(description="search only matching files, such as *.py or src/**/*.{ts,tsx}"),
    ] = None
    ignore_case: Annotated[bool, Meta(description="ignore case")] = False
    context: Annotated[
        int, Meta(ge=0, le=_MOST_CONTEXT, description="lines to show around each match")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=_MOST, description="how many matches to show")] = _USUAL
    offset: Annotated[int, Meta(ge=0, description="how many matches to skip first")] = 0


class Search(BuiltinTool[SearchArguments]):
    """Searches files."""

    name = "search"
    description = (
        "Search the files of the working folder for a regular expression, line by "
        "line. Shows the matching lines with their numbers, file by file. Binary files "
        "and files ignored by .gitignore are skipped."
    )
    arguments = SearchArguments

    def plan(self, given: SearchArguments) -> Plan:
        """The expression and where to search."""
        place = self.workspace.locate(given.path, to_read=True)
        if given.glob:
            fits(given.glob, "")  # rejects an invalid pattern before anything runs
        only = f" ({one_line(given.glob)})" if given.glob else ""
        preview = Preview(f"search {one_line(given.pattern)} in {place.name}{only}")
        return Plan(
            path_subject(place),
            preview,
            lambda context: self._search(given, place, room(context.tokens, _MOST_BYTES)),
        )

    async def _search(self, given: SearchArguments, place: Located, room: int) -> Outcome:
        """Search until the page is full."""
        self.workspace.check()
        kind = kind_of(place)
        if kind not in ("a file", "a folder"):
            raise ToolFailure(f"{place.name} is {kind}" if kind else missing(place))
        glob = given.glob if kind == "a folder" else None
        ripgrep = find_program("rg", self.workspace.root)
        ways = [_ripgrep(ripgrep, given, glob, place)] if ripgrep else []
        for arguments in [*ways, _stand_in(given, place)]:
            accept = self._acceptor(glob, place)
            matches = Matches(given.limit, given.offset, given.context, accept, room)
            problem = await _collect(arguments, place, matches)
            if problem is None:
                return Outcome(matches.text())
        raise ToolFailure(f"{one_line(given.pattern)} is not a regular expression: {problem}")

    def _acceptor(self, glob: str | None, place: Located) -> Callable[[str], str | None]:
        """The name to show for a file, if the glob matches it and it may be read.

        The glob may be relative to the searched folder or to the root.
        """
        start = _target(place)

        def accept(path: str) -> str | None:
            below = path.removeprefix(f"{start}/")
            if glob is not None and not (fits(glob, path) or fits(glob, below)):
                return None
            full = place.root / path
            name = self.workspace.name(full)
            return name if self.may_be_read(Subject("path", name, str(full))) else None

        return accept


async def _collect(arguments: list[str], place: Located, matches: Matches) -> str | None:
    """Fill the page; returns what is wrong with the expression if that is why nothing was found."""
    command = await Command.start(arguments, place.root)
    try:
        async with asyncio.timeout(LOOKING):
            while (data := await command.read()) and matches.take(data):
                pass
            if not matches.is_full:
                await command.wait()
    except TimeoutError:
        matches.stop(f"stopped after {LOOKING} seconds: narrow the search with path or glob")
    finally:
        status = await command.end()
    return matches.complaint() if status == _BAD_EXPRESSION else None


def _target(place: Located) -> str:
    return str(place.path.relative_to(place.root))


def _ripgrep(program: str, given: SearchArguments, glob: str | None, place: Located) -> list[str]:
    arguments = [
        program, "--no-config", "--no-messages", "--color=never", "--no-heading",
        "--with-filename", "--line-number", "--null", "--sort=path", "--hidden", "--crlf",
        "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot",
        f"--max-columns={4 * _LONGEST_LINE}", "--max-columns-preview",
        f"--context={given.context}",
        "--ignore-case" if given.ignore_case else "--case-sensitive",
        *(f"--glob=!{name}" for name in PASSED_OVER),
    ]  # fmt: skip
    if glob and "**" not in glob and _PLAIN_GLOB.fullmatch(glob):
        # --glob would re-include what .gitignore excludes; a type does not
        arguments += [f"--type-add=wanted:{glob}", "--type=wanted"]
    return [*arguments, "-e", given.pattern, "--", _target(place)]


def _stand_in(given: SearchArguments, place: Located) -> list[str]:
    wanted = Wanted(
        start=_target(place),
        pattern=given.pattern,
        ignore_case=given.ignore_case,
        context=given.context,
        longest=_LONGEST_LINE,
    )
    paths = "\n".join(path for path in sys.path if path)
    request = msgspec.json.encode(wanted).decode()
    return [sys.executable, "-I", "-c", _BOOT, paths, request]


class Matches:
    """A page of results, parsed from bytes as they arrive; says when it has enough.

    `accept` returns the name to show for a path, or None if the file is not wanted.
    """

    def __init__(
        self,
        limit: int,
        offset: int,
        context: int,
        accept: Callable[[str], str | None],
        room: int = _MOST_BYTES,
    ) -> None:
        self.is_full = False
        self._room = room
        self._last_wanted = offset + limit
        self._offset = offset
        self._accept = accept
        self._count = 0
        self._rows: list[str] = []
        self._size = 0
        self._waiting: deque[tuple[int, str]] = deque(maxlen=context)
        self._has_context = context > 0
        self._file: tuple[bytes, str | None] = (b"", None)
        self._shown_file: str | None = None
        self._shown_line = 0
        self._rest = b""
        self._words = b""
        self._note = ""

    def take(self, data: bytes) -> bool:
        """Read on; False when the page is full."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            name, zero, row = line.partition(b"\0")
            if zero:
                self._take_row(name, row)
            elif line == b"--":
                self._waiting.clear()
            else:
                self._words = (self._words + line + b"\n")[:_MOST_WORDS]
            if self.is_full:
                return False
        return True

    def stop(self, note: str) -> None:
        """The search has ended, and why."""
        self._note = note

    def complaint(self) -> str | None:
        """The error message instead of results; None if there are results."""
        if self._count:
            return None
        said = self._words.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "it cannot be read")

    def text(self) -> str:
        """The page."""
        note = self._note
        if self.is_full:
            note = f"there are more matches: continue with offset={self._count - 1}"
        elif not self._rows and not note:
            note = f"no more than {self._count} matches" if self._count else "no matches"
        return "\n".join([*self._rows, *([f"[{note}]"] if note else [])])

    def _take_row(self, name: bytes, row: bytes) -> None:
        found = _ROW.match(row)
        shown_as = self._name(name)
        if found is None or shown_as is None:
            return
        number, line = int(found[1]), _decoded(found[3]).removesuffix("\r")
        text = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} […]"
        if found[2] == b"-":
            self._take_neighbour(shown_as, number, text)
            return
        self._count += 1
        if self._count > self._last_wanted or self._size >= self._room:
            self.is_full = True
        elif self._count > self._offset:
            for earlier, neighbour in self._waiting:
                self._show(shown_as, earlier, "-", neighbour)
            self._show(shown_as, number, ":", text)
        self._waiting.clear()

    def _take_neighbour(self, name: str, number: int, text: str) -> None:
        if name == self._shown_file and number == self._shown_line + 1:
            self._show(name, number, "-", text)
        else:
            self._waiting.append((number, text))

    def _name(self, raw: bytes) -> str | None:
        if raw != self._file[0]:
            path = raw.decode("utf-8", "replace").removeprefix("./")
            self._file = (raw, self._accept(path))
            self._waiting.clear()
        return self._file[1]

    def _show(self, name: str, number: int, sign: str, text: str) -> None:
        if name != self._shown_file:
            self._rows += [*([""] if self._rows else []), name]
            self._size += len(name)
        elif self._has_context and number != self._shown_line + 1:
            self._rows.append("--")
        self._rows.append(f"{number}{sign} {text}")
        self._shown_file, self._shown_line = name, number
        self._size += len(self._rows[-1].encode("utf-8", "replace"))


def _decoded(line: bytes) -> str:
    """ripgrep prints the bytes of a file unchanged."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        encoding = encoding_of(line) or Encoding("utf-8")
        return line.decode(encoding.codec, "replace")
