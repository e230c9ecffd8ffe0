"""Every model of the shipped catalog, resolved once for all tests that go through them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mull.catalog.load import shipped
from mull.catalog.resolve import resolve
from mull.neutral.target import Target


@cache
def every_target() -> Mapping[tuple[str, str], Target]:
    catalog = shipped()
    return {
        (provider, model): resolve(f"{provider}/{model}", catalog=catalog)
        for provider, model in catalog.pairs()
    }
