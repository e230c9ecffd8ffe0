"""The status of a session as it stands, gathered once after each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.agent.run import QUICKLY_COUNTED
from mull.policy.cost import add_costs
from mull.policy.meter import Meter, Reported, meter_of
from mull.policy.prepare import Prepared, prepare
from mull.transcripts.transcript import Price, turn_rows
from mull.tui.status import Status, Working, level_word
from mull.tui.thought import Mode as View

if TYPE_CHECKING:
    from mull.agent.session import Session

__all__ = ["meter_now", "prepared_now", "status_now"]


def prepared_now(session: Session) -> Prepared:
    """The next request, as the runner would count it: a short one by its characters."""
    target = session.engine.learnt(session.target)
    prepared = prepare(session.log, session.snapshot(), target, session.options)
    return session.prepared() if prepared.tokens > QUICKLY_COUNTED else prepared


def meter_now(session: Session, reported: Reported | None = None) -> Meter:
    """How full the window is; what the provider reported of the last request corrects it."""
    return meter_of(prepared_now(session), reported)


def status_now(
    session: Session,
    price: Price,
    *,
    view: View = "full",
    reported: Reported | None = None,
    working: Working | None = None,
) -> Status:
    """Everything that the status line may say."""
    prepared = prepared_now(session)
    meter = meter_of(prepared, reported)
    snapshot = session.snapshot()
    toolbox = session.toolbox
    return Status(
        model=session.target.name,
        level=level_word(prepared.target, snapshot, prepared.request.thinking),
        meter=str(meter),
        fullness=meter.fullness,
        cost=add_costs(row.cost for row in turn_rows(tuple(session.log), price)),
        profile=session.engine.setup.profile_name,
        approval=toolbox.gate.mode if toolbox and toolbox.offered() else None,
        view=view,
        working=working,
    )
