"""How things stand in a session, for the status line: counted again only when something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.history.log import Condensed, Entry, Record, Summary
from mull.neutral.errors import MullError
from mull.neutral.messages import Origin
from mull.neutral.usage import Usage
from mull.policy.cost import CostSum, add_costs, cost_of
from mull.policy.meter import Meter, Reported, meter_of, reported_by
from mull.tui.status import Status, Working, level_word, status_line

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.policy.prepare import Prepared
    from mull.tui.lines import Line
    from mull.tui.talk import Talk
    from mull.tui.theme import Theme

__all__ = ["Standing"]


class Standing:
    """What a session has come to: how full it is, and what it cost."""

    def __init__(self) -> None:
        self._seen: object = None
        self._meter: Meter | None = None
        self._level = ""
        self._costs: list[float | None] = []
        self._priced = 0
        self._session: str | None = None
        self._reported: Reported | None = None

    def learn(self, prepared: Prepared, usage: Usage | None) -> None:
        """Take in what the provider counted of the request that was answered last."""
        self._reported = reported_by(prepared, usage) or self._reported
        self._seen = None

    def line(self, talk: Talk, theme: Theme, width: int, tick: int) -> Line:
        """The status line as things stand."""
        if not talk.is_open:
            return status_line(Status("opening …"), theme, width, tick)
        session, state = talk.session, talk.painter.state
        self._look(session)
        working = Working(state.state, state.round, state.rounds) if state else None
        status = Status(
            model=session.target.name,
            level=self._level,
            meter=str(self._meter) if self._meter else "",
            fullness=self._meter.fullness if self._meter else "unknown",
            cost=self.cost(session),
            profile=session.engine.setup.profile_name,
            approval=talk.gate.mode if talk.gate else None,
            view=talk.painter.mode,
            working=working,
        )
        return status_line(status, theme, width, tick)

    def cost(self, session: Session) -> CostSum:
        """What the session cost, as far as that is known."""
        if self._session != session.info.id:
            self._session, self._costs, self._priced = session.info.id, [], 0
        log = session.log
        for position in range(self._priced, len(log)):
            self._costs += _billed(log[position], session)
        self._priced = len(log)
        return add_costs(self._costs)

    def _look(self, session: Session) -> None:
        """Count the next request, if it would be another one than the last time."""
        snapshot = session.snapshot()
        now = (
            session.info.id,
            len(session.log),
            snapshot.fingerprint,
            session.target.origin,
            tuple(session.tools),
        )
        if now == self._seen:
            return
        self._seen = now
        try:
            prepared = session.prepared()
        except MullError:  # told when the request is made
            self._meter, self._level = None, ""
            return
        self._meter = meter_of(prepared, self._reported)
        self._level = level_word(prepared.target, snapshot, prepared.request.thinking)


def _billed(record: Record, session: Session) -> list[float | None]:
    """What a record cost: an answer, a summary, or nothing at all."""
    if isinstance(record, Entry):
        if record.message.role != "assistant" or record.message.origin is None:
            return []
        return [_price(session, record.message.origin, record.message.usage)]
    if isinstance(record, Summary | Condensed) and record.by is not None:
        return [_price(session, record.by, record.usage)]
    return []


def _price(session: Session, origin: Origin, usage: Usage | None) -> float | None:
    try:
        facts = session.engine.setup.catalog().facts(origin.provider, origin.model)
    except MullError:  # not in the catalog: unknown
        return None
    return cost_of(usage, facts.cost)
