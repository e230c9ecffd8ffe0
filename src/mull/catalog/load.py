"""The catalog of providers and models, read when it is asked for and decoded as it is used.

The shipped file has one provider per line. A provider's line is decoded without its models,
which stay raw bytes until one of them is looked up: finding one model among thousands costs a
few milliseconds and decodes one model. Overlays (a user's file) are merged field by field, the
later one winning; a stored update may stand in for the shipped file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from mull.catalog import compat, families
from mull.catalog.entry import Entry, Via, check, overlay, tidy
from mull.catalog.match import Subject
from mull.catalog.names import Names
from mull.neutral.errors import CatalogError, UnknownModel
from mull.neutral.messages import Dialect
from mull.neutral.target import ModelFacts

__all__ = [
    "FORMAT",
    "Catalog",
    "Header",
    "Provider",
    "Source",
    "check_overlay",
    "load",
    "makers",
    "shipped",
    "shipped_date",
]

_T = TypeVar("_T")

FORMAT = 1
_DATA = Path(__file__).with_name("data")
_MODELS = b',"models":'


class Source(Struct, frozen=True):
    """Where facts come from; `date` is when they were taken, if that is known."""

    name: str
    what: str
    date: str | None = None


class Header(Struct, frozen=True):
    """The first line of the file. `providers` counts the lines after it, so a cut file shows.

    `pinned` says of an update that its addresses were held against the shipped ones.
    """

    format: int
    sources: tuple[Source, ...]
    providers: int
    pinned: bool = False

    @property
    def date(self) -> str:
        """The newest date among the sources, or nothing."""
        return max((source.date or "" for source in self.sources), default="")


class Provider(Struct, frozen=True, dict=True):
    """One provider; its models are raw JSON until they are asked for, and each of them until it is
    looked up.
    """

    id: str
    """The id of the provider in names of models, such as `anthropic`."""
    name: str
    """The provider's display name, such as `Anthropic`."""
    env: tuple[str, ...] = ()
    """The environment variables that may hold its API key, in the order in which they are tried."""
    npm: str | None = None
    """The npm package by which models.dev says how to speak to it; the dialect follows from it."""
    api: str | None = None
    """Its base URL; None if neither models.dev nor mull's own rows have one."""
    doc: str | None = None
    """The URL of its documentation."""
    dialect: Dialect | None = None
    """The dialect of a provider that the user adds; None derives it from `npm`."""
    raw: Raw = field(default=Raw(b"{}"), name="models")
    """The JSON object of its models, by id."""

    @cached_property
    def models(self) -> Mapping[str, Raw]:
        """The models by their ids.

        Raises:
            CatalogError: they are damaged.
        """
        return _decoded(_models, self.raw, f"{self.id}.models")


class _Reached(Struct, frozen=True):
    """The one part of an entry that is about the way to it."""

    provider: Via = Via()


class _Shipped(Struct, frozen=True, forbid_unknown_fields=True):
    """providers.json: npm package to dialect, shape to dialect (`""` where nothing is told), what
    the providers' own lines lack, and how the models begin that a provider made itself."""

    dialects: dict[str, Dialect]
    shapes: dict[str, Dialect]
    providers: dict[str, dict[str, Any]] = {}
    makers: dict[str, tuple[str, ...]] = {}


_line = msgspec.json.Decoder(Provider)
_models = msgspec.json.Decoder(dict[str, Raw])
_entry = msgspec.json.Decoder(dict[str, Any])
_reached = msgspec.json.Decoder(_Reached)
_encode = msgspec.json.Encoder().encode


class Catalog:
    """Facts on providers and models, with families and compat rows beside them."""

    def __init__(
        self,
        header: Header,
        providers: dict[str, Provider],
        dialects: Mapping[str, Dialect],
        family_rows: Sequence[families.Family],
        compat_rows: Sequence[compat.Row],
    ) -> None:
        self.header = header
        self.providers = providers
        self.families = family_rows
        self.compat_rows = compat_rows
        self._dialects = dialects

    @cached_property
    def _by_folded_id(self) -> dict[str, Provider]:
        return {key.lower(): provider for key, provider in self.providers.items()}

    def provider(self, name: str) -> Provider | None:
        """The provider of this id, in any case."""
        return self.providers.get(name) or self._by_folded_id.get(name.lower())

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every provider and model id there is."""
        return ((p.id, model) for p in self.providers.values() for model in p.models)

    @cached_property
    def names(self) -> Names:
        """All names of all providers, to be found as people write them."""
        return Names(self.pairs(), self._released)

    def names_of(self, provider: Provider) -> Names:
        """The names of one provider's models."""
        return Names(((provider.id, model) for model in provider.models), self._released)

    def is_maker(self, word: str) -> bool:
        """Whether model ids begin with this word and a slash, as gateways write makers."""
        start = word.lower() + "/"
        return any(model.lower().startswith(start) for _, model in self.pairs())

    def _released(self, provider: str, model: str) -> str:
        return str(self.entry(provider, model).get("release_date") or "")

    def entry(self, provider: str, model: str) -> Entry:
        """A model's own entry, overlays included, families not.

        Raises:
            UnknownModel: the catalog does not have it.
            CatalogError: the entry is damaged.
        """
        return _decoded(_entry, self._raw(provider, model), f"{provider}/{model}")

    def reached(self, provider: str, model: str) -> Via:
        """How a model is reached where it differs from its provider's others.

        Raises:
            UnknownModel: the catalog does not have it.
            CatalogError: the entry is damaged.
        """
        raw = self._raw(provider, model)
        return _decoded(_reached, raw, f"{provider}/{model}").provider

    def spoken(self, provider: Provider | None, via: Via) -> Dialect:
        """The dialect that a provider speaks, or the model's own way to it."""
        usual = self._dialects[""]
        if via.shape is not None:
            return self._dialects.get(via.shape, usual)
        if via.npm is None and provider is not None and provider.dialect is not None:
            return provider.dialect
        npm = via.npm or (provider.npm if provider else None)
        return self._dialects.get(npm or "", usual)

    def facts(self, provider: str, model: str, dialect: Dialect | None = None) -> ModelFacts:
        """What is known of a model, its families included.

        Raises:
            UnknownModel: the catalog does not have it.
            CatalogError: the entry is damaged.
        """
        entry = self.entry(provider, model)
        if dialect is None:
            dialect = self.dialect(provider, model)
        return families.complete(self.families, entry, Subject(provider, model, dialect))

    def dialect(self, provider: str, model: str) -> Dialect:
        """The dialect a model is spoken to in, by its own entry and the shipped rows."""
        via = self.reached(provider, model)
        row = self.providers[provider]
        spoken = self.spoken(row, via)
        place = Subject(provider, model, spoken, via.api or row.api)
        return compat.dialect_of(self.compat_rows, place) or spoken

    def search(
        self, query: str = "", provider: str | None = None, reasoning: bool | None = None
    ) -> list[tuple[str, str]]:
        """The models whose `provider/model` or name holds every word of the query.

        Raises:
            CatalogError: there is no such provider.
        """
        if provider is None:
            wanted = list(self.providers.values())
        else:
            one = self.provider(provider)
            if one is None:
                raise CatalogError(f"there is no provider {provider!r} in the catalog")
            wanted = [one]
        words = query.lower().split()
        return [
            (row.id, model)
            for row in wanted
            for model, raw in row.models.items()
            if self._holds(row.id, model, raw, words)
            and (reasoning is None or self._reasons(row.id, model) is reasoning)
        ]

    def _reasons(self, provider: str, model: str) -> bool:
        said = self.entry(provider, model).get("reasoning")
        if isinstance(said, bool) and not self._families_overrule:
            return said  # most entries say it, and families cost a hundred times as much to ask
        return self.facts(provider, model).reasoning

    @cached_property
    def _families_overrule(self) -> bool:
        return any("reasoning" in family.facts for family in self.families)

    def _holds(self, provider: str, model: str, raw: Raw, words: list[str]) -> bool:
        name = f"{provider}/{model}".lower()
        if all(word in name for word in words):
            return True
        said = str(_decoded(_entry, raw, name).get("name") or "").lower()
        return all(word in name or word in said for word in words)

    def _raw(self, provider: str, model: str) -> Raw:
        row = self.providers.get(provider)
        raw = row.models.get(model) if row else None
        if raw is None:
            raise UnknownModel(f"{provider}/{model} is not in the catalog")
        return raw


@cache
def _shipped_providers() -> _Shipped:
    return msgspec.json.decode(_read("providers.json"), type=_Shipped)


def makers() -> Mapping[str, tuple[str, ...]]:
    """The providers that make models, each with how the names of its own models begin."""
    return _shipped_providers().makers


@cache
def shipped() -> Catalog:
    """The catalog as it came with the package, read once."""
    return load()


def load(overlays: Sequence[Mapping[str, Any]] = (), base: bytes | None = None) -> Catalog:
    """Read the catalog; `base` stands in for the shipped models, overlays go over them.

    Raises:
        CatalogError: `base` or an overlay is damaged; names the place.
    """
    if base is None:
        header, providers = _read_models(_read("models.jsonl"), _read_heads)
    else:
        header, providers = _read_models(base, _read_whole)
    extra = _shipped_providers()
    for layer in (extra.providers, *overlays):
        _lay(providers, layer)
    return Catalog(
        header,
        providers,
        extra.dialects | extra.shapes,
        msgspec.json.decode(_read("families.json"), type=tuple[families.Family, ...]),
        msgspec.json.decode(_read("compat.json"), type=tuple[compat.Row, ...]),
    )


def shipped_date() -> str:
    """How new the shipped facts are."""
    with (_DATA / "models.jsonl").open("rb") as file:
        return msgspec.json.decode(file.readline(), type=Header).date


def check_overlay(layer: Mapping[str, Any]) -> None:
    """Refuse an overlay that cannot be merged.

    Raises:
        CatalogError: names the place in it.
    """
    _lay({}, layer)


def _read(name: str) -> bytes:
    return (_DATA / name).read_bytes()


def _read_whole(data: bytes, start: int) -> list[Provider]:
    """The providers from `start` on, their models checked for damage."""
    return _line.decode_lines(memoryview(data)[start:])


def _read_heads(data: bytes, start: int) -> list[Provider]:
    """The providers of the shipped file from `start` on, whose lines end with the models: these are
    not looked at.
    """
    rows, whole = [], memoryview(data)
    while (end := data.find(b"\n", start)) >= 0:
        models = data.index(_MODELS, start, end)
        row = _line.decode(data[start:models] + b"}")
        rows.append(replace(row, raw=Raw(whole[models + len(_MODELS) : end - 1])))
        start = end + 1
    return rows


def _read_models(
    data: bytes, read_lines: Callable[[bytes, int], list[Provider]]
) -> tuple[Header, dict[str, Provider]]:
    start = data.find(b"\n") + 1 or len(data)
    try:
        header = msgspec.json.decode(data[:start], type=Header)
        lines = read_lines(data, start)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"the catalog file is damaged: {error}") from None
    if header.format != FORMAT:
        raise CatalogError(f"the catalog file has format {header.format}, not {FORMAT}")
    if len(lines) != header.providers:
        told = f"{len(lines)} of {header.providers} providers"
        raise CatalogError(f"the catalog file is damaged: it holds {told}")
    return header, {line.id: line for line in lines}


def _lay(providers: dict[str, Provider], layer: Mapping[str, Any]) -> None:
    """Merge one overlay into the providers, in place."""
    if not isinstance(layer, Mapping):
        raise CatalogError("it must be an object of providers")
    for name, over in layer.items():
        if not isinstance(over, Mapping):
            raise CatalogError(f"{name}: a provider must be an object")
        key = name.lower()
        row = providers.get(key) or Provider(key, name)
        providers[key] = _laid(row, over, key)


def _laid(row: Provider, over: Mapping[str, Any], key: str) -> Provider:
    models = over.get("models", {})
    if not isinstance(models, Mapping):
        raise CatalogError(f"{key}.models: must be an object of models")
    merged = dict(row.models) if models else {}
    for model, entry in models.items():
        place = f"{key}.models.{model}"
        if not isinstance(entry, Mapping):
            raise CatalogError(f"{place}: a model must be an object")
        under = _decoded(_entry, merged[model], place) if model in merged else {}
        laid = overlay(under, {**tidy(entry), **{k: None for k, v in entry.items() if v is None}})
        check(laid, place)
        merged[model] = Raw(_encode(laid))
    fields = {f: getattr(row, f) for f in Provider.__struct_fields__ if f not in ("id", "raw")}
    fields = overlay(fields, {k: v for k, v in over.items() if k in fields})
    try:
        laid_row = msgspec.convert({"id": key, "name": key, **fields}, Provider)
    except msgspec.ValidationError as error:
        raise CatalogError(f"{key}: {error}") from None
    return replace(laid_row, raw=Raw(_encode(merged)) if models else row.raw)


def _decoded(decoder: msgspec.json.Decoder[_T], raw: Raw, place: str) -> _T:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"{place}: damaged entry: {error}") from None
