"""Regular expressions that are compiled when they are first used.

To compile one takes longer than to load a module, and what a start needs of them is little.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["pattern"]

_USES = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, at its first use."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        vars(self).update((use, getattr(compiled, use)) for use in _USES)
        return getattr(compiled, name)
