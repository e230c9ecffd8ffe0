"""Turns as OpenTelemetry spans, with the attributes of the GenAI conventions.

Active if the program has set up OpenTelemetry; mull itself imports nothing of it. A turn is a span,
and below it each request, tool and compression; below a request, its retries and fixes. Messages,
thinking and tool calls are recorded only on request.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from mull._version import __version__
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    Healed,
    Retrying,
    Started,
    StateChanged,
    ToolRan,
    ToolStarted,
)
from mull.neutral.messages import Message
from mull.neutral.usage import Usage

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from mull.agent.run import Turn

__all__ = ["Spans", "find_tracer", "usage_attributes"]

_USAGE = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
}


def find_tracer() -> Tracer | None:
    """The tracer of the program's own setup; None if it has not imported OpenTelemetry."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    tracer: Tracer = trace.get_tracer("mull", __version__)
    return tracer


class Spans:
    """The spans of one turn: a subscriber of its hub.

    `conversation` is the id under which the turn is stored, `content` whether messages are
    recorded.
    """

    def __init__(
        self, tracer: Tracer, turn: Turn, *, conversation: str | None = None, content: bool = False
    ) -> None:
        self._tracer = tracer
        self._turn = turn
        self._content = content
        self._conversation = conversation
        self._whole: Span | None = None
        self._asked_at: int | None = None
        self._step: Span | None = None
        self._asks = False
        self._trouble: Span | None = None
        self._tools: dict[str, Span] = {}
        self._told: Message | None = None

    def __call__(self, events: Sequence[Event]) -> None:
        """Process events that arrived together."""
        if self._asked_at is not None and not isinstance(events[0], StateChanged):
            self._begin_request()
        for event in events:
            match event:
                case StateChanged():
                    self._enter(event.state)
                case Started():
                    self._set(self._step, {"gen_ai.response.id": event.id})
                    self._set(self._step, {"gen_ai.response.model": event.model})
                case Finished():
                    reasons = [event.stop_reason] if event.stop_reason else None
                    self._set(self._step, {"gen_ai.response.finish_reasons": reasons})
                case Failed():
                    self._fail(self._step, event.code or "broken_off")
                case Retrying() | Healed():
                    self._begin_trouble(event)
                    continue
                case ToolStarted() | ToolRan():
                    self._tool(event)
            self._end_trouble()

    def _enter(self, state: str) -> None:
        if self._whole is None:
            self._whole = self._start("invoke_agent mull", None, operation="invoke_agent")
        if state in ("streaming", "healing"):
            self._begin_request()
            return
        self._end_step()
        if state == "sending":
            self._asked_at = time.time_ns()
        elif state == "compressing":
            self._step, self._asks = self._start("compress", self._whole), False
        elif state in ("done", "failed"):
            self._end(state)

    def _begin_request(self) -> None:
        """Start the span of a request, now that it is really sent."""
        if self._asked_at is None or self._turn.prepared is None:
            return
        since, self._asked_at = self._asked_at, None
        target, request = self._turn.prepared.target, self._turn.prepared.request
        address, self._asks = urlsplit(target.endpoint or ""), True
        self._step = self._start(
            f"chat {target.model}",
            self._whole,
            operation="chat",
            since=since,
            kind="CLIENT",
            **{
                "gen_ai.request.max_tokens": request.max_tokens,
                "gen_ai.request.temperature": request.temperature,
                "mull.request.thinking": self._turn.prepared.thinking,
                "server.address": address.hostname,
                "server.port": address.port,
            },
        )
        if self._content:
            said = _messages(request.messages)
            system = request.system or None
            self._set(self._step, {"gen_ai.input.messages": said})
            self._set(self._step, {"gen_ai.system_instructions": system})

    def _end_step(self) -> None:
        error = self._turn.error
        if error is not None:
            self._begin_request()  # it was rejected or abandoned before any event
        self._asked_at = None
        step, self._step = self._step, None
        if step is None:
            return
        if isinstance(error, Exception):
            self._fail(step, _kind(error))
        if self._asks:
            self._answered(step)
        step.end()

    def _answered(self, step: Span) -> None:
        answers = (m for m in reversed(self._turn.messages) if m.role == "assistant")
        answer = next(answers, None)
        if answer is not None and answer is not self._told:
            self._told = answer
            self._set(step, usage_attributes(answer.usage))
            if self._content:
                self._set(step, {"gen_ai.output.messages": _messages([answer])})

    def _begin_trouble(self, event: Retrying | Healed) -> None:
        """A problem with a request, until the next event about it."""
        self._end_trouble()
        if isinstance(event, Healed):
            about: dict[str, Any] = {"mull.healing.change": event.change}
            self._trouble = self._start("heal", self._step, **about)
        else:
            about = {"mull.retry.attempt": event.attempt, "mull.retry.wait": event.seconds}
            self._trouble = self._start("retry", self._step, **about)

    def _end_trouble(self) -> None:
        if self._trouble is not None:
            self._trouble.end()
            self._trouble = None

    def _tool(self, event: ToolStarted | ToolRan) -> None:
        span = self._tools.pop(event.call_id, None)
        if span is None:
            about: dict[str, Any] = {"gen_ai.tool.name": event.name}
            about["gen_ai.tool.call.id"] = event.call_id
            name = f"execute_tool {event.name}"
            span = self._start(name, self._whole, operation="execute_tool", **about)
        if isinstance(event, ToolStarted):
            self._tools[event.call_id] = span
            if self._content:
                self._set(span, {"gen_ai.tool.call.arguments": _json(event.input)})
            return
        if event.is_error:
            self._fail(span, "tool_error")
        if self._content:
            self._set(span, {"gen_ai.tool.call.result": event.output})
        span.end()

    def _end(self, state: str) -> None:
        self._end_trouble()
        for span in self._tools.values():  # interrupted with the turn
            span.end()
        self._tools.clear()
        if self._whole is None:
            return
        if state == "failed":
            self._fail(self._whole, _kind(self._turn.error))
        self._whole.end()
        self._whole = None

    def _start(
        self,
        name: str,
        parent: Span | None,
        *,
        operation: str | None = None,
        since: int | None = None,
        kind: str = "INTERNAL",
        **attributes: Any,
    ) -> Span:
        from opentelemetry.trace import SpanKind, set_span_in_context

        target = self._turn.target
        given = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": target.provider,
            "gen_ai.request.model": target.model,
            "gen_ai.conversation.id": self._conversation,
            **attributes,
        }
        return self._tracer.start_span(
            name,
            set_span_in_context(parent) if parent is not None else None,
            kind=SpanKind[kind],
            attributes={key: value for key, value in given.items() if value is not None},
            start_time=since,
        )

    def _set(self, span: Span | None, attributes: dict[str, Any]) -> None:
        if span is not None:
            span.set_attributes({k: v for k, v in attributes.items() if v is not None})

    def _fail(self, span: Span | None, kind: str) -> None:
        """Only the kind of failure: a provider's message may quote the conversation."""
        from opentelemetry.trace import StatusCode

        if span is not None:
            span.set_attribute("error.type", kind)
            span.set_status(StatusCode.ERROR)


def _kind(error: BaseException | None) -> str:
    status = getattr(error, "status", None)
    return str(status) if status else type(error).__name__ if error is not None else "_OTHER"


def usage_attributes(usage: Usage | None) -> dict[str, Any]:
    """What was used, as attributes of a span."""
    return {name: getattr(usage, key) for key, name in _USAGE.items()} if usage else {}


def _messages(messages: Sequence[Message]) -> str:
    """Messages in the form of the conventions."""
    return _json([{"role": m.role, "parts": list(map(_part, m.blocks))} for m in messages])


def _part(block: object) -> dict[str, Any]:
    match block:
        case TextBlock():
            return {"type": "text", "content": block.text}
        case ThinkingBlock():
            return {"type": "reasoning", "content": block.thought}
        case ToolCallBlock():
            named = {"id": block.id, "name": block.name}
            return {"type": "tool_call", **named, "arguments": block.input}
        case ToolResultBlock():
            return {"type": "tool_call_response", "id": block.call_id, "response": block.output}
    return {"type": "blob"}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
