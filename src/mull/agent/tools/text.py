"""What kind of content a file has: text and its encoding, an image, or other bytes.

Text that is not UTF-8 keeps its bytes through an edit: they are carried as lone surrogates and
come out as they went in.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple

from mull.agent.tools.shown import plural

__all__ = ["HEAD", "Encoding", "decode", "describe", "encode", "encoding_of", "image_type"]

HEAD = 8192
"""How many bytes of a file tell its kind."""

_FEW_CONTROLS = 4
_MOST_CONTROLS = 0.05
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b"))


class Encoding(NamedTuple):
    """How bytes are text; `mark` stands before them and is no part of the text."""

    codec: str
    mark: bytes = b""
    errors: str = "surrogateescape"


_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE, "surrogatepass"),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE, "surrogatepass"),
)

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


def encoding_of(head: bytes) -> Encoding | None:
    """The encoding of a text that begins so, or None if it is no text."""
    for encoding in _MARKED:
        if head.startswith(encoding.mark):
            is_wide = head.startswith(codecs.BOM_UTF32_LE)  # begins as UTF-16 does
            return None if is_wide else encoding
    if b"\0" in head or any(head.startswith(magic) for magic, _ in (*_IMAGES, *_OTHERS)):
        return None
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_text = controls <= max(_FEW_CONTROLS, _MOST_CONTROLS * len(head))
    return Encoding("utf-8") if is_text else None


def decode(data: bytes, encoding: Encoding) -> str:
    """The text of a whole file. Raises UnicodeDecodeError if it is none after all."""
    return data[len(encoding.mark) :].decode(encoding.codec, encoding.errors)


def encode(text: str, encoding: Encoding) -> bytes:
    """The bytes that `decode` gives this text for."""
    return encoding.mark + text.encode(encoding.codec, encoding.errors)


def image_type(head: bytes) -> str | None:
    """The media type of an image that models take."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _IMAGES if head.startswith(magic)), None)


def describe(head: bytes, size: int) -> str:
    """`a PDF document, 1,234 bytes`."""
    known = next((name for magic, name in _OTHERS if head.startswith(magic)), "binary data")
    return f"{image_type(head) or known}, {plural(size, 'byte')}"
