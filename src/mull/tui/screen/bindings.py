"""Binds the keys of the table to what they do, and the few that a question or a search needs.

A terminal that answers late, over a slow line, answers into the keyboard: what it says of its
colours and of itself is swallowed, not typed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from mull.tui.screen.keys import KEYS

if TYPE_CHECKING:
    from mull.tui.screen.app import TerminalFront

__all__ = ["bind"]

_MOVES = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}
_REPLIES = {("escape", "]"): "\x07\\", ("escape", "[", "?"): "c"}
"""How an answer of the terminal begins, and which keys end it."""
_LONGEST_REPLY = 40


def bind(front: TerminalFront) -> KeyBindings:
    """All keys that are not the editor's own."""
    keys = KeyBindings()
    asking = front.asking
    choosing = Condition(lambda: asking.question is not None)
    picking = Condition(lambda: asking.picker is not None)
    replies = _Replies()
    replies.bind(keys)
    free = ~choosing & ~picking & ~Condition(front.searches) & ~replies.coming
    waiting = Condition(front.has_waiting)
    for key in KEYS:
        if key.action == "take_back":  # otherwise the key is the editor's own
            keys.add(*key.pressed, filter=free & waiting)(_caller(front, key.action))
        elif key.action:
            eager = key.action != "stop"  # Esc may also begin another key
            keys.add(*key.pressed, filter=free, eager=eager)(_caller(front, key.action))
    keys.add("<any>", filter=choosing)(partial(_choose, front))
    for pressed in ("escape", "c-c"):
        keys.add(pressed, filter=choosing)(_caller(front, "stop"))
        keys.add(pressed, filter=picking)(lambda _: asking.give(None))
    keys.add("enter", filter=picking)(lambda _: _pick(front))
    for pressed, steps in _MOVES.items():
        keys.add(pressed, filter=picking)(_mover(front, steps))
    return keys


def _choose(front: TerminalFront, event: KeyPressEvent) -> None:
    """A key for the question, or one more letter of what was being typed when it came."""
    if not front.asking.press(event.data.lower()) and event.data.isprintable():
        front.buffer.insert_text(event.data)


def _caller(front: TerminalFront, action: str) -> Callable[[KeyPressEvent], None]:
    do: Callable[[], None] = getattr(front, f"on_{action}")
    return lambda _: do()


def _pick(front: TerminalFront) -> None:
    if front.asking.picker is not None:
        front.asking.give(front.asking.picker.chosen)


def _mover(front: TerminalFront, steps: int) -> Callable[[KeyPressEvent], None]:
    def move(_: KeyPressEvent) -> None:
        if front.asking.picker is not None:
            front.asking.picker.move(steps)

    return move


class _Replies:
    """Swallows answers that the terminal gives after it was given up on."""

    def __init__(self) -> None:
        self._until = ""
        self._left = 0
        self.coming = Condition(lambda: bool(self._until))

    def bind(self, keys: KeyBindings) -> None:
        for begins, until in _REPLIES.items():
            keys.add(*begins, eager=True)(self._beginner(until))
        keys.add("<any>", filter=self.coming, eager=True)(self._swallow)

    def _beginner(self, until: str) -> Callable[[KeyPressEvent], None]:
        def begin(_: KeyPressEvent) -> None:
            self._until, self._left = until, _LONGEST_REPLY

        return begin

    def _swallow(self, event: KeyPressEvent) -> None:
        self._left -= 1
        if event.data in self._until or not self._left:
            self._until = ""
