"""Charts of what each turn took, as drawings inside the page that fit any width.

Bars and points stand at percentages, so text keeps its size on a phone. What is unknown is drawn
as an empty, dashed box and told as unknown. A long conversation is drawn in groups of turns. The
same numbers stand in a table on the page, for who cannot see a chart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from mull.policy.cost import format_cost
from mull.transcripts.transcript import TurnRow
from mull.transcripts.words import Total, count, short_count, total

__all__ = ["charts_html", "numbers_html"]

_MOST_BARS = 100
_FEWEST_SLOTS = 6
_UP, _DOWN, _LABEL, _PLAIN = 88.0, 56.0, 16.0, 96.0


class _Group(NamedTuple):
    """Neighbouring turns that share a bar."""

    rows: tuple[TurnRow, ...]

    @property
    def name(self) -> str:
        first, last = self.rows[0].turn, self.rows[-1].turn
        return f"Turn {first}" if first == last else f"Turns {first} to {last}"

    def total(self, read: Callable[[TurnRow], float | None]) -> Total:
        return total(map(read, self.rows))


def charts_html(rows: Sequence[TurnRow]) -> str:
    """What each turn took, drawn."""
    groups = _grouped(rows)
    figures = (_tokens(rows, groups), _context(groups), _cost(rows, groups))
    return f'<div class="charts">{"".join(figures)}</div>'


def numbers_html(rows: Sequence[TurnRow]) -> str:
    """All numbers as a table, folded away."""
    names = ("Turn", "Input", "cached", "Output", "reasoning", "Context", "Seconds", "Cost")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in _cells(row))}</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        '<details class="numbers"><summary>All numbers, turn by turn</summary>'
        f'<div class="wide" tabindex="0">{table}</div></details>'
    )


def _cells(row: TurnRow) -> Iterator[str]:
    yield f'<a href="#turn-{row.turn}">{row.turn}</a>'
    for number in (row.input, row.cache_read, row.output, row.reasoning, row.context):
        yield count(number)
    yield "unknown" if row.seconds is None else f"{row.seconds:,.1f}"
    yield format_cost(row.cost)


def _grouped(rows: Sequence[TurnRow]) -> list[_Group]:
    size = -(-len(rows) // _MOST_BARS)
    return [_Group(tuple(rows[at : at + size])) for at in range(0, len(rows), size)]


def _tokens(rows: Sequence[TurnRow], groups: list[_Group]) -> str:
    """What the model wrote above the line, what it read below; each half has its own scale."""
    split = all(row.reasoning is not None for row in rows if row.output is not None)
    series = [("reasoning", _reasoning), ("answer", _answer)] if split else [("mixed", _output)]
    written = max((sum(g.total(read).known for _, read in series) for g in groups), default=0)
    read = max((g.total(_input).known for g in groups), default=0)
    height = _LABEL + _UP + _DOWN + _LABEL
    middle = _LABEL + _UP
    drawn = [
        _line(middle),
        _text(0, 10, f"{short_count(written)} written"),
        _text(0, middle + _DOWN + 12, f"{short_count(read)} read"),
    ]
    for at, group in enumerate(groups):
        place = _place(at, len(groups))
        bars = list(_stack(group, series, place, middle, written))
        bars.append(_bar("input", group.total(_input), place, middle + 1, _DOWN / (read or 1)))
        drawn.append(_linked(group, _token_words(group), "".join(bars)))
    totals = [(name, total(map(read_one, rows))) for name, read_one in [*series, ("input", _input)]]
    label = "Tokens of each turn: " + ", ".join(f"{_SAID[n]} {t.say()}" for n, t in totals)
    keys = "".join(
        f'<li><i class="{name}"></i>{_SAID[name]} {one.say()}</li>' for name, one in totals
    )
    title = f"Tokens in each turn <span>{_span(groups)}</span>"
    legend = f'<ul class="legend">{keys}</ul>'
    return _figure("tokens", title, _svg(height, label, drawn) + legend)


_SAID = {"reasoning": "reasoning", "answer": "answer", "input": "input", "mixed": "output"}


def _reasoning(row: TurnRow) -> float | None:
    return row.reasoning if row.output is not None else None


def _answer(row: TurnRow) -> float | None:
    return row.answer


def _output(row: TurnRow) -> float | None:
    return row.output


def _input(row: TurnRow) -> float | None:
    return row.input


def _stack(
    group: _Group,
    series: Sequence[tuple[str, Callable[[TurnRow], float | None]]],
    place: tuple[float, float],
    middle: float,
    most: float,
) -> Iterator[str]:
    """Bars on top of each other, from the line upwards."""
    bottom = middle
    for name, read in series:
        one = group.total(read)
        height = one.known * _UP / (most or 1)
        if one.any:
            bottom -= height
            yield _rect(name, place, bottom, height)
    if bottom == middle and not any(group.total(read).any for _, read in series):
        yield _rect("unknown", place, middle - 6, 5)


def _bar(name: str, one: Total, place: tuple[float, float], top: float, scale: float) -> str:
    if not one.any:
        return _rect("unknown", place, top + 1, 5)
    return _rect(name, place, top, one.known * scale)


def _token_words(group: _Group) -> str:
    written, thought, read = (group.total(one) for one in (_output, _reasoning, _input))
    return f"{written.say()} written ({thought.say()} reasoning), {read.say()} read"


def _context(groups: list[_Group]) -> str:
    fills = [next((r.context for r in reversed(g.rows) if r.context), None) for g in groups]
    known = [fill for fill in fills if fill is not None]
    if not known:
        said = '<p class="unsaid">Unknown: the provider did not report it.</p>'
        return _figure("window", "Context over time", said)
    most = max(known)
    floor = _LABEL + _PLAIN
    drawn = [*_frame(groups, floor, f"{short_count(most)} tokens"), _area(fills, most)]
    for at, (group, fill) in enumerate(zip(groups, fills, strict=True)):
        if fill is not None:
            x, y = _centre(at, len(groups)), floor - fill * _PLAIN / most
            dot = f'<circle cx="{x:.3f}%" cy="{y:.1f}" r="{3 if len(groups) <= 40 else 1.5}"/>'
            drawn.append(_linked(group, f"{fill:,} tokens", dot))
    label = f"Context at the end of each turn, at most {most:,} tokens, at last {known[-1]:,}"
    title = f"Context over time <span>{count(known[-1])} tokens at last</span>"
    return _figure("window", title, _svg(floor + _LABEL, label, drawn))


def _area(fills: Sequence[int | None], most: int) -> str:
    """The line through what is known, thin and dashed over what is not."""
    points: list[tuple[int, str]] = []
    for at, fill in enumerate(fills):
        if fill is not None:
            x, y = _centre(at, len(fills)), 100 - fill * 100 / most
            points.append((at, f"{x:.3f},{y:.2f}"))
    line = " ".join(point for _, point in points)
    first, last = (points[end][1].partition(",")[0] for end in (0, -1))
    shapes = f'<polygon class="below" points="{first},100 {line} {last},100"/>'
    for (before, start), (after, end) in pairwise(points):
        name = "context" if after == before + 1 else "gap"
        shapes += f'<polyline class="{name}" points="{start} {end}"/>'
    return (
        f'<svg x="0" y="{_LABEL}" width="100%" height="{_PLAIN}" viewBox="0 0 100 100"'
        f' preserveAspectRatio="none">{shapes}</svg>'
    )


def _cost(rows: Sequence[TurnRow], groups: list[_Group]) -> str:
    spent = total(row.cost for row in rows)
    if not spent.any:
        said = '<p class="unsaid">Unknown: no price is known for this model.</p>'
        return _figure("money", "Cost", said)
    most = max(group.total(_dollars).known for group in groups)
    floor = _LABEL + _PLAIN
    drawn = [*_frame(groups, floor, format_cost(most))]
    for at, group in enumerate(groups):
        one = group.total(_dollars)
        height = one.known * _PLAIN / (most or 1)
        place = _place(at, len(groups))
        top = floor - height if one.any else floor - 7
        bar = _bar("cost", one, place, top, _PLAIN / (most or 1))
        drawn.append(_linked(group, one.say(format_cost), bar))
    label = f"Cost of each turn, {spent.say(format_cost)} in all"
    missing = sum(row.cost is None for row in rows)
    rest = f", {missing} of {len(rows)} turns unknown" if missing else ""
    title = f"Cost <span>{spent.say(format_cost)} in all{rest}</span>"
    return _figure("money", title, _svg(floor + _LABEL, label, drawn))


def _dollars(row: TurnRow) -> float | None:
    return row.cost


def _span(groups: list[_Group]) -> str:
    size = len(groups[0].rows)
    return f"a bar for every {size} turns" if size > 1 else "written above, read below"


def _place(at: int, bars: int) -> tuple[float, float]:
    """Left edge and width of a bar, in percent."""
    slot = 100 / max(bars, _FEWEST_SLOTS)
    return (at + 0.12) * slot, slot * 0.76


def _centre(at: int, bars: int) -> float:
    left, width = _place(at, bars)
    return left + width / 2


def _rect(name: str, place: tuple[float, float], top: float, height: float) -> str:
    left, width = place
    height = max(height, 0.5)
    return (
        f'<rect class="{name}" x="{left:.3f}%" width="{width:.3f}%" y="{top:.1f}"'
        f' height="{height:.1f}" rx="1.5"/>'
    )


def _frame(groups: list[_Group], floor: float, most: str) -> list[str]:
    """The ground line, what the highest value is, and the first and last turn."""
    named = {at: groups[at].rows[0].turn for at in (0, len(groups) - 1)}
    turns = [
        f'<text class="middle" x="{_centre(at, len(groups)):.3f}%" y="{floor + 13}">{turn}</text>'
        for at, turn in named.items()
    ]
    return [_line(floor), _text(0, 10, most), *turns]


def _line(y: float) -> str:
    return f'<line class="axis" x1="0" x2="100%" y1="{y}" y2="{y}"/>'


def _text(x: float, y: float, said: str) -> str:
    return f'<text x="{x}" y="{y}">{escape(said)}</text>'


def _linked(group: _Group, said: str, shape: str) -> str:
    title = f"<title>{escape(group.name)}: {escape(said)}</title>"
    return f'<a href="#turn-{group.rows[0].turn}" tabindex="-1">{title}{shape}</a>'


def _svg(height: float, label: str, shapes: Sequence[str]) -> str:
    return f'<svg role="img" aria-label="{escape(label)}" height="{height}">{"".join(shapes)}</svg>'


def _figure(name: str, title: str, inner: str) -> str:
    return f'<figure class="{name}"><figcaption>{title}</figcaption>{inner}</figure>'
