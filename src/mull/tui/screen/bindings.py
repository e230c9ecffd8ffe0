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
_WHILE_CHOOSING = ("newline", "redraw")
"""Actions that a list leaves to the line in it and to the screen."""
_MOVES = {"up": -1, "down": 1, "pageup": -8, "pagedown": 8}


def bind(front: TerminalFront) -> KeyBindings:
    """All keys that are not the editor's own."""
    keys = KeyBindings()
    asking = front.asking
    choosing = Condition(lambda: asking.is_open and not asking.is_looking)
    picking = Condition(lambda: asking.picker is not None)
    searching = Condition(front.searches)
    free = ~Condition(lambda: asking.is_open) & ~picking & ~searching
    waiting = Condition(front.has_waiting)
    for key in front.keys:
        if key.action == "take_back":  # otherwise the key is the editor's own
            keys.add(*key.pressed, filter=free & waiting)(_caller(front, key.action))
        elif key.action:
            when = free | choosing if key.action in _WHILE_CHOOSING else free
            keys.add(*key.pressed, filter=when, eager=True)(_caller(front, key.action))
    keys.add(Keys.BracketedPaste)(lambda event: front.paste(event.data))
    labelled = Condition(lambda: bool(_label_before(front)))
    keys.add("backspace", filter=(free | choosing) & labelled)(
        lambda _: front.buffer.delete_before_cursor(len(_label_before(front)))
    )
    keys.add(LONE_ESC, filter=searching)(accept_search)
    _bind_choosing(front, keys, choosing)
    for pressed in (LONE_ESC, "c-c"):
        keys.add(pressed, filter=picking)(lambda _: asking.give(None))
    keys.add("enter", filter=picking)(lambda _: _pick(front))
    keys.add("c-f", filter=picking)(lambda _: asking.mark())
    for pressed, steps in _MOVES.items():
        keys.add(pressed, filter=picking)(_mover(front, steps))
    return keys


def _bind_choosing(front: TerminalFront, keys: KeyBindings, choosing: Condition) -> None:
    """The keys of a list. Everything else is the editor's, and ends up in the row for text."""
    asking = front.asking
    steps = {"up": -1, "c-p": -1, "s-tab": -1, "down": 1, "c-n": 1, "tab": 1}
    for pressed, step in steps.items():
        keys.add(pressed, filter=choosing, eager=True)(lambda _, step=step: asking.move(step))
    digits = choosing & Condition(lambda: asking.takes_digits)
    for digit in "0123456789":
        keys.add(digit, filter=digits, eager=True)(partial(_digit, front, digit))
    keys.add("enter", filter=choosing, eager=True)(partial(_confirm, front))
    keys.add(LONE_ESC, filter=choosing, eager=True)(lambda _: asking.refuse())
    for pressed in ("c-c", "<sigint>"):
        keys.add(pressed, filter=choosing, eager=True)(_caller(front, "break"))
    for pressed in ("c-r", "c-s"):  # earlier messages are no answers
        keys.add(pressed, filter=choosing, eager=True)(lambda _: None)
    looking = Condition(lambda: asking.is_looking)
    keys.add("<any>", filter=looking, eager=True)(lambda event: front.hold(event.key_sequence))


def _label_before(front: TerminalFront) -> str:
    return front.pastes.label_before(front.buffer.document.text_before_cursor)


def _digit(front: TerminalFront, digit: str, _: KeyPressEvent) -> None:
    if not front.asking.digit(digit):
        front.buffer.insert_text(digit)


def _confirm(front: TerminalFront, event: KeyPressEvent) -> None:
    """Answer. An Enter with more behind it in one read was pasted, and approves nothing."""
    behind = (press.key for press in event.key_processor.input_queue)
    if not (front.asking.approves and any(key != Keys.CPRResponse for key in behind)):
        front.asking.confirm(front.pastes.whole(front.buffer.text))


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
