"""The list of models that a gateway serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mull.dialects.surface import Listed
from mull.neutral.errors import MullError

if TYPE_CHECKING:
    from mull.gateway.routes import Offer

__all__ = ["listed_as", "listing"]


def listing(names: Iterable[str], offer: Callable[[str], Offer]) -> list[Listed]:
    """All models that can be used. A model that cannot be resolved, or that the client may not use,
    is left out."""
    found = []
    for name in names:
        try:
            found.append(listed_as(name, offer(name)))
        except MullError:
            continue
    return found


def listed_as(name: str, offer: Offer) -> Listed:
    """The entry of a model under the name it is served by. Of several targets any may be asked, so
    its limits are the smallest."""
    target = next(offer.routes).target
    facts, limits = (
        target.facts,
        [
            (one.window or one.target.facts.limit.context, one.target.facts.limit.output)
            for one in offer.targets or offer.routes
        ],
    )
    return Listed(
        name=name,
        owner=target.provider,
        label=f"{target.provider_name}: {target.model}" if "/" in name else name,
        window=min((window for window, _ in limits if window), default=None),
        output=min((output for _, output in limits if output), default=None),
        created=_seconds(facts.release_date),
    )


def _seconds(date: str | None) -> int:
    try:
        return int(datetime.fromisoformat(date or "").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return 0
