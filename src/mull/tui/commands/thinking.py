"""`/thinking`: whether and how much the model thinks, and what happens to its thinking.

`effort` and `clear` mean what document 003 says; `on`, `off` and `budget` are the settings of these
names. Each change is answered with what the next request will actually ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mull.neutral.errors import LocalError, SettingError
from mull.policy.thinking.levels import next_level
from mull.policy.thinking.plan import wish_of
from mull.settings.environment import read_environment
from mull.settings.layers import Snapshot
from mull.settings.registry import CLEARING_WORDS, format_value
from mull.settings.words import quote
from mull.tui.commands.change import change_setting, plan_now, show_plan, unset_setting
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.words import choice, spaced, split_words
from mull.tui.conversation.thought import SHOWN
from mull.tui.screen.front import Item

__all__ = ["FORMS", "cycle_level", "set_thinking", "thinking_offers"]

EFFORT, BUDGET, ENABLED = "reasoning.effort", "reasoning.maxTokens", "reasoning.enabled"
INCLUDE, STRIP = "reasoning.includeInContext", "reasoning.stripFromContext"

FORMS = (
    ("/thinking", "show what the next request asks for, and why"),
    ("/thinking effort [LEVEL|unset]", "how much to think"),
    ("/thinking budget [N|unset]", "thinking budget in tokens, where the model accepts one"),
    ("/thinking on, /thinking off", "turn thinking on or off"),
    ("/thinking clear [true|false]", "leave earlier thinking out of requests, or send it back"),
)
_WORDS = ("effort", "budget", "on", "off", "clear")


async def set_thinking(host: Host, text: str) -> None:
    """Show or change how the model thinks.

    Raises:
        LocalError: an argument is unknown, or the model does not support it; nothing has changed.
    """
    words = split_words(text)
    if not words:
        return _show_status(host)
    what = choice(words[0], _WORDS, "subcommand of /thinking")
    if len(words) > 2 or (what in ("on", "off") and len(words) > 1):
        raise LocalError(f"too many arguments for /thinking {what}: see /help thinking")
    value = words[1] if len(words) > 1 else None
    if what == "clear":
        _clear(host, value)
    elif what in ("on", "off"):
        change_setting(host, ENABLED, what == "on")
        _show_plan(host)
    else:
        _level(host, EFFORT if what == "effort" else BUDGET, value)


def cycle_level(host: Host) -> None:
    """Switch to the next level of the model; bound to a key."""
    session = host.session
    level = next_level(session.engine.learnt(session.target), session.snapshot())
    if level is None:
        host.tell(f"{session.target.name} has no levels to choose from")
        return
    change_setting(host, EFFORT, level)
    host.tell(f"Thinking: {plan_now(session).summary}")


def _level(host: Host, key: str, value: str | None) -> None:
    if value is None:
        return _show_value(host, key)
    if value.lower() in CLEARING_WORDS:
        unset_setting(host, key)
    else:
        change_setting(host, key, value)
    _show_plan(host)


def _clear(host: Host, value: str | None) -> None:
    """The same two settings that the variable CLEAR_THINKING sets."""
    if value is not None:
        said = read_environment({"CLEAR_THINKING": value})
        if said.warnings:
            raise SettingError(
                f"/thinking clear cannot be {quote(value)}: true leaves earlier "
                "thinking out of requests, false sends it back"
            )
        for key, setting in said.values.items():
            change_setting(host, key, setting)
    shown = page(host)
    shown.text(_kept(host))
    host.show(shown.lines)


def _show_value(host: Host, key: str) -> None:
    snapshot, shown = host.session.snapshot(), page(host)
    value = format_value(snapshot[key])
    shown.text(f"{key}: {value} ({snapshot.origin(key)})")
    if wish_of(snapshot).about != key and snapshot[key] is not None:
        shown.note(f"{wish_of(snapshot).about} overrides it")
    show_plan(shown, plan_now(host.session))
    host.show(shown.lines)


def _show_plan(host: Host) -> None:
    session, shown = host.session, page(host)
    snapshot = session.snapshot()
    wish, planned = wish_of(snapshot), plan_now(session)
    show_plan(shown, planned)
    if planned.plan.budget is not None and wish.budget is not None and wish.level is not None:
        shown.note("The budget overrides the effort: /thinking budget unset removes it")
    if wish.is_off and wish.about == ENABLED and (snapshot[EFFORT] or snapshot[BUDGET]):
        shown.note(
            f"{ENABLED} is false and overrides effort and budget: turn it on with /thinking on"
        )
    host.show(shown.lines)


def _show_status(host: Host) -> None:
    session, shown = host.session, page(host)
    snapshot, planned = session.snapshot(), plan_now(session)
    theme, wish = shown.theme, wish_of(snapshot)
    shown.title(f"Thinking: {planned.summary}")
    outcome = planned.notes[-1]
    levels = ", ".join(item.name for item in Known(host).levels()) or "none to choose from"
    rows = [
        ("asked for", f"{wish.words} ({wish.about}, {snapshot.origin(wish.about)})"),
        ("sent as", spaced(outcome.sent_as)),
        ("levels", levels),
        ("shown", _shown(snapshot)),
        ("kept", _kept(host)),
    ]
    shown.table(rows, (theme.note, theme.text))
    for note in planned.notes:
        if note.warning:
            shown.note(note.text, warning=True)
    host.show(shown.lines)


def _shown(snapshot: Snapshot) -> str:
    """Whether thinking is shown here, and which layer decides."""
    word, layer = "yes" if snapshot[SHOWN] else "no", snapshot.origin(SHOWN)
    return word if layer == "default" else f"{word} ({SHOWN}, {layer})"


def _kept(host: Host) -> str:
    """What happens to earlier thinking, in a sentence."""
    snapshot = host.session.snapshot()
    strip, include = snapshot[STRIP], snapshot[INCLUDE]
    if strip == "all" or not include:
        key = STRIP if strip == "all" else INCLUDE
        by = f"{key} is {format_value(snapshot[key])}, {snapshot.origin(key)}"
        return f"Thinking is stored in full; earlier thinking is not sent back ({by})."
    which = "the thinking of the last turn is" if strip == "allButLast" else "earlier thinking is"
    return f"Thinking is stored in full; {which} sent back ({INCLUDE}, {snapshot.origin(INCLUDE)})."


def thinking_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """The subcommands, then the levels of the current model, then true or false."""
    if len(words) == 1:
        return [Item(word) for word in _WORDS]
    match words[0].lower():
        case "effort":
            return [*known.levels(), Item("unset", "no effort")]
        case "budget":
            return [Item("unset", "no budget")]
        case "clear":
            return [Item("true", "leave it out"), Item("false", "send it back")]
    return []
