"""Which models stand behind a name that a client asks for, and how they are reached."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from mull.gateway.names import Meant, Names, level_of, without_colon
from mull.neutral.errors import CatalogError, ConfigError, MullError, UnknownModel
from mull.settings.words import join_or, quote
from mull.store.serve import ServeConfig, ServedModel, ServedTarget

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.client.access import Access
    from mull.neutral.messages import Origin
    from mull.neutral.target import Target
    from mull.settings.layers import Snapshot
    from mull.settings.registry import SettingValue

__all__ = ["Offer", "Route", "Routes"]

_INCLUDE = "reasoning.includeInContext"
_MOST_KNOWN = 500
"""Names that nobody configured: clients choose them, so they are not kept without end."""


class Route(NamedTuple):
    """A target, the way there, and what holds for requests to it: settings, what goes before the
    system prompt, and the length of answers where the client says none."""

    target: Target
    way: Access
    snapshot: Snapshot
    place: str = ""
    weight: float = 1
    system: str = ""
    max_tokens: int | None = None

    @property
    def origin(self) -> Origin:
        """The stamp of its answers."""
        return self.target.origin


class Offer(NamedTuple):
    """What stands behind one name: targets that share its requests, and groups of further ones
    that are tried after them. `asked` is what the name itself asks for; it goes before what the
    client's program says by itself."""

    targets: tuple[Route, ...]
    fallbacks: tuple[tuple[Route, ...], ...] = ()
    asked: Mapping[str, SettingValue] = {}

    @property
    def routes(self) -> Iterator[Route]:
        """All of them."""
        yield from self.targets
        for group in self.fallbacks:
            yield from group


class _Problem(NamedTuple):
    """Why a target cannot be used."""

    model: str
    error: MullError

    def __str__(self) -> str:
        return f"{self.model}: {self.error}"


class Routes:
    """Finds routes by name. What was found is kept until the configuration is read anew."""

    def __init__(self, engine: Engine, config: ServeConfig, only: str | None = None) -> None:
        self._engine = engine
        self._config = config
        self._only = ServedModel(only) if only is not None else None
        self._names = Names(config.models)
        self._known: OrderedDict[str, Offer] = OrderedDict()

    def names(self) -> Sequence[str]:
        """The names that a client may ask for: those configured, else every model that can be
        used here and now."""
        if self._config.models:
            return self._names.listed()
        if self._only is not None:
            return [self._only.model]
        return self._usable()

    def _usable(self) -> list[str]:
        from mull.agent.usable import usable_models

        return usable_models(self._engine)

    def find(self, name: str | None) -> Route:
        """The first route of a name.

        Raises:
            UnknownModel: nothing is served under this name.
            ConfigError: it cannot be reached: a key or an address is missing.
        """
        return next(self.offer(name).routes)

    def offer(self, name: str | None) -> Offer:
        """All routes of a name that can be used as they are configured, at least one.

        Raises:
            UnknownModel: nothing is served under this name.
            ConfigError: none can be used: a key or an address is missing.
        """
        meant = self._meant(name or "")
        offer = self._known.get(meant.name)
        if offer is None:
            offer = self._known[meant.name] = self._find(meant.name)
            while len(self._known) > _MOST_KNOWN + len(self._config.models):
                self._known.popitem(last=False)
        return Offer(
            tuple(map(self._learnt, offer.targets)),
            tuple(tuple(map(self._learnt, group)) for group in offer.fallbacks),
            meant.asked,
        )

    def served_as(self, name: str | None) -> str:
        """The configured name that answers for this one; where none is configured, the model."""
        meant = self._meant(name or "").name
        return self._only.model if not meant and self._only is not None else meant

    def problems(self, name: str) -> list[str]:
        """What is wrong with the targets of a configured name, a line for each."""
        found: list[_Problem] = []
        served = self._served(name)
        self._group(served, found)
        for _ in self._fallbacks(served, found):
            pass
        return list(dict.fromkeys(map(str, found)))

    def _learnt(self, route: Route) -> Route:
        target = self._engine.learnt(route.target)
        return route if target == route.target else route._replace(target=target)

    def _meant(self, wanted: str) -> Meant:
        """The configured name that is meant; in the place of none, the model itself."""
        found = self._names.find(wanted)
        if found is not None:
            return found
        asked = level_of(wanted)[1]
        if self._only is not None:
            return Meant("", asked)
        if self._config.default is not None:
            return Meant(self._config.default, asked)
        if self._config.models:
            names = tuple(self._config.models)
            text = f"no model {quote(wanted[:200])} is served here: use {join_or(names)}"
            raise UnknownModel(text, names)
        if not wanted:
            raise UnknownModel("the request names no model")
        return Meant(without_colon(wanted))

    def _served(self, name: str) -> ServedModel:
        if name in self._config.models:
            return self._config.models[name]
        if self._only is not None:
            return self._only
        try:
            self._engine.target(name)
        except CatalogError as error:
            raise UnknownModel(str(error), getattr(error, "candidates", ())) from None
        return ServedModel(name)

    def _find(self, name: str) -> Offer:
        problems: list[_Problem] = []
        served = self._served(name)
        targets = self._group(served, problems)
        fallbacks = [group for group in self._fallbacks(served, problems) if group]
        if len(problems) == 1 and not targets and not fallbacks:
            raise problems[0].error
        if not targets and not fallbacks:
            raise ConfigError("\n".join(map(str, problems)))
        return Offer(targets, tuple(fallbacks))

    def _fallbacks(
        self, served: ServedModel, problems: list[_Problem]
    ) -> Iterator[tuple[Route, ...]]:
        """A group for each fallback; a plain model has all but the targets of what it stands in
        for."""
        for name in served.fallback:
            other = self._config.models.get(name)
            if other is None:
                plain = ServedTarget(name)
                other = replace(served, model=name, base_url=None, key_env=None, targets=(plain,))
            yield self._group(other, problems)

    def _group(self, served: ServedModel, problems: list[_Problem]) -> tuple[Route, ...]:
        routes = []
        for upstream in served.upstreams:
            try:
                routes.append(self._route(upstream, served))
            except MullError as error:
                problems.append(_Problem(upstream.model, error))
        return tuple(routes)

    def _route(self, upstream: ServedTarget, served: ServedModel) -> Route:
        engine = self._engine
        target = engine.target(upstream.model, base_url=upstream.base_url)
        key = None
        if upstream.key_env is not None:
            key = os.environ.get(upstream.key_env)
            if not key:
                raise ConfigError(f"the variable {upstream.key_env} is not set: it holds the key")
            target = replace(target, account=_short(upstream.key_env))
        way = engine.way_to(target, key=key, base_url=upstream.base_url)
        settings = dict(served.settings)
        if not engine.setup.settings.snapshot().explicit(_INCLUDE):
            settings.setdefault(_INCLUDE, True)  # what is sent is the client's to say
        snapshot = engine.setup.snapshot_for(target, settings, model=upstream.model)
        place = f"{target.name} {way.base_url} {target.account or ''}"
        return Route(
            target, way, snapshot, place, upstream.weight, served.system, served.max_tokens
        )


def _short(name: str) -> str:
    """A stamp that says nothing of the variable: answers carry it to clients."""
    return blake2b(name.encode(), digest_size=4).hexdigest()
