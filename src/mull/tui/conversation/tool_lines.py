"""A tool's call and its result, a line each.

The call stands where the model made it. The result follows when it comes, with the tool's name if
another call was made in between.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mull.agent.tools.shown import telling_line
from mull.neutral.blocks import ToolCallBlock
from mull.tui.conversation.sections import Look
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.safe import neutralise
from mull.tui.text.width import cell_width, fitted
from mull.tui.text.wrap import expanded

__all__ = ["RunningTool", "call_line", "call_title", "result_line", "running_call"]

_CALL, _RESULT = "● ", "  └ "
_TAIL_ROWS = 3
_ABOUT = ("path", "command", "pattern", "query", "url")
"""Names of arguments that say what a call is about."""
_SHORT = 24


def call_title(call: ToolCallBlock) -> str:
    """What a call does, in words of its input: what it is about first, the rest with its name.

    Long values beside what it is about say nothing in a line: the result, or the diff, shows them.
    """
    if not call.input:
        return call.arguments or ""
    values = {name: _short(value) for name, value in call.input.items()}
    about = next((name for name in values if name in _ABOUT or len(values) == 1), None)
    if about is None:
        return ", ".join(f"{name}: {value}" for name, value in values.items())
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
    name = fitted(_one_line(name or "(a tool without a name)", 60), width // 2)
    room = width - cell_width(_CALL + name) - 2
    said = fitted(_one_line(title, width), room)
    bold = theme.tool._replace(bold=True)
    end = (Span("  " + said, theme.text),) if said else ()
    return (Span(_CALL, theme.tool), Span(name, bold), *end)


def running_call(name: str, size: int, theme: Theme, width: int) -> Line:
    """A call that is still being written: its name and how much of it has come."""
    return call_line(name, f"… {size:,} characters" if size >= 200 else "…", theme, width)


def result_line(
    output: str, look: Look, *, name: str = "", failed: bool = False, at_end: bool = False
) -> Line:
    """`  └ the first line (+41 lines)`, of a command the last; who wants all of it asks for it."""
    theme, width, _ = look
    first = telling_line(output, at_end=at_end)
    count = output.strip("\n").count("\n")
    before = (f"{_one_line(name, 60)}: " if name else "") + ("failed: " if failed else "")
    after = f" (+{count:,} {'line' if count == 1 else 'lines'})" if count else ""
    room = max(width - cell_width(_RESULT + before + after), 8)
    said = fitted(_one_line(first, width), room) or "(nothing)"
    style = theme.error if failed else theme.tool_output
    told = fitted(before + said + after, width - cell_width(_RESULT))
    return (Span(_RESULT, theme.faint), Span(told, style))


class RunningTool:
    """What a tool that runs has printed last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tail = ""

    def add(self, text: str) -> None:
        """More output."""
        self._tail = (self._tail + text)[-4000:]

    @property
    def printed(self) -> str:
        """The end of what it printed."""
        return self._tail.strip("\n")

    def lines(self, theme: Theme, width: int) -> list[Line]:
        """The last lines of its output, below its call."""
        rows = [line for line in neutralise(self._tail).split("\n") if line.strip()][-_TAIL_ROWS:]
        shown = rows or [f"{_one_line(self._name, 60)} …"]
        indent = " " * cell_width(_RESULT)
        room = width - len(indent)
        return [
            (Span(indent, theme.faint), Span(fitted(expanded(row), room), theme.tool_output))
            for row in shown
        ]
