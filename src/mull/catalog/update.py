"""What of a downloaded models.dev document may take the place of the catalog.

Facts may change: models, limits, prices, abilities. Where keys go may not: a provider that is
known keeps its address, its key variables and its dialect, and so does each of its models. A
provider that is new comes without key variables: it gets a key when the user stores one for it.
Whoever controls the document, or the way to it, controls no key.

An entry that cannot be used is left out and named, and the rest is taken; a document that has
lost half of the models is refused, because it is truncated or another one. What models.dev cannot
know (facts from other sources) is carried over. The result is the format of the shipped file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from mull.catalog.entry import Entry, Via, check, has_controls, tidy
from mull.catalog.load import FORMAT, Catalog, Provider
from mull.neutral.errors import CatalogError

__all__ = ["MAX_BYTES", "Update", "check_update", "is_private", "pin"]

MAX_BYTES = 64 * 1024 * 1024
_REACHED = ("env", "npm", "api")
"""The fields of a provider that say where its keys go, and how."""
_OURS = ("can_be_off", "default_effort", "thinks_by_default", "tokenizer", "source")
_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_LOOPBACK = frozenset(("127.0.0.1", "localhost", "::1"))
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Offered(Struct, frozen=True):
    """A provider as the document tells of it."""

    id: str
    name: str
    models: dict[str, Any]
    env: tuple[str, ...] = ()
    npm: str | None = None
    api: str | None = None
    doc: str | None = None


class Update(NamedTuple):
    """A catalog file, and what of the document is not in it."""

    data: bytes
    added: tuple[str, ...]
    """Providers that are new, and so without key variables."""
    pinned: tuple[str, ...]
    """Providers that are reached otherwise by the document, and stay as they are."""
    left_out: tuple[str, ...]
    """Entries that cannot be used, each with the reason."""


def check_update(
    data: bytes, current: Catalog, date: str | None = None, shipped: Catalog | None = None
) -> Update:
    """The document as a catalog file, dated if the date is known.

    `shipped` is the catalog that came with the package, if `current` is an update of it.

    Raises:
        CatalogError: the document is refused as a whole; says why.
    """
    gate = _Gate(current, shipped or current)
    lines = [line for key, raw in sorted(_decode(data).items()) if (line := gate.line(key, raw))]
    count = gate.taken
    have = sum(1 for _ in current.pairs())
    if not count:
        raise CatalogError(_named("the document has no providers with models", gate.left_out))
    if count * 2 < have:
        told = f"the document has {count:,} models that can be used and the catalog {have:,}"
        raise CatalogError(_named(f"{told}; less than half cannot be right", gate.left_out))
    lines += gate.missing({line["id"] for line in lines})
    return Update(
        _file(lines, current, date), tuple(gate.added), tuple(gate.pinned), tuple(gate.left_out)
    )


def pin(stored: Catalog, shipped: Catalog) -> bytes:
    """A stored update with every provider reached as the package says, as a catalog file.

    Versions before 0.2 stored updates without holding their addresses against the shipped ones.
    """
    gate = _Gate(shipped, shipped)
    lines = []
    for provider in stored.providers.values():
        told = {"id": provider.id, "name": provider.name, "npm": provider.npm, "api": provider.api}
        models = {model: stored.entry(provider.id, model) for model in provider.models}
        line = gate.line(provider.id, Raw(_encode({**told, "models": models})))
        lines += [line] if line else []
    return _file(lines, stored, stored.header.date or None)


def _file(lines: list[Entry], current: Catalog, date: str | None) -> bytes:
    what = "every provider and model that names no other source"
    sources = [{"name": "models.dev", "date": date, "what": what}]
    sources += [
        {"name": s.name, "date": s.date, "what": s.what}
        for s in current.header.sources
        if s.name != "models.dev"
    ]
    header = {"format": FORMAT, "sources": sources, "providers": len(lines), "pinned": True}
    return b"".join(_encode(line) + b"\n" for line in (header, *lines))


def _decode(data: bytes) -> dict[str, Raw]:
    if len(data) > MAX_BYTES:
        raise CatalogError(f"refused: {len(data):,} bytes is too large for a list of models")
    try:
        return msgspec.json.decode(data, type=dict[str, Raw])
    except msgspec.ValidationError as error:
        raise CatalogError(f"refused: not a models.dev document: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"refused: not JSON: {error}") from None


def _named(why: str, left_out: Iterable[str]) -> str:
    first = next(iter(left_out), None)
    return f"refused: {why}" + (f" (left out: {first})" if first else "")


class _Unusable(Exception):
    """Why an entry is left out."""


class _Gate:
    """Lets facts through and keeps the ways to providers as they are."""

    def __init__(self, current: Catalog, shipped: Catalog) -> None:
        self._current, self._shipped = current, shipped
        self.taken = 0
        self.added: list[str] = []
        self.pinned: list[str] = []
        self.left_out: list[str] = []

    def line(self, key: str, raw: Raw) -> Entry | None:
        """The provider's line in the file; nothing if it cannot be used."""
        try:
            offered = _offered(key, raw)
            known = self._known(key)
            reached = _reached(known) if known else _newly_reached(offered)
        except _Unusable as error:
            self.left_out.append(f"{key!r}: {error}"[:300])
            return None
        if known is None:
            self.added.append(key)
        elif _differs(offered.api, reached.get("api")) or set(offered.env) - set(known.env):
            self.pinned.append(key)
        models = self._models(offered, known, reached.get("api"))
        doc = {"doc": offered.doc} if offered.doc else {}
        return {"id": key, "name": offered.name, **reached, **doc, "models": models}

    def missing(self, told: set[str]) -> list[Entry]:
        """Lines of providers of an earlier update that this document lacks: the way to them.

        Without it they would be new, and elsewhere, when they come again.
        """
        return [
            {"id": one.id, "name": one.name, **_reached(one), "models": {}}
            for one in self._current.providers.values()
            if one.id not in told and one.id not in self._shipped.providers
        ]

    def _known(self, key: str) -> Provider | None:
        return self._shipped.providers.get(key) or self._current.providers.get(key)

    def _old(self, provider: str, model: str) -> Mapping[str, Any] | None:
        for catalog in (self._shipped, self._current):
            row = catalog.providers.get(provider)
            if row and model in row.models:
                return catalog.entry(provider, model)
        return None

    def _models(self, offered: _Offered, known: Provider | None, api: str | None) -> Entry:
        allowed = {api} | (self._addresses(known) if known else set())
        models: Entry = {}
        for model, raw in offered.models.items():
            try:
                entry = _entry(model, raw)
                old = self._old(offered.id, model)
                models[model] = _joined(old, entry, allowed)
                self.taken += 1
            except (_Unusable, CatalogError) as error:
                self.left_out.append(f"{offered.id}/{model!r}: {error}"[:300])
        row = self._current.providers.get(offered.id)
        for model in row.models if row else ():
            if model not in models:
                old = self._current.entry(offered.id, model)
                models |= {model: old} if "source" in old else {}
        return models

    def _addresses(self, known: Provider) -> set[str | None]:
        """The addresses at which models of a known provider are."""
        catalog = self._shipped if known.id in self._shipped.providers else self._current
        return {catalog.reached(known.id, model).api for model in known.models}


def _offered(key: str, raw: Raw) -> _Offered:
    try:
        offered = msgspec.json.decode(raw, type=_Offered)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _Unusable(f"not a provider: {error}") from None
    if offered.id != key:
        raise _Unusable(f"it calls itself {offered.id!r}")
    printed = (offered.name, *offered.env, offered.api or "", offered.doc or "")
    odd = next((text for text in printed if has_controls(text)), None)
    if odd is not None:
        raise _Unusable(f"{odd!r} holds control characters")
    return offered


def _reached(known: Provider) -> Entry:
    return {name: value for name in _REACHED if (value := getattr(known, name)) is not None}


def _newly_reached(offered: _Offered) -> Entry:
    """How a new provider is reached: without key variables, and at a plain address."""
    if not _ID.fullmatch(offered.id):
        raise _Unusable("its name is no lower-case word")
    api = _safe(offered.api) if offered.api is not None else None
    held = {"npm": offered.npm, "api": api}
    return {"env": (), **{name: value for name, value in held.items() if value is not None}}


def _safe(address: str) -> str:
    """The address, if a document may bring it.

    A `${VAR}` in it would send that variable there.
    """
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        raise _Unusable(f"{address!r} is not a web address") from None
    if "${" in address:
        raise _Unusable(f"its address {address!r} holds a variable: give it in config.toml")
    if parts.scheme not in ("https", "http") or not host:
        raise _Unusable(f"{address!r} is not a web address")
    if not is_private(address):
        raise _Unusable(f"{address!r} is not encrypted")
    if "@" in parts.netloc:
        raise _Unusable("its address contains a user name or password")
    return address


def is_private(address: str) -> bool:
    """Whether what is sent to an address can be read by its owner alone: encrypted, or here."""
    parts = urlsplit(address)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _differs(told: object, known: object) -> bool:
    return bool(told) and told != known


def _entry(model: str, raw: Any) -> Entry:
    if not isinstance(raw, Mapping):
        raise _Unusable("not a model")
    if has_controls(model):
        raise _Unusable("its name holds control characters")
    entry = tidy(raw)
    if "limit" not in entry or "name" not in entry:
        raise _Unusable("it lacks its name or limit")
    check(entry, model)
    return entry


def _joined(old: Mapping[str, Any] | None, new: Entry, allowed: set[str | None]) -> Entry:
    """The new entry, reached as the old one, with the facts of other sources that only that has."""
    if old is None:
        via = msgspec.convert(new.get("provider", {}), Via)
        if via.api is not None and via.api not in allowed:
            raise _Unusable(f"its own address {via.api!r} is not one of its provider's")
        return new
    new = {key: value for key, value in new.items() if key != "provider"}
    new |= {"provider": old["provider"]} if "provider" in old else {}
    carried = {key: old[key] for key in _OURS if key in old} if "source" in old else {}
    return {**carried, **new}
