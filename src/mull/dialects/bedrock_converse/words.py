"""The words of the wire: ends, failures, counts, formats of media, choices of tools."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from mull.dialects.tables import Counts, Statuses, Words
from mull.neutral.events import Failed
from mull.neutral.usage import Usage

__all__ = [
    "AUDIO",
    "CHOICES",
    "DOCUMENTS",
    "IMAGES",
    "IN_STREAM",
    "MEDIA",
    "REASONING",
    "REDACTED",
    "STATUSES",
    "VIDEOS",
    "media_kind",
    "neutral_stop_reason",
    "read_error",
    "read_usage",
    "write_stop_reason",
    "write_usage",
]

REASONING = "reasoningContent"
REDACTED = "redactedContent"

CHOICES = Words(("auto", "auto"), ("any", "required"))
_STOP_REASONS = Words(
    ("end_turn", "stop"),
    ("stop_sequence", "stop"),
    ("tool_use", "tool_calls"),
    ("max_tokens", "length"),
    ("model_context_window_exceeded", "length"),
    ("content_filtered", "content_filter"),
    ("guardrail_intervened", "content_filter"),
    ("content_filtered", "refusal"),
)
STATUSES = Statuses(
    (400, "ValidationException"),
    (403, "AccessDeniedException"),
    (401, "AccessDeniedException"),
    (404, "ResourceNotFoundException"),
    (408, "ModelTimeoutException"),
    (504, "ModelTimeoutException"),
    (424, "ModelErrorException"),
    (424, "ModelStreamErrorException"),
    (429, "ThrottlingException"),
    (429, "ModelNotReadyException"),
    (500, "InternalServerException"),
    (503, "ServiceUnavailableException"),
    (529, "ServiceUnavailableException"),
    other="InternalServerException",
)
IN_STREAM = Statuses(
    (400, "ValidationException"),
    (424, "ModelStreamErrorException"),
    (429, "ThrottlingException"),
    (500, "InternalServerException"),
    (503, "ServiceUnavailableException"),
    (529, "ServiceUnavailableException"),
    other="InternalServerException",
)
"""The exceptions that a stream may end in."""

IMAGES = Words(
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("jpeg", "image/jpg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
)
DOCUMENTS = Words(
    ("pdf", "application/pdf"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("html", "text/html"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
)
VIDEOS = Words(
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("mkv", "video/x-matroska"),
    ("webm", "video/webm"),
    ("flv", "video/x-flv"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("wmv", "video/x-ms-wmv"),
    ("three_gp", "video/3gpp"),
)
AUDIO = Words(
    ("mp3", "audio/mpeg"),
    ("mp3", "audio/mp3"),
    ("wav", "audio/wav"),
    ("wav", "audio/x-wav"),
    ("flac", "audio/flac"),
    ("ogg", "audio/ogg"),
    ("aac", "audio/aac"),
    ("m4a", "audio/mp4"),
    ("opus", "audio/opus"),
    ("webm", "audio/webm"),
    ("pcm", "audio/pcm"),
)
MEDIA = {"image": IMAGES, "document": DOCUMENTS, "video": VIDEOS, "audio": AUDIO}
"""The blocks that hold media, and the formats of each."""

_COUNTS = Counts(
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("total", "totalTokens"),
    ("cache_read", "cacheReadInputTokens"),
    ("cache_write", "cacheWriteInputTokens"),
)


def media_kind(media_type: str) -> tuple[str, str] | None:
    """The block for media of a type and the word for its format; None where there is none."""
    plain = media_type.partition(";")[0].strip().lower()
    for block, formats in MEDIA.items():
        word = formats.write(plain)
        if word != plain:
            return block, word
    return None


def neutral_stop_reason(word: str | None, *, calls: bool) -> str | None:
    """The neutral word; calls turn a plain stop into `tool_calls`, but not a cut or a refusal."""
    reason = word if word is None else _STOP_REASONS.read(word)
    return "tool_calls" if calls and reason in (None, "stop") else reason


def write_stop_reason(reason: str | None) -> str:
    """The wire's word; an answer that ended without a reason just ended."""
    return _STOP_REASONS.write(reason or "stop")


def read_usage(counts: dict[str, Any]) -> Usage:
    """The counts; what was read from a cache or written to it is beside `inputTokens`."""
    read = _COUNTS.read(counts)
    fresh = read["input"]
    cached = (read["cache_read"] or 0) + (read["cache_write"] or 0)
    return Usage(**{**read, "input": None if fresh is None else fresh + cached})


def write_usage(usage: Usage | None) -> dict[str, Any]:
    """The counts; the three that clients add up are always there."""
    counts = asdict(usage or Usage())
    cached = (counts["cache_read"] or 0) + (counts["cache_write"] or 0)
    read, output = counts["input"], counts["output"]
    if counts["total"] is None:
        counts["total"] = 0 if read is None or output is None else read + output
    counts |= {"input": max(0, (read or 0) - cached), "output": output or 0}
    return _COUNTS.write(counts)


def read_error(name: str | None, value: dict[str, Any]) -> Failed:
    """An exception in the service's own words; `name` where something beside its body names it."""
    error = value.get("error")
    told = error if isinstance(error, dict) else value
    said = _first(told, "message", "Message", "originalMessage")
    text = error if isinstance(error, str) else said
    code = name or _first(told, "__type", "code", "Code", "type")
    shown = text if isinstance(text, str) else "the endpoint reported an error"
    return Failed(shown, _code(str(code)) if code else None, body=value)


def _first(told: dict[str, Any], *keys: str) -> Any:
    return next((told[key] for key in keys if told.get(key)), None)


def _code(name: str) -> str:
    """`throttlingException` in a stream is `ThrottlingException` before it; some say more, as in
    `com.amazon#ThrottlingException:http://…`."""
    plain = name.rpartition("#")[2].partition(":")[0].strip() or name
    return plain[:1].upper() + plain[1:] if plain.endswith("Exception") else plain
