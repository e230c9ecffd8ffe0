"""Decodes chunks and complete responses of Chat Completions to events.

This module handles choices, errors, usage and the end; `delta` reads a delta or message. A stream
ends with a finish reason or with `[DONE]`; either is enough, and reading continues after the first,
because usage may follow it. Nothing here raises for anything a server sent.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mull.dialects.decoder import Stage
from mull.dialects.openai_chat.delta import DeltaReader
from mull.dialects.openai_chat.finish import BROKEN, as_error, broken, stop_reason
from mull.dialects.openai_chat.usage import find_usage, read_usage
from mull.dialects.sse import SseReader
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    Started,
    ThinkingDelta,
    UsageReported,
    Warned,
)
from mull.neutral.target import Target

__all__ = ["FRAMING", "ChunkInterpreter"]

FRAMING = SseReader


class ChunkInterpreter:
    """Interprets the JSON of one answer; `field_name` is the only reasoning field to read."""

    def __init__(self, target: Target, field_name: str | None = None) -> None:
        self.stage: Stage = "open"
        self._compat = target.compat
        self._field_name = field_name
        self._reader = DeltaReader(target.compat, field_name)
        self._read = self._reader.read
        self._started = False
        self._had_delta = False
        self._warned = False
        self._failed = False
        self._reason: str | None = None
        self._usage: dict[str, Any] | None = None
        self._counts = target.compat.count_thinking == "llama-timings"
        self._thought: int | None = 0

    def take(self, event: str | None, value: Any) -> list[Event]:
        """Events of one chunk."""
        out: list[Event] = []
        if type(value) is not dict:
            return out
        if not self._started:
            self._start(value, out)
        finished, get = False, value.get
        choices = get("choices")
        if type(choices) is list:
            for choice in choices:
                if type(choice) is not dict:
                    continue
                of = choice.get
                delta = of("delta")
                if type(delta) is dict and not of("finish_reason") and not of("index"):
                    self._had_delta = True
                    self._read(delta, out)
                else:
                    finished = self._choice(choice, out) or finished
        if self._counts:
            self._count(get("timings"), out)
        if finished or not choices or get("usage"):
            self._usage = find_usage(value) or self._usage
        if not choices or event == "error" or get("error"):
            self._fail(as_error(value, event), out)
        return out

    def whole(self, value: Any) -> list[Event]:
        """Events of a complete response."""
        self._reader = DeltaReader(self._compat, self._field_name, whole=True)
        self._read = self._reader.read
        self._counts = False
        if not isinstance(value, dict):
            return [Failed("the answer is not an object", "unreadable", body=value)]
        out = self.take(None, value)
        if not self._failed and not value.get("choices"):
            self._fail(Failed("the answer has no choices", "no_choices", body=value), out)
        return out + self.end(True)

    def end(self, done: bool) -> list[Event]:
        """Events of the end; `done` means that the stream itself announced it."""
        if not self._started and not done:
            return []
        out: list[Event] = []
        self._reader.close(out)
        if self._usage is not None:
            usage = read_usage(self._usage)
            if self._counts and usage.reasoning is None and self._thought is not None:
                usage = replace(usage, reasoning=min(self._thought, usage.output or 0))
            out.append(UsageReported(usage))
        if self._failed:
            return out
        if self._reason is None and not done:
            text = "the stream ended before the answer did"
            out.append(Failed(text, "incomplete", "interrupted"))
        else:
            calls, refused = self._reader.calls.usable, self._reader.refused
            reason = stop_reason(self._reason, calls=calls, refused=refused)
            if reason == "tool_calls" and self._reader.calls.nameless and not calls:
                reason = "stop"  # none of the calls can be run
            out.append(Finished(reason))
        return out

    def _start(self, value: dict[str, Any], out: list[Event]) -> None:
        self._started = True
        id_, model = value.get("id"), value.get("model")
        out.append(
            Started(
                id_ if isinstance(id_, str) else None, model if isinstance(model, str) else None
            )
        )

    def _choice(self, choice: dict[str, Any], out: list[Event]) -> bool:
        """Read one choice; returns whether it says why the answer ended."""
        if choice.get("index"):
            self._leave_out(out)
            return False
        delta = choice.get("delta")
        if type(delta) is dict:
            self._had_delta = True
            self._read(delta, out)
        elif not self._had_delta and type(message := choice.get("message")) is dict:
            self._read(message, out)
        reason = choice.get("finish_reason")
        if not reason:
            return False
        self.stage = "closing"
        if isinstance(reason, str):
            if self._reason in (None, "stop"):
                self._reason = reason
            if reason in BROKEN and not self._failed:
                self._fail(as_error(choice) or broken(reason), out)
        return True

    def _count(self, timings: Any, out: list[Event]) -> None:
        """Count thinking where the server does not: every chunk says how many tokens have been
        written so far, so the last one with a thought says how many were thinking.
        """
        if any(isinstance(event, ThinkingDelta) for event in out):
            written = timings.get("predicted_n") if isinstance(timings, dict) else None
            self._thought = written if isinstance(written, int) else None

    def _leave_out(self, out: list[Event]) -> None:
        """Only one answer is ever requested; a second one would be mixed into the first."""
        if not self._warned:
            self._warned = True
            out.append(Warned("choices", "an additional answer was left out"))

    def _fail(self, failed: Failed | None, out: list[Event]) -> None:
        if failed is not None:
            self._failed = True
            self.stage = "closing"
            out.append(failed)
