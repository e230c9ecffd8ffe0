"""What a function returns as the result of a call: text, JSON, images and files."""

from __future__ import annotations

import base64
import contextlib
from collections import UserString
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from typing import Any

import msgspec

from mull.agent.attachments import media_type
from mull.agent.tools.text import HEAD
from mull.agent.tools.tool import Outcome
from mull.neutral.blocks import MediaBlock, TextBlock

__all__ = ["outcome_of", "text_of_value", "yielded"]

_LISTS = (Sequence, Set, ValuesView, Iterator)


def outcome_of(value: Any) -> Outcome:
    """Text as it is, also from bytes; images, PDFs and audio as media; anything else as JSON. A
    list that contains media is split into its texts and its media.
    """
    if isinstance(value, list | tuple) and any(_media(one) is not None for one in value):
        parts = [_media(one) or text_of_value(one) for one in value]
    else:
        parts = [_media(value) or text_of_value(value)]
    texts = [part for part in parts if isinstance(part, str)]
    return Outcome("\n".join(texts), media=tuple(p for p in parts if isinstance(p, MediaBlock)))


def yielded(values: Sequence[Any]) -> Any:
    """What a generator yielded, as one value: lines, if there is text among it; the pieces of bytes
    joined; otherwise the only value, or all as a list.
    """
    is_bytes = all(isinstance(one, bytes | bytearray) for one in values)
    if values and is_bytes and not any(_media(one) for one in values[1:]):
        return b"".join(values)
    if any(_media(one) is not None for one in values):
        return values
    if not any(isinstance(one, str | TextBlock) for one in values):
        return values if len(values) > 1 else next(iter(values), None)
    lines = [text_of_value(one) for one in values]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines[:-1]) + lines[-1]


def text_of_value(value: Any) -> str:
    """A value as text: JSON, or as Python prints it."""
    if isinstance(value, TextBlock):
        return value.text
    if isinstance(value, bytes | bytearray):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    try:
        plain = msgspec.to_builtins(value, enc_hook=_plain)
        if isinstance(plain, str):
            return plain
        import json  # keeps NaN and lone surrogates, which msgspec rejects or drops

        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _media(value: Any) -> MediaBlock | None:
    if isinstance(value, MediaBlock):
        return value
    if isinstance(value, bytes | bytearray) and (kind := media_type(bytes(value[:HEAD]))):
        return MediaBlock(kind, data=base64.b64encode(value).decode())
    return None


def _plain(value: Any) -> Any:
    """A value that msgspec does not know: pydantic's models, numpy's numbers and arrays as JSON,
    anything else as text.
    """
    if isinstance(value, str | UserString):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, _LISTS):
        return list(value)
    for name, given in (("model_dump", {"mode": "json"}), ("tolist", {})):
        if callable(convert := getattr(value, name, None)) and not isinstance(value, type):
            return convert(**given)
    return str(value)
