"""The built-in tools: the only list of them, and how `--tools` selects tools."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mull.agent.tools.ask_user import Ask, AskUser, nobody
from mull.agent.tools.builtin import BuiltinTool
from mull.agent.tools.change import Edit, Write
from mull.agent.tools.jobs import JobTool
from mull.agent.tools.list import List
from mull.agent.tools.read import Read
from mull.agent.tools.run import MOST_SECONDS, Run
from mull.agent.tools.search import Search
from mull.agent.tools.todo import Todo
from mull.agent.tools.tool import RunnableTool
from mull.agent.tools.workspace import Workspace
from mull.neutral.errors import LocalError
from mull.policy.approval import Rule
from mull.policy.globs import text_matches
from mull.settings.words import closest, join_or, quote

if TYPE_CHECKING:
    from mull.agent.sandbox.cage import Cage

__all__ = ["GROUPS", "TOOL_NAMES", "builtin_tools", "choose_tools", "with_jobs"]

_TOOLS: tuple[type[BuiltinTool[Any]], ...] = (
    Read, List, Search, Edit, Write, Run, JobTool, Todo, AskUser
)  # fmt: skip

TOOL_NAMES = tuple(tool.name for tool in _TOOLS)
"""The names of the built-in tools."""

GROUPS = ("all", "read", "none")
"""Words of `--tools` that stand for several tools; `read` is all that change nothing."""

T = TypeVar("T", bound=RunnableTool)


def builtin_tools(
    workspace: Workspace,
    *,
    rules: Sequence[Rule] = (),
    most_seconds: int = MOST_SECONDS,
    withheld: Collection[str] = (),
    passed_on: Collection[str] = (),
    ask: Ask = nobody,
    cage: Callable[[], Cage] | None = None,
) -> dict[str, RunnableTool]:
    """The built-in tools by name, in this workspace.

    What the `rules` deny to `read` is not available from `search`, or from the output of `edit`. A
    command may run for `most_seconds`. It does not get variables whose names look like keys, nor
    those that are `withheld`, unless they are `passed_on`. Questions to the user go to `ask`.
    Commands that may run only in a sandbox run in `cage`.

    Raises:
        LocalError: this system lacks what keeps the tools inside the working folder.
    """
    if os.name != "posix":
        raise LocalError("mull's own tools need Linux or macOS: this system cannot confine them")
    made = {tool.name: tool(workspace, rules) for tool in _TOOLS if tool is not AskUser}
    made[Run.name] = Run(workspace, most_seconds, withheld, passed_on, rules, cage)
    made[AskUser.name] = AskUser(workspace, ask)
    return dict(made)


def choose_tools(
    text: str,
    tools: Mapping[str, T],
    *,
    may_miss: bool = False,
    taught: Collection[str] | None = None,
) -> dict[str, T]:
    """The tools that `--tools` names: groups, names and patterns such as `mcp__github__*`.

    Of a group, only those that the model was `taught` count, if it was taught only a few.

    Raises:
        LocalError: a word matches no tool, unless that is allowed.
    """
    chosen: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        if word == "none":
            continue
        if word in GROUPS:
            known = [n for n in tools if taught is None or n in taught]
            found = [n for n in known if word == "all" or not tools[n].changes]
        else:
            found = [name for name in tools if text_matches(word, name)]
            if not found and not may_miss:
                raise LocalError(_unknown(word, tools))
        chosen.update(found)
    return with_jobs({name: tool for name, tool in tools.items() if name in chosen}, tools)


def with_jobs(chosen: Mapping[str, T], tools: Mapping[str, T]) -> dict[str, T]:
    """The chosen tools, with `jobs` if there can be background commands."""
    names = {*chosen, JobTool.name} if Run.name in chosen else {*chosen} - {JobTool.name}
    return {name: tool for name, tool in tools.items() if name in names}


def _unknown(word: str, tools: Mapping[str, T]) -> str:
    known = list(dict.fromkeys((*GROUPS, *tools)))
    near = closest(word, known)
    hint = f"did you mean {near}?" if near else f"use {join_or(known)}"
    return f"unknown tool {quote(word)}: {hint}"
