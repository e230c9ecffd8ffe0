"""The state of a session for the status line, recomputed only when something changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.neutral.errors import MullError
from mull.policy.cost import add_costs
from mull.policy.meter import Meter, meter_of
from mull.policy.prepare import Prepared, prepare
from mull.policy.thinking.wish import wish_of
from mull.transcripts.words import short_count
from mull.tui.conversation.status import Status, Working, level_word, status_line
from mull.tui.instant.rows import OPENING

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.neutral.events import StateChanged
    from mull.tui.conversation.thought import Mode
    from mull.tui.screen.theme import Theme
    from mull.tui.text.lines import Line

__all__ = ["Standing"]

_OPENING = Status(OPENING)


def _short(meter: Meter) -> str:
    """`1.6k/1M`; an unknown window is a question mark."""
    window = short_count(meter.window) if meter.window else "?"
    return f"{short_count(meter.effective)}/{window}"


def _outlined(session: Session) -> Prepared:
    """The next request, counted by its characters: loading a tokenizer would hold up the prompt."""
    target = session.engine.learnt(session.target)
    return prepare(session.log, session.snapshot(), target, session.options)


class Standing:
    """The state of a session: how full its context window is, and what it cost."""

    def __init__(self) -> None:
        self._seen: object = None
        self._status = _OPENING

    def line(
        self,
        session: Session | None,
        state: StateChanged | None,
        view: Mode,
        theme: Theme,
        width: int,
        tick: int,
    ) -> Line:
        """The current status line."""
        if session is None:
            return status_line(_OPENING, theme, width, tick)
        self._look(session)
        working = Working(state.state, state.round) if state else None
        return status_line(replace(self._status, view=view, working=working), theme, width, tick)

    def _look(self, session: Session) -> None:
        """Count the next request, if it would differ from the last one counted."""
        snapshot = session.snapshot()
        now = (
            session.info.id,
            len(session.log),
            snapshot.fingerprint,
            wish_of(snapshot),  # whether the user set it matters too
            session.target.origin,
            session.engine.setup.profile_name,
            session.toolbox and session.toolbox.gate.mode,
            tuple(session.tools),
        )
        if now == self._seen:
            return
        self._seen = now
        try:
            self._status = self._count(session)
        except MullError:  # reported when the request is made
            self._status = Status(session.target.name)

    def _count(self, session: Session) -> Status:
        from mull.agent.exports import pricing
        from mull.transcripts.transcript import turn_rows

        # at the start a rough count is enough; after the first message it must be right
        prepared = session.prepared() if session.log else _outlined(session)
        meter = meter_of(prepared)
        price = pricing(session.engine.setup)
        return Status(
            model=session.target.name,
            level=level_word(prepared.target, session.snapshot(), prepared.request.thinking),
            meter=f"{'' if session.log else '~'}{_short(meter)}",
            fullness=meter.fullness,
            cost=add_costs(row.cost for row in turn_rows(tuple(session.log), price)),
            profile=session.engine.setup.profile_name,
            approval=session.toolbox.gate.mode if session.tools and session.toolbox else None,
        )
