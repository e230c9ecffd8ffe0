"""Session changes that affect the next request: checked first, and reported with their cost.

A value that the model does not support is rejected before anything changes. When a change makes the
endpoint process everything again, mull reports it once per session for each kind of change (E14).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mull.history.log import Log
from mull.neutral.errors import BudgetError
from mull.neutral.usage import Usage
from mull.policy.prepare import Prepared
from mull.policy.thinking.plan import Planned, plan_thinking
from mull.policy.view.binding import BindingChange, binding_warning
from mull.settings.registry import SettingValue, find, parse
from mull.tui.commands.page import Page
from mull.tui.conversation.spend import Change, cache_loss, change_of

if TYPE_CHECKING:
    from mull.agent.session import Session
    from mull.settings.layers import Snapshot
    from mull.tui.commands.host import Host

__all__ = ["change_setting", "last_usage", "plan_now", "show_plan", "telling_cost", "unset_setting"]

_told: WeakKeyDictionary[Session, set[Change]] = WeakKeyDictionary()
_warned: WeakKeyDictionary[Session, set[BindingChange]] = WeakKeyDictionary()


def change_setting(host: Host, key: str, value: object) -> SettingValue:
    """Set a key for the session.

    Raises:
        SettingError: the key or value is not allowed; nothing has changed.
        BudgetError: the current model does not support it; nothing has changed.
    """
    session, name = host.session, find(key).key
    parsed = parse(name, value)
    if _plan_holds(session, session.snapshot()):
        _plan(session, session.snapshot().having({name: parsed}))
    with telling_cost(host, change_of(name)):
        return session.set(name, parsed)


def unset_setting(host: Host, key: str) -> None:
    """Remove a key from the session, so that the layers below decide.

    Raises:
        SettingError: there is no such setting.
    """
    name = find(key).key
    with telling_cost(host, change_of(name)):
        host.session.unset(name)


@contextmanager
def telling_cost(host: Host, kind: Change | None) -> Iterator[None]:
    """Report what a change costs: before it, thinking that the model may not get back; after it,
    the tokens that are processed again if the request differs. Both are reported once per session
    for each kind.
    """
    session = host.session
    told = _told.setdefault(session, set())
    before = None if kind is None or kind in told else _prepared(session)
    match kind:
        case "strip" | "tools" if before is not None:
            _warn_of_binding(host, before, kind)
    yield
    after = _prepared(session) if before is not None else None
    if kind is None or before is None or after is None:
        return
    if (before.request, before.target.origin) == (after.request, after.target.origin):
        return
    text = cache_loss(after, last_usage(session.log), after.target.facts.cost)
    if text is not None:
        told.add(kind)
        host.tell(text, warning=True)


def _warn_of_binding(host: Host, before: Prepared, change: BindingChange) -> None:
    warned = _warned.setdefault(host.session, set())
    text = None if change in warned else binding_warning(before, change)
    if text is not None:
        warned.add(change)
        host.tell(text, warning=True)


def last_usage(log: Log) -> Usage | None:
    """What the provider reported for the last answer."""
    answers = (entry.message for _, entry in reversed(list(log.entries())))
    last = next((message for message in answers if message.role == "assistant"), None)
    return last.usage if last else None


def plan_now(session: Session) -> Planned:
    """What the next request asks of the model's thinking.

    Raises:
        BudgetError: the user's numbers cannot be combined.
    """
    return _plan(session, session.snapshot())


def show_plan(page: Page, planned: Planned) -> None:
    """Show warnings, then `Thinking: medium (43,008 tokens)`."""
    for note in planned.notes:
        if note.warning:
            page.note(note.text, warning=True)
    page.text(f"Thinking: {planned.summary}", indent=2)


def _plan(session: Session, snapshot: Snapshot) -> Planned:
    prepared = _prepared(session)
    return plan_thinking(
        session.engine.learnt(session.target),
        snapshot,
        max_tokens=session.options.max_tokens,
        used=prepared.tokens if prepared else 0,
    )


def _plan_holds(session: Session, snapshot: Snapshot) -> bool:
    try:
        _plan(session, snapshot)
    except BudgetError:
        return False
    return True


def _prepared(session: Session) -> Prepared | None:
    """The next request; None if the user's numbers do not allow one."""
    try:
        return session.estimated()
    except BudgetError:
        return None
