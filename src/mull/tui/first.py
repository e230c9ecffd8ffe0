"""The first start: what there is to talk to, what is used, and how to have more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.neutral.errors import ConfigError
from mull.tui.commands.known import keyed_providers
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.discover import Found
    from mull.agent.engine import Engine
    from mull.catalog.entry import Entry
    from mull.store.sessions.values import SessionStore
    from mull.tui.desk import SessionDesk
    from mull.tui.talk import Talk

__all__ = ["NO_MODEL", "best_offer", "choose_model", "last_model", "offers"]

SMALL = "local/smollm2"
_MOST_PER_PROVIDER = 40
NO_MODEL = """\
There is no model to talk to yet. Any of these will do:
  a key: `mull keys set PROVIDER`, or its variable (ANTHROPIC_API_KEY, OPENAI_API_KEY, …)
  a server on this machine: start Ollama, llama.cpp, LM Studio or vLLM, and come back
  the small model that needs neither: `mull local install`, then `mull -m local/smollm2`"""


async def choose_model(desk: SessionDesk, talk: Talk) -> None:
    """See to it that there is a model: the one that is named, the last one used, or a choice.

    Raises:
        ConfigError: there is nothing to choose from; says what could be done.
    """
    if desk.model is not None:
        return
    last = last_model(desk.store)
    if last is not None and not last.startswith(SMALL):
        desk.use(last)
        return
    if last is None:
        talk.tell("Welcome to mull. No model is named yet; looking for what there is …")
    items = await offers(desk.engine)
    if not items:
        raise ConfigError(NO_MODEL)
    if last is not None and [item.name for item in items] == [SMALL]:
        desk.use(last)
        return
    found: str | None = items[0].name
    if len(items) > 1:
        found = await talk.front.pick("Which model do you want to talk to?", items)
    if found is None:
        raise ConfigError("no model was chosen: start mull again, or name one with -m")
    desk.use(found)
    about = next(item.about for item in items if item.name == found)
    talk.tell(
        f'Using {found} ({about}). /model changes it; `model = "{found}"` in config.toml keeps it.'
        " `mull keys set PROVIDER` adds a key."
    )


async def offers(engine: Engine) -> list[Item]:
    """What could be talked to here and now, the small model last: it is for want of another."""
    from mull.agent.discover import discover

    local = [item for found in await discover(engine) for item in _served(found)]
    return [*local, *_with_key(engine), *_embedded()]


async def best_offer(engine: Engine, store: SessionStore) -> Item | None:
    """What is used where nobody is asked: the last one, or the first that there is."""
    last = last_model(store)
    if last is not None and not last.startswith(SMALL):
        return Item(last, "the last one used")
    return next(iter(await offers(engine)), None)


def last_model(store: SessionStore) -> str | None:
    """The model of the newest session anywhere."""
    newest = store.list(limit=1)
    return newest[0].model if newest else None


def _served(found: Found) -> list[Item]:
    return [Item(name, f"on this machine, {found.base_url}") for name in found.names]


def _with_key(engine: Engine) -> list[Item]:
    """Models of providers whose key is there: those that call tools, the newest first, then those
    that do not, which mostly draw or judge."""
    catalog, keyed = engine.setup.catalog(), keyed_providers(engine)
    items: list[Item] = []
    for provider in catalog.providers.values():
        if provider.id not in keyed:
            continue
        models = [model for _, model in catalog.search(provider=provider.id, reasoning=True)]
        models.sort(key=lambda model: _rank(catalog.entry(provider.id, model)))
        about = f"{provider.name}, key found"
        newest = reversed(models[-_MOST_PER_PROVIDER:])
        items += [Item(f"{provider.id}/{model}", about) for model in newest]
    return items


def _rank(entry: Entry) -> tuple[bool, str]:
    return entry.get("tool_call") is not False, str(entry.get("release_date") or "")


def _embedded() -> list[Item]:
    from mull.local.weights import is_installed

    return [Item(SMALL, "the small model that comes with mull")] if is_installed() else []
