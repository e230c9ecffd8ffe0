"""Whether a downloaded models.dev document may take the place of the catalog.

It may if it is what it should be, field by field, and not much smaller than what we have: a
truncated or foreign document must not make models disappear. What models.dev cannot know (facts
from other sources) is carried over. The result is the same format as the shipped file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mull.catalog.entry import Entry, check, has_controls, tidy
from mull.catalog.load import FORMAT, Catalog
from mull.neutral.errors import CatalogError

__all__ = ["MAX_BYTES", "check_update"]

MAX_BYTES = 64 * 1024 * 1024
_HEAD = ("name", "env", "npm", "api", "doc")
_OURS = ("can_be_off", "default_effort", "thinks_by_default", "tokenizer", "source")
_encode = msgspec.json.Encoder(order="deterministic").encode


class _Provider(msgspec.Struct, frozen=True):
    id: str
    name: str
    models: dict[str, dict[str, Any]]
    env: tuple[str, ...] = ()
    npm: str | None = None
    api: str | None = None
    doc: str | None = None


def check_update(data: bytes, current: Catalog, date: str | None = None) -> bytes:
    """The document as the bytes of a catalog file, dated if the date is known.

    Raises:
        CatalogError: it is refused; says why.
    """
    providers = _decode(data)
    count = sum(len(provider.models) for provider in providers.values())
    have = sum(1 for _ in current.pairs())
    if count * 2 < have:
        raise CatalogError(
            f"refused: the document has {count:,} models and the catalog {have:,}; "
            "less than half cannot be right"
        )
    lines = [_line(provider, current) for _, provider in sorted(providers.items())]
    what = "every provider and model that names no other source"
    sources = [{"name": "models.dev", "date": date, "what": what}]
    sources += [
        {"name": s.name, "date": s.date, "what": s.what}
        for s in current.header.sources
        if s.name != "models.dev"
    ]
    header = {"format": FORMAT, "sources": sources, "providers": len(lines)}
    return b"".join(_encode(line) + b"\n" for line in (header, *lines))


def _decode(data: bytes) -> dict[str, _Provider]:
    if len(data) > MAX_BYTES:
        raise CatalogError(f"refused: {len(data):,} bytes is too large for a list of models")
    try:
        providers = msgspec.json.decode(data, type=dict[str, _Provider])
    except msgspec.ValidationError as error:
        raise CatalogError(f"refused: not a models.dev document: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"refused: not JSON: {error}") from None
    if not any(provider.models for provider in providers.values()):
        raise CatalogError("refused: the document has no providers with models")
    for key, provider in providers.items():
        _check_provider(key, provider)
    return providers


def _check_provider(key: str, provider: _Provider) -> None:
    if provider.id != key:
        raise CatalogError(f"refused: the provider {key!r} calls itself {provider.id!r}")
    printed = (key, provider.name, *provider.env, provider.api or "", *provider.models)
    odd = next((text for text in printed if has_controls(text)), None)
    if odd is not None:
        raise CatalogError(f"refused: {key!r}: {odd!r} holds control characters")
    if provider.api and not provider.api.startswith(("https://", "http://")):
        raise CatalogError(f"refused: {key}: {provider.api!r} is not a web address")


def _line(provider: _Provider, current: Catalog) -> Entry:
    known = current.providers.get(provider.id)
    models = {}
    for model, raw in provider.models.items():
        place = f"{provider.id}.models.{model}"
        entry = tidy(raw)
        if "limit" not in entry or "name" not in entry:
            raise CatalogError(f"refused: {place} lacks its name or limit")
        try:
            check(entry, place)
        except CatalogError as error:
            raise CatalogError(f"refused: {error}") from None
        old = current.entry(provider.id, model) if known and model in known.models else {}
        models[model] = _carried(old, entry)
    for model in known.models if known else ():
        if model not in models:
            old = current.entry(provider.id, model)
            models |= {model: old} if "source" in old else {}
    head = {key: getattr(provider, key) for key in _HEAD}
    kept = {key: value for key, value in head.items() if value is not None}
    return {"id": provider.id, **kept, "models": models}


def _carried(old: Mapping[str, Any], new: Entry) -> Entry:
    """The new entry with the facts of other sources that only the old one has."""
    if "source" not in old:
        return new
    return {**{key: old[key] for key in _OURS if key in old}, **new}
