"""Condensed versions of long thinking blocks, each made once in a side call and stored beside its
original.

Only thinking without a carrier is condensed: a signed block must be sent back unchanged. A failure
changes nothing, is reported once, and is not retried in the same session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mull.agent.compress import material_room, summariser
from mull.agent.run import Situation
from mull.agent.side import Side, SideText, side_text, silent
from mull.history.log import Condensed, Entry, Log
from mull.neutral.blocks import ThinkingBlock
from mull.neutral.errors import MullError
from mull.neutral.events import Event, Progressed, Warned
from mull.policy.compress.decide import Rejected
from mull.policy.compress.material import CONDENSER, condense_request, shorten
from mull.policy.prepare import LongThought
from mull.policy.tokens import Counter

__all__ = ["Condenser"]

LEAST_NOTES, MOST_NOTES = 256, 4096
"""Bounds on the tokens of a condensed version; between them it is half of
`reasoning.condenseOver`.
"""


class Condenser:
    """Condenses the thinking of one session."""

    def __init__(self) -> None:
        self._given_up: set[LongThought] = set()

    def left(self, todo: Iterable[LongThought]) -> list[LongThought]:
        """Those that have not failed before."""
        return [thought for thought in todo if thought not in self._given_up]

    async def condense(
        self,
        log: Log,
        todo: Iterable[LongThought],
        situation: Situation,
        side: Side,
        *,
        say: Callable[[Event], None] = silent,
        now: float | None = None,
    ) -> list[Condensed]:
        """The records with condensed versions of these blocks, as many as succeeded."""
        places = self.left(todo)
        try:
            side = summariser(side, situation.snapshot)
        except MullError as error:
            self._give_up(places, str(error), say)
            return []
        if side.target.facts.declines_thoughts:
            why = f"{side.target.name} declines requests that contain thinking as text"
            self._give_up(places, why, say)
            return []
        made: list[Condensed] = []
        for number, place in enumerate(places, 1):
            say(Progressed("condensing", f"thought {number} of {len(places)}"))
            block = _thought_at(log, place)
            given = await _shorter(block, situation, side) if block else Rejected("it is signed")
            if isinstance(given, Rejected):
                self._give_up([place], given.reason, say)
            else:
                made.append(
                    Condensed(place.entry, place.block, given.text, given.by, given.usage, now)
                )
        return made

    def _give_up(
        self, places: Sequence[LongThought], reason: str, say: Callable[[Event], None]
    ) -> None:
        if places and not self._given_up:
            say(Warned("condensing", f"a long thinking block is sent in full: {reason}"))
        self._given_up.update(places)


def _thought_at(log: Log, place: LongThought) -> ThinkingBlock | None:
    """The thinking block at this place, if it may be condensed."""
    record = log[place.entry]
    block = record.message.blocks[place.block] if isinstance(record, Entry) else None
    return block if isinstance(block, ThinkingBlock) and not block.has_carrier else None


async def _shorter(block: ThinkingBlock, situation: Situation, side: Side) -> SideText | Rejected:
    counter: Counter = situation.counter
    limit = _limit(situation)
    thought = shorten(block.thought, material_room(side, limit, counter), counter)
    request = condense_request(thought, words=limit // 2)
    given = await side_text(
        side, request, system=CONDENSER, max_tokens=limit, again=lambda reason: None
    )
    if isinstance(given, Rejected):
        return given
    if counter.count(given.text) >= counter.count(block.thought):
        return Rejected("its condensed form is not shorter")
    return given


def _limit(situation: Situation) -> int:
    over: int = situation.snapshot["reasoning.condenseOver"] or MOST_NOTES
    return min(max(over // 2, LEAST_NOTES), MOST_NOTES)
