"""Finished lines above the region: the screen and its scrollback are as if all were drawn anew."""

from __future__ import annotations

from io import StringIO

import pyte
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window

from effort import tried
from mull.tui.screen.bottom import InlineOutput
from mull.tui.screen.insertion import insert_above

COLUMNS, ROWS = 12, 9


class Drawing:
    """A region of live lines, a prompt and a status line, drawn into a terminal."""

    def __init__(self):
        self.live, self.status = [], ""
        self._written = StringIO()
        self._screen = pyte.HistoryScreen(COLUMNS, ROWS, history=1000)
        self._stream = pyte.Stream(self._screen)
        output = InlineOutput(self._written, lambda: Size(ROWS, COLUMNS))
        text = FormattedTextControl(lambda: "\n".join(["> ", self.status]), focusable=True)
        head = FormattedTextControl(lambda: "\n".join(self.live))
        prompt = Window(text, dont_extend_height=True)
        layout = Layout(HSplit([Window(head, dont_extend_height=True), prompt]))
        self.app = Application(layout=layout, output=output, input=DummyInput())
        self._draw()

    def step(self, lines, live, status, kept):
        """Write lines and draw the region; returns whether it stayed, and what was sent."""
        kept = min(kept, len(self.live), len(live))
        before = max(len(self.live), 1) - kept
        renderer = self.app.renderer
        inserted = insert_above(renderer, lines, before, max(len(live), 1) - kept)
        if not inserted:
            renderer.erase()
            renderer.output.write_raw("".join(f"{line}\r\n" for line in lines))
        self.live, self.status = live, status
        return inserted, self._draw()

    def _draw(self):
        with set_app(self.app):
            self.app.render_counter += 1
            self.app.renderer.render(self.app, self.app.layout)
        sent = self._written.getvalue()
        self._written.seek(0)
        self._written.truncate()
        self._stream.feed(sent)
        return sent

    @property
    def shown(self):
        """The scrollback and the screen, without empty rows at the end."""
        past = ["".join(row[x].data for x in range(COLUMNS)) for row in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*past, *self._screen.display]).rstrip()


LINE = st.text("ab字", max_size=4) | st.just("x" * COLUMNS)
STEPS = st.lists(
    st.tuples(
        st.lists(LINE, max_size=6),
        st.lists(st.text("cd字", max_size=4), max_size=5),
        st.text("ef", max_size=3),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=6,
)


@tried(1)
@given(STEPS)
def test_the_screen_is_as_if_drawn_anew(steps):
    drawing, finished = Drawing(), []
    for lines, live, status, kept in steps:
        drawing.step(lines, live, status, kept)
        finished += lines
        whole = [*finished, *(live or [""]), ">", status]
        assert drawing.shown == "\n".join(line.rstrip() for line in whole).rstrip()


def test_a_line_is_written_without_the_prompt_and_the_status():
    drawing = Drawing()
    drawing.step([], ["live"], "status", 0)
    inserted, sent = drawing.step(["done"], ["live"], "status", 1)
    assert inserted
    assert "done" in sent
    assert not any(word in sent for word in (">", "status", "live"))


def test_a_region_without_room_for_the_lines_is_drawn_anew():
    drawing = Drawing()
    drawing.step([], ["live"] * 5, "status", 0)
    inserted, sent = drawing.step(["done"] * 3, ["live"] * 5, "status", 5)
    assert not inserted
    assert "status" in sent
