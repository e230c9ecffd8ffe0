"""The blocks of a message as HTML: thoughts shaded and foldable, calls with their results.

A thought that came without text says why, and a blank one is not there at all. What a person
typed is shown as it was typed; what a model wrote is read as Markdown. Everything is escaped.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, assert_never

import msgspec

from mull.history.log import Entry
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.transcripts.contain import fence, visible
from mull.transcripts.markdown_html import markdown_html
from mull.transcripts.words import describe_media, thought_line, without_text

__all__ = ["block_html", "call_html", "folded_thought", "plain_html", "text_html"]

_SHORT_THOUGHT = 700
_LONG_LINES, _LONG_TEXT = 14, 1500
_PREVIEW = 160
_IMAGE = re.compile(r"image/[a-z0-9.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_encode = msgspec.json.Encoder().encode


def block_html(block: Block, entry: Entry, *, thinking: bool) -> str:
    """One block of a message; nothing for what is blank, or a thought that is not wanted."""
    match block:
        case TextBlock():
            if not block.text.strip():
                return ""
            written = entry.message.role == "assistant"
            return text_html(block.text) if written else plain_html(block.text)
        case ThinkingBlock():
            return _thought(block, entry) if thinking else ""
        case ToolCallBlock():
            return call_html(block, None)
        case ToolResultBlock():
            return f'<div class="tool">{_result(block)}</div>'
        case MediaBlock():
            return _media(block)
        case OpaqueBlock():
            inner = _pre(_json(block.data))
            return (
                f'<div class="tool">{_fold("Data that only the provider understands", inner)}</div>'
            )
        case _:
            assert_never(block)


def text_html(text: str) -> str:
    """Markdown of a model."""
    return f'<div class="text">{markdown_html(text)}</div>'


def plain_html(text: str) -> str:
    """Text exactly as it was typed."""
    return f'<p class="said" dir="auto">{escape(visible(text).strip(chr(10)))}</p>'


def folded_thought(label: str, text: str, *, is_open: bool = False) -> str:
    """A shaded box that folds; while it is closed it shows how the text begins."""
    preview = " ".join(visible(text[: 4 * _PREVIEW]).replace("**", "").split())[:_PREVIEW]
    return (
        f'<details class="thought"{" open" if is_open else ""}>'
        f'<summary><b>{escape(label)}</b> <i aria-hidden="true">{escape(preview)}</i></summary>'
        f"{text_html(text)}</details>"
    )


def call_html(block: ToolCallBlock, result: ToolResultBlock | None) -> str:
    """A call with its arguments and what came of it."""
    told = _result(result) if result else '<p class="label">No result.</p>'
    name = f"<p>Tool call <code>{escape(visible(block.name))}</code></p>"
    asked = _diff(result.diff) if result and result.diff else _arguments(block)
    return f'<div class="tool">{name}{asked}{told}</div>'


def _diff(text: str) -> str:
    """What a call changed, in place of the arguments that say the same."""
    inner = markdown_html(fence(text, "diff"))
    if not _is_long(text):
        return inner
    lines = text.count("\n") + 1
    return _fold(f"Diff: {lines:,} lines", inner)


def _thought(block: ThinkingBlock, entry: Entry) -> str:
    reason = without_text(block)
    if reason:
        return f'<p class="thought">{reason}</p>'
    if block.is_blank:
        return ""
    alone = sum(not one.is_blank for one in entry.message.thinking) == 1
    usage = entry.message.usage
    line = thought_line(
        entry.thought_seconds if alone else None, usage.reasoning if alone and usage else None
    )
    return folded_thought(line, block.thought, is_open=len(block.thought) <= _SHORT_THOUGHT)


def _arguments(block: ToolCallBlock) -> str:
    if block.arguments is not None and not block.input:
        return _pre(block.arguments) if block.arguments.strip() else ""
    if not block.input:
        return ""
    pairs = (
        f"<dt>{escape(visible(name))}</dt><dd>{_argument(value)}</dd>"
        for name, value in block.input.items()
    )
    return f"<dl>{''.join(pairs)}</dl>"


def _argument(value: Any) -> str:
    if isinstance(value, dict | list) and value:
        return _foldable(_json(value), "Value")
    text = value if isinstance(value, str) else _encode(value).decode()
    if "\n" in text:
        return _foldable(text, "Text")
    return f"<code>{escape(visible(text))}</code>"


def _result(block: ToolResultBlock) -> str:
    label = "Failed" if block.is_error else "Result"
    shown = "".join(map(_media, block.media))
    bad = " bad" if block.is_error else ""
    output = block.output.strip("\n")
    if not output.strip():
        said = f'<p class="label{bad}">{label}: empty</p>' if not shown else ""
        return f'<div class="result">{said}{shown}</div>'
    if _is_long(output):
        lines = output.count("\n") + 1
        return (
            _fold(f"{label}: {lines:,} line{'' if lines == 1 else 's'}", _pre(output), bad) + shown
        )
    return f'<div class="result"><p class="label{bad}">{label}</p>{_pre(output)}{shown}</div>'


def _foldable(text: str, label: str) -> str:
    if not _is_long(text):
        return _pre(text)
    lines = text.count("\n") + 1
    return _fold(f"{label}: {lines:,} line{'' if lines == 1 else 's'}", _pre(text))


def _is_long(text: str) -> bool:
    return text.count("\n") >= _LONG_LINES or len(text) > _LONG_TEXT


def _fold(label: str, inner: str, mark: str = "") -> str:
    return f'<details><summary class="{mark.strip()}">{label}</summary>{inner}</details>'


def _pre(text: str) -> str:
    return f'<pre tabindex="0">{escape(visible(text), quote=False)}\n</pre>'


def _media(block: MediaBlock) -> str:
    said = escape(visible(describe_media(block)))
    kind = block.media_type.lower()
    if block.data and _IMAGE.fullmatch(kind) and _BASE64.fullmatch(block.data):
        return f'<img alt="{said}" src="data:{kind};base64,{block.data}">'
    address = escape(visible(block.url or ""))
    if re.match(r"https?://", block.url or "", re.IGNORECASE):
        address = f'<a href="{address}" rel="noopener noreferrer nofollow">{address}</a>'
    return f'<p class="said">Attached: {said}{" " if address else ""}{address}</p>'


def _json(value: object) -> str:
    return msgspec.json.format(_encode(value), indent=2).decode()
