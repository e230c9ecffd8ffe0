"""The names that usage and metrics of models are kept under.

They are those of the catalog and the configuration. A client can ask for any name, and some of them
lead to a provider that may know it: only so many of those are kept apart.
"""

from __future__ import annotations

from mull.neutral.target import Target

__all__ = ["ModelNames"]

_MOST_UNLISTED = 100


class ModelNames:
    """Names of models, bounded in number."""

    def __init__(self) -> None:
        self._unlisted: set[str] = set()

    def of(self, target: Target) -> str:
        """The name of a target's model; `PROVIDER/other` for those that are too many."""
        name = f"{target.provider}/{target.model}"
        if target.known or name in self._unlisted:
            return name
        if len(self._unlisted) >= _MOST_UNLISTED:
            return f"{target.provider}/other"
        self._unlisted.add(name)
        return name
