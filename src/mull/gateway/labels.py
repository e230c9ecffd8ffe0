"""The model names under which usage and metrics are recorded.

Models of the catalog and the configuration keep their names. A client may also ask for a model that
neither lists, if the provider may have it; the number of such names is limited.
"""

from __future__ import annotations

from mull.neutral.target import Target

__all__ = ["ModelNames"]

_MOST_UNLISTED = 100


class ModelNames:
    """Names of models, limited in number."""

    def __init__(self) -> None:
        self._unlisted: set[str] = set()

    def of(self, target: Target) -> str:
        """The name of a target's model; `PROVIDER/other` for unlisted models beyond the limit."""
        name = f"{target.provider}/{target.model}"
        if target.known or name in self._unlisted:
            return name
        if len(self._unlisted) >= _MOST_UNLISTED:
            return f"{target.provider}/other"
        self._unlisted.add(name)
        return name
