"""The status line below the input: model and level, context usage, cost, current activity.

If there is little room, the least important part is dropped first: the profile, then the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mull.neutral.blocks import Value
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from mull.policy.approval import Mode as Approval
from mull.policy.cost import CostSum
from mull.policy.meter import Fullness
from mull.policy.thinking.plan import wish_of
from mull.settings.layers import Snapshot
from mull.transcripts.words import short_count
from mull.tui.conversation.thought import Mode as View
from mull.tui.screen.theme import Theme
from mull.tui.text.lines import Line, Span, Style
from mull.tui.text.safe import neutralise
from mull.tui.text.width import cell_width, fitted

__all__ = [
    "SPINNER",
    "Status",
    "Working",
    "level_word",
    "status_line",
]

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_SPINNER = "|/-\\"
_GAP = " · "
_LEAST_MODEL = 20
_NARROW = 80
_STATES = {
    "sending": "waiting",
    "streaming": "working",
    "healing": "asking again",
    "compressing": "compressing",
    "tools": "running tools",
}
_ASKING = "asking"
"""The state in which nothing happens until the user answers."""


class Working(Value, frozen=True):
    """What the current turn is doing; `round` counts its requests."""

    state: str
    round: int = 0


class Status(Value, frozen=True):
    """Everything the line may show."""

    model: str
    """The model of the next request, as `provider/model`."""
    level: str = ""
    """The level at which it thinks; empty if there is nothing to say."""
    meter: str = ""
    """The tokens in the context and its window, as in `1.6k/1M`; `~` marks a rough count."""
    fullness: Fullness = "unknown"
    """How full the window is, for the colour of the meter."""
    cost: CostSum = CostSum()
    """What the session has cost so far; an unknown cost is not zero."""
    profile: str | None = None
    """The name of the profile in use; None if there is none."""
    approval: Approval | None = None
    """Which tool calls need approval; None if there are no tools."""
    view: View = "full"
    """How thinking is shown."""
    working: Working | None = None
    """What the turn is doing; None while nothing runs."""


class _Part(NamedTuple):
    weight: int
    text: str
    style: Style


def status_line(status: Status, theme: Theme, width: int, tick: int = 0) -> Line:
    """What fits into `width` cells, in a fixed order; `tick` turns the spinner."""
    parts = [part for part in _parts(status, theme, width, tick) if part.text]
    least = min(cell_width(_short_model(status, width)), _LEAST_MODEL)
    while parts and width - _taken(parts) < least:
        parts.remove(max(parts, key=lambda part: part.weight))
    model = _short_model(status, width - _taken(parts))
    spans = [Span(model, theme.status._replace(bold=True))]
    for part in parts:
        spans += [Span(_GAP, theme.faint), Span(part.text, part.style)]
    return tuple(spans)


def _parts(status: Status, theme: Theme, width: int, tick: int) -> list[_Part]:
    """The parts after the model; the first to be dropped have the highest weight."""
    colour = {"warn": theme.warning, "full": theme.error}.get(status.fullness, theme.status)
    working = status.working
    risky = status.approval == "yes"
    view = "" if status.view == "full" else f"thoughts: {status.view}"
    return [
        _Part(1, status.meter, colour),
        _Part(2, status.approval or "", theme.warning if risky else theme.status),
        _Part(3, _working(working, theme, width, tick) if working else "", theme.accent),
        _Part(4, _cost(status.cost), theme.status),
        _Part(5, view, theme.status),
        _Part(6, neutralise(status.profile or ""), theme.status),
    ]


def _cost(cost: CostSum) -> str:
    if not cost.of:
        return ""
    return "$?" if cost.unknown == cost.of else str(cost)


def _working(working: Working, theme: Theme, width: int, tick: int) -> str:
    if working.state == _ASKING:
        return "waiting for you"
    signs = _PLAIN_SPINNER if theme.marks else SPINNER
    word = f" {_STATES.get(working.state, working.state)}" if width >= _NARROW else ""
    round_ = f", round {working.round:,}" if working.round > 1 and word else ""
    return f"{signs[tick % len(signs)]}{word}{round_}"


def _taken(parts: Sequence[_Part]) -> int:
    """The cells of the parts, each with the gap before it."""
    return sum(len(_GAP) + cell_width(part.text) for part in parts)


def _short_model(status: Status, room: int) -> str:
    """The model with its level: first without the provider, then cut; the level stays."""
    level = f"/{status.level}" if status.level else ""
    whole = neutralise(status.model)
    own = whole.partition("/")[2] or whole
    for name in (whole, own):
        if cell_width(name + level) <= room:
            return name + level
    if cell_width(level) + 4 > room:
        return fitted(own, room)
    return fitted(own, room - cell_width(level)) + level


def level_word(target: Target, snapshot: Snapshot, plan: ThinkingPlan) -> str:
    """The effective level in a word: what the plan asks for, not what the user requested."""
    if not target.facts.reasoning and target.known:
        return ""
    if not plan.thinks or plan.state == "off":
        return "off"
    if plan.effort:
        return plan.effort
    wish = wish_of(snapshot)
    if plan.budget:
        return wish.level or short_count(plan.budget)
    return "on" if plan.state == "on" else ""
