"""`/model`: switches to another model, between turns or during one.

The output follows document 004: the model, how the requested level was applied, how it thinks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mull.auth.logins import LOGINS
from mull.neutral.errors import AmbiguousModel, ConfigError, LocalError
from mull.neutral.target import split_level
from mull.policy.thinking.plan import feedback, plan_thinking
from mull.settings.layers import check_agreement, said_by_name, said_words
from mull.settings.presets import preset_told
from mull.settings.registry import SettingValue, parse
from mull.settings.words import quote
from mull.store.favourites import Favourites
from mull.store.paths import data_dir
from mull.tui.commands.change import plan_now, telling_cost
from mull.tui.commands.host import Host, page
from mull.tui.commands.keys import enter_key
from mull.tui.commands.known import Known
from mull.tui.commands.model_list import all_models
from mull.tui.commands.words import single, split_words, take_option
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.session import Session

__all__ = ["choose_model", "model_offers", "offer_key", "show_model"]

USAGE = "[MODEL[/LEVEL]] [--thinking-budget=N]"
_BUDGET = "thinking-budget"


async def choose_model(host: Host, text: str) -> None:
    """Switch to the given model, or to one chosen from a list.

    Raises:
        LocalError: the model is unknown, or does not support the requested thinking; nothing has
            changed.
    """
    words = split_words(text)
    budget = take_option(words, _BUDGET)
    name = single(words, f"/model {USAGE}")
    if name is None:
        session = host.session
        name = await host.front.pick(
            "Which model?",
            await all_models(session.engine, session.store, session.target.name),
            mark=Favourites(data_dir()).toggle,
        )
    elif name.startswith("-"):
        raise LocalError(f"unknown option {quote(name)} for /model: use --{_BUDGET}=N")
    if name is None:
        return
    try:
        await _switch(host, name, budget)
    except AmbiguousModel as error:
        model, level = split_level(name)
        chosen = await host.front.pick(
            f"Several providers offer {model}", [Item(one) for one in error.candidates]
        )
        if chosen is not None:
            await _switch(host, chosen if level is None else f"{chosen}/{level}", budget)


async def _switch(host: Host, name: str, budget: str | None) -> None:
    session = host.session
    tokens = None if budget is None else parse("reasoning.maxTokens", budget)
    _check(session, name, tokens)
    with telling_cost(host, "model"), session.at_once():
        session.switch(name)
        if tokens is not None:
            session.set("reasoning.maxTokens", tokens)
    await session.inspect_server()
    show_model(host)
    await offer_key(host)


def _check(session: Session, name: str, tokens: SettingValue) -> None:
    """Reject what could not be sent, before anything changes."""
    setup = session.engine.setup
    target = session.resolve(name)
    own = {} if tokens is None else {"reasoning.maxTokens": tokens}
    check_agreement(said_words(own), said_words(said_by_name(name), name))
    snapshot = setup.snapshot_for(target, own, model=name)
    plan_thinking(target, snapshot, max_tokens=session.options.max_tokens)


def show_model(host: Host) -> None:
    """Describe the current model: the lines of document 004, and anything else worth knowing."""
    session, shown = host.session, page(host)
    target = session.target
    for line in feedback(target, plan_now(session)):
        if line.startswith("✓"):
            shown.text(line.removeprefix("✓ "), shown.theme.accent, mark="✓ ")
        elif line.startswith("  ⚠ "):
            shown.note(line[4:], warning=True)
        else:
            shown.text(line.strip(), indent=2)
    for note in target.notes:
        shown.note(note)
    if told := preset_told("This model", target.facts, session.snapshot()):
        shown.note(f"{told} (see /set)")
    if problem := _missing_key(session):
        shown.note(problem, warning=True)
    host.show(shown.lines)


def _missing_key(session: Session) -> str | None:
    try:
        session.way()
    except ConfigError as error:
        return str(error)
    return None


async def offer_key(host: Host) -> bool:
    """Ask for the key that a model lacks, if there is a user to ask; True if there is one now."""
    session = host.session
    if _missing_key(session) is None or not (host.front.has_keys or host.front.echoes):
        return False
    provider = session.target.provider
    if provider in LOGINS:
        host.tell(f"Log in with /login {provider}.")
    elif not session.address:
        return await enter_key(host, provider)
    return False


def model_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Models, the levels of a model after its name, and the option."""
    typed = words[-1]
    if typed.startswith("-"):
        return [Item(f"--{_BUDGET}=", "set a thinking budget in tokens")]
    model, slash, _ = typed.rpartition("/")
    if slash and model in known.models:
        return [Item(f"{model}/{item.name}", item.about) for item in known.levels(model)]
    return [Item(name) for name in known.models.find(typed)]
