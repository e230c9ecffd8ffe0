"""Text of a model made fit for a terminal.

A control character could move the cursor, change colours, set the window's title or write to the
clipboard; a direction mark could show code in another order than it runs. Such characters become
visible signs or go; newline and tab stay, and letters of all scripts are left as they are.
"""

from __future__ import annotations

from mull.neutral.patterns import pattern

__all__ = ["Inbox", "neutralise"]

_UNSAFE = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_SIGNS: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), _BROKEN),
    **dict.fromkeys(range(0xD800, 0xE000), _BROKEN),
    **dict.fromkeys((0x202D, 0x202E), _BROKEN),  # the overrides, which show text backwards
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    # Marks that are seen nowhere: isolates, embeddings, soft hyphen, zero-width spaces.
    **dict.fromkeys((0xAD, 0x61C, 0x200B, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0xFEFF)),
    **dict.fromkeys((*range(0x2060, 0x2070), 0xFFF9, 0xFFFA, 0xFFFB)),
}


def neutralise(text: str) -> str:
    """The text with nothing in it that a terminal obeys, except newline and tab."""
    if _UNSAFE.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_SIGNS)


class Inbox:
    """Collects pieces of a text as they come; taken out, it is safe however it was cut."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Keep a piece: all that is done for each delta."""
        self._pieces.append(text)

    def take(self, *, final: bool = False) -> str:
        """What came since the last time; half of a line's end waits for the other half."""
        if not self._pieces:
            return ""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.endswith("\r") and not final:
            self._pieces.append("\r")
            text = text[:-1]
        return neutralise(text)
