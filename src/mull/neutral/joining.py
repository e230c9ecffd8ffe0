"""Joins deltas that arrive together: whatever comes after has one to look at instead of many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mull.neutral.events import Event, TextDelta, ThinkingDelta, ToolCallDelta

__all__ = ["join_deltas"]


class _Rule(Struct, frozen=True):
    """When a delta only adds text to the one before: its `look` is what that one `wants`."""

    text: str
    look: Callable[[Any], tuple[Any, ...]]
    wants: Callable[[Any], tuple[Any, ...]]


_RULES: dict[type[Event], _Rule] = {
    TextDelta: _Rule(
        "text", attrgetter("key", "signature", "wire"), lambda delta: (delta.key, None, None)
    ),
    ThinkingDelta: _Rule(
        "text",
        attrgetter("key", "source_field", "kind"),
        attrgetter("key", "source_field", "kind"),
    ),
    ToolCallDelta: _Rule(
        "arguments",
        attrgetter("key", "id", "structured", "name", "signature", "wire"),
        lambda delta: (delta.key, delta.id, delta.structured, None, None, None),
    ),
}


def join_deltas(events: Iterable[Event]) -> list[Event]:
    """The same events with neighbouring deltas of one block as one."""
    joined: list[Event] = []
    for kind, run in groupby(events, type):
        found, rule = list(run), _RULES.get(kind)
        joined += found if rule is None or len(found) == 1 else _joined(found, rule)
    return joined


def _joined(deltas: Sequence[Event], rule: _Rule) -> Iterator[Event]:
    """Deltas of one kind. The first of a block opens it, and those that continue it follow."""
    looks = [*map(rule.look, deltas)]
    texts = [*map(attrgetter(rule.text), deltas)]
    start, length = 0, len(deltas)
    while start < length:
        first = deltas[start]
        wanted, end = rule.wants(first), start + 1
        while end < length and looks[end] == wanted:
            end += 1
        if end > start + 1:
            first = replace(first, **{rule.text: "".join(texts[start:end])})
        yield first
        start = end
