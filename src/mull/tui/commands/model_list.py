"""The models to choose from, in order of usefulness.

Favourites, the model in use and recently used models come first, then models that can be used now
(a server on this machine, a key, a login), then models that need a key; within each part, a maker's
own models come before those of resellers, and newer models first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from mull.agent.usable import keyed_providers
from mull.catalog.order import ranked
from mull.store.favourites import Favourites
from mull.store.paths import data_dir
from mull.transcripts.words import short_count
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.discover import Found
    from mull.agent.engine import Engine
    from mull.catalog.load import Catalog
    from mull.store.sessions.values import SessionStore

__all__ = ["SMALL", "all_models", "usable_models", "with_chosen"]

SMALL = "local/smollm2"
_RECENT = 5
_SESSIONS_SEEN = 50


async def all_models(engine: Engine, store: SessionStore, current: str) -> list[Item]:
    """All models, with the one in use marked."""
    catalog = engine.setup.catalog()
    usable = await usable_models(engine)
    there = {item.name for item in usable}
    providers = {name.partition("/")[0] for name in there} | keyed_providers(engine)
    rest = ranked(catalog, [name for name in catalog.providers if name not in providers])
    others = [Item(one.name, _joined("no key", _window(catalog, one.name))) for one in rest]
    items = with_chosen(list(_once([*usable, *others, Item(current)])), store, current)
    return [replace(item, current=item.name == current) for item in items]


async def usable_models(engine: Engine) -> list[Item]:
    """The models that can be used now; the embedded model comes last, as a fallback."""
    from mull.agent.discover import discover

    catalog, keyed = engine.setup.catalog(), keyed_providers(engine)
    local = [item for found in await discover(engine) for item in _served(found)]
    found = [
        Item(
            one.name,
            _joined(
                f"{catalog.providers[one.provider].name}, key found", _window(catalog, one.name)
            ),
        )
        for one in ranked(catalog, sorted(keyed))
    ]
    return list(_once([*local, *found, *_embedded()]))


def _served(found: Found) -> list[Item]:
    return [Item(name, f"on this machine, {found.base_url}") for name in found.names]


def _embedded() -> list[Item]:
    from mull.local.weights import is_installed

    return [Item(SMALL, "the small model embedded in mull")] if is_installed() else []


def with_chosen(items: list[Item], store: SessionStore, current: str = "") -> list[Item]:
    """The items with favourites, the model in use and recent models on top."""
    by_name = {item.name: item for item in items}
    marked = [name for name in Favourites(data_dir()).names() if name in by_name]
    recent = [name for name in _recent(store) if name in by_name and name not in marked]
    top = [
        *(Item(name, by_name[name].about, marked=True) for name in marked),
        *(by_name[name] for name in (current,) if name in by_name),
        *(Item(name, _joined("recently used", by_name[name].about)) for name in recent[:_RECENT]),
    ]
    return list(_once([*top, *items]))


def _recent(store: SessionStore) -> Iterator[str]:
    """The models of the latest sessions, without their levels."""
    from mull.neutral.target import split_level

    seen: set[str] = set()
    for info in store.list(limit=_SESSIONS_SEEN):
        name = split_level(info.model)[0] if info.model else ""
        if name and name not in seen:
            seen.add(name)
            yield name


def _once(items: Iterable[Item]) -> Iterator[Item]:
    seen: set[str] = set()
    for item in items:
        if item.name not in seen:
            seen.add(item.name)
            yield item


def _window(catalog: Catalog, name: str) -> str:
    provider, _, model = name.partition("/")
    limit = catalog.entry(provider, model).get("limit")
    window = limit.get("context") if isinstance(limit, dict) else None
    return f"{short_count(window)} tokens" if window else ""


def _joined(*words: str) -> str:
    return " · ".join(filter(None, words))
