"""`search`: lines that a regular expression fits, with ripgrep where it is installed.

Both ways print the same and are read by the same code. An expression that only Python knows
(looking ahead or back) is searched for by Python.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mull.agent.tools.builtin import BuiltinTool, Outcome, path_subject
from mull.agent.tools.confined import kind_of
from mull.agent.tools.grep import Wanted
from mull.agent.tools.ignore import PASSED_OVER
from mull.agent.tools.list import fits
from mull.agent.tools.matches import LONGEST_LINE, Matches
from mull.agent.tools.process import Command
from mull.agent.tools.read import Read
from mull.agent.tools.shown import one_line
from mull.agent.tools.tool import Preview, ToolContext, ToolFailure
from mull.agent.tools.workspace import Located, Workspace
from mull.policy.approval import Asked, Rule, Subject, decide

__all__ = ["Search"]

_USUAL = 100
_MOST = 1000
_MOST_CONTEXT = 20
_SECONDS = 30
_BAD_EXPRESSION = 2
# the parent's own search path: the folder that is searched must not be able to add modules
_BOOT = (
    "import sys; sys.path[:] = sys.argv[1].split('\\n');"
    " from mull.agent.tools.grep import main; sys.exit(main())"
)
_PLAIN_GLOB = re.compile(r"[\w.*?{},-]+", re.ASCII)


class SearchArguments(Struct, kw_only=True, forbid_unknown_fields=True):
    """What to search for, and where."""

    pattern: Annotated[str, Meta(min_length=1, description="a regular expression")]
    path: Annotated[str, Meta(description="a folder or file, relative to the working folder")] = "."
    glob: Annotated[
        str | None,
        Meta(description="search only files that fit, such as *.py or src/**/*.{ts,tsx}"),
    ] = None
    ignore_case: Annotated[bool, Meta(description="take A and a for the same")] = False
    context: Annotated[
        int, Meta(ge=0, le=_MOST_CONTEXT, description="lines to show around each match")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=_MOST, description="how many matches to show")] = _USUAL
    offset: Annotated[int, Meta(ge=0, description="how many matches to pass over first")] = 0


class Search(BuiltinTool[SearchArguments]):
    """Searches files."""

    name = "search"
    description = (
        "Search the files of the working folder for a regular expression, line by line. Shows the"
        " matching lines with their numbers, file by file. Binary files and what .gitignore names"
        " are passed over."
    )
    arguments = SearchArguments

    def __init__(self, workspace: Workspace, rules: Sequence[Rule] = ()) -> None:
        super().__init__(workspace)
        self._rules = rules

    def about(self, given: SearchArguments) -> Subject:
        """Where it searches."""
        return path_subject(self._place(given))

    def show(self, given: SearchArguments) -> Preview:
        """The expression and where it is searched for."""
        only = f" ({one_line(given.glob)})" if given.glob else ""
        return Preview(f"search {one_line(given.pattern)} in {self._place(given).name}{only}")

    async def work(self, given: SearchArguments, context: ToolContext) -> Outcome:
        """Search until the page is full."""
        self.workspace.check()
        place = self._place(given)
        kind = kind_of(place)
        if kind not in ("a file", "a folder"):
            raise ToolFailure(f"{place.name} {f'is {kind}' if kind else 'does not exist'}")
        glob = given.glob if kind == "a folder" else None
        if glob:
            fits(glob, "")  # refuses a pattern that is none before anything runs
        ripgrep = shutil.which("rg")
        ways = [_ripgrep(ripgrep, given, glob, place)] if ripgrep else []
        for arguments in [*ways, _stand_in(given, place)]:
            matches = Matches(given.limit, given.offset, given.context, self._acceptor(glob, place))
            problem = await _collect(arguments, place, matches)
            if problem is None:
                return Outcome(matches.text())
        raise ToolFailure(f"{one_line(given.pattern)} is no regular expression: {problem}")

    def _place(self, given: SearchArguments) -> Located:
        return self.workspace.locate(given.path, to_read=True)

    def _acceptor(self, glob: str | None, place: Located) -> Callable[[str], str | None]:
        """The name to show for a file, if the glob fits it and it may be read.

        The glob may be meant from the folder that is searched or from the root.
        """
        start = _target(place)

        def accept(path: str) -> str | None:
            below = path.removeprefix(f"{start}/")
            if glob is not None and not (fits(glob, path) or fits(glob, below)):
                return None
            full = place.root / path
            name = self.workspace.name(full)
            return None if self._is_denied(Subject("path", name, str(full))) else name

        return accept

    def _is_denied(self, file: Subject) -> bool:
        """What rules keep from `read` is not to be had by searching either."""
        return any(
            decide(Asked(tool, False, file), "ask", self._rules).verdict == "refuse"
            for tool in (Read.name, self.name)
        )


async def _collect(arguments: list[str], place: Located, matches: Matches) -> str | None:
    """Fill the page; gives what is wrong with the expression if that is why nothing came."""
    command = await Command.start(arguments, place.root)
    try:
        async with asyncio.timeout(_SECONDS):
            while (data := await command.read()) and matches.take(data):
                pass
            if not matches.is_full:
                await command.wait()
    except TimeoutError:
        matches.stop(f"stopped after {_SECONDS} seconds: narrow it with path or glob")
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
        f"--max-columns={4 * LONGEST_LINE}", "--max-columns-preview",
        f"--context={given.context}",
        "--ignore-case" if given.ignore_case else "--case-sensitive",
        *(f"--glob=!{name}" for name in PASSED_OVER),
    ]  # fmt: skip
    if glob and "**" not in glob and _PLAIN_GLOB.fullmatch(glob):
        # --glob would bring back what .gitignore leaves out; a type does not
        arguments += [f"--type-add=wanted:{glob}", "--type=wanted"]
    return [*arguments, "-e", given.pattern, "--", _target(place)]


def _stand_in(given: SearchArguments, place: Located) -> list[str]:
    wanted = Wanted(
        start=_target(place),
        pattern=given.pattern,
        ignore_case=given.ignore_case,
        context=given.context,
        longest=LONGEST_LINE,
    )
    paths = "\n".join(path for path in sys.path if path)
    request = msgspec.json.encode(wanted).decode()
    return [sys.executable, "-I", "-c", _BOOT, paths, request]
