"""Compresses a conversation: plans, requests a summary in a side call, checks it.

Nothing here changes the log. The result is the record to append, or the reason why nothing is
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from mull.agent.run import Situation
from mull.agent.side import MORE_ROOM, Side, SideText, output_limit, side_text, silent
from mull.history.log import Log, Summary, Undone
from mull.neutral.errors import MullError
from mull.neutral.events import Event, Progressed, Retrying, TextDelta, Warned
from mull.neutral.messages import Message
from mull.neutral.usage import add_usage
from mull.policy.compress.decide import (
    Rejected,
    left_out_text,
    summary_limit,
    summary_record,
    summary_text,
)
from mull.policy.compress.material import SUMMARISER, material, repeats_request, summary_request
from mull.policy.compress.plan import (
    CompressionPlan,
    NotCompressed,
    Strategy,
    plan,
)
from mull.policy.prepare import Prepared
from mull.policy.tokens import Counter
from mull.settings.layers import Snapshot

__all__ = [
    "compress",
    "material_room",
    "prepared_after",
    "summarise",
    "summariser",
    "truncate",
    "undo_compression",
]

READABLE = 0.9
"""The part of the room for material that is used: counts are estimates."""
TRUNCATED = (0.5, 0.25, 0.0)
"""Shares of the usable window kept for the newest turns, tried in this order."""
LEAST_ROOM = 200
"""Tokens of material below which a summary is not worthwhile."""
UNKNOWN_WINDOW = 32_000
TOLD_EVERY = 500
"""Characters of a growing summary between two progress messages."""


async def compress(
    log: Log,
    situation: Situation,
    side: Side,
    *,
    strategy: Strategy | None = None,
    say: Callable[[Event], None] = silent,
    now: float | None = None,
) -> Summary | NotCompressed:
    """The record that makes the next request smaller, or why there is none.

    `side` is the side call to the session's own model; `compression.model` overrides it. Nothing is
    changed until the record is appended to the log.
    """
    snapshot, counter = situation.snapshot, situation.counter
    before = situation.prepared(log)
    planned = plan(log, before, counter, strategy or snapshot["compression.strategy"])
    if isinstance(planned, NotCompressed):
        return planned
    if planned.strategy == "truncate":
        record = summary_record(planned, left_out_text(planned), at=now)
    else:
        work = _Summary(log, planned, counter, say)
        written = await work.write(side, snapshot, summary_limit(before.usable))
        if isinstance(written, NotCompressed):
            return written
        text = summary_text(planned, written.text)
        record = summary_record(planned, text, by=written.by, usage=written.usage, at=now)
    after = prepared_after(log, record, situation).tokens
    if after >= before.tokens:
        return NotCompressed(
            f"with the summary the request would hold {after:,} tokens, not fewer than "
            f"the current {before.tokens:,}"
        )
    return record


async def summarise(
    log: Log, side: Side, snapshot: Snapshot, counter: Counter
) -> SideText | NotCompressed:
    """A summary of the whole conversation, for whoever keeps it elsewhere; or why there is none."""
    messages = sum(1 for _ in log.entries())
    planned = CompressionPlan(0, len(log), "user", "one-shot", messages, 0)
    return await _Summary(log, planned, counter, silent).write(
        side, snapshot, summary_limit(side.window)
    )


def prepared_after(log: Log, record: Summary, situation: Situation) -> Prepared:
    """The next request with this record in the log."""
    return situation.prepared(Log(records=(*log, record)))


def truncate(log: Log, situation: Situation, now: float | None = None) -> Summary | NotCompressed:
    """The record that leaves out the oldest messages until the request fits, or why there is none.

    No model is asked. As much is kept as fits: half of the window, a quarter, or only what still
    needs an answer.
    """
    before = situation.prepared(log)
    reason = NotCompressed("there is nothing to leave out")
    for kept in TRUNCATED:
        planned = plan(log, before, situation.counter, "truncate", kept=kept)
        if isinstance(planned, NotCompressed):
            reason = planned
            continue
        record = summary_record(planned, left_out_text(planned), at=now)
        after = prepared_after(log, record, situation)
        if after.tokens < before.tokens and not after.too_long:
            return record
        reason = NotCompressed("the part that must be kept is itself too long")
    return reason


def summariser(side: Side, snapshot: Snapshot) -> Side:
    """The model that writes summaries: `compression.model`, or the session's own.

    Raises:
        LocalError: there is no such model, or no key for it.
    """
    model: str | None = snapshot["compression.model"]
    return Side.to(side.engine, model) if model else side


def undo_compression(log: Log, now: float | None = None) -> Undone | None:
    """The record that undoes the newest active summary; None if there is none."""
    newest = max((at for at, _ in log.summaries()), default=None)
    return None if newest is None else Undone(newest, newest + 1, now)


def material_room(side: Side, limit: int, counter: Counter) -> int:
    """The tokens of material that fit beside a summary of `limit` tokens and an earlier summary."""
    window = side.window or UNKNOWN_WINDOW
    around = counter.count(SUMMARISER) + counter.count(summary_request("", "", limit).text)
    room = window - output_limit(side, MORE_ROOM * limit) - limit - around
    return max(round(READABLE * room), 0)


class _Summary:
    """A summary being written, and its progress."""

    def __init__(
        self, log: Log, planned: CompressionPlan, counter: Counter, say: Callable[[Event], None]
    ) -> None:
        self._log = log
        self._plan = planned
        self._counter = counter
        self._say = say
        self._length = self._told = 0

    async def write(self, side: Side, snapshot: Snapshot, limit: int) -> SideText | NotCompressed:
        """The summary, made with as many requests as its material needs."""
        try:
            side = summariser(side, snapshot)
        except MullError as error:
            return NotCompressed(f"no summary: {error}")
        start, end = self._plan.start, self._plan.end
        room = material_room(side, limit, self._counter)
        if room < LEAST_ROOM:
            return NotCompressed(
                f"what {side.target.name} would have to summarise does not fit its context window"
            )
        name = side.target.name
        whole = material(self._log, start, end, self._counter, room)
        plain = material(self._log, start, end, self._counter, room, thoughts=False)
        if side.target.facts.declines_thoughts and whole != plain:
            self._warn(f"{name} declines requests that contain thinking as text")
            whole = plain
        messages, tokens = self._plan.messages, self._plan.tokens
        self._tell(f"sending {messages:,} messages, about {tokens:,} tokens, to {name}")
        written = await self._write(side, whole, limit, thoughts=whole != plain)
        if isinstance(written, Rejected) and written.declined and whole != plain:
            self._warn(f"{name} declined the request that contained it")
            written = await self._write(side, plain, limit, thoughts=False)
        if isinstance(written, Rejected):
            return NotCompressed(f"no summary from {name}: {written.reason}")
        return written

    async def _write(
        self, side: Side, parts: Sequence[str], limit: int, *, thoughts: bool
    ) -> SideText | Rejected:
        """The summary of these parts, each read with the summary of those before it."""
        written: SideText | None = None
        for number, part in enumerate(parts, 1):
            if len(parts) > 1:
                self._tell(f"part {number} of {len(parts)}")
            so_far, words = written.text if written else None, limit // 2
            request = summary_request(part, so_far, words, thoughts=thoughts)
            more = await self._ask(side, request, limit)
            if isinstance(more, Rejected):
                return more
            usage = add_usage(written.usage, more.usage) if written else more.usage
            written = replace(more, usage=usage)
        return written or Rejected("there was nothing to summarise")

    async def _ask(self, side: Side, request: Message, limit: int) -> SideText | Rejected:
        self._length = self._told = 0
        hear, again = self._hear, self._again
        given = await side_text(
            side, request, system=SUMMARISER, max_tokens=limit, say=hear, again=again
        )
        if isinstance(given, SideText) and repeats_request(given.text):
            return Rejected("it only repeated its instructions")
        return given

    def _hear(self, event: Event) -> None:
        if isinstance(event, TextDelta):
            self._length += len(event.text)
            if self._length - self._told >= TOLD_EVERY:
                self._told = self._length
                self._tell(f"{self._length:,} characters of summary")
        elif isinstance(event, Retrying):
            self._tell(event.words)

    def _again(self, reason: str) -> None:
        self._length = self._told = 0
        self._tell(f"no summary yet: {reason}; asking again with a higher limit")

    def _warn(self, why: str) -> None:
        text = f"thinking is left out of what is summarised, answers and results are not: {why}"
        self._say(Warned("compression", text))

    def _tell(self, text: str) -> None:
        self._say(Progressed("compression", text))
