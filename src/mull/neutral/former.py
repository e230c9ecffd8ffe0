"""Reads JSON from earlier versions too.

Where a block has `wire` today, thinking once had `details`, and a text or a call `extra`. Both
meant something different in each of the four dialects of that time. Such a file is read into
current values, and is rewritten only when it is written anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

__all__ = ["Reader", "renewed"]

_Value = TypeVar("_Value")
_Details = list[dict[str, Any]]
_HOLDERS = frozenset({"message", "messages", "records", "events"})
_THOUGHTS = ("thinking", "thinking_carrier")
_WITH_EXTRA = ("text", "tool_call")
_PARTS = ("summary_text", "reasoning_text")


class Reader(Generic[_Value]):
    """Reads JSON as values of one type; what it rejects is read again in the old format."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decode: Callable[[bytes | str], _Value] = msgspec.json.Decoder(kind).decode

    def __call__(self, data: bytes | str, dialect: str | None = None) -> _Value:
        """The value; `dialect` is that of events, which do not contain it themselves.

        Raises:
            msgspec.DecodeError: it is not such a value in any version.
        """
        try:
            return self._decode(data)
        except msgspec.ValidationError:
            plain = renewed(msgspec.json.decode(data), dialect)
            value: _Value = msgspec.convert(plain, self._kind)
            return value


def renewed(value: Any, dialect: str | None = None) -> Any:
    """A message, a block, an event, a container of them, or a list of them, in the current
    format.
    """
    match value:
        case list():
            return _renewed_list(value, dialect)
        case {"blocks": list(blocks)}:
            origin = value.get("origin")
            wrote = origin.get("dialect") if isinstance(origin, dict) else None
            return {**value, "blocks": _renewed_list(blocks, wrote)}
        case dict() if holding := _HOLDERS.intersection(value):
            return {**value, **{name: renewed(value[name], dialect) for name in holding}}
        case {"type": kind, "extra": dict() | None as extra, **rest} if kind in _WITH_EXTRA:
            return _with_wire(rest | {"type": kind}, dialect, extra)
        case {"type": kind, "details": None | [], **rest} if kind in _THOUGHTS:
            return rest | {"type": kind}
        case {"type": kind, "details": [*details], **rest} if kind in _THOUGHTS:
            if all(isinstance(entry, dict) for entry in details):
                field = rest.get("sourceField")
                wrote = dialect or _writer_of(details, field)
                return _with_wire(rest | {"type": kind}, wrote, _data(wrote, details, field))
    return value


def _renewed_list(values: list[Any], dialect: str | None) -> list[Any]:
    """What a carrier contained depends on the field of its thinking: its first event tells."""
    fields: dict[int | str, Any] = {}
    new: list[Any] = []
    for value in values:
        match value:
            case {"type": "thinking", "key": int() | str() as key, "sourceField": field}:
                fields.setdefault(key, field)
            case {"type": "thinking_carrier", "key": int() | str() as key} if key in fields:
                value = {**value, "sourceField": fields[key]}
        new.append(renewed(value, dialect))
    return new


def _with_wire(rest: Any, dialect: str | None, data: Any) -> Any:
    return {**rest, "wire": {"dialect": dialect, "data": data}} if data else rest


def _writer_of(details: _Details, field: Any) -> str:
    """Whose details these are, if the author of the answer is unknown."""
    types = {str(entry.get("type")) for entry in details}
    if not types.isdisjoint(_PARTS) or any(map(_is_rest, details)):
        return "openai-responses"
    if field in ("thinking", "thought") and types == {"None"}:
        return "anthropic" if field == "thinking" else "gemini"
    return "openai-chat"


def _data(dialect: str, details: _Details, field: Any) -> dict[str, Any]:
    """The details as their dialect stores them today."""
    match dialect:
        case "openai-chat":
            return {"thinking" if field == "content_list" else "reasoning_details": details}
        case "openai-responses":
            kept = {
                "parts": [part for part in details if not _is_rest(part)],
                "item": next((part["item"] for part in details if _is_rest(part)), None),
            }
            return {name: value for name, value in kept.items() if value}
    return {name: value for entry in reversed(details) for name, value in entry.items()}


def _is_rest(part: dict[str, Any]) -> bool:
    return part.keys() == {"item"}
