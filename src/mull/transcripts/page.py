"""A transcript as one web page that loads nothing: words, thoughts, charts.

The page's own policy forbids it the network and every script but the one whose hash it names, so
nothing that a model wrote can do more than be read. It is whole without the script too.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from typing import assert_never

from mull.history.log import Condensed, Entry, Summary, Undone
from mull.neutral.blocks import ToolCallBlock
from mull.policy.cost import format_cost
from mull.transcripts.charts import charts_html, numbers_html
from mull.transcripts.contain import visible
from mull.transcripts.html_blocks import (
    block_html,
    call_html,
    folded_thought,
    plain_html,
    text_html,
)
from mull.transcripts.outline import (
    UNDONE_LINE,
    Item,
    Outline,
    Turn,
    condensed_line,
    outline,
    summary_line,
)
from mull.transcripts.style import SCRIPT, STYLE
from mull.transcripts.transcript import Transcript, TurnRow
from mull.transcripts.words import STATUS_WORDS, count, duration, moment, speaker, total

__all__ = ["POLICY", "to_html"]

_HASH = b64encode(sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    f"script-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'"
)
"""What a browser lets the page do."""


def to_html(transcript: Transcript, *, thinking: bool = True) -> str:
    """The transcript as a self-contained page."""
    told = outline(transcript)
    title = _text(_title(transcript))
    turns = "\n".join(
        _turn(turn, _Teller(told, transcript.model, thinking=thinking)) for turn in told.turns
    )
    button = '<div class="bar"><button type="button" hidden></button></div>' if thinking else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="mull">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1 dir="auto">{title}</h1>
{_facts(transcript, told)}
{_numbers(transcript.rows)}
{_system(transcript.system)}
</header>
<main>
{button}
{turns or '<p class="unsaid">This conversation is empty.</p>'}
</main>
<footer>Exported by mull, which keeps a model’s thinking. This page loads nothing.</footer>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _title(transcript: Transcript) -> str:
    return transcript.name or transcript.title or transcript.id or "Conversation"


def _text(text: str) -> str:
    return escape(" ".join(visible(text).split()))


def _facts(transcript: Transcript, told: Outline) -> str:
    turns = len(told.turns)
    facts = [
        transcript.model or "",
        moment(transcript.created),
        f"{turns:,} turn{'' if turns == 1 else 's'}",
        f"session {transcript.id}" if transcript.id else "",
    ]
    return f'<p class="facts">{" · ".join(_text(fact) for fact in facts if fact)}</p>'


def _numbers(rows: tuple[TurnRow, ...]) -> str:
    if not rows:
        return ""
    if all(row.is_unknown for row in rows):
        return '<p class="unsaid">The provider reported no token counts: cost unknown.</p>'
    tiles = "".join(
        f"<div><dt>{name}</dt><dd>{said}{f'<small>{more}</small>' if more else ''}</dd></div>"
        for name, said, more in _tiles(rows)
    )
    return f'<dl class="tiles">{tiles}</dl>{charts_html(rows)}{numbers_html(rows)}'


def _tiles(rows: tuple[TurnRow, ...]) -> Iterator[tuple[str, str, str]]:
    read, written = total(r.input for r in rows), total(r.output for r in rows)
    thought = total(r.reasoning for r in rows)
    cached = total(r.cache_read for r in rows)
    both = thought.whole and written.whole and written.known
    share = f", {thought.known / written.known:.0%} of output" if both else ""
    yield "Reasoning", thought.say(), f"tokens{share}"
    yield "Output", written.say(), "tokens"
    held = f", {cached.say()} cached" if cached.known else ""
    yield "Input", read.say(), f"tokens{held}"
    took, pondered = total(r.seconds for r in rows), total(r.thought_seconds for r in rows)
    if took.any:
        least = "" if took.whole else "≥ "
        yield (
            "Time",
            least + duration(took.known),
            f"{duration(pondered.known)} thinking" if pondered.known else "",
        )
    spent = total(r.cost for r in rows)
    missing = sum(r.cost is None for r in rows)
    yield (
        "Cost",
        spent.say(format_cost),
        f"{missing} of {len(rows)} turns unknown" if missing else "",
    )


def _system(text: str) -> str:
    if not text:
        return ""
    return (
        '<details class="system"><summary>System prompt</summary>'
        f'<div class="mark">{plain_html(text)}</div></details>'
    )


def _turn(turn: Turn, teller: _Teller) -> str:
    items = "\n".join(filter(None, map(teller.item, turn.items)))
    number = turn.number
    head = f'<a href="#turn-{number}">Turn {number}</a> <span>{_turn_facts(turn)}</span>'
    return (
        f'<section class="turn" id="turn-{number}" aria-label="Turn {number}">'
        f"<h2>{head}</h2>\n{items}</section>"
    )


def _turn_facts(turn: Turn) -> str:
    row = turn.row
    at = next((item.record.at for item in turn.items if item.record.at is not None), None)
    facts = [moment(at)]
    if row is not None:
        facts += [
            f"{count(row.output)} tokens written" if row.output is not None else "",
            duration(row.seconds) if row.seconds else "",
            format_cost(row.cost) if row.cost is not None else "cost unknown",
        ]
    return " · ".join(filter(None, facts))


class _Teller:
    """Tells the items of one turn; who goes on speaking is named once."""

    def __init__(self, told: Outline, model: str | None, *, thinking: bool) -> None:
        self._told = told
        self._model = model
        self._thinking = thinking
        self._speaker = ""

    def item(self, item: Item) -> str:
        match item.record:
            case Entry():
                return self._entry(item, item.record)
            case Summary():
                line = summary_line(item.record, self._told)
                return f'<div class="mark"><p>{line}</p>{text_html(item.record.text)}</div>'
            case Condensed():
                label = condensed_line(item.record, self._told)
                return folded_thought(label, item.record.text) if self._thinking else ""
            case Undone():
                return f'<div class="mark"><p>{UNDONE_LINE}</p></div>'
            case _:
                assert_never(item.record)

    def _entry(self, item: Item, entry: Entry) -> str:
        message = entry.message
        parts = list(self._blocks(item, entry))
        if said := STATUS_WORDS.get(message.status or "complete"):
            parts.append(f'<p class="bad">{said}</p>')
        inner = "".join(parts)
        if not inner:
            return ""
        kind = "mull" if entry.own else "you" if message.role == "user" else message.role
        back = " back" if item.taken_back else ""
        name = speaker(entry, self._model)
        label = f'<h3 dir="auto">{_text(name)}</h3>' if name != self._speaker or back else ""
        self._speaker = name
        return f'<article class="{kind}{back}">{label}{inner}</article>'

    def _blocks(self, item: Item, entry: Entry) -> Iterator[str]:
        calls = 0
        for index, block in enumerate(entry.message.blocks):
            if isinstance(block, ToolCallBlock):
                yield call_html(block, self._told.results.get((item.position, calls)))
                calls += 1
            elif (item.position, index) not in self._told.paired:
                yield block_html(block, entry, thinking=self._thinking)
