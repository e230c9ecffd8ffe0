"""The list of models that a gateway serves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mull.dialects.surface import Listed
from mull.neutral.errors import MullError

if TYPE_CHECKING:
    from mull.gateway.routes import Routes
    from mull.neutral.target import Target

__all__ = ["listed_as", "listing"]


def listing(routes: Routes) -> list[Listed]:
    """All models that can be used. A model that cannot be resolved is left out."""
    found = []
    for name in routes.names():
        try:
            found.append(listed_as(name, routes.find(name).target))
        except MullError:
            continue
    return found


def listed_as(name: str, target: Target) -> Listed:
    """The entry of a model under the name it is served by."""
    facts = target.facts
    return Listed(
        name=name,
        owner=target.provider,
        label=f"{target.provider_name}: {target.model}" if "/" in name else name,
        window=facts.limit.context or None,
        output=facts.limit.output or None,
        created=_seconds(facts.release_date),
    )


def _seconds(date: str | None) -> int:
    try:
        return int(datetime.fromisoformat(date or "").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0
