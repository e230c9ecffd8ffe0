"""One model's entry in models.dev's shape: how it is tidied, checked and overlaid.

Everything that comes in from outside (the build, a user's file, an update) passes `tidy` and
`check`; everything that is laid over something else passes `overlay`. Nothing here knows where
an entry is kept.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mull.neutral.errors import CatalogError
from mull.neutral.target import ModelFacts

__all__ = ["Entry", "Via", "check", "has_controls", "overlay", "tidy"]

Entry = dict[str, Any]


class Via(Struct, frozen=True):
    """How one model is reached where that differs from its provider's other models."""

    npm: str | None = None
    api: str | None = None
    shape: Literal["responses", "completions"] | None = None


class _Checked(ModelFacts, frozen=True):
    provider: Via = Via()


_KEPT = frozenset(_Checked.__struct_fields__)


def tidy(entry: Mapping[str, Any]) -> Entry:
    """The entry with models.dev's nested `modalities` as `input`, and only what mull reads."""
    kept = {key: value for key, value in entry.items() if key in _KEPT and value is not None}
    modalities = entry.get("modalities")
    if "input" not in kept and isinstance(modalities, Mapping) and "input" in modalities:
        kept["input"] = modalities["input"]
    if isinstance(kept.get("name"), str):
        kept["name"] = kept["name"].strip()  # some of models.dev's end in a tab
    return kept


def check(entry: Mapping[str, Any], place: str) -> None:
    """Refuse an entry whose fields are not of the kinds they must be.

    Raises:
        CatalogError: names `place` and the field.
    """
    try:
        msgspec.convert(dict(entry), _Checked)
    except msgspec.ValidationError as error:
        raise CatalogError(f"{place}: {_speak(error)}") from None
    name = entry.get("name")
    if isinstance(name, str) and has_controls(name):
        raise CatalogError(f"{place}: its name holds control characters")


def has_controls(text: str) -> bool:
    """Whether a terminal would do something else with the text than show it."""
    return any(char < " " or "\x7f" <= char <= "\x9f" for char in text)


def overlay(under: Mapping[str, Any], over: Mapping[str, Any]) -> Entry:
    """`over` laid on `under` field by field; objects are merged, null takes a field away."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[key] = overlay(below, value)
        else:
            merged[key] = value
    return merged


def _speak(error: msgspec.ValidationError) -> str:
    """`limit.context: expected int, got str` from msgspec's own sentence."""
    text, _, path = str(error).partition(" - at ")
    field = path.strip("`").removeprefix("$").removeprefix(".")
    told = text[:1].lower() + text[1:]
    return f"{field}: {told}" if field else told
