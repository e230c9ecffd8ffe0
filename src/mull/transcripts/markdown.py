"""A transcript as Markdown that GitHub shows well: a heading for each turn, thoughts folded away.

What was said stays Markdown, but cannot leave its place (`contain`). Tool calls and results are
code blocks, and a change of a file is its diff; long results are folded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

import msgspec

from mull.history.log import Condensed, Entry, Summary, Undone
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.policy.cost import format_cost
from mull.transcripts.contain import contain, escape_marks, fence, inline_code
from mull.transcripts.outline import (
    UNDONE_LINE,
    Item,
    Outline,
    Turn,
    condensed_line,
    outline,
    summary_line,
)
from mull.transcripts.transcript import Transcript, TurnRow
from mull.transcripts.words import (
    STATUS_WORDS,
    count,
    describe_media,
    duration,
    moment,
    speaker,
    thought_line,
    total,
    without_text,
)

__all__ = ["to_markdown"]

_LONG_RESULT = 20
_encode = msgspec.json.Encoder().encode


def to_markdown(transcript: Transcript, *, thinking: bool = True) -> str:
    """The transcript as a Markdown document."""
    told = outline(transcript)
    writer = _Writer(transcript, told, thinking=thinking)
    parts = [*_head(transcript)]
    for turn in told.turns:
        parts += writer.turn(turn)
    return "\n\n".join(parts) + "\n"


def _head(transcript: Transcript) -> Iterator[str]:
    title = transcript.name or transcript.title or transcript.id or "Conversation"
    yield f"# {escape_marks(title)}"
    rows = transcript.rows
    facts = [
        ("Model", inline_code(transcript.model) if transcript.model else ""),
        ("Session", inline_code(transcript.id) if transcript.id else ""),
        ("Started", moment(transcript.created)),
    ]
    if rows and all(row.is_unknown for row in rows):
        facts.append(("Tokens and cost", "unknown"))
    elif rows:
        read, written = total(r.input for r in rows), total(r.output for r in rows)
        thought, cost = total(r.reasoning for r in rows), total(r.cost for r in rows)
        facts += [
            (
                "Tokens",
                f"{read.say()} read, {written.say()} written, {thought.say()} of them reasoning",
            ),
            ("Cost", cost.say(format_cost)),
        ]
    lines = [f"- **{name}:** {said}" for name, said in facts if said]
    if lines:
        yield "\n".join(lines)
    if transcript.system:
        yield _folded("System prompt", fence(transcript.system, "text"))


class _Writer:
    def __init__(self, transcript: Transcript, told: Outline, *, thinking: bool) -> None:
        self._model = transcript.model
        self._told = told
        self._thinking = thinking
        self._speaker = ""

    def turn(self, turn: Turn) -> Iterator[str]:
        yield f"## Turn {turn.number}"
        self._speaker = ""
        for item in turn.items:
            yield from self._item(item)
        if turn.row is not None and not turn.row.is_unknown:
            yield f"<sub>{' · '.join(_row_facts(turn.row))}</sub>"

    def _item(self, item: Item) -> Iterator[str]:
        match item.record:
            case Entry():
                yield from self._entry(item, item.record)
            case Summary(text=text):
                yield f"**{summary_line(item.record, self._told)}**"
                yield _quoted(contain(text))
            case Condensed(text=text):
                if self._thinking:
                    label = condensed_line(item.record, self._told)
                    yield _folded(label, _quoted(contain(text)))
            case Undone():
                yield f"**{UNDONE_LINE}**"
            case _:
                assert_never(item.record)

    def _entry(self, item: Item, entry: Entry) -> Iterator[str]:
        message = entry.message
        parts = list(self._blocks(item, entry))
        if not parts and not STATUS_WORDS.get(message.status or "complete"):
            return
        name = speaker(entry, self._model)
        if item.taken_back:
            name += " (taken back)"
        if name != self._speaker:
            yield f"### {escape_marks(name)}"
            self._speaker = name
        yield from parts
        if message.status in STATUS_WORDS:
            yield f"**{STATUS_WORDS[message.status]}**"

    def _blocks(self, item: Item, entry: Entry) -> Iterator[str]:
        calls = 0
        for index, block in enumerate(entry.message.blocks):
            if isinstance(block, ToolCallBlock):
                yield from _call(block, self._told.results.get((item.position, calls)))
                calls += 1
            elif (item.position, index) not in self._told.paired:
                yield from self._block(block, entry)

    def _block(self, block: Block, entry: Entry) -> Iterator[str]:
        match block:
            case TextBlock():
                if block.text.strip():
                    yield contain(block.text.strip("\n"))
            case ThinkingBlock():
                if self._thinking:
                    yield from _thought(block, entry)
            case ToolResultBlock():
                yield from _result(block)
            case MediaBlock():
                yield _media(block)
            case OpaqueBlock():
                yield _folded("Data that only the provider understands", _json(block.data))
            case ToolCallBlock():
                yield from _call(block, None)
            case _:
                assert_never(block)


def _row_facts(row: TurnRow) -> Iterator[str]:
    yield f"{count(row.input)} tokens read"
    yield f"{count(row.output)} written"
    if row.reasoning:
        yield f"{row.reasoning:,} of them reasoning"
    if row.seconds:
        yield duration(row.seconds)
    yield f"cost {format_cost(row.cost)}"


def _thought(block: ThinkingBlock, entry: Entry) -> Iterator[str]:
    reason = without_text(block)
    if reason:
        yield f"*{reason}*"
    elif not block.is_blank:
        alone = len([b for b in entry.message.thinking if not b.is_blank]) == 1
        usage = entry.message.usage
        seconds = entry.thought_seconds if alone else None
        tokens = usage.reasoning if alone and usage else None
        yield _folded(thought_line(seconds, tokens), _quoted(contain(block.thought.strip("\n"))))


def _call(block: ToolCallBlock, result: ToolResultBlock | None) -> Iterator[str]:
    yield f"**Tool call** {inline_code(block.name)}"
    if result is not None and result.diff:
        yield fence(result.diff, "diff")
    elif block.arguments is not None and not block.input:
        yield fence(block.arguments, "text")
    elif block.input:
        yield _json(block.input)
    if result is not None:
        yield from _result(result)


def _result(block: ToolResultBlock) -> Iterator[str]:
    label = "Failed" if block.is_error else "Result"
    lines = block.output.count("\n") + 1
    if not block.output.strip():
        yield f"**{label}** (empty)"
    elif lines > _LONG_RESULT:
        yield _folded(f"{label}: {lines:,} lines", fence(block.output.strip("\n"), "text"))
    else:
        yield f"**{label}**"
        yield fence(block.output.strip("\n"), "text")
    yield from map(_media, block.media)


def _media(block: MediaBlock) -> str:
    said = f"Attached: {escape_marks(describe_media(block))}"
    return f"*{said}*" if block.url is None else f"*{said}:* {inline_code(block.url)}"


def _json(value: object) -> str:
    return fence(msgspec.json.format(_encode(value), indent=2).decode(), "json")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _folded(label: str, text: str) -> str:
    return f"<details>\n<summary>{label}</summary>\n\n{text}\n\n</details>"
