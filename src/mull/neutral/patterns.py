"""Regular expressions that are compiled on first use.

Compiling one takes longer than importing a module, and few are needed at startup.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["pattern"]


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, on first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Compiled:
    """A pattern in use: everything a compiled one has, found without a detour."""


class _Pattern(_Compiled):
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(self._text, self._flags)
        public = (use for use in dir(compiled) if not use.startswith("_"))
        vars(self).update((use, getattr(compiled, use)) for use in public)
        self.__class__ = _Compiled  # type: ignore[assignment]
        return getattr(compiled, name)
