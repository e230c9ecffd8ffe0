"""What every interface of mull starts from: the layers of settings, the user's files, the catalog.

The environment is read here and nowhere below. The catalog is loaded when a model is first looked
up, so it costs nothing before.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.logs import log_warning
from mull.neutral.errors import (
    CatalogError,
    ConfigError,
    ProfileError,
    SettingError,
    UnknownLevel,
)
from mull.neutral.messages import Dialect
from mull.neutral.target import Target
from mull.settings.addresses import without_secrets
from mull.settings.environment import Environment, read_environment
from mull.settings.layers import (
    Settings,
    Snapshot,
    check_agreement,
    said_by_name,
    said_words,
)
from mull.settings.presets import preset_values
from mull.settings.profile import Parameters, Profile, check_provider
from mull.settings.registry import CLEARING_WORDS, SettingValue, find, parse
from mull.settings.words import NO_PROFILE, quote
from mull.store.config import Config, load_config
from mull.store.paths import config_dir, data_dir
from mull.store.profiles import Profiles

if TYPE_CHECKING:
    from mull.catalog.load import Catalog

__all__ = ["Setup", "isolated_setup", "load_setup", "parse_sets", "profiles"]

_MOST_RESOLVED = 256
"""Targets that are kept: the catalog and the configuration of a setup do not change."""


def profiles() -> Profiles:
    """The user's profiles."""
    return Profiles(config_dir() / "profiles")


class Setup:
    """The settings with all layers in place, and how to get from them to a target and its
    snapshot.
    """

    def __init__(
        self,
        settings: Settings,
        config: Config,
        environment: Environment,
        keys: frozenset[str],
        *,
        isolated: bool = False,
        warn: Callable[[str], None] = log_warning,
    ) -> None:
        self.isolated = isolated
        self._warn = warn
        self.settings = settings
        self.config = config
        self.environment = environment
        self.keys = keys
        self.profile: Profile | None = None
        self.profile_name: str | None = None
        self._resolved = lru_cache(_MOST_RESOLVED)(self._find)

    def catalog(self) -> Catalog:
        """The catalog with the user's additions; loaded at the first call."""
        return self._catalog

    @cached_property
    def _catalog(self) -> Catalog:
        if self.isolated:
            from mull.catalog.load import load

            return load()
        from mull.store.catalog import load_catalog

        return load_catalog(config_dir(), data_dir(), [self.config.overlay], self._warn)

    @property
    def parameters(self) -> Parameters:
        """The request parameters of the profile."""
        return self.profile.parameters if self.profile else Parameters()

    def read_profile(self, name: str) -> Profile:
        """A profile, validated for use here.

        Raises:
            ProfileError: it is missing or damaged, or names an unknown provider or setting.
        """
        profile = profiles().load(name)
        if profile.provider is not None:
            check_provider(profile, name, self._providers())
        return profile

    def use_profile(self, name: str) -> Profile:
        """Check a profile and make it the profile layer.

        Raises:
            ProfileError: it is missing or damaged, or names an unknown provider or setting.
        """
        profile = self.read_profile(name)
        self.settings.replace("profile", profile.settings, profile.model_name)
        self.profile, self.profile_name = profile, name
        return profile

    def address_of(self, provider: str) -> str | None:
        """The address that the profile has for a provider; no other provider is reached there."""
        profile = self.profile
        return profile.base_url if profile and profile.provider == provider else None

    def redirected(self, provider: str) -> str | None:
        """The address that the user has given a provider, in the profile or in config.toml."""
        own = self.config.providers.get(provider.lower())
        return self.address_of(provider) or (own.base_url if own else None)

    def address_for(self, model: str) -> str | None:
        """The same for the provider of a model.

        Raises:
            CatalogError: no model, or more than one, has this name.
        """
        if self.profile is None or self.profile.base_url is None:
            return None
        return self.address_of(self.resolve(model).provider)

    def _providers(self) -> list[str]:
        from mull.catalog.resolve import GENERIC

        return [*self.catalog().providers, GENERIC]

    def resolve(
        self,
        name: str,
        *,
        base_url: str | None = None,
        dialect: Dialect | None = None,
        compat: Mapping[str, Any] | None = None,
    ) -> Target:
        """The target of a model name, with what config.toml says about its provider.

        Raises:
            CatalogError: no model, or more than one, has this name.
        """
        try:
            if base_url is None:  # a provider that only the profile knows is found by its name
                base_url = self.address_of(name.partition("/")[0].lower())
            target = self._target(name, base_url, dialect, compat)
            address = self.address_of(target.provider) if base_url is None else None
            return target if address is None else self._target(name, address, dialect, compat)
        except UnknownLevel as error:
            try:
                model = self._find(error.model, base_url, dialect, compat)
            except CatalogError:  # several have it: what each accepts is not known yet
                raise error from None
            raise self._no_level(model, error) from None

    def _target(
        self,
        name: str,
        base_url: str | None,
        dialect: Dialect | None,
        compat: Mapping[str, Any] | None,
    ) -> Target:
        if compat is None:
            return self._resolved(name, base_url, dialect)
        return self._find(name, base_url, dialect, compat)

    def _find(
        self,
        name: str,
        base_url: str | None,
        dialect: Dialect | None,
        compat: Mapping[str, Any] | None = None,
    ) -> Target:
        from mull.catalog.resolve import resolve

        target = resolve(
            name,
            catalog=self.catalog(),
            keys=self.keys,
            base_url=base_url,
            dialect=dialect,
            compat=compat,
            compat_rows=self.config.compat_rows,
        )
        if base_url is None or target.endpoint is None:
            return target
        # the endpoint is stored with every message
        return replace(target, endpoint=without_secrets(target.endpoint))

    def _no_level(self, target: Target, error: UnknownLevel) -> UnknownLevel:
        """The same error with the levels that the model supports."""
        from mull.catalog.names import no_level
        from mull.policy.thinking.levels import level_rows

        levels = [row.level for row in level_rows(target, self.snapshot_for(target))]
        return no_level(error.model, error.word, levels, budget=target.facts.budget is not None)

    def snapshot_for(
        self,
        target: Target,
        request: Mapping[str, object] | None = None,
        model: str | None = None,
    ) -> Snapshot:
        """The settings for a request to this target, including its presets."""
        preset, thinks = preset_values(target.facts), target.wants_thinking
        return self.settings.snapshot(preset=preset, request=request, model=model, thinks=thinks)


def load_setup(
    *,
    model: str | None = None,
    sets: Sequence[str] = (),
    profile: str | None = None,
    config: Path | None = None,
    warn: Callable[[str], None] = log_warning,
) -> Setup:
    """Build the layers from config file, profile, environment and arguments, in that order.

    Raises:
        LocalError: one of them is invalid; says which and why.
    """
    environment = read_environment(os.environ)
    for warning in environment.warnings:
        warn(warning)
    said = _config(config)
    settings = Settings()
    settings.replace("config", said.settings, said.model)
    settings.replace("environment", environment.values, environment.model)
    settings.say(parse_sets(sets, model), model)
    keys = frozenset(name for name, value in os.environ.items() if value)
    setup = Setup(settings, said, environment, keys, warn=warn)
    _choose_profile(setup, profile)
    return setup


def isolated_setup() -> Setup:
    """The built-in defaults and the shipped catalog: nothing from this machine or its user."""
    return Setup(Settings(), Config(), Environment({}), frozenset(), isolated=True)


def parse_sets(sets: Sequence[str], model: str | None = None) -> dict[str, SettingValue]:
    """What `--set KEY=VALUE` options say together, with the model that is named beside them.

    Raises:
        SettingError: one of them is not allowed, or two of them contradict each other.
    """
    said: dict[str, SettingValue] = {}
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals:
            raise SettingError(f"--set {quote(text)} has no value: use --set KEY=VALUE")
        setting = find(key)
        clears = value.strip().lower() in CLEARING_WORDS
        word = {setting.key: setting.default if clears else parse(key, value)}
        check_agreement(said_words(said), said_words(word))
        said |= word
    check_agreement(said_words(said), said_words(said_by_name(model), model))
    return said


def _config(path: Path | None) -> Config:
    if path is not None and not path.exists():
        raise ConfigError(f"no such file: {quote(str(path))} (--config)")
    return load_config(path or config_dir() / "config.toml")


def _choose_profile(setup: Setup, name: str | None) -> None:
    if name is not None:
        if name.lower() != NO_PROFILE:
            setup.use_profile(name)
        return
    default = profiles().default()
    if default is None:
        return
    try:
        setup.use_profile(default)
    except ProfileError as error:
        raise ProfileError(
            f"{error}\nIt is the default profile; `mull profile set-default "
            f"{NO_PROFILE}` removes the default"
        ) from None
