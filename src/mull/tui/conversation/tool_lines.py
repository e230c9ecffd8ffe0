"""A tool call and its result, folded to what matters.

The call appears where the model made it, the result when it arrives: for a command its exit status
and last lines, for a file its length, for a change its diff. If another call was made in between,
the result names its call. The viewer shows everything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from mull.agent.tools.shown import NOT_RUN, REFUSED, telling_line
from mull.agent.tools.trained import own_name
from mull.neutral.blocks import ToolCallBlock
from mull.tui.conversation.sections import Look
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import BLANK, Line, Span, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.width import cell_width, fitted
from mull.tui.text.wrap import expanded, wrapped

__all__ = ["RunningTool", "ToolUse", "call_line", "call_title", "result_lines", "running_call"]

_CALL, _RESULT = "● ", "  └ "
_PLAIN_CALL, _PLAIN_RESULT = "Tool: ", "  Result: "
_LIVE_ROWS = 3
_END_ROWS, _FAILED_ROWS = 3, 8
"""Lines of a command's output that stay on the screen, and of a failed one."""
DIFF_ROWS = 40
_COMMAND_DIFF_ROWS = 12
"""Rows of what a command changed: nobody was asked about it, and it may be much."""
_ABOUT = ("path", "command", "pattern", "query", "url")
"""Names of arguments that say what a call is about."""
_CHANGES = ("edit", "write")
_SHORT = 24
_ENDS = re.compile(r"\[((?:exit status|ended|what it left).*)\]")
"""Lines that mull appends to the output of a command."""
_CUT = re.compile(r"\[\d[\d,]{,19} of (\d[\d,]{,19}) lines, .* left out here.*\]")
_BARE = re.compile(r"\S.* changed(?:: .*)?")
"""A changed file whose content is not shown."""
_NUMBERED = re.compile(r"\s*\d+\t")


class ToolUse:
    """One call as the user sees it: what it is about, what it changed, and its result.

    `shown` means that the diff is already on the screen, because approval was asked for.
    """

    def __init__(self, name: str, title: str = "") -> None:
        self.name = name
        self.title = title
        self.diff = ""
        self.output = ""
        self.live = ""
        self.is_over = False
        self.failed = False
        self.shown = False

    @property
    def label(self) -> str:
        """`run make test`."""
        return f"{_one_line(self.name, 60)} {_one_line(self.title, 200)}".rstrip()

    @property
    def is_command(self) -> bool:
        """Whether its result is the output of a command."""
        return own_name(self.name) == "run"

    @property
    def is_change(self) -> bool:
        """Whether its effect on files is shown as a diff."""
        return own_name(self.name) in _CHANGES

    def add(self, text: str) -> None:
        """Add output while it runs."""
        self.live += text

    def end(self, output: str, failed: bool) -> None:
        """The call has ended."""
        self.output, self.failed, self.is_over, self.live = output, failed, True, ""

    def body(self, look: Look) -> list[Line]:
        """Everything about it, for the viewer."""
        theme, width, _ = look
        diff = _diff(self.diff, look) if self.diff else []
        text = self.output if self.is_over else self.live
        style = theme.error if self.failed and not self.is_command else theme.tool_output
        said = _indented(neutralise(text).strip("\n"), style, width)
        between = [BLANK] if diff and said else []
        return [*diff, *between, *(said or ([] if diff else [_nothing(theme)]))]


def _diff(text: str, look: Look, most: int | None = None) -> list[Line]:
    from mull.tui.text.diff_lines import diff_lines

    return diff_lines(text, look.theme, look.width, most)


def _nothing(theme: Theme) -> Line:
    return (Span("  (no output)", theme.faint),)


def _indented(text: str, style: Style, width: int) -> list[Line]:
    rows: list[Line] = []
    for row in text.split("\n") if text else ():
        lines = wrapped(expanded(row), style, max(width - 2, 8)) or [BLANK]
        rows += [(Span("  ", style), *line) if line else BLANK for line in lines]
    return rows


def call_title(call: ToolCallBlock) -> str:
    """A call in words: its main argument first, the others with their names.

    Long values of other arguments are left out, and so is the text that a change replaces: the
    result or the diff shows them.
    """
    if not call.input:
        return call.arguments or ""
    values = {name: _short(value) for name, value in call.input.items()}
    about = next((name for name in values if name in _ABOUT or len(values) == 1), None)
    if about is None:
        return ", ".join(f"{name}: {value}" for name, value in values.items())
    if own_name(call.name) in _CHANGES:
        return values[about]
    rest = [(name, value) for name, value in values.items() if name != about]
    short = [f"{name}: {value}" for name, value in rest if len(value) <= _SHORT]
    return ", ".join((values[about], *short))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return _one_line(text, 200)


def _one_line(text: str, most: int) -> str:
    return " ".join(neutralise(text[: 4 * most]).split())


def call_line(name: str, title: str, theme: Theme, width: int) -> Line:
    """`● read_file  src/a.py`"""
    mark = _PLAIN_CALL if theme.words else _CALL
    name = fitted(_one_line(name or "(unnamed tool)", 60), width // 2)
    room = width - cell_width(mark + name) - 2
    said = fitted(_one_line(title, width), room)
    bold = theme.tool._replace(bold=True)
    end = (Span("  " + said, theme.text),) if said else ()
    return (Span(mark, theme.tool), Span(name, bold), *end)


def running_call(name: str, size: int, theme: Theme, width: int) -> Line:
    """A call that is still being written: its name and how much of it has arrived."""
    return call_line(name, f"… {size:,} characters" if size >= 200 else "…", theme, width)


def result_lines(tool: ToolUse, look: Look, *, apart: bool) -> list[Line]:
    """The result below its call; if `apart` from it, it names its call."""
    label = tool.label if apart else ""
    if tool.failed and tool.output.startswith(NOT_RUN):
        return [_told(look, label, _not_run(tool.output), "", failed=False)]
    if tool.is_command:
        return _command_lines(tool, look, label)
    head = _result_head(tool, look, label)
    if not tool.diff or tool.shown or tool.failed:
        return [head]
    return [head, *_diff(tool.diff, look, DIFF_ROWS)]


def _result_head(tool: ToolUse, look: Look, label: str) -> Line:
    """`  └ 41 lines`, or the first line and how many more there are."""
    output = tool.output.strip("\n")
    count = output.count("\n") + 1
    first = telling_line(output, at_end=False)
    if not tool.failed and own_name(tool.name) == "read" and _NUMBERED.match(output):
        rows = sum(1 for row in output.split("\n") if _NUMBERED.match(row))
        return _told(look, label, _plural(rows), "", tool.failed)
    more = f" (+{_plural(count - 1)})" if count > 1 else ""
    return _told(look, label, first or "(nothing)", more, tool.failed)


def _command_lines(tool: ToolUse, look: Look, label: str) -> list[Line]:
    """`  └ exit status 3 · 12 lines above`, and the last lines of what it printed."""
    theme, width, _ = look
    rows = tool.output.strip("\n").split("\n") if tool.output.strip() else []
    ends: list[str] = []
    while rows and (end := _ENDS.fullmatch(rows[-1])):
        ends.insert(0, end[1])
        rows.pop()
    most = _FAILED_ROWS if tool.failed else _END_ROWS
    tail = rows[-most:]
    hidden = _printed(rows) - len(tail)
    above = f"{_plural(hidden)} above{_key(theme)}" if hidden else ""
    told = " · ".join(filter(None, ("; ".join(ends), _changed(tool.diff), above)))
    if not told and len(tail) == 1:
        return [_told(look, label, tail[0], "", tool.failed)]
    style = theme.error if tool.failed else theme.tool_output
    indent = " " * cell_width(_RESULT)
    lines = [
        (Span(indent, style), Span(fitted(_row(row), width - len(indent)), theme.tool_output))
        for row in tail
    ]
    said = told or (_plural(len(rows)) if rows else "no output")
    diff = _diff(tool.diff, look, _COMMAND_DIFF_ROWS) if tool.diff else []
    return [_told(look, label, said, "", tool.failed), *lines, *diff]


def _changed(diff: str) -> str:
    """`changed retry.py +1 −1`, or how many files."""
    if not diff:
        return ""
    rows = diff.split("\n")
    names = [row[6:] for row in rows if row.startswith("+++ b/")]
    names += [row.partition(" changed")[0] for row in rows if _BARE.fullmatch(row)]
    added = sum(row.startswith("+") and not row.startswith("+++ b/") for row in rows)
    removed = sum(row.startswith("-") and not row.startswith("--- a/") for row in rows)
    what = names[0] if len(names) == 1 else f"{len(names):,} files"
    return f"changed {what} +{added:,} −{removed:,}"


def _printed(rows: Sequence[str]) -> int:
    """How many lines a command printed, including those that were left out as too many."""
    cuts = (_CUT.fullmatch(row) for row in rows if row.startswith("["))
    totals = (int(cut[1].replace(",", "")) for cut in cuts if cut)
    return max(len(rows), next(totals, 0))


def _key(theme: Theme) -> str:
    """The key that shows what is folded."""
    return "" if theme.words else " (Ctrl-O)"


def _row(text: str) -> str:
    return expanded(neutralise(text))


def _plural(lines: int) -> str:
    return f"{lines:,} {'line' if lines == 1 else 'lines'}"


def _told(look: Look, label: str, said: str, after: str, failed: bool) -> Line:
    theme, width, _ = look
    mark = _PLAIN_RESULT if theme.words else _RESULT
    room = max(width - cell_width(mark), 8)
    before = (f"{fitted(label, room // 2)}: " if label else "") + ("failed: " if failed else "")
    said = fitted(_one_line(said, width), max(room - cell_width(before + after), 8))
    style = theme.error if failed else theme.tool_output
    return (Span(mark, theme.faint), Span(fitted(before + said + after, room), style))


def _not_run(said: str) -> str:
    """What the model is told of a call that was not allowed; of a refusal, as the user knows it."""
    if not said.startswith(REFUSED):
        return said
    reason = said.removeprefix(REFUSED).partition("says: ")[2]
    return f"you refused: {reason}" if reason else "you refused"


class RunningTool:
    """The last output of a running tool."""

    def __init__(self, tool: ToolUse) -> None:
        self.tool = tool

    def lines(self, theme: Theme, width: int) -> list[Line]:
        """The last lines of its output, below its call."""
        tail = neutralise(self.tool.live[-4000:])
        rows = [line for line in tail.split("\n") if line.strip()][-_LIVE_ROWS:]
        shown = rows or [f"{_one_line(self.tool.name, 60)} …"]
        indent = " " * cell_width(_RESULT)
        room = width - len(indent)
        return [
            (Span(indent, theme.faint), Span(fitted(expanded(row), room), theme.tool_output))
            for row in shown
        ]
