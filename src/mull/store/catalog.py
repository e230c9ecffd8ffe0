"""The catalog as this user has it: the shipped or updated one, with their own models over it.

`models.json` in the config directory is the user's and must be right; `catalog.jsonl` in the
data directory is ours, and when it is damaged the shipped catalog stands in for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mull.catalog.load import Catalog, check_overlay, load, shipped, shipped_date
from mull.logs import log_warning
from mull.neutral.errors import CatalogError, ConfigError
from mull.store.files import read_bytes, write_atomic

__all__ = ["MODELS_FILE", "UPDATE_FILE", "load_base", "load_catalog", "save_update"]

MODELS_FILE = "models.json"
UPDATE_FILE = "catalog.jsonl"


def load_catalog(
    config_dir: Path,
    data_dir: Path,
    overlays: Sequence[Mapping[str, Any]] = (),
    warn: Callable[[str], None] = log_warning,
) -> Catalog:
    """The user's catalog; `overlays` go over models.json.

    Raises:
        CatalogError: models.json or an overlay is not what it should be; names the place.
        ConfigError: models.json cannot be read.
    """
    return _load((_own_models(config_dir / MODELS_FILE), *overlays), data_dir, warn)


def load_base(data_dir: Path, warn: Callable[[str], None] = log_warning) -> Catalog:
    """The catalog without anything of the user's: what an update is compared with."""
    return _load((), data_dir, warn)


def _load(
    layers: Sequence[Mapping[str, Any]], data_dir: Path, warn: Callable[[str], None]
) -> Catalog:
    stored = data_dir / UPDATE_FILE
    try:
        base = read_bytes(stored)
        if base is None:
            return load(layers)
        catalog = load(layers, base)
        if not catalog.header.pinned:
            from mull.catalog.update import pin

            catalog = load(layers, pin(load(base=base), shipped()))
    except (CatalogError, ConfigError) as error:
        catalog = load(layers)  # raises again if it was an overlay that is wrong
        warn(f"{stored} is not used: {error}; `mull models update` rebuilds it")
        return catalog
    # an upgrade of mull may bring facts that are newer than the last update
    return catalog if catalog.header.date >= shipped_date() else load(layers)


def save_update(data_dir: Path, data: bytes) -> Path:
    """Keep an update that was checked, and return its file.

    Raises:
        ConfigError: it cannot be written; the old one is as it was.
    """
    path = data_dir / UPDATE_FILE
    write_atomic(path, data)
    return path


def _own_models(path: Path) -> dict[str, Any]:
    data = read_bytes(path)
    if data is None:
        return {}
    try:
        layer = msgspec.json.decode(data, type=dict[str, Any])
        check_overlay(layer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CatalogError(f"{path}: not a JSON object of providers: {error}") from None
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from None
    for provider in layer.values():
        for entry in provider.get("models", {}).values():
            entry.setdefault("source", f"your {path.name}")
            if "reasoning" in entry:
                entry["own_reasoning"] = entry["reasoning"] is True
    return layer
