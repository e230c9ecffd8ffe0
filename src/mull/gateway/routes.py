"""Which targets serve the model name in a client's request, and how to reach them."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
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
"""The most cached names that are not configured: clients choose them, so the cache is bounded."""
_LONGEST_NAME = 500


class Route(NamedTuple):
    """A target, how to reach it, and what applies to requests to it."""

    target: Target
    """The model, and the endpoint it is at."""
    way: Access
    """The address, the key and the headers for it."""
    snapshot: Snapshot
    """The settings in effect for requests to it."""
    place: str = ""
    """Identifies target, address and account: routes with the same place share what is known about
    the server.
    """
    weight: float = 1
    """Its share of the requests, relative to the other targets of the same name."""
    system: str = ""
    """A text to put before the system prompt of the client."""
    max_tokens: int | None = None
    """The `max_tokens` of requests that have none; None adds none."""
    served: str = ""
    """The configured name that it is a target of; without configured names, the name of the model,
    or nothing if one model answers to every name.
    """
    own: bool = False
    """Whether it is a server of the user's own, which is asked about its context window."""
    shows_thinking: bool = False
    """Whether thinking is sent to all clients, rather than to those that want it."""

    @property
    def window(self) -> int | None:
        """The tokens that request and answer may have together, if known; the user's own number
        takes precedence. A model with a limit for requests alone has none."""
        limit, chosen = self.target.facts.limit, self.snapshot["context.limit"]
        return chosen or (None if limit.input else limit.context) or None

    @property
    def origin(self) -> Origin:
        """The origin of its answers."""
        return self.target.origin

    @property
    def names(self) -> tuple[str, str]:
        """What a client's permission may name it by: the table that it is from, and its model."""
        return self.served, f"{self.target.provider}/{self.target.model}"


class Offer(NamedTuple):
    """The targets of one name: those that share its requests, and groups of fallbacks to try after
    them. `asked` holds the settings that the name itself requests; they take precedence over those
    in the client's request."""

    targets: tuple[Route, ...]
    fallbacks: tuple[tuple[Route, ...], ...] = ()
    asked: Mapping[str, SettingValue] = {}

    @property
    def routes(self) -> Iterator[Route]:
        """All routes, fallbacks last."""
        yield from self.targets
        for group in self.fallbacks:
            yield from group

    def only(self, is_allowed: Callable[[Route], bool]) -> Offer:
        """The offer without the routes that are not allowed. It may be empty."""
        groups = (tuple(filter(is_allowed, group)) for group in self.fallbacks)
        targets = tuple(filter(is_allowed, self.targets))
        return Offer(targets, tuple(group for group in groups if group), self.asked)


class _Problem(NamedTuple):
    """Why a target cannot be used."""

    model: str
    error: MullError

    def __str__(self) -> str:
        return f"{self.model}: {self.error}"


class Routes:
    """Finds routes by name, and caches them until the configuration is reloaded."""

    def __init__(self, engine: Engine, config: ServeConfig, only: str | None = None) -> None:
        self._engine = engine
        self._config = config
        self._only = ServedModel(only) if only is not None else None
        self._names = Names(config.models)
        self._known: OrderedDict[str, Offer] = OrderedDict()
        self.local: Sequence[str] = ()
        """The models of servers that were found at their usual addresses."""

    @property
    def lists_usable(self) -> bool:
        """Whether every model that can be used is served, those of local servers included."""
        return not self._config.models and self._only is None

    def names(self) -> Sequence[str]:
        """The names that a client may request: the configured ones, or if there are none, every
        model that can be used now."""
        if self._config.models:
            return self._names.listed()
        if self._only is not None:
            return [self._only.model]
        return list(dict.fromkeys((*self._usable(), *self.local)))

    def _usable(self) -> list[str]:
        from mull.agent.usable import usable_models

        return usable_models(self._engine)

    def find(self, name: str | None) -> Route:
        """The first route of a name.

        Raises:
            UnknownModel: no model is served under this name.
            ConfigError: its key or address is missing.
        """
        return next(self.offer(name).routes)

    def offer(self, name: str | None) -> Offer:
        """All routes of a name whose configuration is complete, at least one.

        Raises:
            UnknownModel: no model is served under this name.
            ConfigError: no route can be used, because keys or addresses are missing.
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
        """The configured name that serves this one; if none is configured, the model itself."""
        meant = self._meant(name or "").name
        return self._only.model if not meant and self._only is not None else meant

    def problems(self, name: str) -> list[str]:
        """Why targets of a configured name cannot be used, one line for each."""
        found: list[_Problem] = []
        served = self._served(name)
        self._group(name, served, found)
        for _ in self._fallbacks(served, found):
            pass
        return list(dict.fromkeys(map(str, found)))

    def _learnt(self, route: Route) -> Route:
        target = self._engine.learnt(route.target)
        return route if target == route.target else route._replace(target=target)

    def _meant(self, wanted: str) -> Meant:
        """The configured name that the client means; if none is configured, the model itself."""
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
            text = f"no model named {quote(wanted[:200])} is served here: use {join_or(names)}"
            raise UnknownModel(text, names)
        if not wanted:
            raise UnknownModel("the request names no model: set its model field")
        if len(wanted) > _LONGEST_NAME:  # it would be cached, here and elsewhere
            raise UnknownModel(f"no model has a name of more than {_LONGEST_NAME} characters")
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
        targets = self._group(name, served, problems)
        fallbacks = [group for group in self._fallbacks(served, problems) if group]
        if len(problems) == 1 and not targets and not fallbacks:
            raise problems[0].error
        if not targets and not fallbacks:
            raise ConfigError("\n".join(map(str, problems)))
        return Offer(targets, tuple(fallbacks))

    def _fallbacks(
        self, served: ServedModel, problems: list[_Problem]
    ) -> Iterator[tuple[Route, ...]]:
        """One group for each fallback. A fallback without a table of its own takes everything but
        the targets from `served`."""
        for name in served.fallback:
            other = self._config.models.get(name)
            if other is None:
                plain = ServedTarget(name)
                other = replace(served, model=name, base_url=None, key_env=None, targets=(plain,))
            yield self._group(name, other, problems)

    def _group(self, name: str, served: ServedModel, problems: list[_Problem]) -> tuple[Route, ...]:
        routes = []
        for upstream in served.upstreams:
            try:
                routes.append(self._route(upstream, served)._replace(served=name))
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
                raise ConfigError(f"no API key: set the environment variable {upstream.key_env}")
            target = replace(target, account=_short(upstream.key_env))
        way = engine.way_to(target, key=key, base_url=upstream.base_url)
        settings = dict(served.settings)
        if not engine.setup.settings.snapshot().explicit(_INCLUDE):
            settings.setdefault(_INCLUDE, True)  # the client decides what is sent
        snapshot = engine.setup.snapshot_for(target, settings, model=upstream.model)
        place = f"{target.name} {way.base_url} {target.account or ''}"
        return Route(
            target,
            way,
            snapshot,
            place,
            upstream.weight,
            served.system,
            served.max_tokens,
            own=engine.runs_own_server(target, way),
            shows_thinking=served.show_thinking == "always",
        )


def _short(name: str) -> str:
    """A hash of the variable's name: answers carry it to clients, which must not see the name."""
    return blake2b(name.encode(), digest_size=4).hexdigest()
