"""Builds the upstream request from a client's conversation and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.dialects.extras import is_verbatim
from mull.history.log import Log
from mull.neutral.errors import BudgetError, LocalError, TooLongError
from mull.neutral.messages import Message
from mull.neutral.request import Note
from mull.policy.lengths import Overflow
from mull.policy.prepare import Prepared, prepare
from mull.policy.thinking.budget import ANY_BUDGET, least_answer, level_for_budget
from mull.policy.tokens import CHARACTERS, Counter
from mull.policy.view.media import check_question, without_untaken
from mull.tokenizers import counter_for

if TYPE_CHECKING:
    from mull.gateway.routes import Route
    from mull.gateway.upstream_options import UpstreamOptions
    from mull.neutral.target import Target

__all__ = ["prepare_for"]

_BAD_REQUEST = 400
_BUDGET = "reasoning.maxTokens"
_MARGINS = {True: 0.02, False: 0.1}
"""The part of a count that may be missing in it, by whether it is by the model's own vocabulary:
chat templates add to it, and a substitute vocabulary may count less."""


def prepare_for(
    route: Route, messages: Sequence[Message], wanted: UpstreamOptions
) -> tuple[Prepared, Sequence[Note]]:
    """The prepared request, and notes about what had to be left out of it.

    Raises:
        LocalError: the request cannot be sent as it is.
    """
    messages, left_out = _readable(_reminders_first(messages, route.target), route.target)
    log = Log(messages)
    prepared, lowered = _fitted(route, log, wanted, _prepared(route, log, wanted))
    return prepared, (*left_out, *lowered)


def _fitted(
    route: Route, log: Log, wanted: UpstreamOptions, prepared: Prepared
) -> tuple[Prepared, Sequence[Note]]:
    """The request with an answer limit that fits the context window beside what it holds, and a
    note if that had to be lowered.

    Clients choose the limit for another model, and endpoints reject a request whose limit does not
    fit. The count by characters is on the high side: the tokenizer counts only where that matters.
    What leaves no room for an answer is sent as it is: the endpoint counts exactly, and the client
    has to shorten it.

    Raises:
        TooLongError: the request alone exceeds the window that its server has reported. Not every
            server says so: some drop the beginning of the conversation.
    """
    window, asked = route.window, prepared.request.max_tokens
    if window is None or prepared.tokens + (asked or 0) <= window:
        return prepared, ()
    counter = counter_for(route.target)
    counted = _prepared(route, log, wanted, counter)
    if route.own and counted.too_long:
        text = f"prompt is too long: {counted.tokens} tokens > {window} maximum"
        overflow = Overflow(window, held=counted.tokens)
        raise TooLongError(text, status=_BAD_REQUEST, text=text, overflow=overflow)
    left = window - counted.tokens
    room = left - min(round(counted.tokens * _MARGINS[counter.exact]), left // 2)
    if asked is None or asked <= room or room < least_answer(window):
        return counted, ()
    settings, budget = dict(wanted.settings), wanted.settings.get(_BUDGET)
    if budget is not None and budget >= room:  # it was chosen for the limit that does not fit
        settings[_BUDGET] = max(room - least_answer(window), 1)
    wanted = wanted._replace(settings=settings, options=replace(wanted.options, max_tokens=room))
    text = f"lowered from {asked:,} to {room:,}, to fit the context window of {window:,} tokens"
    note = Note("max_tokens", text, True, str(asked), str(room))
    return _prepared(route, log, wanted, counter), (note,)


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
        is_reminder = is_reminder and bool(message.text)
        if is_verbatim(message, target.dialect, target.compat):
            is_reminder = False
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


def _prepared(
    route: Route, log: Log, wanted: UpstreamOptions, counter: Counter = CHARACTERS
) -> Prepared:
    """The request; a thinking budget that the target cannot accept becomes a level."""
    target, options = route.target, wanted.options
    try:
        return prepare(
            log, route.snapshot.having(wanted.settings), target, options, counter=counter
        )
    except BudgetError:
        settings = dict(wanted.settings)
        budget = settings.pop(_BUDGET, None)
        if budget is not None:
            level = level_for_budget(target.facts.budget or ANY_BUDGET, budget)
            settings.setdefault("reasoning.effort", level)
        return prepare(log, route.snapshot.having(settings), target, options, counter=counter)
