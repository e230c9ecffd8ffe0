"""The region at the bottom: when it is drawn, and when it is not."""

from __future__ import annotations

import asyncio
from io import StringIO

from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from mull.tui.screen.bottom import InlineApplication, InlineOutput
from mull.tui.screen.echo import Echo


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
