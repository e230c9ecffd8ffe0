"""Which model stands behind a name that a client asks for, and how it is reached."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mull.neutral.errors import CatalogError, ConfigError, UnknownModel
from mull.settings.words import join_or, quote
from mull.store.serve import ServeConfig, ServedModel

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.client.access import Access
    from mull.neutral.target import Target
    from mull.settings.layers import Snapshot

__all__ = ["Route", "Routes"]

_INCLUDE = "reasoning.includeInContext"


class Route(NamedTuple):
    """A target, the way there, and the settings that hold for requests to it."""

    target: Target
    way: Access
    snapshot: Snapshot


class Routes:
    """Finds routes by name. What was found is kept until the configuration is read anew."""

    def __init__(self, engine: Engine, config: ServeConfig, only: str | None = None) -> None:
        self._engine = engine
        self._config = config
        self._only = ServedModel(only) if only is not None else None
        self._known: dict[str, Route] = {}

    def names(self) -> Sequence[str]:
        """The names that a client may ask for: those configured, else every model that can be
        used here and now."""
        if self._config.models:
            return [*self._config.models]
        if self._only is not None:
            return [self._only.model]
        return self._usable()

    def _usable(self) -> list[str]:
        from mull.agent.usable import usable_models

        return usable_models(self._engine)

    def find(self, name: str | None) -> Route:
        """The route of a name.

        Raises:
            UnknownModel: nothing is served under this name.
            ConfigError: it cannot be reached: a key or an address is missing.
        """
        wanted = name or ""
        route = self._known.get(wanted)
        if route is None:
            route = self._known[wanted] = self._find(wanted)
            return route
        target = self._engine.learnt(route.target)
        return route if target == route.target else route._replace(target=target)

    def served_as(self, name: str | None) -> str:
        """The configured name that answers for this one; where none is configured, the name."""
        if name in self._config.models:
            return name or ""
        if self._only is not None:
            return self._only.model
        return self._config.default or name or ""

    def _find(self, name: str) -> Route:
        served = self._served(name)
        engine = self._engine
        target = engine.target(served.model, base_url=served.base_url)
        key = None
        if served.key_env is not None:
            key = os.environ.get(served.key_env)
            if not key:
                raise ConfigError(f"the variable {served.key_env} is not set: it holds the key")
        way = engine.way_to(target, key=key, base_url=served.base_url)
        settings = dict(served.settings)
        if not engine.setup.settings.snapshot().explicit(_INCLUDE):
            settings.setdefault(_INCLUDE, True)  # what is sent is the client's to say
        snapshot = engine.setup.snapshot_for(target, settings, model=served.model)
        return Route(target, way, snapshot)

    def _served(self, name: str) -> ServedModel:
        models, default = self._config.models, self._config.default
        found = models.get(name) or self._only or models.get(default or "")
        if found is not None:
            return found
        if models:
            raise UnknownModel(
                f"no model {quote(name)} is served here: use {join_or(models)}", tuple(models)
            )
        if not name:
            raise UnknownModel("the request names no model")
        try:
            self._engine.target(name)
        except CatalogError as error:
            raise UnknownModel(str(error), getattr(error, "candidates", ())) from None
        return ServedModel(name)
