"""Binds the keys of the table to their actions, and the few that a question or a search needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.search import accept_search
from prompt_toolkit.keys import Keys

from mull.tui.screen.keys import LONE_ESC

if TYPE_CHECKING:
    from mull.tui.screen.app import TerminalFront

__all__ = ["bind"]

_ON_THE_CONVERSATION = ("view", "output", "mode", "level", "answer", "edit", "suspend")
"""Actions that wait until the first session is open; sending does so with its text."""
_MOVES = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}


def bind(front: TerminalFront) -> KeyBindings:
    """All keys that are not the editor's own."""
    keys = KeyBindings()
    asking = front.asking
    choosing = Condition(lambda: asking.question is not None)
    picking = Condition(lambda: asking.picker is not None)
    searching = Condition(front.searches)
    free = ~choosing & ~picking & ~searching
    waiting = Condition(front.has_waiting)
    for key in front.keys:
        if key.action == "take_back":  # otherwise the key is the editor's own
            keys.add(*key.pressed, filter=free & waiting)(_caller(front, key.action))
        elif key.action:
            keys.add(*key.pressed, filter=free, eager=True)(_caller(front, key.action))
    keys.add(Keys.BracketedPaste)(lambda event: front.paste(event.data))
    labelled = Condition(lambda: bool(_label_before(front)))
    keys.add("backspace", filter=free & labelled)(
        lambda _: front.buffer.delete_before_cursor(len(_label_before(front)))
    )
    keys.add("<any>", filter=choosing)(partial(_choose, front))
    keys.add(LONE_ESC, filter=searching)(accept_search)
    for pressed in (LONE_ESC, "c-c"):
        keys.add(pressed, filter=choosing)(_caller(front, "stop"))
        keys.add(pressed, filter=picking)(lambda _: asking.give(None))
    keys.add("enter", filter=picking)(lambda _: _pick(front))
    keys.add("c-f", filter=picking)(lambda _: asking.mark())
    for pressed, steps in _MOVES.items():
        keys.add(pressed, filter=picking)(_mover(front, steps))
    return keys


def _label_before(front: TerminalFront) -> str:
    return front.pastes.label_before(front.buffer.document.text_before_cursor)


def _choose(front: TerminalFront, event: KeyPressEvent) -> None:
    """A key for the question, or one more letter of the line being typed when it appeared."""
    if not front.asking.press(event.data.lower()) and event.data.isprintable():
        front.buffer.insert_text(event.data)


def _caller(front: TerminalFront, action: str) -> Callable[[KeyPressEvent], None]:
    do: Callable[[], None] = getattr(front, f"on_{action}")
    if action in _ON_THE_CONVERSATION:
        return lambda _: front.when_open(do)
    return lambda _: do()


def _pick(front: TerminalFront) -> None:
    if front.asking.picker is not None:
        front.asking.give(front.asking.picker.chosen)


def _mover(front: TerminalFront, steps: int) -> Callable[[KeyPressEvent], None]:
    def move(_: KeyPressEvent) -> None:
        if front.asking.picker is not None:
            front.asking.picker.move(steps)

    return move
