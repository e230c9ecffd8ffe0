"""Files for a question, or as the result of a tool: `mull.file`.

Nothing is fetched: a URL goes to the endpoint as it is. If the endpoint accepts no URLs, the
attachment is left out and a note says so.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import url2pathname

from mull.agent import attachments
from mull.agent.attachments import fenced, read_file, text_of
from mull.agent.tools.text import HEAD, describe
from mull.neutral.blocks import MediaBlock, TextBlock
from mull.neutral.errors import LocalError
from mull.policy.view.media import LARGEST
from mull.settings.words import quote

__all__ = ["file"]

_URL = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]+)://|data:)", re.ASCII)
_REMOTE = ("http", "https", "s3", "gs")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+*-]+(?:;.*)?", re.ASCII)
_OFFICE = "application/vnd.openxmlformats-officedocument"
_TYPES = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "avif": "image/avif",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "opus": "audio/ogg",
    "flac": "audio/flac",
    "aiff": "audio/aiff",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    "mpg": "video/mpeg",
    "mpeg": "video/mpeg",
    "wmv": "video/x-ms-wmv",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "pptx": f"{_OFFICE}.presentationml.presentation",
}
"""The type of a file whose content does not tell, by the end of its name."""


def file(
    source: str | os.PathLike[str] | bytes, media_type: str | None = None, name: str | None = None
) -> MediaBlock | TextBlock:
    """A file for a question: a path, its bytes, or a URL.

    The content determines the type, then the end of the name; `media_type` overrides both. Text
    becomes a `TextBlock` under its name, because every model accepts that, unless a `media_type` is
    given. A URL is passed to the endpoint, which fetches it; mull does not.

    Raises:
        LocalError: it cannot be read, is empty or larger than 20 MB, or its type is unknown.
    """
    if media_type is not None and not _MEDIA_TYPE.fullmatch(media_type):
        raise LocalError(f"{quote(str(media_type))} is not a media type such as image/png")
    if isinstance(source, bytes | bytearray | memoryview):
        return _block(bytes(source), media_type, name)
    if isinstance(source, str) and (found := _URL.match(source)):
        return _at_url(source, (found[1] or "data").lower(), media_type, name)
    if not isinstance(source, str | os.PathLike):
        raise LocalError(f"a file is a path, bytes or a URL, not {type(source).__name__}")
    path = Path(source)
    return _block(read_file(path, str(path)), media_type, name or path.name)


def _at_url(
    url: str, scheme: str, media_type: str | None, name: str | None
) -> MediaBlock | TextBlock:
    if scheme == "data":
        data, kind = _inline(url)
        return _block(data, media_type or (None if kind.startswith("text/") else kind), name)
    if scheme == "file":
        path = Path(url2pathname(urlsplit(url).path))
        return _block(read_file(path, str(path)), media_type, name or path.name)
    if scheme not in _REMOTE:
        raise LocalError(f"cannot send a URL that starts with {scheme}: use {', '.join(_REMOTE)}")
    last = PurePosixPath(urlsplit(url).path).name
    known = media_type or _by_name(last)
    if known is None:
        raise LocalError(
            "the type of the file at this URL is unknown: pass media_type, such as image/png"
        )
    return MediaBlock(known, url=url, name=name or last or None)


def _inline(url: str) -> tuple[bytes, str]:
    """The data of a `data:` URL, and its type."""
    head, comma, written = url[len("data:") :].partition(",")
    if not comma:
        raise LocalError("a data: URL needs a comma before its data")
    kind, *options = head.split(";")
    data = unquote_to_bytes(written)
    if "base64" in options:
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            raise LocalError("the data: URL does not contain valid base64") from None
    return data, kind or "text/plain"


def _block(data: bytes, media_type: str | None, name: str | None) -> MediaBlock | TextBlock:
    shown = name or "the file"
    if not data:
        raise LocalError(f"{shown} is empty")
    if len(data) > LARGEST:
        raise LocalError(f"{shown} is larger than {LARGEST >> 20} MB: use a smaller file")
    kind = media_type or attachments.media_type(data[:HEAD]) or _by_name(name or "")
    if kind is not None:
        return MediaBlock(kind, data=base64.b64encode(data).decode(), name=name)
    text = text_of(data)
    if text is None:
        raise LocalError(
            f"the type of {shown} is unknown ({describe(data[:HEAD], len(data))}): pass media_type"
        )
    return TextBlock(fenced(name or "file", text))


def _by_name(name: str) -> str | None:
    return _TYPES.get(PurePosixPath(name).suffix.lstrip(".").lower())
