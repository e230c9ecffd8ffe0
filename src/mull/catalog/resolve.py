"""From a name as people write it to a Target: which provider, which model, how it is spoken to.

`provider/model` means that model there. A bare name means the maker's own provider, else the one
provider whose key is set, else the only provider that has it; anything less certain is an error
that lists the choices. A model nobody has listed is still usable at a known provider or at a
given URL: with what its family is known for, and a note. How names vary is in names.py; what
rows say of an endpoint is joined in compat.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from mull.catalog import compat as rows
from mull.catalog import families
from mull.catalog.entry import Via
from mull.catalog.load import Catalog, Provider, shipped
from mull.catalog.match import Subject
from mull.catalog.names import Found, close, either, listed, no_level, resembles_level
from mull.neutral.errors import AmbiguousModel, ConfigError, UnknownModel
from mull.neutral.messages import Dialect
from mull.neutral.target import ModelFacts, Target, split_level
from mull.neutral.thinking import LADDER

__all__ = ["GENERIC", "resolve"]

GENERIC = "openai-compatible"
"""The provider of endpoints that no provider in the catalog owns."""
_CONSIDERED, _NAMED = 12, 3
"""How many names like the one typed are looked at, and how many are named."""


class _Asked(Struct, frozen=True):
    """Everything about the question but the name."""

    catalog: Catalog
    keys: Collection[str]
    base_url: str | None
    dialect: Dialect | None
    compat: Mapping[str, Any] | None
    rows: Sequence[rows.Row]


def resolve(
    name: str,
    *,
    catalog: Catalog | None = None,
    keys: Collection[str] = frozenset(),
    base_url: str | None = None,
    dialect: str | None = None,
    compat: Mapping[str, Any] | None = None,
    compat_rows: Sequence[rows.Row | Mapping[str, Any]] = (),
) -> Target:
    """The target that a name means; a level behind the name is left to the caller.

    `keys` are the names of the key variables that are set.

    Raises:
        UnknownModel: nothing is called that, and no provider or URL was given for it; or, as
            UnknownLevel, a model is, and what follows its name is nearly a level.
        AmbiguousModel: several providers have it and nothing tells which is meant.
        ConfigError: the dialect, `compat` or a row is not allowed.
    """
    if base_url and "@" in base_url:  # it would be shown, and stored with every message
        raise ConfigError(
            "the address contains a user name or password before the @: remove it, and send it as"
            " the key or as a header"
        )
    asked = _Asked(
        shipped() if catalog is None else catalog,
        keys,
        base_url.rstrip("/") if base_url else None,
        _dialect(dialect),
        compat,
        rows.read_rows(compat_rows),
    )
    typed = split_level(name.strip())[0].strip()
    if not typed:
        raise UnknownModel("no model given; write provider/model, or a model's name")
    return _target(asked, _locate(asked, typed))


def _dialect(name: str | None) -> Dialect | None:
    for dialect in get_args(Dialect):
        if name == dialect:
            return dialect  # type: ignore[no-any-return]
    if name is not None:
        allowed = ", ".join(get_args(Dialect))
        raise ConfigError(f"there is no dialect {name!r}; use one of {allowed}")
    return None


def _locate(asked: _Asked, typed: str) -> Found:
    first, _, rest = typed.partition("/")
    provider = asked.catalog.provider(first)
    if provider is not None and rest:
        return _at(asked, provider, rest, typed)
    if first.lower() == GENERIC and rest:
        return Found(GENERIC, rest, rest, known=False)
    found = _exact(asked.catalog, typed) or asked.catalog.names.find(typed)
    chosen = _choose(asked, typed, found) if found else None
    if chosen is None:
        _refuse_level(asked.catalog, typed, nothing_else=asked.base_url is None)
    if chosen is None and asked.base_url is None:
        raise _unknown(asked.catalog, typed)
    return chosen or _at_url(asked, typed)


def _refuse_level(catalog: Catalog, typed: str, *, nothing_else: bool = False) -> None:
    """Refuse what is a known model with a misspelt level behind it.

    Where the name can mean `nothing_else`, any word behind a model was meant as a level.

    Raises:
        UnknownLevel: it is.
    """
    model, _, word = typed.rpartition("/")
    if model and (nothing_else or resembles_level(word)) and _knows(catalog, model):
        raise no_level(model, word, LADDER)


def _knows(catalog: Catalog, name: str) -> bool:
    """Whether anybody has a model of this name, or the provider that it begins with."""
    first, _, rest = name.partition("/")
    provider = catalog.provider(first)
    if provider is not None and rest:
        return rest in provider.models or bool(catalog.names_of(provider).find(rest))
    return bool(_exact(catalog, name) or catalog.names.find(name))


def _at(asked: _Asked, provider: Provider, model: str, typed: str) -> Found:
    """The model at the provider that the name begins with."""
    if model in provider.models:
        return Found(provider.id, model, model)
    owner = _owner(asked)
    if owner is not None and typed in owner.models:
        return Found(owner.id, typed, typed)
    own = asked.catalog.names_of(provider).find(model, in_full=True) if provider.models else []
    if own:
        return own[0]
    if "/" in model:
        _refuse_level(asked.catalog, typed)
    note = _unlisted(provider, model)
    # Makers' names double as provider ids, so the whole may be a gateway's own id. Who named a
    # provider must not be sent to another; a hint is enough.
    if note and (others := _exact(asked.catalog, typed)):
        elsewhere = [f"{hit.provider}/{hit.model}" for hit in others]
        note += f" (others have it: {listed(elsewhere)})"
    return Found(provider.id, model, model, note, known=False)


def _at_url(asked: _Asked, typed: str) -> Found:
    """A name that only the given URL knows: whose it is, and what is sent."""
    first, _, rest = typed.partition("/")
    if not rest or asked.catalog.is_maker(first):
        return Found(GENERIC, typed, typed, known=False)
    note = f"{first!r} is not a provider in the catalog; {rest!r} is sent as the model's name"
    return Found(first, rest, rest, note, known=False)


def _exact(catalog: Catalog, name: str) -> list[Found]:
    providers = catalog.providers.values()
    return [Found(p.id, name, name) for p in providers if name in p.models]


def _choose(asked: _Asked, name: str, found: list[Found]) -> Found | None:
    """The one provider that is meant among those that have the model."""
    by_provider = {hit.provider: hit for hit in found}
    owner = _owner(asked)
    if owner is not None and owner.id in by_provider:
        return by_provider[owner.id]
    maker = _maker(asked.catalog, name)
    if maker is not None and maker.id in by_provider:
        return by_provider[maker.id]
    own = asked.catalog.names_of(maker).find(name)[:1] if maker else []
    if own and maker and _has_key(asked, maker):
        return own[0]
    providers = asked.catalog.providers
    keyed = [hit for hit in by_provider.values() if _has_key(asked, providers[hit.provider])]
    for certain in (keyed, own, list(by_provider.values())):
        if len(certain) == 1:
            return certain[0]
    if asked.base_url is not None:
        return None
    raise _ambiguous(name, [*keyed, *(hit for hit in by_provider.values() if hit not in keyed)])


def _owner(asked: _Asked) -> Provider | None:
    """The provider whose endpoint the given URL is."""
    if asked.base_url is None:
        return None
    providers = asked.catalog.providers.values()
    return next((p for p in providers if p.api and p.api.rstrip("/") == asked.base_url), None)


def _has_key(asked: _Asked, provider: Provider) -> bool:
    return any(variable in asked.keys for variable in provider.env)


def _target(asked: _Asked, found: Found) -> Target:
    catalog, known = asked.catalog, found.known
    provider = catalog.providers.get(found.provider)
    via = catalog.reached(found.provider, found.model) if known else Via()
    entry = catalog.entry(found.provider, found.model) if known else {}
    endpoint = asked.base_url or via.api or (provider.api if provider else None)
    endpoint = endpoint.rstrip("/") if endpoint else None
    spoken = catalog.spoken(provider, via)
    place = Subject(found.provider, found.model, spoken, endpoint)
    dialect = (
        asked.dialect
        or rows.dialect_of(asked.rows, place)
        or rows.dialect_of(catalog.compat_rows, place)
        or spoken
    )
    place = replace(place, dialect=dialect)
    facts = families.complete(catalog.families, entry, place)
    options = entry.get("reasoning_options") or ()
    words = any(option["type"] == "effort" for option in options)
    own, once = asked.rows, asked.compat
    return Target(
        provider=found.provider,
        provider_name=provider.name if provider else found.provider,
        model=found.wire,
        dialect=dialect,
        facts=facts,
        compat=rows.join(catalog.compat_rows, place, facts, own, once, takes_words=words),
        endpoint=endpoint,
        key_env=provider.env if provider else (),
        known=known,
        wants_thinking=found.thinks,
        notes=tuple(_notes(found, facts)),
    )


def _notes(found: Found, facts: ModelFacts) -> Iterator[str]:
    if found.note:
        yield found.note
    if found.thinks and not facts.reasoning:
        yield f"{found.wire} does not reason"


def _unlisted(provider: Provider, model: str) -> str | None:
    if not provider.models:  # a server of one's own: its models are in nobody's list
        return None
    likely = close(model, provider.models)
    hint = f"; did you mean {either(likely)}?" if likely else ""
    return f"{_shown(model)} is not in the catalog{hint}"


def _unknown(catalog: Catalog, name: str) -> UnknownModel:
    likely = _likely(catalog, name)
    if likely:
        return UnknownModel(
            f"there is no model {_shown(name)}; did you mean {either(likely)}?", likely
        )
    return UnknownModel(
        f"there is no model {_shown(name)}; search with `mull models WORD`, "
        "or give a base URL for a model of your own"
    )


def _likely(catalog: Catalog, name: str) -> list[str]:
    """The few names that may have been meant, those of the models' own makers first.

    Many sell the same model: each is named once, as its maker calls it, unless the provider is
    one that was nearly named.
    """
    first, slash, _ = name.partition("/")
    meant = close(first, catalog.providers, cutoff=0.75) if slash else []
    pairs = (f"{provider}/{model}" for provider, model in catalog.pairs())
    pool = pairs if slash else (model for _, model in catalog.pairs())
    found: dict[str, bool] = {}
    for one in close(name, pool, _CONSIDERED):
        provider, _, model = one.partition("/") if slash else ("", "", one)
        own = None if provider in meant else _makers_own(catalog, model)
        if own is not None:
            one = f"{own.provider}/{own.model}" if slash else own.model
        found.setdefault(one, own is not None or provider in meant)
    return sorted(found, key=lambda one: not found[one])[:_NAMED]


def _maker(catalog: Catalog, model: str) -> Provider | None:
    return catalog.providers.get(families.maker_of(catalog.families, model) or "")


def _makers_own(catalog: Catalog, model: str) -> Found | None:
    """The model as its maker has it."""
    maker = _maker(catalog, model)
    return next(iter(catalog.names_of(maker).find(model)), None) if maker else None


def _ambiguous(name: str, found: Sequence[Found]) -> AmbiguousModel:
    names = [f"{hit.provider}/{hit.model}" for hit in found]
    return AmbiguousModel(
        f"{len(names)} providers have {_shown(name)}: {listed(names)}.\n"
        "Write one of them in full, or set the key of one of them.",
        names,
    )


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:79] + "…")
