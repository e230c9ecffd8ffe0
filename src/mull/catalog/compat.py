"""How an endpoint behaves: joins the rows that fit it into one Compat.

Shipped rows come first, lightest to heaviest; then the field in which the model's facts want
reasoning back, unless a row has named one; then the user's own rows; then what was given for
this one request. Each may also name the dialect. What a user wrote is checked key by key, so
that the message can say which one is wrong and what it may be.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from mull.catalog.match import Match, Subject
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Dialect
from mull.neutral.target import Compat, ModelFacts

__all__ = ["Row", "dialect_of", "join", "read_rows"]

_NAMES = dict(zip(Compat.__struct_encode_fields__, Compat.__struct_fields__, strict=True))


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """One row of compat.json or of the user's file."""

    match: Match = Match()
    dialect: Dialect | None = None
    values: dict[str, Any] = msgspec.field(name="set", default_factory=dict)
    source: str | None = None
    seen: str | None = None


def read_rows(rows: Iterable[Any], place: str = "compat") -> tuple[Row, ...]:
    """The user's rows, each checked; rows that were read before are taken as they are.

    Raises:
        ConfigError: names the row, the key, and what is allowed.
    """
    read: list[Row] = []
    for number, raw in enumerate(rows, 1):
        if isinstance(raw, Row):
            read.append(raw)
            continue
        where = f"{place} row {number}"
        try:
            row = msgspec.convert(raw, Row)
        except msgspec.ValidationError as error:
            raise ConfigError(f"{where}: {error}{_row_keys(raw)}") from None
        _check(row.values, where)
        read.append(row)
    return tuple(read)


def dialect_of(rows: Sequence[Row], place: Subject) -> Dialect | None:
    """The dialect that the heaviest fitting row names, if any does."""
    fitting = _fitting([row for row in rows if row.dialect is not None], place)
    return fitting[-1].dialect if fitting else None


def join(
    rows: Sequence[Row],
    place: Subject,
    facts: ModelFacts,
    own: Sequence[Row] = (),
    once: Mapping[str, Any] | None = None,
    *,
    takes_words: bool = False,
) -> Compat:
    """One Compat from the shipped rows, the model's facts, the user's rows and `once`.

    `takes_words`: the entry of this model here lists words of effort, so its endpoint takes them.

    Raises:
        ConfigError: `once` has an unknown key or a value that is not allowed.
    """
    values: dict[str, Any] = {}
    for row in _fitting(rows, place):
        values |= row.values
    if facts.returns_in is not None:
        values.setdefault("reasoningOut", facts.returns_in)
    if takes_words:
        values.setdefault("thinkingWriter", "openai-effort")
    for row in _fitting(own, place):
        values |= row.values
    if once:
        _check(once, "compat")
        values |= once
    return msgspec.convert(values, Compat)


def _fitting(rows: Iterable[Row], place: Subject) -> list[Row]:
    """The rows that fit, lightest first; rows of one weight keep their order."""
    return sorted((r for r in rows if r.match.fits(place)), key=lambda row: row.match.weight)


def _check(values: Mapping[str, Any], where: str) -> None:
    for key, value in values.items():
        if key not in _NAMES:
            allowed = ", ".join(_NAMES)
            raise ConfigError(f"{where}: there is no key {key!r}.\nAllowed: {allowed}.")
        try:
            msgspec.convert({key: value}, Compat)
        except msgspec.ValidationError as error:
            told = str(error).partition(" - at ")[0]
            raise ConfigError(f"{where}: {key}: {told}{_choices(key)}") from None


def _choices(key: str) -> str:
    kind = get_type_hints(Compat)[_NAMES[key]]
    if get_origin(kind) is not Literal:
        return ""
    return f"; allowed: {', '.join(get_args(kind))}"


def _row_keys(raw: Any) -> str:
    if not isinstance(raw, Mapping):
        return "\nA row is an object of: match, dialect, set, source, seen."
    return "\nA row holds: match (provider, model, dialect, endpoint), dialect, set, source, seen."
