"""A key that cannot be shown by accident, and what may be one.

A Secret prints as MASK wherever it lands: in a repr, a format, a log, an error. It is opened by
`reveal` alone, which belongs where headers are built and where keys are kept, nowhere else.
"""

from __future__ import annotations

from typing import NoReturn

from mull.auth.static import MASK
from mull.neutral.errors import ConfigError

__all__ = ["Secret", "parse_secret"]

_LONGEST = 16_384  # signed web tokens are long; a file pasted by mistake is longer


class Secret:
    """A key or token."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The key itself."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._text == other._text

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled or copied")


def parse_secret(text: str, what: str) -> Secret:
    """The key that a text holds; blanks around it are not part of it.

    Raises:
        ConfigError: it cannot be one. Names `what` it should have been, never the text.
    """
    key = text.strip()
    if not key:
        raise ConfigError(f"{what} is empty: give the key itself")
    if len(key) > _LONGEST:
        raise ConfigError(f"{what} has {len(key):,} characters: no key is that long")
    # a line break would let the key write headers of its own, and HTTP libraries that refuse
    # other characters quote the whole header in their error
    if not all("!" <= char <= "~" for char in key):
        raise ConfigError(
            f"{what} contains a blank, a line break or a non-ASCII character: "
            "give only the key, as the provider shows it"
        )
    return Secret(key)
