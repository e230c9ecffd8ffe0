"""Rejoins characters that a server split between two deltas.

JSON may spell a character beyond U+FFFF as two escapes; some servers send one in each delta. A lone
half becomes U+FFFD, because no text may contain it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["Surrogates", "cleaned"]

_FIELD: dict[type, str] = {TextDelta: "text", ThinkingDelta: "text", ToolCallDelta: "arguments"}


class Surrogates:
    """Repairs events; does nothing until `needed` says that such text arrived."""

    def __init__(self) -> None:
        self.needed = False
        self._half: Event | None = None

    def mend(self, events: list[Event]) -> list[Event]:
        """The events with complete characters; a first half waits for its second."""
        if not self.needed:
            return events
        return [mended for event in events for mended in self._mend(event)]

    def flush(self) -> list[Event]:
        """The half that is still waiting, as a replacement character."""
        half, self._half = self._half, None
        return [] if half is None else [_replace(half, "\ufffd")]

    def _mend(self, event: Event) -> list[Event]:
        if type(event) not in _FIELD:
            return [cleaned(event)]
        text, before, half = _text(event), list[Event](), self._half
        if half is not None and text:
            if type(half) is type(event) and _key(half) == _key(event):
                self._half, text = None, _text(half) + text
            else:
                before = self.flush()
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half = _replace(event, text[-1])
            text = text[:-1]
            if not text:
                return before
        return [*before, cleaned(_replace(event, _whole(text)))]


def _key(event: Event) -> Any:
    return getattr(event, "key", None)


def _text(event: Event) -> str:
    text: str = getattr(event, _FIELD[type(event)])
    return text


def _replace(event: Event, text: str) -> Event:
    changed: Event = msgspec.structs.replace(event, **{_FIELD[type(event)]: text})
    return changed


def _whole(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cleaned(event: Event) -> Event:
    """Carriers and unknown blocks stay unchanged unless they could not be stored."""
    try:
        msgspec.json.encode(event)
    except UnicodeEncodeError:
        return msgspec.convert(_deep(msgspec.to_builtins(event)), type(event))
    return event


def _deep(value: Any) -> Any:
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, dict):
        return {_deep(k): _deep(v) for k, v in value.items()}
    return [_deep(item) for item in value] if isinstance(value, list) else value
