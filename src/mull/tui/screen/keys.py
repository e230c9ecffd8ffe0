"""The keys of a conversation: one table, for binding them and for /help."""

from __future__ import annotations

from mull.neutral.blocks import Value

__all__ = ["KEYS", "LONE_ESC", "Key"]

LONE_ESC = "c-f24"
"""Esc as a key of its own, in prompt_toolkit's notation. Its `escape` is a prefix for Alt, so it
would have to wait for the next key.
"""


class Key(Value, frozen=True):
    """A key, in the notations of prompt_toolkit and of people, and what it does."""

    pressed: tuple[str, ...]
    shown: str
    action: str
    line: str


KEYS = (
    Key(("enter",), "Enter", "enter", "send; while the model works: with the next tool result"),
    Key(("c-q",), "Ctrl-Q", "queue", "send when the turn ends"),
    Key(("up",), "Up", "take_back", "on an empty line: edit queued messages"),
    Key(("escape", "enter"), "Alt-Enter", "newline",
        "start a new line (also Ctrl-J, a backslash before Enter, and Shift-Enter "
            "where the terminal reports it)"),
    Key(("c-j",), "", "newline", ""),
    Key((LONE_ESC,), "Esc", "stop", "interrupt the model and keep what arrived"),
    Key(("c-c",), "Ctrl-C", "interrupt", "interrupt; clear the line; twice on an empty line: quit"),
    Key(("<sigint>",), "", "interrupt", ""),
    Key(("c-d",), "Ctrl-D", "end", "quit, on an empty line"),
    Key(("c-t",), "Ctrl-T", "view", "read the thinking of this conversation"),
    Key(("c-o",), "Ctrl-O", "output", "read what tools did: commands, their output, diffs"),
    Key(("s-tab",), "Shift-Tab", "mode", "the next mode: auto, ask, accept-edits, read-only"),
    Key(("escape", "t"), "Alt-T", "level", "the next thinking level of the model (also F2)"),
    Key(("f2",), "", "level", ""),
    Key(("c-g",), "Ctrl-G", "answer", "stop thinking and answer now"),
    Key(("c-x", "c-e"), "Ctrl-X Ctrl-E", "edit", "write in your editor"),
    Key(("c-r",), "Ctrl-R", "", "search your earlier messages"),
    Key(("tab",), "Tab", "complete", "complete commands, settings, values, models and files"),
    Key(("c-l",), "Ctrl-L", "redraw", "redraw the screen"),
    Key(("c-z",), "Ctrl-Z", "suspend", "suspend mull; `fg` resumes it"),
)  # fmt: skip
