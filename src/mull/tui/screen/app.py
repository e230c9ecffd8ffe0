"""The interactive terminal: an input line below a conversation that scrolls away above it.

prompt_toolkit edits the line and draws the region at the bottom. What a key means to the
conversation is passed on to it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.layout import SearchBufferControl
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.search import stop_search

from mull.tui.commands.mention import is_mention
from mull.tui.instant import prompt as instant
from mull.tui.instant.rows import TALLEST_INPUT
from mull.tui.screen.asking import Asking, Drawing
from mull.tui.screen.bindings import bind
from mull.tui.screen.bottom import InlineApplication, InlineOutput, InlineScreen
from mull.tui.screen.echo import Echo
from mull.tui.screen.front import WHOLE, Item, Mark, Preview, Question, Unfolded
from mull.tui.screen.keyboard import ESC_WAITS, Keyboard
from mull.tui.screen.keys import KEYS, Key
from mull.tui.screen.layout import lay_out
from mull.tui.screen.pastes import Pastes
from mull.tui.screen.picker import Picker
from mull.tui.screen.signs import Signs
from mull.tui.screen.terminal import reflows
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span
from mull.tui.text.safe import unguarded
from mull.tui.text.width import cell_width

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding.key_processor import KeyPress
    from prompt_toolkit.output import Output

    from mull.tui.screen.depth import Depth
    from mull.tui.screen.look import Surroundings
    from mull.tui.screen.painter import Frame
    from mull.tui.screen.viewer import Document as Readable
    from mull.tui.talk import Talk

__all__ = ["TerminalFront"]

_DEPTHS = {
    "truecolor": ColorDepth.DEPTH_24_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "16": ColorDepth.DEPTH_4_BIT,
    "mono": ColorDepth.DEPTH_1_BIT,
    "none": ColorDepth.DEPTH_1_BIT,
}
_BESIDE_QUESTION = 3
"""Rows for the status line, the end of the conversation, and the blank row below that."""
_BESIDE_TEXT = 9
"""Columns beside the text of an answer."""
_TWICE = 2.0
"""Seconds within which a second Ctrl-C quits."""


class TerminalFront:
    """A terminal whose lower end can be redrawn."""

    echoes = False
    has_keys = True

    def __init__(  # noqa: PLR0913 - keywords, most of them optional
        self,
        around: Surroundings,
        theme: Theme,
        *,
        keys: Sequence[Key] = KEYS,
        frame: Callable[[], Frame],
        status: Callable[[], Line],
        completer: Completer | None = None,
        take: Callable[[str], str] = lambda typed: typed,
        title: Callable[[], str] = lambda: "",
        alerts: Callable[[], tuple[str, float]] = lambda: ("none", 0.0),
        history: History | None = None,
    ) -> None:
        self.theme = theme
        self.keys = keys
        self._around = around
        self._status = status
        self._screen = InlineScreen(
            around.depth, frame, reflows=reflows(os.environ), below=self._rows_below
        )
        self.asking = Asking(self.refresh, self._lend_line, self._is_away, self._resume)
        self._held: list[KeyPress] = []
        self._line_before: Document | None = None
        self._talk: Talk | None = None
        self._leaving_until = 0.0
        self._failures: set[str] = set()
        self._takes_offer = False
        self._declined = False
        """The last completion was rejected."""
        self._take = take
        self.pastes = Pastes()
        self._search = SearchBufferControl()
        self.buffer = Buffer(
            multiline=True,
            history=history,
            completer=completer,
            complete_while_typing=Condition(self._completes_by_itself),
        )
        self.buffer.on_text_changed += self._typed
        self.buffer.on_completions_changed += self._offered
        output = _output()
        self._signs = signs = Signs(output, title, alerts)
        self._keyboard = Keyboard(sys.stdin, output, lent=signs.restore)
        self.app = InlineApplication(
            Echo(self.buffer, self._takes_letters),
            self._resized,
            layout=lay_out(self, self._screen.region, self._search),
            key_bindings=bind(self),
            color_depth=_DEPTHS[around.depth],
            input=self._keyboard,
            output=output,
            erase_when_done=True,
            max_render_postpone_time=None,  # model output is drawn at its own rate
        )
        self.app.ttimeoutlen = ESC_WAITS
        self.app.after_render += lambda _: signs.entitle()
        self.app.key_processor.before_key_press += lambda _: self._touched()
        self.app.on_returned = self.asking.pressed
        self._screen.app = self.app
        self.app.output.enable_cpr = True

    @property
    def width(self) -> int:
        """The columns that a line may take."""
        return self._screen.width

    @property
    def depth(self) -> Depth:
        """How many colours there are."""
        return self._screen.depth

    def refresh(self) -> None:
        """Draw what has changed, soon."""
        self._screen.refresh()

    def clear(self) -> None:
        """Start at the top of an empty screen; its content goes into the scrollback."""
        self._screen.clear()

    def repaint(self, change: Callable[[int], int]) -> None:
        """Redraw the screen, as far as its sections are complete there."""
        self._screen.repaint(change)

    async def view(
        self, title: str, documents: Callable[[], Sequence[Readable]], *, unfolded: Unfolded
    ) -> None:
        """Show documents over the screen until they are closed."""
        from mull.tui.screen.viewer import Viewer
        from mull.tui.screen.viewing import view_documents

        count = len(documents())
        first = {"all": 0, "last": count - 1, "none": count}[unfolded]
        viewer = Viewer(title, documents(), range(max(first, 0), count))
        self._screen.flush()
        self._screen.is_covered = True
        try:
            await view_documents(
                viewer,
                documents,
                self.theme,
                self.depth,
                over=self.app,
                began=self._hand_over,
                waiting=lambda: self.asking.question is not None and title != WHOLE,
            )
        finally:
            self._screen.is_covered = False
            self.hold(get_typeahead(self._keyboard))  # what was pressed after it was closed
        self.app.pace.forget()
        self.app.check_size()
        self.refresh()
        if not self.asking.is_looking:
            self._resume()

    def hold(self, keys: Sequence[KeyPress]) -> None:
        """Keep keys that are meant for what comes next."""
        self._held += keys

    def _hand_over(self) -> None:
        """What was pressed until now is meant for the viewer, which reads the keys from here on."""
        held, self._held = self._held, []
        store_typeahead(self._keyboard, held)

    def _resume(self) -> None:
        """Press the held keys."""
        held, self._held = self._held, []
        if held and not self.app.is_done:
            self.app.key_processor.feed_multiple(held)
            with set_app(self.app):
                self.app.key_processor.process_keys()

    @property
    def drawing(self) -> Drawing:
        """What is around the input."""
        room = max(self._screen.height - _BESIDE_QUESTION, 2)
        return self.asking.drawing(self.theme, self.width, room, self.typed_rows)

    @property
    def typed_rows(self) -> int:
        """The rows of the text that is typed as an answer: at most half of the window."""
        room = max(self.width - _BESIDE_TEXT, 1)
        rows = sum(cell_width(line) // room + 1 for line in self.buffer.text.split("\n"))
        return min(rows, TALLEST_INPUT, max(self._screen.height // 2 - 1, 1))

    def _rows_below(self) -> int:
        drawing = self.drawing
        typed = self.typed_rows if drawing.prompt is not None else 0
        return len(drawing.above) + typed + len(drawing.below) + 2 if drawing.above else 0

    def _is_away(self) -> bool:
        """Whether the user cannot have seen what was drawn last."""
        return self.app.is_lent or self.app.is_settling or self.app.pace.is_waiting

    def _touched(self) -> None:
        self._signs.touched()
        self.asking.pressed()

    @property
    def draft(self) -> str:
        """What stands in the input line."""
        return self.pastes.whole(self.buffer.text)

    def put(self, text: str) -> None:
        """Insert text into the input line, before its content; typing continues where it was."""
        rest, after = self.buffer.text, len(self.buffer.document.text_after_cursor)
        text = self.pastes.short(text)
        self.buffer.text = f"{text}\n{rest}" if rest else text
        self.buffer.cursor_position = len(self.buffer.text) - after

    def paste(self, text: str) -> None:
        """Insert pasted text; long text appears in the line as a label."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        short = self._is_free or self.asking.is_open
        self.buffer.insert_text(self.pastes.label(text) if short else text)

    def copy(self, text: str) -> bool:
        """Have the terminal put text into the clipboard."""
        self._signs.copy(text)
        return True

    def alert(self, text: str, seconds: float) -> None:
        """Alert a user who is looking elsewhere that something has finished after this long."""
        self._signs.alert(text, seconds)

    def leave(self) -> None:
        """Quit."""
        self._screen.flush()
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    def set_theme(self, name: str) -> None:
        """Use another theme.

        Raises:
            ConfigError: there is none of this name.
        """
        self.theme = self._around.theme(name)

    async def run(self, talk: Talk, begin: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Read keys until the user quits, first those pressed at the instant prompt."""
        self._talk = talk
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._failed(context))
        early = instant.current()
        pieces, origin = early.take() if early is not None else ((), "")
        self._keyboard.replay(pieces)

        def started() -> None:
            self.app.begin_step()  # until the first drawing, which covers the instant prompt
            self.app.output.hide_cursor()
            self.app.output.write_raw(origin)
            if self._keyboard.is_waiting:
                loop.call_later(ESC_WAITS, self._flush_keys)
            talk.start(begin)

        try:
            await self.app.run_async(pre_run=started, set_exception_handler=False)
        finally:
            if early is not None:
                early.close()

    def _flush_keys(self) -> None:
        """Nothing has followed the last of the early keys: an ESC byte was the key Esc."""
        if not self.app.is_done:
            self.app.key_processor.feed_multiple(self._keyboard.flush_keys())
            self.app.key_processor.process_keys()

    def finish(self) -> None:
        """Write the last messages, after the region is gone."""
        self._screen.finish()

    async def ask(self, question: Question) -> tuple[str, str]:
        """Wait until one of the choices is confirmed."""
        sign = self._signs.await_answer(question.title)
        was_empty = not self.buffer.text
        try:
            return await self.asking.choose(question)
        finally:
            sign.cancel()
            if was_empty and self.buffer.text.isdecimal():  # a number given before it counted
                self.buffer.reset()

    async def pick(
        self,
        title: str,
        items: Sequence[Item],
        found: str = "",
        mark: Mark | None = None,
        preview: Preview | None = None,
    ) -> str | None:
        """Let the user search and choose one of the items."""
        picker = Picker(title, items, mark, preview)
        picker.search(found)
        return await self.asking.item(picker, found)

    async def secret(self, title: str) -> str | None:
        """Ask for input that is not shown, stored or completed."""
        return await self.asking.secret(title)

    def _lend_line(self, text: str | None) -> None:
        """Lend the input line, then restore it; nothing of a secret stays behind."""
        if text is not None:
            if self.searches():
                with set_app(self.app):
                    stop_search()
            self._line_before = self.buffer.document
            self.buffer.text = text
            self.buffer.cursor_position = len(text)
            return
        if self.asking.wants_secret:
            self.app.clipboard.set_text("")
        self.buffer.reset(self._line_before or Document())

    def searches(self) -> bool:
        """Whether the history is being searched."""
        return self.app.layout.current_control is self._search

    def status_line(self) -> Line:
        """The line at the very bottom."""
        if asyncio.get_running_loop().time() < self._leaving_until:
            return (Span("Press Ctrl-C again to quit.", self.theme.warning),)
        return self._status()

    def _failed(self, context: Mapping[str, Any]) -> None:
        """A bug in mull, in a key binding or in drawing: reported once, so that redrawing does not
        repeat it.
        """
        what = repr(context.get("exception") or context.get("message"))
        if self._talk is not None and what not in self._failures:
            self._failures.add(what)
            self._talk.mistake(what)

    def _typed(self, _: Buffer) -> None:
        self._takes_offer = self._declined = False
        if self.asking.picker is not None:
            self.asking.picker.search(self.buffer.text)
        if digits := self.asking.typed(self.buffer.text):
            self.buffer.text = digits + self.buffer.text
            self.buffer.cursor_position += len(digits)

    def _offered(self, _: Buffer) -> None:
        if self._takes_offer:  # not now: the completions are still being built
            asyncio.get_running_loop().call_soon(self._take_offer)

    def _take_offer(self) -> None:
        state = self.buffer.complete_state
        if self._takes_offer and state and state.completions and state.complete_index is None:
            self.buffer.complete_next()

    def _completes_by_itself(self) -> bool:
        typed = self.buffer.document.text_before_cursor
        return self._is_free and (typed.startswith("/") or is_mention(typed))

    @property
    def _is_free(self) -> bool:
        """Whether the line belongs to the conversation."""
        asking = self.asking
        return not (asking.is_open or asking.picker is not None or asking.wants_secret)

    def _takes_letters(self) -> bool:
        """Whether a letter at the end of the line changes nothing but the line."""
        text = self.buffer.text
        free = self.asking.question is None and self._is_free
        return free and not self.searches() and not text.startswith(("/", "!")) and "@" not in text

    def _resized(self) -> None:
        if self._talk is not None:
            self._screen.resized(self._talk.resized)

    def when_open(self, action: Callable[[], None]) -> None:
        """Do this, once the first session is open."""
        if self._talk is not None:
            self._talk.early.do(action)

    # What keys do: `mull.tui.screen.keys` names these.

    def on_newline(self) -> None:
        """Start a new line."""
        self.buffer.insert_text("\n")

    def on_enter(self) -> None:
        """Send the input, unless its last line continues."""
        text, talk = self.pastes.whole(self.buffer.text), self._talk
        if self.buffer.document.char_before_cursor == "\\":  # as in a shell: the line continues
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")
        elif self.asking.wants_secret:
            self.asking.give(text)
        elif self._takes_file():
            self.buffer.cancel_completion()
        elif text.strip() and talk is not None:
            take = self._take if text.startswith("/") and not self._declined else str
            text = take(text)
            self.buffer.text = text  # pasted text is complete in the history
            self.buffer.append_to_history()
            self.buffer.reset()
            # what is offered for it may be known only once a session is open
            talk.early.do(lambda: talk.enter(take(text)), text)

    def _takes_file(self) -> bool:
        """Insert the first offered file into the line, if there is one and none is there yet."""
        typed = self.buffer.document.text_before_cursor
        if self._declined or typed.startswith("/") or not is_mention(typed):
            return False
        taken = self._take(typed)
        if taken == typed:
            return False
        self.buffer.delete_before_cursor(len(typed))
        self.buffer.insert_text(taken)
        return True

    def on_queue(self) -> None:
        """Send the input when the turn ends; immediately if there is none."""
        text, talk = self.pastes.whole(self.buffer.text), self._talk
        if text.strip() and talk is not None and not self.asking.wants_secret:
            self.buffer.text = text
            self.buffer.append_to_history()
            self.buffer.reset()
            talk.queue(text)

    def has_waiting(self) -> bool:
        """Whether the line is empty and messages are queued."""
        return not self.buffer.text and self._talk is not None and self._talk.has_waiting

    def on_take_back(self) -> None:
        """Move the last queued message back into the line."""
        if self._talk is not None:
            self._talk.take_back()

    def on_complete(self) -> None:
        """Show completions, or select the next one."""
        state = self.buffer.complete_state
        if state and state.completions:
            self.buffer.complete_next()
        else:  # completions requested by typing may come first, or be on their way
            self._takes_offer = True
            self.buffer.start_completion(select_first=True)

    def on_stop(self) -> None:
        """Close the completions or a secret prompt; otherwise interrupt the model."""
        if self.asking.wants_secret:
            self.asking.give(None)
        elif self.buffer.complete_state:
            self.buffer.cancel_completion()
            self._declined = True
        elif self._talk is not None:
            self._talk.stop()

    def on_break(self) -> None:
        """Interrupt the turn that a question belongs to; one without a turn is refused."""
        if self._talk is None or not self._talk.stop():
            self.asking.refuse()

    def on_interrupt(self) -> None:
        """Interrupt the model, or clear the line, or quit when pressed twice."""
        if self.asking.wants_secret:
            self.asking.give(None)
            return
        if self._talk is not None and self._talk.stop():
            return
        loop = asyncio.get_running_loop()
        if self.buffer.text:
            self.buffer.text = self.pastes.whole(self.buffer.text)
            self.buffer.append_to_history()
            self.buffer.reset()
        elif loop.time() < self._leaving_until:
            self.leave()
        else:
            self._leaving_until = loop.time() + _TWICE
            loop.call_later(_TWICE, self.app.invalidate)

    def on_end(self) -> None:
        """Quit on an empty line; otherwise delete, as the key does everywhere."""
        if self.buffer.text:
            self.buffer.delete()
        else:
            self.leave()

    def on_view(self) -> None:
        """Open the thinking of the conversation."""
        if self._talk is not None:
            self._talk.read_thoughts()

    def on_output(self) -> None:
        """Open the tool calls and their output."""
        if self._talk is not None:
            self._talk.read_output()

    def on_mode(self) -> None:
        """Switch to the next approval mode."""
        if self._talk is not None:
            self._talk.next_mode()

    def on_level(self) -> None:
        """Switch to the next thinking level."""
        if self._talk is not None:
            self._talk.next_level()

    def on_answer(self) -> None:
        """Stop thinking and answer now."""
        if self._talk is not None:
            self._talk.answer_now()

    def on_edit(self) -> None:
        """Edit in the user's editor; never a secret, which would end up in a file."""
        if self.asking.wants_secret:
            return
        self.buffer.text = self.pastes.whole(self.buffer.text)
        self.buffer.open_in_editor().add_done_callback(lambda _: self.refresh())

    def on_suspend(self) -> None:
        """Suspend mull until the shell resumes it."""
        self.app.suspend_to_background()

    def on_redraw(self) -> None:
        """Redraw the screen, whatever another program has written there."""
        self._screen.restore()


def _output() -> Output:
    """The terminal, without asking for the cursor position: the region is always at the bottom."""
    output = InlineOutput.from_pty(unguarded(sys.stdout))
    output.enable_cpr = False
    return output
