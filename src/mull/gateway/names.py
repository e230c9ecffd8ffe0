"""Which served model a client means by the model name in its request.

Some clients hard-code model names, others rewrite the names they are given. A requested name may
therefore be an alias, match a pattern such as `claude-*`, and end in a level: `kimi/high`, or
`kimi:high` for clients that give slashes a meaning of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from mull.neutral.errors import SettingError
from mull.neutral.target import split_level
from mull.neutral.thinking import as_level
from mull.settings.model import split_model
from mull.settings.registry import SettingValue
from mull.store.serve import ServedModel

__all__ = ["Meant", "Names", "without_colon"]


class Meant(NamedTuple):
    """The configured name, and the settings requested by the rest of the client's name."""

    name: str
    asked: Mapping[str, SettingValue] = {}


class Names:
    """The model names and aliases in a configuration."""

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        pairs = [
            (alias, name) for name, served in models.items() for alias in (name, *served.aliases)
        ]
        self._exact = {name: name for name in models if "*" not in name}
        for alias, name in pairs:
            if "*" not in alias:
                self._exact.setdefault(alias, name)
        rows = [(alias, name) for alias, name in pairs if "*" in alias]
        rows.sort(key=lambda row: -len(row[0].replace("*", "")))  # most specific first
        self._patterns = [(_compiled(alias), name) for alias, name in rows]

    def listed(self) -> list[str]:
        """The names that a client can choose from."""
        return [name for alias, name in self._exact.items() if alias == name]

    def find(self, wanted: str) -> Meant | None:
        """The model that a client means by `wanted`; None if no name or pattern matches."""
        if wanted in self._exact:
            return Meant(self._exact[wanted])
        head, asked = level_of(wanted)
        if asked and (name := self._exact.get(head) or self._match(head)):
            return Meant(name, asked)
        matched = self._match(wanted)
        return Meant(matched) if matched is not None else None

    def _match(self, wanted: str) -> str | None:
        return next((name for alias, name in self._patterns if alias.fullmatch(wanted)), None)


def level_of(name: str) -> tuple[str, Mapping[str, SettingValue]]:
    """The name without its level, and the settings that the level implies."""
    slashed = without_colon(name)
    try:
        return split_model(slashed)
    except SettingError:  # a budget of 0, or one out of range
        return name, {}


def without_colon(name: str) -> str:
    """`name:high` as `name/high`; any other colon is part of the name."""
    head, _, tail = name.rpartition(":")
    if head and as_level(tail) is not None and split_level(head)[1] is None:
        return f"{head}/{tail}"
    return name


def _compiled(name: str) -> re.Pattern[str]:
    """A pattern in which `*` matches anything. The groups are atomic: without backtracking, no name
    takes long to match."""
    parts = [re.escape(part) for part in re.split(r"\*+", name)]
    first, rest = parts[0], parts[1:]
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)
