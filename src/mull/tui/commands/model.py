"""`/model`: go on with another model, now or in the middle of a turn.

What it says is what document 004 shows: the model, what became of the wish, what is thought with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mull.auth.logins import LOGINS
from mull.neutral.errors import AmbiguousModel, ConfigError, LocalError
from mull.neutral.target import split_level
from mull.policy.thinking.plan import feedback, plan_thinking
from mull.settings.registry import parse
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

__all__ = ["choose_model", "model_offers", "show_model"]

USAGE = "[MODEL[/LEVEL]] [--thinking-budget=N]"
_BUDGET = "thinking-budget"


async def choose_model(host: Host, text: str) -> None:
    """Switch to the model that is named, or that is picked.

    Raises:
        LocalError: there is no such model, or it cannot think as asked; nothing has changed.
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
        raise LocalError(f"/model knows no option {quote(name)}: use --{_BUDGET}=N")
    if name is None:
        return
    try:
        await _switch(host, name, budget)
    except AmbiguousModel as error:
        model, level = split_level(name)
        chosen = await host.front.pick(
            f"Several providers have {model}", [Item(one) for one in error.candidates]
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
    await _offer_key(host)


def _check(session: Session, name: str, tokens: object) -> None:
    """Refuse what could not be sent, before anything is changed."""
    setup = session.engine.setup
    target = session.resolve(name)
    own = {} if tokens is None else {"reasoning.maxTokens": tokens}
    snapshot = setup.snapshot_for(target, model=name).having(own)
    plan_thinking(target, snapshot, max_tokens=session.options.max_tokens)


def show_model(host: Host) -> None:
    """What the session goes on with: document 004's lines, and what else there is to know."""
    session, shown = host.session, page(host)
    target = session.target
    for line in feedback(target, plan_now(session)):
        if line.startswith("✓"):
            shown.text(line, shown.theme.accent)
        elif line.startswith("  ⚠ "):
            shown.note(line[4:], warning=True)
        else:
            shown.text(line.strip(), indent=2)
    for note in target.notes:
        shown.note(note)
    if session.snapshot().origin("reasoning.includeInContext") == "preset":
        field = f", in {target.facts.returns_in}" if target.facts.returns_in else ""
        shown.note(f"It needs its thinking back{field}: a preset sends it (/set shows it)")
    if problem := _missing_key(session):
        shown.note(problem, warning=True)
    host.show(shown.lines)


def _missing_key(session: Session) -> str | None:
    try:
        session.way()
    except ConfigError as error:
        return str(error)
    return None


async def _offer_key(host: Host) -> None:
    """Let the key be typed that a model lacks, where somebody can type it."""
    session = host.session
    if _missing_key(session) is None or not (host.front.has_keys or host.front.echoes):
        return
    provider = session.target.provider
    if provider in LOGINS:
        host.tell(f"/login {provider} logs in there.")
    elif not session.address:
        await enter_key(host, provider)


def model_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Models, the levels of one behind its name, and the option."""
    typed = words[-1]
    if typed.startswith("-"):
        return [Item(f"--{_BUDGET}=", "think with this many tokens")]
    model, slash, _ = typed.rpartition("/")
    if slash and model in known.models:
        return [Item(f"{model}/{item.name}", item.about) for item in known.levels(model)]
    return [Item(name) for name in known.models.find(typed)]
