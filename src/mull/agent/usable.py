"""The models that can be used now: with a key, on a local server, or embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mull.agent.engine import Engine

__all__ = ["keyed_providers", "usable_models"]

EMBEDDED_MODEL = "local/smollm2"


def keyed_providers(engine: Engine) -> set[str]:
    """The providers with a known key."""
    config = engine.setup.config.providers
    found = set()
    for provider in engine.setup.catalog().providers.values():
        own = config[provider.id].key_env if provider.id in config else ()
        if engine.keys.places(provider.id, provider.env, own=own):
            found.add(provider.id)
    return found


def usable_models(engine: Engine) -> list[str]:
    """Their names, by provider; the embedded model is the last."""
    from mull.local.weights import is_installed

    catalog, keyed = engine.setup.catalog(), keyed_providers(engine)
    names = [
        f"{provider}/{model}"
        for provider in catalog.providers
        if provider in keyed
        for _, model in catalog.search(provider=provider, reasoning=None)
    ]
    return [*names, EMBEDDED_MODEL] if is_installed() else names
