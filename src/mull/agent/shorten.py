"""Keeps the requests of one session short: compression when they fill the window, condensing of
long thoughts. The runner asks before each request.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mull.agent.compress import compress, prepared_after
from mull.agent.condense import Condenser
from mull.agent.engine import Engine
from mull.agent.run import Situation
from mull.agent.side import Side
from mull.history.log import Log, Record
from mull.neutral.events import Compressed, Event, Warned
from mull.policy.compress.decide import decide
from mull.policy.compress.plan import NotCompressed, Strategy
from mull.policy.prepare import LongThought, Prepared, prepare, uncondensed
from mull.policy.tokens import CHARACTERS
from mull.policy.view.binding import binding_warning

__all__ = ["Shortener"]

PATIENCE = 20
"""What was not compressed is tried again when the request has grown by this part of the window."""


class Shortener:
    """What makes the requests of a session shorter (`mull.agent.run.Shorten`).

    Compression that failed, or was not enough, is not tried again before the next request but
    when the conversation has grown.
    """

    def __init__(self, engine: Engine, log: Log) -> None:
        self._engine = engine
        self._log = log
        self._condenser = Condenser()
        self._tried: tuple[object, int] | None = None

    def needed(self, prepared: Prepared, situation: Situation) -> bool:
        """Whether there is something to do before this request goes out."""
        return self._is_full(prepared, situation) or bool(self._long(prepared, situation))

    async def run(
        self, prepared: Prepared, situation: Situation, say: Callable[[Event], None]
    ) -> Sequence[Record]:
        """Compress, or else condense; the records that the log gains by it."""
        if self._is_full(prepared, situation):
            return await self.compress(situation, say)
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
        """Compress now, whatever the count. What came of it is said; the record is to be kept."""
        log = self._log
        before, side = _counted(log, situation), self._side(situation)
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

    def _is_full(self, prepared: Prepared, situation: Situation) -> bool:
        if decide(prepared, situation.snapshot) is None:
            return False
        if prepared.counter != situation.counter.name:  # an estimate: worth a second look
            prepared = _counted(self._log, situation)
            if decide(prepared, situation.snapshot) is None:
                return False
        if self._tried is None or self._tried[0] != _state(prepared, situation):
            return True
        return prepared.estimate > self._tried[1] + (prepared.usable or 0) // PATIENCE

    def _long(self, prepared: Prepared, situation: Situation) -> list[LongThought]:
        """The thoughts to condense, counted as the request was."""
        counter = CHARACTERS if prepared.counter == CHARACTERS.name else situation.counter
        snapshot, options = situation.snapshot, situation.options
        found = uncondensed(self._log, snapshot, prepared.target, options, counter=counter)
        return self._condenser.left(found)

    def _side(self, situation: Situation) -> Side:
        limit = situation.snapshot["context.limit"]
        return Side(self._engine, situation.target, situation.send, limit)


def _counted(log: Log, situation: Situation) -> Prepared:
    options, counter = situation.options, situation.counter
    return prepare(log, situation.snapshot, situation.target, options, counter=counter)


def _state(prepared: Prepared, situation: Situation) -> object:
    """What another try would depend on, beside the conversation itself."""
    return prepared.target.origin, situation.snapshot.fingerprint
