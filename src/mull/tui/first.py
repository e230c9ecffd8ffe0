"""The first start: which models are available, which one is used, and how to get more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.errors import ConfigError
from mull.store.favourites import Favourites
from mull.store.paths import data_dir
from mull.tui.commands.model_list import SMALL, usable_models, with_chosen
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.store.sessions.values import SessionStore
    from mull.tui.desk import SessionDesk
    from mull.tui.talk import Talk

__all__ = ["NO_MODEL", "best_offer", "choose_model", "last_model", "offers"]

NO_MODEL = """\
There is no model to talk to yet. Any of these will do:
  a key: `mull keys set PROVIDER`, or its variable (ANTHROPIC_API_KEY, OPENAI_API_KEY, …)
  a server on this machine: start Ollama, llama.cpp, LM Studio or vLLM, and come back
  the small model that needs neither: `mull local install`, then `mull -m local/smollm2`"""


async def choose_model(desk: SessionDesk, talk: Talk) -> None:
    """Make sure there is a model: the given one, the last one used, or one chosen from a list.

    Raises:
        ConfigError: there is none to choose from; says what to do.
    """
    if desk.model is not None:
        return
    last, address = last_model(desk.store)
    if last is not None and not last.startswith(SMALL):
        desk.use(last, address)
        return
    if last is None:
        talk.tell("Welcome to mull. No model is configured yet; looking for one …")
    items = await offers(desk.engine, desk.store)
    if not items:
        raise ConfigError(NO_MODEL)
    if last is not None and [item.name for item in items] == [SMALL]:
        desk.use(last)
        return
    found: str | None = items[0].name
    if len(items) > 1:
        found = await talk.front.pick(
            "Which model do you want to use?", items, mark=Favourites(data_dir()).toggle
        )
    if found is None:
        raise ConfigError("no model was chosen: start mull again, or give one with -m")
    desk.use(found)
    about = next(item.about for item in items if item.name == found)
    talk.tell(
        f'Using {found} ({about}). /model changes it; `model = "{found}"` in config.toml makes'
        " it permanent. `mull keys set PROVIDER` adds a key."
    )


async def offers(engine: Engine, store: SessionStore | None = None) -> list[Item]:
    """The models that can be used now, as `/model` offers them."""
    found = await usable_models(engine)
    return found if store is None else with_chosen(found, store)


async def best_offer(engine: Engine, store: SessionStore) -> tuple[Item | None, str | None]:
    """The model used when there is nobody to ask, and its address: the last one used, or the first
    available.
    """
    last, address = last_model(store)
    if last is not None and not last.startswith(SMALL):
        return Item(last, "the last model used"), address
    return next(iter(await offers(engine)), None), None


def last_model(store: SessionStore) -> tuple[str | None, str | None]:
    """The model of the newest session anywhere, and the address that was given for it."""
    newest = store.list(limit=1)
    return (newest[0].model, newest[0].base_url) if newest else (None, None)
