"""What is known of a family of models where the entry itself does not say it, or says it wrong.

Rows are read in file order and a later row wins, key by key. `facts` go over the entry,
`defaults` under it, and `budget` completes a token budget that the entry has only in part.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mull.catalog.entry import Entry, overlay
from mull.catalog.match import Match, Subject
from mull.neutral.errors import CatalogError
from mull.neutral.target import ModelFacts

__all__ = ["Family", "complete", "maker_of"]

_INTERLEAVED = {"reasoning.includeInContext": True}
"""The preset of an entry that wants its reasoning back; it goes before what its family says."""


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of families.json, with where it was read and when."""

    match: Match
    source: str
    seen: str
    maker: str | None = None
    facts: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    budget: dict[str, int] = {}


def maker_of(families: Iterable[Family], model: str) -> str | None:
    """The provider id of the company that made the model, if a row names it."""
    maker = None
    for family in families:
        if family.maker is not None and family.match.fits_model(model):
            maker = family.maker
    return maker


def complete(families: Sequence[Family], entry: Mapping[str, Any], place: Subject) -> ModelFacts:
    """The entry with all that its families add, as facts.

    Raises:
        CatalogError: a field is not of the kind it must be.
    """
    facts: Entry = {}
    defaults: Entry = {}
    budget: dict[str, int] = {}
    for family in families:
        if family.match.fits(place):
            facts = overlay(facts, family.facts)
            defaults = overlay(defaults, family.defaults)
            budget |= family.budget
    if entry.get("interleaved"):
        defaults = overlay(defaults, {"presets": _INTERLEAVED})
    merged = overlay(overlay(defaults, _told(entry)), facts)
    try:
        known = msgspec.convert(merged, ModelFacts)
    except msgspec.ValidationError as error:
        raise CatalogError(f"{place.provider}/{place.model}: damaged facts: {error}") from None
    return _with_budget(known, budget)


def _told(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry without an empty list of options: models.dev gives one to every model of which it
    knows no options, steerable or not, so it says nothing."""
    if entry.get("reasoning_options"):
        return entry
    return {key: value for key, value in entry.items() if key != "reasoning_options"}


def _with_budget(facts: ModelFacts, budget: Mapping[str, int]) -> ModelFacts:
    """Fill the missing ends of a budget, and keep its upper end within the output limit."""
    option = facts.budget
    if option is None:
        return facts
    low = budget.get("min") if option.min is None else option.min
    high = budget.get("max") if option.max is None else option.max
    if high is not None and facts.limit.output:
        high = min(high, facts.limit.output)
    filled = msgspec.structs.replace(option, min=low, max=high)
    options = tuple(filled if o is option else o for o in facts.reasoning_options)
    return msgspec.structs.replace(facts, reasoning_options=options)
