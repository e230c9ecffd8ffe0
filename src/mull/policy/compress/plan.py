"""What a summary will replace.

The task (the first user message) and the newest turns are kept; everything between is one range of
records. User messages in the range that still apply, a task too long to keep or the question of a
turn that is cut, are quoted in the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from mull.history.log import Log
from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    ThinkingBlock,
    ToolResultBlock,
    Value,
)
from mull.policy.compress.cut import Unit, cut_late, cut_to_fit, is_closed, units_of
from mull.policy.compress.material import shorten
from mull.policy.prepare import Prepared
from mull.policy.tokens import MESSAGE_OVERHEAD, Counter, count_block

__all__ = ["CompressionPlan", "NotCompressed", "Strategy", "plan"]

Strategy: TypeAlias = Literal["middle-out", "truncate", "one-shot"]

KEPT_SHARE: dict[str, float] = {"middle-out": 0.3, "truncate": 0.5}
"""How much of the window, or of what is there, the newest turns keep; what is left out without a
summary is lost to the model, so more is kept then.
"""
MOST_KEPT = 0.6
"""The same, if the last turn is longer and cannot be divided."""
LONG_QUOTE, QUOTED = 5, 10
"""User messages longer than a fifth of the window are shortened to a tenth of it."""
LEAST_RANGE, LEAST_SHARE = 200, 20
"""Tokens below which a range is not worth a summary; in a small window, this part of it."""
EXCERPT = 4
"""The part of the window for the remaining results of an open tool chain."""


class NotCompressed(Value, frozen=True):
    """Nothing was changed, and why."""

    reason: str


class CompressionPlan(Value, frozen=True):
    """The records of the log that are replaced, and what of them is carried over verbatim."""

    start: int
    """The position in the log of the first record that is replaced."""
    end: int
    """The position after the last record that is replaced."""
    role: Literal["user", "assistant"]
    """The role of the message that replaces them: the user's if an open turn continues after it, or
    nothing but system messages stands before it.
    """
    strategy: Strategy
    """How they are replaced, such as by a summary; `truncate` leaves them out without one."""
    messages: int
    """The number of messages among the records."""
    tokens: int
    """The tokens of those messages in a request."""
    quotes: tuple[str, ...] = ()
    """What is carried over, each with a label: the task, the current question, and excerpts of tool
    results.
    """
    summaries: tuple[str, ...] = ()
    """The texts of earlier summaries among the records."""


def plan(
    log: Log,
    prepared: Prepared,
    counter: Counter,
    strategy: Strategy,
    *,
    kept: float | None = None,
) -> CompressionPlan | NotCompressed:
    """What to summarise so that the request becomes smaller; `prepared` is that request.

    `kept` is the share of the window that the newest turns keep, if it differs from the strategy's;
    with 0 only what awaits an answer is kept.
    """
    units = units_of(log)
    if not units:
        return NotCompressed("there is nothing to compress")
    share = KEPT_SHARE.get(strategy, 0.0) if kept is None else kept
    return _Planner(log, units, prepared, counter, share).plan(strategy)


class _Planner:
    def __init__(
        self,
        log: Log,
        units: Sequence[Unit],
        prepared: Prepared,
        counter: Counter,
        kept: float,
    ) -> None:
        self._units = units
        self._kept = kept
        self._counter = counter
        self._usable = _in_our_count(prepared.usable, prepared)
        self._tokens = prepared.tokens
        self._costs = _costs(log, units, prepared, counter)
        self._said = list(log.entries())
        self._asked = [(at, entry.message) for at, entry in self._said if entry.starts_turn]

    def plan(self, strategy: Strategy) -> CompressionPlan | NotCompressed:
        units, first = self._units, self._first()
        cut = self._cut(first)
        if cut is None or cut <= first:
            return NotCompressed("there is nothing to leave out before the last turn")
        goes_on = not (units[cut].begins_turn if cut < len(units) else is_closed(units))
        if goes_on:
            first = self._behind_media(first, cut)
        covered = units[first:cut]
        if all(unit.summary for unit in covered):
            return NotCompressed("everything that could be summarised already is")
        start, end = covered[0].start, covered[-1].end
        quotes = self._quotes(start, end, goes_on=goes_on)
        if strategy == "truncate" and goes_on and cut == len(units):
            quotes += self._excerpts(units[-1])
        summaries = _summaries(covered)
        tokens, kept = sum(self._costs[first:cut]), sum(map(self._counter.count, quotes))
        if strategy == "truncate":
            kept += sum(map(self._counter.count, summaries))
        if tokens - kept < min(LEAST_RANGE, (self._usable or self._tokens) // LEAST_SHARE):
            return NotCompressed("leaving out earlier turns would save too little")
        leads = all(unit.message.role == "system" for unit in units[:first])
        return CompressionPlan(
            start=start,
            end=end,
            role="user" if goes_on or leads else "assistant",
            strategy=strategy,
            messages=sum(start <= at < end for at, _ in self._said),
            tokens=tokens,
            quotes=quotes,
            summaries=summaries,
        )

    def _first(self) -> int:
        """The first unit that may be left out: the one after the task, unless that is too long, and
        after an item in place of a conversation that the log does not have."""
        units = self._units
        for at, unit in enumerate(units):
            if unit.summary is not None or unit.begins_turn:
                kept = unit.begins_turn and not self._is_long(self._costs[at])
                return max(at + 1 if kept else at, _up_to_item(units))
        return sum(unit.message.role == "system" for unit in units)

    def _cut(self, first: int) -> int | None:
        if not self._kept:
            return cut_late(self._units)
        size = min(self._usable or self._tokens, self._tokens)
        room, most = self._kept * size, max(MOST_KEPT, self._kept) * size
        return cut_to_fit(self._units, self._costs, first, room, most)

    def _behind_media(self, first: int, cut: int) -> int:
        """A question with pictures cannot be quoted: it stays, and so does everything before it."""
        for at in range(cut - 1, first - 1, -1):
            if self._units[at].begins_turn:
                media = any(isinstance(b, MediaBlock) for b in self._units[at].message.blocks)
                return at + 1 if media and at + 1 < cut else first
        return first

    def _quotes(self, start: int, end: int, *, goes_on: bool) -> tuple[str, ...]:
        """User messages that would be lost: the task, and the current question."""
        before = [one for one in self._asked if one[0] < end]
        labelled = {at: ("The user's latest message", m) for at, m in before[-1:] if goes_on}
        labelled |= {at: ("The task, in the user's words", m) for at, m in before[:1]}
        return tuple(
            f"[{label}]\n{self._quotable(message.text)}"
            for at, (label, message) in sorted(labelled.items())
            if start <= at and message.text.strip()
        )

    def _excerpts(self, last: Unit) -> tuple[str, ...]:
        """The last tool outputs, shortened, if the model still has to respond to them."""
        said = [b.output for b in last.message.blocks if isinstance(b, ToolResultBlock)]
        room = (self._usable or self._tokens) // EXCERPT // max(len(said), 1)
        short = (shorten(output, room, self._counter) for output in said if output.strip())
        return tuple(f"[The last tool output, shortened]\n{text}" for text in short)

    def _quotable(self, text: str) -> str:
        if self._usable is None or not self._is_long(self._counter.count(text)):
            return text
        return shorten(text, self._usable // QUOTED, self._counter)

    def _is_long(self, tokens: int) -> bool:
        return self._usable is not None and tokens > self._usable // LONG_QUOTE


def _up_to_item(units: Sequence[Unit]) -> int:
    """How many units there are up to an item in place of answers that the log does not have: one
    before or in the first answer."""
    answer = next((at for at, unit in enumerate(units) if unit.message.role == "assistant"), 0)
    blocks = units[answer].message.blocks
    held = any(isinstance(block, OpaqueBlock) and block.stands_for_earlier for block in blocks)
    return answer + 1 if held else 0


def _in_our_count(usable: int | None, prepared: Prepared) -> int | None:
    """The usable window in the units that the messages are counted in."""
    if usable is None or prepared.estimate <= prepared.tokens:
        return usable
    return usable * prepared.tokens // prepared.estimate


def _summaries(covered: Sequence[Unit]) -> tuple[str, ...]:
    """The texts of earlier summaries that say more than how much was left out."""
    found = (unit.summary for unit in covered if unit.summary is not None)
    return tuple(summary.text for summary in found if summary.strategy != "truncate")


def _costs(log: Log, units: Sequence[Unit], prepared: Prepared, counter: Counter) -> list[int]:
    """The tokens of each unit in this request: thinking only where it is sent."""
    sent = {id(block) for message in prepared.request.messages for block in message.blocks}

    def cost(block: Block) -> int:
        if isinstance(block, ThinkingBlock) and id(block) not in sent:
            short = log.condensed.get(id(block))
            return count_block(short, counter) if short and id(short) in sent else 0
        return count_block(block, counter)

    return [MESSAGE_OVERHEAD + sum(map(cost, unit.message.blocks)) for unit in units]
