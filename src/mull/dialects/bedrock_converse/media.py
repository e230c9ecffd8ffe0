"""Images, documents, videos and audio in the format of the API; None if it has no block for them.

Data is sent in the request; only S3 URLs are accepted.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

from mull.dialects.bedrock_converse.words import MEDIA, media_kind
from mull.neutral.blocks import MediaBlock

__all__ = ["MediaWriter", "read_media"]

_REFUSED = re.compile(r"[^A-Za-z0-9\s\-()\[\]]+")
_BLANKS = re.compile(r"\s+")
_S3 = "s3://"


class MediaWriter:
    """Writes the media of one request: a document has a name, and names are unique."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}

    def write(self, block: MediaBlock) -> dict[str, Any] | None:
        """The content block of an attachment."""
        found = media_kind(block.media_type)
        source = _source(block)
        if found is None or source is None:
            return None
        kind, word = found
        if kind != "document":
            return {kind: {"format": word, "source": source}}
        return {kind: {"format": word, "name": self._name(block.name), "source": source}}

    def _name(self, given: str | None) -> str:
        """A name that the API accepts: few characters, and no two spaces in a row."""
        plain = _BLANKS.sub(" ", _REFUSED.sub("-", given or "")).strip()[:180] or "document"
        times = self._names[plain] = self._names.get(plain, 0) + 1
        return plain if times == 1 else f"{plain} ({times})"


def _source(block: MediaBlock) -> dict[str, Any] | None:
    if block.data:
        return {"bytes": block.data}
    if block.url and block.url.startswith(_S3):
        return {"s3Location": {"uri": block.url}}
    return None


def read_media(block: dict[str, Any]) -> MediaBlock | None:
    """The media in a content block; None for a block that contains none, or more than that."""
    if len(block) != 1:
        return None
    ((kind, held),) = block.items()
    if kind not in MEDIA or not isinstance(held, dict):
        return None
    word, name = held.get("format"), held.get("name")
    media_type = MEDIA[kind].read(word) if isinstance(word, str) else "text/plain"
    if held.keys() - {"format", "name", "source"} or media_type == word:
        return None
    named = name if isinstance(name, str) else None
    match held.get("source"):
        case {"bytes": str(data), **rest} if not rest:
            return MediaBlock(media_type, data, name=named)
        case {"s3Location": {"uri": str(uri), **inner}, **rest} if not rest and not inner:
            return MediaBlock(media_type, url=uri, name=named)
        case {"text": str(text), **rest} if not rest:
            return MediaBlock("text/plain", b64encode(text.encode()).decode(), name=named)
    return None
