"""A client's request, prepared for each target that may receive it.

The stored records of the conversation are looked up once. Each target then receives what it can
read: its own answers complete with their carriers, and the readable part of the answers of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.gateway.attach import Attached, Keys, Unknown, attach
from mull.gateway.choosing import beginning_of, in_order, origin_of
from mull.gateway.preparing import prepare_for
from mull.gateway.record import Kept
from mull.gateway.upstream_options import UpstreamOptions, upstream_options
from mull.neutral.request import Note, RequestOptions
from mull.policy.prepare import Prepared
from mull.settings.layers import standing

if TYPE_CHECKING:
    from mull.gateway.anchors import Past
    from mull.gateway.envelope import Sealed
    from mull.gateway.relay import Client
    from mull.gateway.routes import Offer, Route
    from mull.neutral.asked import Asked
    from mull.neutral.messages import Dialect

__all__ = ["Draft", "Drafts", "Recalled"]


class Draft(NamedTuple):
    """The request for one target, notes on what was changed, and the records it includes."""

    route: Route
    prepared: Prepared
    notes: tuple[Note, ...]
    records: Mapping[str, Kept]


class Recalled(NamedTuple):
    """What the store holds of a conversation. `keys` are those under which each answer may be
    stored and `records` the records found, None where there are several. `notes` report failed
    lookups; `is_whole` is false if there were any."""

    keys: Keys
    records: Mapping[str, Kept | None]
    notes: tuple[Note, ...] = ()
    is_whole: bool = True


class Drafts:
    """Makes the drafts of one request."""

    def __init__(
        self,
        client: Client,
        asked: Asked,
        offer: Offer,
        recalled: Recalled,
        unseal: Callable[[str], Sealed | None],
    ) -> None:
        self._client = client
        self._asked = asked
        self._offer = offer
        self._recalled = recalled
        self._unseal = unseal
        self._attached: dict[Unknown, Attached] = {}

    @property
    def past(self) -> Past:
        """The digest of the conversation before the answer."""
        return self._recalled.keys.past

    def keys_of(self, kept: Kept) -> list[str]:
        """The keys by which this record was found."""
        return [key for key, one in self._recalled.records.items() if one is kept]

    def routes(self) -> list[Route]:
        """The targets in the order in which to try them."""
        targets, fallbacks = self._offer.targets, self._offer.fallbacks
        if self._is_alone:
            return [targets[0]]
        messages = self._attach("bare").messages
        return in_order(
            targets,
            fallbacks,
            beginning_of(self._client.scope, self._asked.messages),
            origin_of(messages),
            in_turn=bool(messages) and messages[-1].carries_results,
        )

    def make(self, route: Route) -> Draft:
        """The request for a target.

        Raises:
            LocalError: the request cannot be prepared for this target.
        """
        attached = self._attach(self._unknown(route.target.dialect))
        wanted = self._with_defaults(route)
        prepared, left_out = prepare_for(route, attached.messages, wanted)
        notes = (*self._recalled.notes, *attached.notes, *wanted.notes, *left_out, *prepared.notes)
        return Draft(route, prepared, notes, attached.records)

    def _attach(self, unknown: Unknown) -> Attached:
        if unknown not in self._attached:
            self._attached[unknown] = attach(
                self._asked.messages,
                self._recalled.keys.of_each,
                self._recalled.records,
                self._unseal,
                unknown,
            )
        return self._attached[unknown]

    def _unknown(self, upstream: Dialect) -> Unknown:
        """What to send of answers that are not found. What a client of a vendor's own API sends to
        that API is probably the vendor's, from before there was a gateway or from a record that is
        gone; if it is not, the request is fixed once. An API of many vendors says nothing about who
        made what, unless there is only one target."""
        is_of_one = TRAITS[upstream].takes != "fields"
        if self._client.dialect == upstream and (is_of_one or self._is_alone):
            return "trusted"
        return "bare" if is_of_one else "readable"

    @property
    def _is_alone(self) -> bool:
        """Whether there is only one target."""
        return len(self._offer.targets) == 1 and not self._offer.fallbacks

    def _with_defaults(self, route: Route) -> UpstreamOptions:
        """The client's options, completed from the configuration and the model name."""
        wanted = upstream_options(self._asked, self._client.dialect, route.target)
        options: RequestOptions = wanted.options
        if route.system:
            system = f"{route.system}\n\n{options.system}" if options.system else route.system
            options = replace(options, system=system)
        if options.max_tokens is None and route.max_tokens is not None:
            options = replace(options, max_tokens=route.max_tokens)
        asked = self._offer.asked  # by a level in the model's name
        settings = {**standing(wanted.settings, asked), **asked}
        return wanted._replace(settings=settings, options=options)
