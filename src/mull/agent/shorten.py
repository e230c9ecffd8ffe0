"""Keeps the requests of one session short: compresses when they fill the window, and condenses long
thinking. The runner asks before each request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mull.agent.compress import compress, prepared_after, truncate
from mull.agent.condense import Condenser
from mull.agent.engine import Engine
from mull.agent.run import Situation
from mull.agent.side import Side
from mull.history.log import Log, Record
from mull.neutral.events import Compressed, Event, Warned
from mull.policy.compress.decide import decide
from mull.policy.compress.plan import NotCompressed, Strategy
from mull.policy.prepare import LongThought, Prepared, uncondensed
from mull.policy.tokens import CHARACTERS
from mull.policy.view.binding import binding_warning

__all__ = ["Shortener"]

PATIENCE = 20
"""Failed compression is retried when the request has grown by this part of the window."""


class Shortener:
    """Shortens the requests of a session (`mull.agent.run.Shorten`).

    Compression that failed, or was not enough, is not retried before the next request but when the
    conversation has grown.
    """

    def __init__(self, engine: Engine, log: Log) -> None:
        self._engine = engine
        self._log = log
        self._condenser = Condenser()
        self._tried: tuple[object, int] | None = None

    def needed(self, prepared: Prepared, situation: Situation) -> bool:
        """Whether there is something to do before this request is sent."""
        if self._is_full(prepared, situation) or self._long(prepared, situation):
            return True
        return self._counted(prepared, situation).too_long and self._truncates(situation)

    async def run(
        self, prepared: Prepared, situation: Situation, say: Callable[[Event], None]
    ) -> Sequence[Record]:
        """Compress, or otherwise condense; returns the records to append to the log.

        A request that was rejected for its length, or is known not to fit, is made to fit: if there
        is no summary or it is not enough, the oldest messages are left out.
        """
        records: list[Record] = []
        if _overflowed(situation) or self._is_full(prepared, situation):
            records = await self.compress(situation, say)
            if self._fits(records, situation):
                return records
        if _overflowed(situation) or records or prepared.too_long:
            return [*records, *self._truncate(records, situation, say)]
        todo, side = self._long(prepared, situation), self._side(situation)
        return await self._condenser.condense(
            self._log, todo, situation, side, say=say, now=time.time()
        )

    async def compress(
        self,
        situation: Situation,
        say: Callable[[Event], None],
        strategy: Strategy | None = None,
    ) -> list[Record]:
        """Compress now, whatever the count. The outcome is reported; the caller stores the
        record.
        """
        log = self._log
        before, side = situation.prepared(log), self._side(situation)
        if bound := binding_warning(before, "compression"):
            say(Warned("compression", bound))
        outcome = await compress(log, situation, side, strategy=strategy, say=say, now=time.time())
        if isinstance(outcome, NotCompressed):
            self._tried = _state(before, situation), before.estimate
            say(Compressed(False, f"not compressed: {outcome.reason}", before.estimate))
            return []
        after = prepared_after(log, outcome, situation).estimate
        self._tried = _state(before, situation), after
        covered = sum(outcome.start <= at < outcome.end for at, _ in log.entries())
        say(Compressed(True, f"compressed {covered:,} messages", before.estimate, after))
        return [outcome]

    def _counted(self, prepared: Prepared, situation: Situation) -> Prepared:
        """The request, counted as accurately as possible: an estimate is worth checking."""
        counted = prepared.counter == situation.counter.name
        return prepared if counted else situation.prepared(self._log)

    def _fits(self, records: Sequence[Record], situation: Situation) -> bool:
        """Whether that was enough: with an unknown window, anything may be."""
        after = situation.prepared(Log(records=(*self._log, *records)))
        return not after.too_long and bool(records or not _overflowed(situation))

    def _truncates(self, situation: Situation) -> bool:
        return not isinstance(truncate(self._log, situation), NotCompressed)

    def _truncate(
        self, records: Sequence[Record], situation: Situation, say: Callable[[Event], None]
    ) -> list[Record]:
        """Leave out the oldest messages, of what the records leave, until the request fits."""
        log = Log(records=(*self._log, *records))
        before = situation.prepared(log)
        outcome = truncate(log, situation, time.time())
        if isinstance(outcome, NotCompressed):
            say(Compressed(False, f"not shortened: {outcome.reason}", before.estimate))
            return []
        after = prepared_after(log, outcome, situation).estimate
        self._tried = _state(before, situation), after
        covered = sum(outcome.start <= at < outcome.end for at, _ in log.entries())
        text = f"left out the oldest messages ({covered:,}): they are still stored in the session"
        say(Compressed(True, text, before.estimate, after))
        return [outcome]

    def _is_full(self, prepared: Prepared, situation: Situation) -> bool:
        if decide(prepared, situation.snapshot) is None:
            return False
        prepared = self._counted(prepared, situation)
        if decide(prepared, situation.snapshot) is None:
            return False
        if self._tried is None or self._tried[0] != _state(prepared, situation):
            return True
        return prepared.estimate > self._tried[1] + (prepared.usable or 0) // PATIENCE

    def _long(self, prepared: Prepared, situation: Situation) -> list[LongThought]:
        """The thinking to condense, counted as the request was."""
        counter = CHARACTERS if prepared.counter == CHARACTERS.name else situation.counter
        snapshot, options = situation.snapshot, situation.options
        found = uncondensed(self._log, snapshot, prepared.target, options, counter=counter)
        return self._condenser.left(found)

    def _side(self, situation: Situation) -> Side:
        limit = situation.snapshot["context.limit"]
        return Side(self._engine, situation.target, situation.send, limit)


def _overflowed(situation: Situation) -> bool:
    return situation.amendment.counted is not None


def _state(prepared: Prepared, situation: Situation) -> object:
    """What a retry depends on, beside the conversation itself."""
    return prepared.target.origin, situation.snapshot.fingerprint
