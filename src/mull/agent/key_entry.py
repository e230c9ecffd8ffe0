"""Entering keys and logins: whose key it is, where it is stored, whether it is used.

Shared by `mull keys` and the terminal's `/keys` and `/login`.
"""

from __future__ import annotations

from mull.agent.setup import Setup
from mull.auth.secret import parse_secret
from mull.auth.variables import KeyPlace
from mull.catalog.resolve import GENERIC
from mull.neutral.errors import ConfigError
from mull.settings.words import closest, quote
from mull.store.config import ProviderConfig
from mull.store.keys import Keys

__all__ = ["KeyRow", "delete_key", "keep_key", "key_rows", "places", "provider_named", "stored_in"]

KeyRow = tuple[str, KeyPlace, bool]
"""A provider, a place where it has a key, and whether that one is used."""


def provider_named(setup: Setup, typed: str) -> str:
    """The id of a provider in the catalog or the config file.

    Raises:
        ConfigError: the provider is unknown; suggests a similar one.
    """
    known = [*setup.catalog().providers, GENERIC]
    name = next((name for name in known if name.lower() == typed.lower()), None)
    if name is not None:
        return name
    near = closest(typed, known)
    hint = f"did you mean {near}?" if near else "`mull models` lists providers and models"
    raise ConfigError(f"unknown provider {quote(typed)}: {hint}")


def places(setup: Setup, keys: Keys, provider: str) -> list[KeyPlace]:
    """Every place with a key for the provider, the one in use first."""
    entry = setup.catalog().provider(provider)
    own = setup.config.providers.get(provider.lower(), ProviderConfig())
    return keys.places(provider, entry.env if entry else (), own=own.key_env)


def key_rows(setup: Setup, keys: Keys) -> list[KeyRow]:
    """Every key found, by provider.

    Raises:
        ConfigError: the list of stored keys cannot be read.
    """
    return [
        (provider, place, place is found[0])
        for provider in sorted({*setup.catalog().providers, *keys.stored(), GENERIC})
        for found in [places(setup, keys, provider)]
        for place in found
    ]


def keep_key(
    setup: Setup, keys: Keys, provider: str, text: str, *, in_file: bool = False
) -> list[str]:
    """Store a key; returns messages for the user.

    Raises:
        ConfigError: it is not a key, or cannot be stored.
    """
    where = keys.keep(provider, parse_secret(text, "the input"), in_file=in_file)
    told = [f"Stored the key for {provider} in {stored_in(keys, where)}."]
    first = places(setup, keys, provider)[0]
    if first.variable is not None:
        told.append(f"It is not used while {first.variable} is set.")
    return told


def delete_key(setup: Setup, keys: Keys, typed: str) -> list[str]:
    """Delete a stored key; returns messages for the user.

    Raises:
        ConfigError: there is none, or it cannot be deleted.
    """
    name = typed.lower()
    provider = name if name in keys.stored() else provider_named(setup, typed)
    where = keys.delete(provider)
    told = [f"Deleted the key for {provider} from {stored_in(keys, where)}."]
    for place in places(setup, keys, provider)[:1]:
        if place.variable is not None:
            told.append(f"{place.variable} is still set and will be used.")
        elif place.login is not None:
            told.append(f"A login still exists and will be used: {place.login}.")
    return told


def stored_in(keys: Keys, where: str) -> str:
    """The place of a stored key, in words."""
    return "the system's keyring" if where == "keyring" else str(keys.path)
