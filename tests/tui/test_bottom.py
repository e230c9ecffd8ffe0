"""The region at the bottom: when it is drawn, and when it is not."""

from __future__ import annotations

import asyncio
import os
import pty
import termios
from contextlib import suppress
from io import StringIO

from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import Layout

from mull.tui.screen import bottom
from mull.tui.screen.bottom import InlineApplication, InlineOutput, InlineScreen
from mull.tui.screen.echo import Echo
from mull.tui.screen.keyboard import Keyboard
from mull.tui.screen.painter import Frame
from mull.tui.text.lines import PLAIN, Span


def test_the_answer_of_a_terminal_is_no_reason_to_draw():
    """Else a slow line carries nothing but questions and answers."""

    async def feed(key):
        output = InlineOutput(StringIO(), lambda: Size(24, 80))
        bindings = KeyBindings()
        bindings.add("a")(lambda _: None)
        app = InlineApplication(
            Echo(Buffer(), lambda: True),
            lambda: None,
            key_bindings=bindings,
            output=output,
            input=DummyInput(),
        )
        happened = []
        app.on_answer = lambda: happened.append("answered")
        app.invalidate = lambda: happened.append("drawn")
        app.pace.sent(500)
        app.key_processor.feed(KeyPress(key, "\x1b[1;1R"))
        with set_app(app):
            app.key_processor.process_keys()
        return happened

    assert asyncio.run(feed("a")) == ["drawn"]
    assert asyncio.run(feed(Keys.CPRResponse)) == ["answered"]


LINES = range(200)


class _Paper(StringIO):
    """What is written to a terminal; `whole` is set with the last line."""

    def __init__(self):
        super().__init__()
        self.whole = asyncio.Event()

    def write(self, text):
        count = super().write(text)
        if f"line {LINES[-1]}" in self.getvalue():
            self.whole.set()
        return count


async def _drawn_at_the_end(rate, *, replies):
    """Which of the lines that came at once are drawn, over a connection of this many bytes per
    second."""
    out = _Paper()
    lines = [[(Span(f"line {number:03} {'x' * 40}", PLAIN),) for number in LINES]]
    screen = InlineScreen("none", lambda: Frame(lines.pop() if lines else [], []), reflows=False)
    with create_pipe_input() as keys:
        app = InlineApplication(
            Echo(Buffer(), lambda: True),
            lambda: None,
            key_bindings=KeyBindings(),
            layout=Layout(screen.region),
            output=InlineOutput(out, lambda: Size(24, 80)),
            input=keys,
        )
        screen.app = app
        app.pace._rates.append(rate)
        app.pace._answers = not replies
        running = asyncio.ensure_future(app.run_async())
        await asyncio.sleep(0.05)
        if not replies:
            app.pace._asked = app.pace._clock()
        screen.refresh()
        with suppress(TimeoutError):
            async with asyncio.timeout(20):
                await out.whole.wait()
        app.exit()
        await running
    return [number for number in LINES if f"line {number:03}" in out.getvalue()]


def test_the_last_lines_are_drawn_though_nothing_else_happens():
    """Fast enough that not every redraw asks for a reply, too slow for all lines at once."""
    assert asyncio.run(_drawn_at_the_end(20_000, replies=True)) == [*LINES]


def test_a_lost_reply_holds_the_last_lines_up_for_a_while_only(monkeypatch):
    monkeypatch.setattr(bottom, "_REPLY", 0.05)
    monkeypatch.setattr("mull.tui.screen.pace._LOST", 0.3)
    assert asyncio.run(_drawn_at_the_end(20_000, replies=False)) == [*LINES]


def test_a_part_of_mull_that_shares_the_keyboard_leaves_its_mode_alone():
    """A key pressed while the viewer opens would be echoed, and move everything drawn after it."""
    master, slave = pty.openpty()
    out = StringIO()
    with os.fdopen(master, "wb"), os.fdopen(slave) as stdin:
        keyboard = Keyboard(stdin, InlineOutput(out, lambda: Size(24, 80)), environ={})
        with keyboard.raw_mode():
            raw, written = termios.tcgetattr(slave), out.getvalue()
            with keyboard.shared(), keyboard.cooked_mode():
                assert termios.tcgetattr(slave) == raw
            assert out.getvalue() == written
            with keyboard.cooked_mode():  # another program gets its usual mode
                assert termios.tcgetattr(slave)[3] & termios.ECHO
            assert not termios.tcgetattr(slave)[3] & termios.ECHO


def test_a_question_waits_again_when_the_screen_is_back():
    """Whoever has just closed an editor or a viewer has not seen it yet."""
    app = InlineApplication(
        Echo(Buffer(), lambda: True),
        lambda: None,
        key_bindings=KeyBindings(),
        output=InlineOutput(out := StringIO(), lambda: Size(24, 80)),
        input=DummyInput(),
    )
    happened = []
    app.on_lent = lambda: happened.append("lent")
    app.on_returned = lambda: happened.append("returned")
    app._running_in_terminal = True
    app.output.flush()
    written = out.getvalue()
    app._on_resize()
    app.output.flush()
    assert out.getvalue() == written  # it would erase what is over the screen, and draw nothing
    app._running_in_terminal = False
    assert happened == ["lent", "returned"]
