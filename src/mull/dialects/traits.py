"""The traits of all dialects, each from its own package."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import get_args

from mull.neutral.messages import Dialect
from mull.neutral.traits import Traits

__all__ = ["DIALECTS", "TRAITS", "package_of"]

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def package_of(dialect: Dialect) -> str:
    """The name of a dialect's package, which is that of the dialect."""
    return f"mull.dialects.{dialect.replace('-', '_')}"


TRAITS: Mapping[Dialect, Traits] = MappingProxyType(
    {dialect: import_module(package_of(dialect)).TRAITS for dialect in DIALECTS}
)
