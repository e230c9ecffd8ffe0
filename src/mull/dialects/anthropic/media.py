"""Images and documents in the format of the API; None if it has no block for them."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from mull.neutral.blocks import MediaBlock

__all__ = ["write_media"]

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SAME_AS = {"image/jpg": "image/jpeg"}
_PDF = "application/pdf"


def write_media(block: MediaBlock) -> dict[str, Any] | None:
    """The content block of an image or document."""
    kind = block.media_type.partition(";")[0].strip().lower()
    kind = _SAME_AS.get(kind, kind)
    if kind.startswith("image/"):
        source = _source(block, kind) if block.url or kind in _IMAGES else None
        return source and {"type": "image", "source": source}
    source = _source(block, kind) if kind == _PDF else _plain_text(block, kind)
    if source is None:
        return None
    title = {"title": block.name} if block.name else {}
    return {"type": "document", "source": source, **title}


def _source(block: MediaBlock, kind: str) -> dict[str, Any] | None:
    if block.data:
        return {"type": "base64", "media_type": kind, "data": block.data}
    return {"type": "url", "url": block.url} if block.url else None


def _plain_text(block: MediaBlock, kind: str) -> dict[str, Any] | None:
    if not kind.startswith("text/") or not block.data:
        return None
    try:
        text = b64decode(block.data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None
