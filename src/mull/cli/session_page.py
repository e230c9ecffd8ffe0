"""How sessions are shown in a terminal: as a list, in full, and as search results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from mull.history.log import Entry, Log, Record, Summary
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.store.sessions.values import Hit, SessionInfo
from mull.tui.screen.depth import Depth
from mull.tui.text.safe import Drawn, neutralise

__all__ = ["end_of_turn", "hit_lines", "page", "session_lines", "turns_of"]

_LABEL = 44
_LINE = 100
_STATUSES = {
    "interrupted": "interrupted",
    "error": "broken off by an error",
    "truncated": "cut off at its token limit",
    "truncated_in_reasoning": "the token limit was reached while thinking",
    "no_answer": "no answer",
}


def turns_of(info: SessionInfo) -> str:
    """The number of turns, in words."""
    return f"{info.turns:,} turn{'' if info.turns == 1 else 's'}"


def end_of_turn(records: Sequence[Record], turn: int) -> int:
    """The number of records up to the last message of a turn."""
    end = number = 0
    for position, record in enumerate(records):
        if isinstance(record, Entry):
            number += record.starts_turn
            if number <= turn:
                end = position + 1
    return end


def session_lines(
    sessions: Sequence[tuple[SessionInfo, int | None]], *, folders: bool
) -> list[str]:
    """A line for each session, in columns; running ones are marked."""
    rows = [
        [
            ("* " if pid is not None else "  ") + info.id,
            _shortened(info.label or "(empty)", _LABEL),
            neutralise(info.model or ""),
            _when(info.updated),
            turns_of(info).rjust(9),
            _shortened(info.folder, len(info.folder)) if folders else "",
        ]
        for info, pid in sessions
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def hit_lines(hit: Hit, depth: Depth) -> Drawn:
    """The place of a match, and the text around it."""
    from mull.tui.text.lines import PLAIN, Span
    from mull.tui.text.sgr import encode

    parts = [" ".join(part.split("\n")) for part in hit.parts]
    parts[0], parts[-1] = parts[0].lstrip(), parts[-1].rstrip()
    match = PLAIN._replace(bold=True)
    text = (Span(part, match if n % 2 else PLAIN) for n, part in enumerate(parts))
    label = _shortened(hit.session.label, _LABEL)
    head = f"{hit.session.id}  turn {hit.turn}  {hit.kind}  {label}"
    return encode([(Span(head, PLAIN),), (Span("    ", PLAIN), *text)], depth)


def page(
    info: SessionInfo,
    records: Sequence[Record],
    coming: Sequence[Entry],
    *,
    running: int | None,
    thinking: bool,
) -> Iterator[str]:
    """A session as text: undone turns are left out, an answer still arriving is at the end."""
    yield from _head(info)
    number = 0
    log = Log(records=records)
    alive = dict(log.entries())
    summaries = dict(log.summaries())
    for position, record in enumerate(records):
        if isinstance(record, Entry) and record.starts_turn:
            number += 1
            if position in alive:
                yield from ("", f"── {number} " + "─" * 40)
        if position in alive:
            yield from _entry(alive[position], thinking=thinking)
        elif position in summaries:
            yield from _summary(summaries[position])
    for entry in coming:
        yield from _entry(entry, thinking=thinking, note=_coming(running))


def _head(info: SessionInfo) -> Iterator[str]:
    yield f"{info.id}  {neutralise(info.label)}".rstrip()
    facts = [info.model or "no model", turns_of(info), f"begun {_when(info.created)}"]
    yield ", ".join([*facts, f"last changed {_when(info.updated)}"])
    yield _shortened(info.folder, len(info.folder))
    if info.parent is not None:
        yield f"a copy of the first {info.parent_at:,} records of {info.parent}"


def _coming(running: int | None) -> str:
    if running is not None:
        return f"still arriving, in process {running or 'unknown'}"
    return "its process has ended; this is stored when the session continues"


def _summary(summary: Summary) -> Iterator[str]:
    yield ""
    yield "[in requests this summary replaces the messages before it:]"
    yield neutralise(summary.text)


def _entry(entry: Entry, *, thinking: bool, note: str | None = None) -> Iterator[str]:
    if entry.own:
        yield ""
        yield "[mull told the model:]"
    for block in entry.message.blocks:
        text = _block(block, entry, thinking=thinking)
        if text:
            yield ""
            yield text
    note = note or _STATUSES.get(entry.message.status or "")
    if note:
        yield f"[{note}]"


def _block(block: Block, entry: Entry, *, thinking: bool) -> str:
    match block:
        case TextBlock():
            return neutralise(block.text).strip("\n")
        case ThinkingBlock():
            return _thought(block, entry.thought_seconds, whole=thinking)
        case ToolCallBlock():
            words = block.arguments or msgspec.json.encode(block.input).decode()
            return _shortened(f"→ {block.name} {words}", _LINE)
        case ToolResultBlock():
            lines = block.output.strip().splitlines() or [""]
            more = f" (and {len(lines) - 1:,} more lines)" if len(lines) > 1 else ""
            return f"{'✗' if block.is_error else '←'} {_shortened(lines[0], _LINE)}{more}"
        case MediaBlock():
            return f"[{block.media_type}{f': {block.name}' if block.name else ''}]"
        case OpaqueBlock():
            return f"[{block.data.get('type', 'something unknown')}]"


def _thought(block: ThinkingBlock, seconds: float | None, *, whole: bool) -> str:
    if block.is_blank:
        return ""
    if not block.thought.strip():
        return "[thinking that only its model can read]"
    took = "" if seconds is None else f" for {seconds:,.1f} s"
    if not whole:
        return f"[thinking{took}: {len(block.thought):,} characters]"
    quoted = "\n".join(
        f"│ {line}".rstrip() for line in neutralise(block.thought).strip().split("\n")
    )
    return f"[thought{took}]\n{quoted}"


def _shortened(text: str, most: int) -> str:
    line = neutralise(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
