"""The gate between foreign text and a terminal.

Text from a model, a tool, a server, a file or a catalog passes `neutralise` before it is shown.
Standard streams that are terminals do this themselves (`guarded`), so forgetting it does no harm.
Our own escape sequences are `Drawn`, a type that only drawing creates, and go through `draw_on`.

A control character could move the cursor, change colours, set the window title or write to the
clipboard; a direction mark could show code in another order than it runs. Such characters are made
visible or removed; newline and tab stay, and letters of all scripts are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NewType, TextIO, cast

from mull.neutral.patterns import pattern

__all__ = [
    "Drawn",
    "Inbox",
    "draw_on",
    "guard_standard_streams",
    "guarded",
    "make_room_by",
    "neutralise",
    "one_line",
    "unguarded",
]

Drawn = NewType("Drawn", str)
"""Text for a terminal that contains escape sequences from mull itself."""

_UNSAFE = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_BROKEN = "\N{REPLACEMENT CHARACTER}"
_SIGNS: dict[int, str | None] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), _BROKEN),
    **dict.fromkeys(range(0xD800, 0xE000), _BROKEN),
    **dict.fromkeys((0x202D, 0x202E), _BROKEN),  # the overrides, which show text backwards
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    # Invisible marks: isolates, embeddings, soft hyphen, zero-width spaces.
    **dict.fromkeys((0xAD, 0x61C, 0x200B, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0xFEFF)),
    **dict.fromkeys((*range(0x2060, 0x2070), 0xFFF9, 0xFFFA, 0xFFFB)),
    **dict.fromkeys(range(0xE0000, 0xE0080)),  # tags: a complete hidden alphabet
}


def neutralise(text: str) -> str:
    """The text without anything that a terminal would obey, except newline and tab."""
    if _UNSAFE.search(text) is None:
        return text
    return text.replace("\r\n", "\n").translate(_SIGNS)


def one_line(text: str, longest: int = 200) -> str:
    """The text on one line, without anything that a terminal would obey; its line ends are made
    visible.
    """
    line = neutralise(text[: 4 * longest]).replace("\n", "␤").replace("\t", " ")
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


class _Guarded:
    """A terminal stream that shows all text and obeys none of it."""

    make_room: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.make_room()
        self.stream.write(neutralise(text))
        return len(text)

    def writelines(self, texts: Any) -> None:
        for text in texts:
            self.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def guarded(stream: TextIO) -> TextIO:
    """The stream; if it is a terminal, behind the gate."""
    if isinstance(stream, _Guarded) or not stream.isatty():
        return stream
    return cast(TextIO, _Guarded(stream))


def unguarded(stream: TextIO) -> TextIO:
    """The stream itself, for code that draws the whole screen and guards every cell of it."""
    return stream.stream if isinstance(stream, _Guarded) else stream


def guard_standard_streams() -> None:
    """Put standard output and error behind the gate, if they are terminals."""
    import sys

    sys.stdout, sys.stderr = guarded(sys.stdout), guarded(sys.stderr)


def make_room_by(call: Callable[[], None]) -> None:
    """Call this before anything is written to a terminal behind the gate."""
    _Guarded.make_room = staticmethod(call)


def draw_on(stream: TextIO, text: Drawn) -> None:
    """Write what mull has drawn."""
    unguarded(stream).write(text)
    stream.flush()


class Inbox:
    """Collects chunks of text; what is taken out is safe however it was split."""

    __slots__ = ("_pieces",)

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Store a chunk: the only work for each delta."""
        self._pieces.append(text)

    def take(self, *, final: bool = False) -> str:
        """The text since the last call; half of a line end waits for the other half."""
        if not self._pieces:
            return ""
        text = "".join(self._pieces)
        self._pieces.clear()
        if text.endswith("\r") and not final:
            self._pieces.append("\r")
            text = text[:-1]
        return neutralise(text)
