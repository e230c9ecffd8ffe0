"""A server's response as the outcome of a tool call.

Text is joined, images and documents become media. Structured content is the same result in another
form, so only one is sent: the text if it contains everything the structure says, otherwise the
structure. What is too large for a conversation is cut, and the cut says how much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from mull.agent.tools.tool import Outcome
from mull.neutral.blocks import MediaBlock

__all__ = ["MOST_CHARACTERS", "MOST_MEDIA", "cut", "outcome_of", "resource_part"]

MOST_CHARACTERS = 64_000
"""The maximum length of a result's text."""
MOST_MEDIA = 5_000_000
"""The maximum characters of one attachment; Anthropic accepts images up to 5 MB."""
_MOST_ATTACHMENTS = 20
_MOST_COMPARED = 50_000_000
"""Maximum characters searched to find one form in the other."""
_SENT = ("image/", "audio/", "application/pdf")


def outcome_of(result: Mapping[str, Any]) -> Outcome:
    """The outcome of a `tools/call` result, given as its JSON."""
    texts: list[str] = []
    others: list[str] = []
    media: list[MediaBlock] = []
    for part in result.get("content") or []:
        found = _part(part)
        if isinstance(found, str):
            (texts if part.get("type") == "text" else others).append(found)
        elif len(media) < _MOST_ATTACHMENTS:
            media.append(found)
        else:
            left_out = (
                f"{found.media_type} left out: at most {_MOST_ATTACHMENTS} attachments are sent"
            )
            others.append(f"[{left_out}]")
    is_error = bool(result.get("isError"))
    said = _one_form(result.get("structuredContent"), texts, is_error)
    output = cut("\n".join([*said, *others]))
    if not output and not media:
        output = "the tool failed and gave no reason" if is_error else "(no output)"
    return Outcome(output, is_error, tuple(media))


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text, or its beginning and end with a note of what was left out between them."""
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
            return resource_part(resource)
        case {"type": "resource_link", "uri": str(uri)}:
            named = (str(part[key]) for key in ("title", "description") if part.get(key))
            return f"resource: {' – '.join([uri, *named])}"
        case _:
            return f"[content of the kind {str(part.get('type'))[:40]!r}, not shown]"


def resource_part(resource: Mapping[str, Any]) -> str | MediaBlock:
    """The content of a resource: text with its URI, or media."""
    uri = str(resource.get("uri") or "")
    if isinstance(text := resource.get("text"), str):
        return f"{uri}:\n{text}" if uri else text
    kind = str(resource.get("mimeType") or "application/octet-stream")
    data = str(resource.get("blob") or "")
    if kind.startswith(_SENT):
        return _media(kind, data, uri or None)
    return f"[{uri}: {kind}, {_bytes(data):,} bytes, not shown]"


def _media(kind: str, data: str, name: str | None = None) -> str | MediaBlock:
    if len(data) > MOST_MEDIA:
        return f"[{kind} of {_bytes(data):,} bytes left out: too large to send]"
    return MediaBlock(kind, data=data, name=name)


def _bytes(data: str) -> int:
    return len(data) * 3 // 4 - data[-2:].count("=")


def _one_form(structured: Any, texts: list[str], is_error: bool) -> list[str]:
    """The text or the structured content; for an error, its text."""
    text = "\n".join(texts)
    if structured is None or (is_error and text):
        return texts
    if text and (_is_same(structured, texts) or _says_all(text, structured)):
        return texts
    shown = msgspec.json.encode(structured).decode()
    left_out = f"[the same result as text, {len(text):,} characters, is left out]"
    return [shown, left_out] if text else [shown]


def _is_same(structured: Any, texts: list[str]) -> bool:
    """Whether the text is the structure's JSON, as the protocol asks servers to write it.

    The Python SDK wraps non-objects in `result` and writes a list as one text per item.
    """
    wrapped = structured if isinstance(structured, dict) and set(structured) == {"result"} else {}
    said = [_value(text) for text in texts]
    wanted = [structured, *wrapped.values()]
    return any(value == said or value in said or value in texts for value in wanted)


def _says_all(text: str, structured: Any) -> bool:
    """Whether every value of the structure occurs in the text; for `{"content": …}`, the
    content.
    """
    room = _MOST_COMPARED
    values = 0
    for value in _leaves(structured):
        room -= len(text)
        values += 1
        if room < 0 or not _stands_in(value, text):
            return False
    return values > 0


def _stands_in(value: str | float, text: str) -> bool:
    if isinstance(value, str):
        return value in text
    return re.search(rf"(?<![\w.]){re.escape(str(value))}(?!\w)", text) is not None


def _leaves(value: Any) -> Iterator[str | float]:
    """The texts and numbers, without recursion: a server may nest them arbitrarily deep."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case dict() as table:
                waiting += table.values()
            case list() as rows:
                waiting += rows
            case bool() | None:
                pass
            case str() | int() | float() as leaf:
                yield leaf


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
