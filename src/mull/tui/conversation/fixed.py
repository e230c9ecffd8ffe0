"""Parts of a conversation that arrive complete: user messages, calls, results, remarks."""

from __future__ import annotations

from mull.neutral.blocks import MediaBlock, OpaqueBlock, TextBlock
from mull.neutral.messages import Message
from mull.tui.conversation.sections import Fixed, Look
from mull.tui.conversation.tool_lines import ToolUse, call_line, result_lines
from mull.tui.text.lines import Line, Span
from mull.tui.text.safe import neutralise
from mull.tui.text.wrap import wrapped

__all__ = ["called", "media", "opaque", "remarked", "resulted", "user_said"]

_PROMPT, _PLAIN_PROMPT = "❯ ", "You: "


def user_said(message: Message) -> Fixed:
    """A user message, after the prompt mark."""
    parts = [
        block.text if isinstance(block, TextBlock) else _named(block)
        for block in message.blocks
        if isinstance(block, TextBlock | MediaBlock)
    ]
    text = neutralise("\n".join(parts)).strip("\n")

    def draw(look: Look) -> list[Line]:
        theme = look.theme
        prompt = _PLAIN_PROMPT if theme.words else _PROMPT
        rows = wrapped(text, theme.user, look.width - len(prompt))
        marks = [prompt, *[" " * len(prompt)] * len(rows)]
        return [
            (Span(mark, theme.user_mark), *row) if row else ()
            for mark, row in zip(marks, rows, strict=False)
        ]

    return Fixed("user", draw, message.text)


def called(tool: ToolUse) -> Fixed:
    """A tool call."""
    return Fixed("tool", lambda look: [call_line(tool.name, tool.title, look.theme, look.width)])


def resulted(tool: ToolUse, *, apart: bool) -> Fixed:
    """A tool result; it names its call unless that is right above."""
    return Fixed("tool", lambda look: result_lines(tool, look, apart=apart))


def opaque(block: OpaqueBlock) -> Fixed:
    """A block of a kind that mull does not know."""
    kind = block.data.get("type")
    named = f" ({kind})" if isinstance(kind, str) else ""
    return remarked("note", f"Content that mull cannot show{named}; it is stored.")


def media(block: MediaBlock) -> Fixed:
    """An image or another file."""
    return remarked("note", _named(block))


def remarked(role: str, text: str) -> Fixed:
    """A remark in the style of a role."""
    safe = neutralise(text)
    return Fixed("remark", lambda look: wrapped(safe, getattr(look.theme, role), look.width))


def _named(block: MediaBlock) -> str:
    return f"[{block.name or block.url or block.media_type}]"
