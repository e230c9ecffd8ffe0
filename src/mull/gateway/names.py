"""Which served model a client means by the name that it asks for.

Clients have names of their own that nobody can change, or change the names they were given. So a
name may be an alias, may fit a pattern such as `claude-*`, and may end in a level: `kimi/high`, or
`kimi:high` where slashes are taken.
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
    """The name that is configured, and the settings that the rest of the client's name asks
    for."""

    name: str
    asked: Mapping[str, SettingValue] = {}


class Names:
    """The names of a configuration."""

    def __init__(self, models: Mapping[str, ServedModel]) -> None:
        said = {name: (name, *served.aliases) for name, served in models.items()}
        pairs = [(alias, name) for name, every in said.items() for alias in every]
        self._exact = {name: name for name in models if "*" not in name}
        for alias, name in pairs:
            if "*" not in alias:
                self._exact.setdefault(alias, name)
        rows = [(alias, name) for alias, name in pairs if "*" in alias]
        rows.sort(key=lambda row: -len(row[0].replace("*", "")))  # the closest fit first
        self._patterns = [(_compiled(alias), name) for alias, name in rows]

    def listed(self) -> list[str]:
        """The names that a client can choose from."""
        return [name for alias, name in self._exact.items() if alias == name]

    def find(self, wanted: str) -> Meant | None:
        """What is meant; None where nothing fits."""
        if wanted in self._exact:
            return Meant(self._exact[wanted])
        head, asked = level_of(wanted)
        if asked and (name := self._exact.get(head) or self._fitting(head)):
            return Meant(name, asked)
        fitting = self._fitting(wanted)
        return Meant(fitting) if fitting is not None else None

    def _fitting(self, wanted: str) -> str | None:
        return next((name for fits, name in self._patterns if fits.fullmatch(wanted)), None)


def level_of(name: str) -> tuple[str, Mapping[str, SettingValue]]:
    """A name without its level, and the settings that the level stands for."""
    slashed = without_colon(name)
    try:
        return split_model(slashed)
    except SettingError:  # a budget of 0, or one beyond all bounds
        return name, {}


def without_colon(name: str) -> str:
    """`name:high` as `name/high`; any other colon is part of the name."""
    head, _, tail = name.rpartition(":")
    if head and as_level(tail) is not None and split_level(head)[1] is None:
        return f"{head}/{tail}"
    return name


def _compiled(name: str) -> re.Pattern[str]:
    """A pattern of which the stars stand for anything. Each is tried once, from the left, so that
    no name takes long."""
    parts = [re.escape(part) for part in re.split(r"\*+", name)]
    first, rest = parts[0], parts[1:]
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)
