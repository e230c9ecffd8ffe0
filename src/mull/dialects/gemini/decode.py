"""Interprets the chunks of a Gemini answer.

Every chunk is a complete response with a few more parts, so the same rule applies to streams and to
complete responses: the same parts in the same order give the same blocks. Adjacent parts of plain
text are one block, and so is adjacent thinking; a part with a signature is a block of its own,
because a signed part must be sent back neither merged nor split (ai.google.dev thought signatures).
That includes the part without text that often ends a stream and only carries the signature.

Only `thought: true` makes a part thinking; a signature does not. Parts that are neither text nor a
function call (images, code, server-side tools, future kinds) are kept unchanged.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mull.dialects.decoder import Stage, broken_part
from mull.dialects.gemini import DIALECT
from mull.dialects.gemini.calls import CallReader, signature_of
from mull.dialects.gemini.outcome import read_block, read_error, read_finish, read_usage
from mull.dialects.sse import SseReader
from mull.neutral.blocks import wire_of
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    OpaqueReceived,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    UsageReported,
    Warned,
)
from mull.neutral.target import Target

__all__ = ["FRAMING", "ChunkInterpreter"]

FRAMING = SseReader

_SOURCE = "thought"
_TEXT_KEYS = frozenset({"text", "thought", "thoughtSignature"})
_UNSIGNED_KEYS = frozenset({"text", "thought"})
_UNSAID = "FINISH_REASON_UNSPECIFIED"
_RESPONSE = frozenset({"candidates", "usageMetadata", "responseId", "modelVersion", "error"})
_CANDIDATE = frozenset({"content", "finishReason", "index"})
"""The keys of a chunk that are read; others are kept as they came last."""


class ChunkInterpreter:
    """Reads one answer. Thinking has only one place here, so there is no field to choose."""

    def __init__(self, target: Target, field_name: str | None = None) -> None:
        self.stage: Stage = "open"
        self._calls = CallReader()
        self._started = False
        self._answered = False
        self._failed = False
        self._has_others = self._was_late = False
        self._always_ends = True
        self._blocked: tuple[Finished, Warned] | None = None
        self._reason: str | None = None
        self._reason_said: Any = None
        self._counts: dict[str, Any] = {}
        self._rest: dict[str, Any] = {}
        self._beside: dict[str, Any] = {}

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one chunk; its counts wait for the end, because the last ones apply."""
        if type(value) is not dict:
            return [_unreadable("a chunk", value)]
        out: list[Event] = []
        candidates = value.get("candidates")
        if candidates is None and isinstance(value.get("response"), dict):
            value = value["response"]  # Code Assist wraps every chunk
            candidates = value.get("candidates")
        get = value.get
        if not self._started:
            self._start(value, out)
        if not _RESPONSE.issuperset(value):
            self._rest |= {k: v for k, v in value.items() if k not in _RESPONSE}
        if candidates:
            for candidate in candidates if type(candidates) is list else [candidates]:
                self._take_candidate(candidate, out)
        else:
            self._blocked = read_block(get("promptFeedback")) or self._blocked
        if type(counts := get("usageMetadata")) is dict:
            if None in counts.values():
                counts = {name: count for name, count in counts.items() if count is not None}
            self._counts.update(counts)
        if error := get("error"):
            self._failed = True
            out.append(read_error(error))
        if self._failed or self._blocked is not None:
            self.stage = "closing"
        return out

    def whole(self, value: Any) -> list[Event]:
        """Events of one complete response."""
        return self.take(None, value) + self.end(True)

    def end(self, done: bool) -> list[Event]:
        """The end; only a finish reason, or a stream that announces its end, makes it a regular
        one.
        """
        ended = self._reason is not None or (done and self._answered)
        out = self._calls.close() if ended else self._calls.cut()
        if usage := read_usage(self._counts):
            out.append(UsageReported(usage))
        if self._failed:
            return out
        if self._blocked is not None:
            return [*out, *reversed(self._blocked)]
        if ended:
            has_calls = self._calls.count > 0
            finished, warned = read_finish(self._reason, self._reason_said, has_calls=has_calls)
            finished = replace(finished, wire=wire_of(DIALECT, self._said_beside()))
            return [*out, *([warned] if warned else []), finished]
        said = (
            "the answer ended without a finish reason" if self._answered else "no answer received"
        )
        return [*out, Failed(said, "incomplete", "interrupted")]

    def _said_beside(self) -> dict[str, Any]:
        """What else was said of the response, of its candidate, and in the counts."""
        said = {"response": self._rest, "candidate": self._beside, "usage": self._counts}
        return {place: rest for place, rest in said.items() if rest}

    def _start(self, value: dict[str, Any], out: list[Event]) -> None:
        given, model = value.get("responseId"), value.get("modelVersion")
        self._started = True
        self._calls.response_id = given if isinstance(given, str) else None
        out.append(Started(self._calls.response_id, model if isinstance(model, str) else None))

    def _take_candidate(self, candidate: Any, out: list[Event]) -> None:
        if type(candidate) is not dict:
            return
        get = candidate.get
        if get("index"):
            self._leave_out_candidate(out)
            return
        self._answered = True
        if not _CANDIDATE.issuperset(candidate):
            self._beside |= {k: v for k, v in candidate.items() if k not in _CANDIDATE}
        reason = get("finishReason")
        ends = bool(reason) and type(reason) is str and reason != _UNSAID
        if content := get("content"):
            parts = content.get("parts") if type(content) is dict else content
            parts = parts if type(parts) is list else [parts]
            if self._reason is not None and not (ends and self._always_ends):
                parts = self._late(parts, out)
            self._always_ends = self._always_ends and ends
            self._take_parts(parts, out)
        if ends:
            self._reason, self._reason_said = reason, candidate.get("finishMessage")
            self.stage = "closing"

    def _late(self, parts: list[Any], out: list[Event]) -> list[Any]:
        """What counts of the parts after the end: a signature alone. Some servers give a reason to
        end with every chunk; only there does it not end the answer.
        """
        kept = [part for part in parts if type(part) is dict and _only_signs(part)]
        if len(kept) < len(parts) and not self._was_late:
            self._was_late = True
            out.append(Warned("after_end", "what followed the end of the answer was left out"))
        return kept

    def _leave_out_candidate(self, out: list[Event]) -> None:
        """Only one answer is ever requested; a second is reported once."""
        if not self._has_others:
            self._has_others = True
            out.append(Warned("candidates", "the provider sent several answers: the first is kept"))

    def _take_parts(self, parts: list[Any], out: list[Event]) -> None:
        """Nearly all parts are only text or only thinking."""
        for part in parts:
            if type(part) is dict and not self._calls.is_open:
                text = part.get("text")
                if type(text) is str:
                    if len(part) == 1:
                        if text:
                            out.append(TextDelta(text))
                        continue
                    if len(part) == 2 and part.get("thought") is True:
                        out.append(ThinkingDelta(text, None, _SOURCE, "summary"))
                        continue
            self._take_other(part, out)

    def _take_other(self, part: Any, out: list[Event]) -> None:
        if type(part) is not dict:
            if part is not None:
                out.append(_unreadable("a part", part))
            return
        if not isinstance(signature := part.get("thoughtSignature", ""), str | None):
            part = {name: value for name, value in part.items() if name != "thoughtSignature"}
            said = (
                f"a signature in the answer cannot be used and is not sent back: {signature!r:.80}"
            )
            out.append(Warned("malformed", said))
        text = part.get("text")
        if part.get("functionCall") is not None:
            if text and isinstance(text, str):  # two kinds in one part: neither may be lost
                self._take_parts([{"text": text, "thought": bool(part.get("thought"))}], out)
                part = {k: v for k, v in part.items() if k not in ("text", "thought")}
            out += self._calls.read(part)
            return
        out += self._calls.close()
        if isinstance(text, str) or all(
            v is None or v == ""
            for k, v in part.items()
            if k not in ("thought", "thoughtSignature")
        ):
            out += _read_text(part, text or "")
        elif text is not None or "functionResponse" in part:  # a result is never the model's
            out += broken_part(part, None, "a part")
        else:
            out.append(OpaqueReceived(part))


def _only_signs(part: dict[str, Any]) -> bool:
    return signature_of(part) is not None and not any(
        value for name, value in part.items() if name not in ("thought", "thoughtSignature")
    )


def _read_text(part: dict[str, Any], text: str) -> list[Event]:
    """Text or thinking with more than its text: signed parts stand alone, others are joined."""
    signature = signature_of(part)
    read = _TEXT_KEYS if signature else _UNSIGNED_KEYS
    kept = {k: v for k, v in part.items() if k not in read and v is not None and v != ""}
    wire = wire_of(DIALECT, kept)
    events: list[Event] = []
    if part.get("thought"):
        events.append(ThinkingDelta(text, None, _SOURCE, "summary"))
        if signature or wire:
            events.append(ThinkingCarrier(signature=signature, wire=wire))
    elif text or signature or wire:
        events.append(TextDelta(text, None, signature, wire))
    return [BlockEnded(), *events, BlockEnded()] if signature else events


def _unreadable(what: str, value: Any) -> Warned:
    return Warned("unreadable", f"{what} that is not an object was left out: {value!r:.80}")
