"""A conversation drawn in the order of the wire: live from events, later from stored messages.

Each block of an answer is a section. A section ends where the next begins, so thinking is complete
with the first character of the answer. `redraw` draws what is still on the screen again in another
mode, theme or width; it does not affect what is stored or sent.

Live drawing cannot move a late chunk of an earlier block back into its place, nor remove lines
already written when text turns out to have been thinking. It shows them where they arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mull.history.log import Entry
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    OpaqueReceived,
    Reclassified,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    ToolOutput,
    ToolRan,
    ToolStarted,
    UsageReported,
)
from mull.neutral.messages import FAILED, Message, Status
from mull.tui.conversation.attached import folded
from mull.tui.conversation.fixed import called, media, opaque, remarked, resulted, user_said
from mull.tui.conversation.sections import Answer, Fixed, Look, Thought
from mull.tui.conversation.thought import Mode
from mull.tui.conversation.tool_lines import (
    RunningTool,
    ToolUse,
    call_line,
    call_title,
    running_call,
)
from mull.tui.conversation.words import ENDINGS, STOPPED_EARLY, remark
from mull.tui.screen.canvas import Canvas, Redrawn
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, plain_text

__all__ = ["ConversationView", "render_message"]

_CARRIERS = ("signature", "encrypted", "redacted", "id", "kind", "wire")


class ConversationView:
    """The display of a conversation. `title` describes a tool call in words."""

    def __init__(
        self,
        theme: Theme,
        width: int,
        mode: Mode = "preview",
        *,
        title: Callable[[ToolCallBlock], str] = call_title,
    ) -> None:
        self._canvas = Canvas(Look(theme, width, mode))
        self._title = title
        self._thoughts: list[Thought] = []  # of the arriving answer
        self._calls = Assembler()  # calls whose arguments are still arriving
        self._writing: ToolCallDelta | None = None
        self._written = 0
        self._running: dict[str, RunningTool] = {}
        self._tools: dict[str, ToolUse] = {}  # by the id of the call, in order
        self._last_call = ""

    # What is drawn

    def commit(self) -> list[Line]:
        """The lines that became final since the last call."""
        return self._canvas.commit()

    def open_lines(self, now: float | None = None) -> list[Line]:
        """The lines after them, as they look now."""
        theme, width, _ = self._canvas.look
        lines = self._canvas.open_lines(now)
        if self._writing is not None:
            lines.append(running_call(self._writing.name or "", self._written, theme, width))
        if self._running:  # results arrive in the order of the calls: the first is the one awaited
            lines += next(iter(self._running.values())).lines(theme, width)
        return lines

    def commit_last(self, most: int) -> list[Line]:
        """The same, but for a long conversation only its end: about `most` lines."""
        return self._canvas.commit_last(most)

    def redraw(
        self,
        *,
        theme: Theme | None = None,
        width: int | None = None,
        mode: Mode | None = None,
        replaceable: int = 0,
    ) -> Redrawn:
        """Redraw in another look the sections that are completely within the last `replaceable`
        lines.
        """
        look = self._canvas.look
        return self._canvas.redraw(
            Look(theme or look.theme, width or look.width, mode or look.mode), replaceable
        )

    def take_back(self, last: str, replaceable: int) -> int:
        """Remove the turns after the one that started with this text from the screen; returns how
        many lines go. Sections with lines above the last `replaceable` ones stay.
        """
        gone = 0
        while (said := self._last_said()) is not None and said.text != last:
            lines = self._canvas.cut(said, replaceable - gone)
            if lines is None:
                break
            gone += lines
        return gone

    @property
    def last_said(self) -> str | None:
        """The last user message shown."""
        said = self._last_said()
        return None if said is None else said.text

    def _last_said(self) -> Fixed | None:
        said = [one for one in self._canvas.sections if isinstance(one, Fixed) and one.text]
        return said[-1] if said else None

    @property
    def look(self) -> Look:
        """How everything is drawn."""
        return self._canvas.look

    @property
    def thoughts(self) -> list[Thought]:
        """The thinking blocks that can be read, in order; the last may still grow."""
        found = [one for one in self._canvas.sections if isinstance(one, Thought)]
        return [one for one in found if one.text.strip() and not one.block.is_hidden]

    @property
    def tools(self) -> list[ToolUse]:
        """The tool calls, in order; the last may still be running."""
        return list(self._tools.values())

    @property
    def mode(self) -> Mode:
        """How thinking is shown; what is already drawn stays as it is until `redraw`."""
        return self._canvas.look.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._canvas.look = self._canvas.look._replace(mode=mode)

    def thinking(self, now: float | None = None) -> str:
        """`Thinking… 12 s · ~340 tokens` while thinking arrives, otherwise empty."""
        current = self._canvas.current
        return current.label(now) if isinstance(current, Thought) else ""

    def say(self, text: str, role: str = "note") -> None:
        """A remark from mull, between sections."""
        self._flush(None)
        self._canvas.add(remarked(role, text))

    def tells_all(self, call_id: str, text: str) -> bool:
        """Whether a call was drawn last and already says all of this text."""
        self._flush(None)
        tool, look = self._tools.get(call_id), self._canvas.look
        if tool is None or call_id != self._last_call or "\n" in text.strip():
            return False
        return plain_text([call_line(tool.name, tool.title, *look[:2])]).endswith(text.strip())

    def is_only(self, call_id: str) -> bool:
        """Whether no other call is open, whose result could come below what is shown of this."""
        return all(tool.is_over for known, tool in self._tools.items() if known != call_id)

    def show_diff(self, call_id: str, diff: str, lines: Sequence[Line]) -> None:
        """The diff of a call, shown before approval: lines made elsewhere."""
        tool = self._tool(call_id, "")
        tool.diff, tool.shown = diff, True
        self.show(lines)

    def show(self, lines: Sequence[Line]) -> None:
        """Lines made elsewhere: they look the same whatever is drawn around them."""
        self._flush(None)
        self._canvas.add(Fixed("shown", lambda _: list(lines)))

    # From storage

    def entry(self, entry: Entry) -> None:
        """A stored entry; messages that mull sent in the user's name become remarks."""
        if entry.own:
            self.say(f"mull told the model: {entry.message.text}")
        else:
            self.message(folded(entry.message), thought_seconds=entry.thought_seconds)

    def message(self, message: Message, *, thought_seconds: float | None = None) -> None:
        """A stored message; what is known about its thinking belongs to its only thinking block."""
        self._flush(None)
        if message.role == "user" and not message.carries_results:
            self._canvas.add(user_said(message))
        elif message.role != "system":
            readable = [block for block in message.thinking if block.thought.strip()]
            for block in message.blocks:
                if not isinstance(block, ThinkingBlock):
                    self._block(block)
                    continue
                thought = Thought(self._canvas.look, block)
                if len(readable) == 1 and block is readable[0]:
                    thought.seconds = thought_seconds
                    thought.tokens = message.usage.reasoning if message.usage else None
                self._canvas.add(thought)
        if message.status is not None:
            self.end(message.status, broke=message.stop_reason == FAILED)

    def end(self, status: Status, *, broke: bool = False, came: bool = True) -> None:
        """How an answer ended, if that needs saying: interrupted by the user, or `broke` off. None
        of it may have arrived.
        """
        self._flush(None)
        self._keep_running()
        if broke and status == "interrupted":
            status = "error"
        if status in ENDINGS:
            said = ENDINGS[status] if came else STOPPED_EARLY
            self._canvas.add(remarked("warning", said))

    def _block(self, block: Block) -> None:
        """Draw a block that is not thinking."""
        match block:
            case TextBlock():
                answer = Answer(self._canvas.look)
                answer.feed(block.text)
                self._canvas.add(answer)
            case ToolCallBlock():
                self._call(block)
            case ToolResultBlock():
                self._tool(block.call_id, "").diff = block.diff
                self._result(block.call_id, block.output, block.is_error)
            case OpaqueBlock():
                self._canvas.add(opaque(block))
            case MediaBlock():
                self._canvas.add(media(block))

    # Live

    def event(self, event: Event, now: float | None = None) -> None:
        """One event of a turn; `now` is any clock in seconds."""
        match event:
            case TextDelta():
                self._text(event, now)
            case ThinkingDelta() | ThinkingCarrier():
                self._think(event, now)
            case ToolCallDelta():
                self._write_call(event, now)
            case BlockEnded():
                self._canvas.end(now)
                self._calls.add(event)
            case Reclassified():
                self._reclassify(event)
            case OpaqueReceived():
                self._flush(now)
                self._canvas.add(opaque(OpaqueBlock(event.data)))
            case Started():
                self._thoughts = []
            case UsageReported():
                self._count(event)
            case ToolStarted() | ToolOutput() | ToolRan():
                self._flush(now)
                self._run(event)
            case _:
                self._remark(event, now)

    def _text(self, event: TextDelta, now: float | None) -> None:
        current = self._canvas.current
        if not isinstance(current, Answer) or event.key not in (None, current.key):
            self._flush(now)
            current = Answer(self._canvas.look, event.key)
            self._canvas.begin(current)
        current.feed(event.text)

    def _think(self, event: ThinkingDelta | ThinkingCarrier, now: float | None) -> None:
        current = self._canvas.current
        if not isinstance(current, Thought) or event.key not in (None, current.key):
            if isinstance(event, ThinkingCarrier) and self._carry_late(event):
                return
            self._flush(now)
            block = ThinkingBlock(kind=event.kind or "raw")
            current = Thought(self._canvas.look, block, event.key, began=now)
            self._canvas.begin(current)
            self._thoughts.append(current)
        if isinstance(event, ThinkingDelta):
            current.feed(event.text)
        else:
            current.carry(**_carriers(event))

    def _carry_late(self, event: ThinkingCarrier) -> bool:
        """A carrier for a complete thinking block changes nothing on the screen."""
        known = event.key is not None and [t for t in self._thoughts if t.key == event.key]
        for thought in known or ():
            thought.carry(**_carriers(event))
        return bool(known)

    def _write_call(self, event: ToolCallDelta, now: float | None) -> None:
        self._canvas.end(now)
        self._calls.add(event)
        if event.name or self._writing is None:
            self._writing, self._written = event, 0
        self._written += len(event.arguments)

    def _reclassify(self, event: Reclassified) -> None:
        """Text turned out to be thinking: the next `redraw` shows it so; for now a remark says
        it.
        """
        answer = self._canvas.current
        if not isinstance(answer, Answer) or event.key not in (None, answer.key):
            return
        thought = Thought(self._canvas.look, ThinkingBlock(answer.text), answer.key)
        if self._canvas.replace_current(thought):
            self._canvas.add(remarked("note", "The text above was thinking."))

    def _count(self, event: UsageReported) -> None:
        """The provider's count arrives at the end: later drawings of an only thinking block use
        it.
        """
        if len(self._thoughts) == 1:
            self._thoughts[0].tokens = event.usage.reasoning

    def _run(self, event: ToolStarted | ToolOutput | ToolRan) -> None:
        if isinstance(event, ToolRan):
            self._running.pop(event.call_id, None)
            tool = self._tool(event.call_id, event.name)
            tool.diff = event.diff or tool.diff
            self._result(event.call_id, event.output, event.is_error)
        elif isinstance(event, ToolStarted):
            tool = self._tool(event.call_id, event.name)
            if tool.is_change:
                tool.diff = event.detail
            self._running[event.call_id] = RunningTool(tool)
        elif event.call_id in self._running:
            self._tools[event.call_id].add(event.text)

    def _remark(self, event: Event, now: float | None) -> None:
        if isinstance(event, Finished | Failed):
            self._flush(now)
            self._keep_running()
        said = remark(event)
        if said is not None:
            self._flush(now)
            self._canvas.add(remarked(*said))

    def _flush(self, now: float | None) -> None:
        """Close the open section."""
        self._canvas.end(now)
        if self._writing is not None:
            self._writing, calls, self._calls = None, self._calls, Assembler()
            for block in calls.blocks():
                self._block(block)

    def _call(self, call: ToolCallBlock) -> None:
        tool = self._tools[call.id] = ToolUse(call.name, self._title(call))
        self._last_call = call.id
        self._canvas.add(called(tool))

    def _tool(self, call_id: str, name: str) -> ToolUse:
        """The call with this id; a new one if the call was never seen."""
        return self._tools.setdefault(call_id, ToolUse(name))

    def _result(self, call_id: str, output: str, failed: bool) -> None:
        tool = self._tool(call_id, "")
        tool.end(output, failed)
        apart = call_id != self._last_call
        self._last_call = ""
        self._canvas.add(resulted(tool, apart=apart))

    def _keep_running(self) -> None:
        """Keep the output of interrupted tools on the screen."""
        for running in self._running.values():
            lines = running.tool.live
            if lines.strip():
                running.tool.end(lines, failed=False)
                self._canvas.add(resulted(running.tool, apart=False))
        self._running.clear()


def _carriers(event: ThinkingCarrier) -> dict[str, object]:
    return {name: value for name in _CARRIERS if (value := getattr(event, name)) is not None}


def render_message(
    message: Message,
    theme: Theme,
    width: int,
    mode: Mode = "preview",
    *,
    thought_seconds: float | None = None,
) -> list[Line]:
    """One stored message, drawn as its events were."""
    view = ConversationView(theme, width, mode)
    view.message(message, thought_seconds=thought_seconds)
    return view.commit()
