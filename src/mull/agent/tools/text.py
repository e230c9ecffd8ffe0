"""Determines the content of a file: text and its encoding, an image, or other bytes.

Text that is not UTF-8 keeps its bytes through an edit. It is taken for cp1252, which covers latin-1
text too, if most of its bytes above ASCII are single ones, or two or three within a word (`Größe`),
or all are letters of one western alphabet; in other encodings whole words consist of such bytes.
Bytes that are not characters are carried as lone surrogates and come out unchanged.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from mull.agent.tools.shown import plural
from mull.neutral.patterns import pattern

__all__ = [
    "HEAD",
    "JUDGED",
    "Encoding",
    "decode",
    "describe",
    "encode",
    "encoding_of",
    "image_type",
]

HEAD = 8192
"""Bytes of a file that determine its type."""
JUDGED = 4 << 20
"""Bytes of a text that determine its encoding."""

_FEW_CONTROLS = 4
_MOST_CONTROLS = 0.05
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b"))


class Encoding(NamedTuple):
    """How bytes are text; `mark` precedes them and is not part of the text.

    `is_sure` is False for text of an unknown encoding, of which only ASCII is understood.
    """

    codec: str
    mark: bytes = b""
    errors: str = "surrogateescape"
    is_sure: bool = True

    @property
    def note(self) -> str:
        """What a reader should know; empty for UTF-8."""
        if not self.is_sure:
            return "neither UTF-8 nor cp1252: each unknown byte is shown as U+FFFD"
        return "" if self.codec == "utf-8" else f"encoding: {self.codec}"


_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE, "surrogatepass"),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE, "surrogatepass"),
)

_WESTERN = Encoding("cp1252")
_UNSURE = Encoding("utf-8", is_sure=False)
_NO_CHARACTER = pattern("[\udc80-\udcff]")
BEYOND_ASCII = pattern("[^\x00-\x7f\ud800-\udfff]")
_HIGH = pattern(rb"[\x80-\xff]")
_IN_WORDS = pattern(
    rb"(?<![\x80-\xff])(?:[\x80-\xff]|(?<=[A-Za-z])[\x80-\xff]{2,3}|[\x80-\xff]{2,3}(?=[A-Za-z]))"
    rb"(?![\x80-\xff])"
)
_PUNCTUATION = "€„…‰‹‘’“”•–—™›\xa0¡¢£¥§©ª«¬®°±²³´µ¶·º»¼½¾¿"
_ALPHABETS = tuple(
    frozenset((letters + letters.upper() + _PUNCTUATION).encode("cp1252"))
    for letters in ("äöüß", "åäöæøé")
)
"""The letters of German and of the Nordic languages, which also come in a row (`äöü`)."""

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_OTHERS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"\x00asm", "a WebAssembly module"),
)


def encoding_of(data: bytes, *, is_cut: bool = False) -> Encoding | None:
    """The encoding of a text, or None if it is not text; a cut text continues after the data."""
    head = data[:HEAD]
    for encoding in _MARKED:
        if head.startswith(encoding.mark):
            is_wide = head.startswith(codecs.BOM_UTF32_LE)  # starts like UTF-16
            return None if is_wide else encoding
    if b"\0" in head or any(head.startswith(magic) for magic, _ in (*_IMAGES, *_OTHERS)):
        return None
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_text = controls <= max(_FEW_CONTROLS, _MOST_CONTROLS * len(head))
    return _judged(data[:JUDGED], is_cut or len(data) > JUDGED) if is_text else None


def _judged(data: bytes, is_cut: bool) -> Encoding:
    """UTF-8, even if bytes of it are broken; cp1252; or an unknown encoding."""
    if data.isascii():
        return Encoding("utf-8")
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(data, not is_cut)
    if len(_NO_CHARACTER.findall(text)) <= len(BEYOND_ASCII.findall(text)):
        return Encoding("utf-8")
    high = _HIGH.findall(data)
    letters = frozenset(b"".join(high))
    if any(letters <= alphabet for alphabet in _ALPHABETS):
        return _WESTERN
    return _WESTERN if 2 * sum(map(len, _IN_WORDS.findall(data))) >= len(high) else _UNSURE


def decode(data: bytes, encoding: Encoding) -> str:
    """The text of a whole file. Raises UnicodeDecodeError if it turns out not to be text."""
    return data[len(encoding.mark) :].decode(encoding.codec, encoding.errors)


def encode(text: str, encoding: Encoding) -> bytes:
    """The bytes that `decode` reads this text from."""
    return encoding.mark + text.encode(encoding.codec, encoding.errors)


def image_type(head: bytes) -> str | None:
    """The media type of an image that models accept."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if head.startswith(magic)), None)


def describe(head: bytes, size: int) -> str:
    """`a PDF document, 1,234 bytes`."""
    known = next((name for magic, name in _OTHERS if head.startswith(magic)), "binary data")
    return f"{image_type(head) or known}, {plural(size, 'byte')}"
