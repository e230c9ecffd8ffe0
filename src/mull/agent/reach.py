"""How providers are reached, as given by the caller: an address and a key belong to one provider.

No other provider gets them, and no other provider's key is sent to that address.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict, replace

from mull.neutral.messages import Dialect
from mull.neutral.target import Target

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.client.access import Access

__all__ = ["Key", "Reach", "Reaches"]

Key: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A key, or a function that returns one for each request: for tokens that rotate."""


class Reach(Struct, frozen=True):
    """What was given for one provider; None leaves it to the layers below. It is never shown."""

    key: Key | None = None
    base_url: str | None = None
    headers: Mapping[str, str] | None = None
    dialect: Dialect | None = None
    compat: Mapping[str, Any] | None = None

    def over(self, other: Reach) -> Reach:
        """These values, completed by those of the other."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        return replace(other, **said)

    def __repr__(self) -> str:
        return "Reach()"


class Reaches:
    """What one conversation was given, by provider. `keys` may contain more keys than are used.
    The connection options are for all providers.

    Raises:
        ConfigError: the connection options cannot be used.
    """

    def __init__(
        self,
        engine: Engine,
        keys: Mapping[str, Key] | None = None,
        connection: Mapping[str, Any] | None = None,
    ) -> None:
        self._engine = engine
        self._connection = connection or {}
        if connection:
            engine.client(connection)  # a mistake is reported before anything is sent
        self._given = {name.lower(): Reach(key) for name, key in (keys or {}).items()}

    def fork(self) -> Reaches:
        """An independent copy."""
        made = Reaches(self._engine)
        made._connection = self._connection
        made._given = dict(self._given)
        return made

    def target(self, model: str | None, given: Reach | None = None) -> Target:
        """The target of a model name: at a given address, if that belongs to its provider.

        Raises:
            CatalogError: no model, or more than one, has this name.
        """
        if given is not None:
            return self._resolve(model, given)
        for provider, reach in reversed(self._given.items()):
            if reach.base_url or reach.dialect or reach.compat:
                target = self._resolve(model, reach)
                if target.provider.lower() == provider:
                    return target
        return self._resolve(model, Reach())

    def take(self, target: Target, given: Reach) -> None:
        """Store what was given for the target's provider, overriding earlier values."""
        name = target.provider.lower()
        self._given[name] = given.over(self._given.pop(name, Reach()))

    def of(self, target: Target) -> Reach:
        """What was given for the target's provider."""
        return self._given.get(target.provider.lower(), Reach())

    def way_to(self, target: Target) -> Access:
        """How the target is reached.

        Raises:
            ConfigError: a key or an address is missing; says how to provide it.
        """
        reach = self.of(target)
        way = self._engine.way_to(
            target, key=reach.key, base_url=reach.base_url, headers=reach.headers
        )
        if not self._connection or not way.base_url:  # nothing is between here and what is embedded
            return way
        return replace(way, client=self._engine.client(self._connection))

    def _resolve(self, model: str | None, reach: Reach) -> Target:
        return self._engine.target(
            model, base_url=reach.base_url, dialect=reach.dialect, compat=reach.compat
        )
