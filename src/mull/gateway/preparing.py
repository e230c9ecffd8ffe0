"""Builds the upstream request from a client's conversation and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mull.history.log import Log
from mull.neutral.errors import BudgetError, LocalError
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.policy.prepare import Prepared, prepare
from mull.policy.thinking.budget import ANY_BUDGET, level_for_budget
from mull.policy.view.media import check_question, without_untaken

if TYPE_CHECKING:
    from mull.gateway.routes import Route
    from mull.gateway.upstream_options import UpstreamOptions
    from mull.neutral.target import Target

__all__ = ["prepare_for"]


def prepare_for(
    route: Route, messages: Sequence[Message], wanted: UpstreamOptions
) -> tuple[Prepared, Sequence[Note]]:
    """The prepared request, and notes about what had to be left out of it.

    Raises:
        LocalError: the request cannot be sent as it is.
    """
    messages, left_out = _readable(_reminders_first(messages, route.target), route.target)
    return _prepared(route, Log(messages), wanted), left_out


def _reminders_first(messages: Sequence[Message], target: Target) -> Sequence[Message]:
    """The conversation with system messages before the question that they follow, if they are sent
    in the user's name: after it, they would look like the question, and small models answer them.
    What follows tool results stays there, because nothing may come between a call and its
    result."""
    if target.compat.system_inside == "system" or all(one.role != "system" for one in messages):
        return messages
    ordered: list[Message] = []
    for message in messages:
        is_reminder = message.role == "system" and bool(ordered) and ordered[-1].role == "user"
        ordered.insert(len(ordered) - is_reminder, message)
    return ordered


def _readable(
    messages: Sequence[Message], target: Target
) -> tuple[Sequence[Message], Sequence[Note]]:
    """The conversation; if its last message holds nothing that the model can read, such as only an
    image returned by a tool, that is left out. If the request were rejected instead, the client
    could only resend it."""
    try:
        if messages:
            check_question(messages[-1], target)
    except LocalError as error:
        last, _ = without_untaken(messages[-1], target.facts.input)
        return (*messages[:-1], last), [Note("input", f"left out: {error}", warning=True)]
    return messages, ()


def _prepared(route: Route, log: Log, wanted: UpstreamOptions) -> Prepared:
    """The request; a thinking budget that the target cannot accept becomes a level."""
    target, options = route.target, wanted.options
    try:
        return prepare(log, route.snapshot.having(wanted.settings), target, options)
    except BudgetError:
        settings = dict(wanted.settings)
        budget = settings.pop("reasoning.maxTokens", None)
        if budget is not None:
            level = level_for_budget(target.facts.budget or ANY_BUDGET, budget)
            settings.setdefault("reasoning.effort", level)
        return prepare(log, route.snapshot.having(settings), target, options)
