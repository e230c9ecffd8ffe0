"""What a server answered to a call, as a tool's outcome: pure, from the protocol's JSON.

Text is joined, images and documents become media, structured content is shown as JSON unless the
text says the same. What is too large for a conversation is cut, and the cut says how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mull.agent.tools.tool import Outcome
from mull.neutral.blocks import MediaBlock

__all__ = ["MOST_CHARACTERS", "cut", "outcome_of"]

MOST_CHARACTERS = 64_000
"""The longest text that a result may have."""
MOST_MEDIA = 5_000_000
"""The most characters of one attachment; Anthropic takes images up to 5 MB."""
_MOST_ATTACHMENTS = 20
_SHOWN = ("image/", "audio/", "application/pdf")


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """What the result of a `tools/call`, as its JSON, comes to."""
    texts: list[str] = []
    media: list[MediaBlock] = []
    for part in result.get("content") or []:
        found = _part(part)
        if isinstance(found, str):
            texts.append(found)
        elif len(media) < _MOST_ATTACHMENTS:
            media.append(found)
        else:
            texts.append(f"[{found.media_type} left out: {_MOST_ATTACHMENTS} attachments are sent]")
    structured = result.get("structuredContent")
    if structured is not None and not _is_said(structured, texts):
        texts.append(msgspec.json.encode(structured).decode())
    is_error = bool(result.get("isError"))
    output = cut("\n".join(texts))
    if not output and not media:
        output = "the tool failed and gave no reason" if is_error else "(no output)"
    return Outcome(output, is_error, tuple(media))


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and end with what was left out between them."""
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    left_out = len(text) - most
    return f"{text[:head]}\n[… {left_out:,} of {len(text):,} characters cut …]\n{text[-tail:]}"


def _part(part: Mapping[str, Any]) -> str | MediaBlock:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image" | "audio", "data": str(data)}:
            return _media(str(part.get("mimeType") or "image/png"), data)
        case {"type": "resource", "resource": dict(resource)}:
            return _resource(resource)
        case {"type": "resource_link", "uri": str(uri)}:
            named = (str(part[key]) for key in ("title", "description") if part.get(key))
            return f"resource: {' – '.join([uri, *named])}"
        case _:
            return f"[content of the kind {str(part.get('type'))[:40]!r}, not shown]"


def _resource(resource: Mapping[str, Any]) -> str | MediaBlock:
    uri = str(resource.get("uri") or "")
    if isinstance(text := resource.get("text"), str):
        return f"{uri}:\n{text}" if uri else text
    kind = str(resource.get("mimeType") or "application/octet-stream")
    data = str(resource.get("blob") or "")
    if kind.startswith(_SHOWN):
        return _media(kind, data, uri or None)
    return f"[{uri}: {kind}, {_bytes(data):,} bytes, not shown]"


def _media(kind: str, data: str, name: str | None = None) -> str | MediaBlock:
    if len(data) > MOST_MEDIA:
        return f"[{kind} of {_bytes(data):,} bytes left out: too large to be sent]"
    return MediaBlock(kind, data=data, name=name)


def _bytes(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def _is_said(structured: Any, texts: list[str]) -> bool:
    """Whether the text holds the structured content already, as the protocol asks servers to.

    The Python SDK wraps what is no object in `result` and writes a list as one text per item.
    """
    wrapped = structured if isinstance(structured, dict) and set(structured) == {"result"} else {}
    wanted = [structured, *wrapped.values()]
    said = [_value(text) for text in texts]
    return bool(texts) and any(value == said or value in said or value in texts for value in wanted)


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError):
        return text
