"""Regular expressions that are compiled on first use.

Compiling one takes longer than importing a module, and few are needed at startup.
"""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["pattern"]

_USES = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, on first use."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        vars(self).update((use, getattr(compiled, use)) for use in _USES)
        return getattr(compiled, name)
