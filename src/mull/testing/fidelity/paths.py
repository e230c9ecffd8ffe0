"""Paths into JSON: `messages[*].content[type=thinking].signature`, `input[*].(id|call_id)`.

A step is a key, a choice of keys, `[*]` for every member of a list, `[key=value]` or `[key!=value]`
for those members. What does not exist has no values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["texts_in", "values_at"]

_STEP = re.compile(r"\.?(?:(?P<key>\w+)|\((?P<keys>[\w|]+)\)|\[(?P<where>[^\]]*)\])")


def values_at(path: str, body: Any) -> list[Any]:
    """All values at a path, in document order; the body itself for an empty path.

    Raises:
        ValueError: this is not a path.
    """
    values, at = [body], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise ValueError(f"not a path: {path!r} at {path[at:]!r}")
        at = step.end()
        if step["where"] is not None:
            values = [member for value in values for member in _members(value, step["where"])]
        else:
            keys = [step["key"]] if step["key"] else step["keys"].split("|")
            values = [found for value in values for found in _under(value, keys)]
    return values


def _members(value: Any, where: str) -> Iterable[Any]:
    if not isinstance(value, list):
        return ()
    if where == "*":
        return value
    key, unequal, wanted = re.split(r"(!?=)", where, maxsplit=1)
    return [
        member
        for member in value
        if isinstance(member, dict) and (str(member.get(key)) == wanted) == (unequal == "=")
    ]


def _under(value: Any, keys: Iterable[str]) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[key] for key in keys if value.get(key) is not None)


def texts_in(value: Any) -> Iterator[str]:
    """Every text inside a value; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from texts_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from texts_in(member)
