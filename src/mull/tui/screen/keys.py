"""The keys that mean something to a conversation: one table, for binding them and for /help."""

from __future__ import annotations

from mull.neutral.blocks import Value

__all__ = ["KEYS", "LONE_ESC", "Key"]

LONE_ESC = "c-f24"
"""Esc as a key of its own, as prompt_toolkit writes it: no keyboard has that one. Its `escape` only
stands before a key that Alt is held with, and so would have to wait for it."""


class Key(Value, frozen=True):
    """What is pressed, as prompt_toolkit and as people write it, and what it does."""

    pressed: tuple[str, ...]
    shown: str
    action: str
    line: str


KEYS = (
    Key(("enter",), "Enter", "enter", "send; while the model works: with the next tool result"),
    Key(("c-q",), "Ctrl-Q", "queue", "send when the turn is over"),
    Key(("up",), "Up", "take_back", "on an empty line: edit what waits to be sent"),
    Key(("escape", "enter"), "Alt-Enter", "newline",
        "begin a new line (also Ctrl-J, a backslash before Enter, and Shift-Enter where the"
        " terminal tells it from Enter)"),
    Key(("c-j",), "", "newline", ""),
    Key((LONE_ESC,), "Esc", "stop", "stop the model and keep what came"),
    Key(("c-c",), "Ctrl-C", "interrupt", "stop; or clear the line; twice on an empty line: quit"),
    Key(("<sigint>",), "", "interrupt", ""),
    Key(("c-d",), "Ctrl-D", "end", "quit, on an empty line"),
    Key(("c-t",), "Ctrl-T", "view", "read the thoughts of this conversation"),
    Key(("c-o",), "Ctrl-O", "output", "read what tools did: commands and their output, diffs"),
    Key(("s-tab",), "Shift-Tab", "mode", "the next approval mode: ask, accept-edits, read-only"),
    Key(("escape", "t"), "Alt-T", "level", "the next thinking level that the model has (also F2)"),
    Key(("f2",), "", "level", ""),
    Key(("c-g",), "Ctrl-G", "answer", "end the thought now and have the answer"),
    Key(("c-x", "c-e"), "Ctrl-X Ctrl-E", "edit", "write in your own editor"),
    Key(("c-r",), "Ctrl-R", "", "search what you typed before"),
    Key(("tab",), "Tab", "complete", "complete commands, settings, values, models and files"),
    Key(("c-l",), "Ctrl-L", "redraw", "draw what is on the screen anew"),
    Key(("c-z",), "Ctrl-Z", "suspend", "go back to the shell; `fg` there comes back"),
)  # fmt: skip
