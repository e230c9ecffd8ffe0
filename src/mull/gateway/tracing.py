"""Requests to the gateway as OpenTelemetry spans, with the attributes of the GenAI conventions.

A span continues the trace named in the client's request headers, and the request upstream carries
the same headers. Spans never record the content of messages.

Tracing is on if the program has configured OpenTelemetry. `mull serve` does so by itself if the
standard environment variables name an endpoint to export to.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from mull.agent.telemetry import find_tracer, usage_attributes
from mull.gateway.tokens import client_name
from mull.neutral.events import Event, Finished, Started
from mull.neutral.extras import missing

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mull.client.access import Access
    from mull.gateway.job import Job
    from mull.gateway.observing import Outcome

__all__ = ["Tracing", "record_caller", "set_up_tracing"]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TRACE_HEADERS = ("traceparent", "tracestate")
_caller: ContextVar[Mapping[str, str]] = ContextVar("caller")


def record_caller(headers: Mapping[str, str]) -> None:
    """Record the trace headers of the request being handled."""
    _caller.set({name: headers[name] for name in _TRACE_HEADERS if name in headers})


def set_up_tracing(environ: Mapping[str, str]) -> str | None:
    """Export spans, if the environment names an endpoint and the program has not configured
    OpenTelemetry itself. Return what is missing if they cannot be exported."""
    named = next((name for name in _ENDPOINTS if environ.get(name)), None)
    if named is None or "opentelemetry.sdk.trace" in sys.modules:
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        return f"{named} is set, but {missing('otel', error)}"
    service = {"service.name": environ.get("OTEL_SERVICE_NAME", "mull-gateway")}
    provider = TracerProvider(resource=Resource.create(service))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return None


class Tracing:
    """Observes requests as spans, and passes their trace headers upstream."""

    def __init__(self) -> None:
        self._spans: dict[Job, Span] = {}

    def along(self, job: Job, way: Access) -> Access:
        """Access to the upstream, with headers that name the request's span as parent."""
        span = self._spans.get(job)
        if span is None:
            return way
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        headers: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(headers, set_span_in_context(span))
        return replace(way, headers={**way.headers, **headers})

    def began(self, job: Job) -> None:
        """Start the span of a request."""
        tracer = find_tracer()
        if tracer is None:
            return
        from opentelemetry.trace import SpanKind

        target, request = job.prepared.target, job.prepared.request
        address = urlsplit(job.route.way.base_url or "")
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": target.provider,
            "gen_ai.request.model": target.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "mull.request.thinking": job.prepared.thinking,
            "mull.gateway.client": client_name(job.client.scope) or None,
            "mull.gateway.dialect": job.client.dialect,
            "server.address": address.hostname,
            "server.port": address.port,
        }
        self._spans[job] = tracer.start_span(
            f"chat {target.model}",
            _parent(),
            kind=SpanKind.CLIENT,
            attributes={key: value for key, value in attributes.items() if value is not None},
        )

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """Add attributes of the answer to the span."""
        span = self._spans.get(job)
        if span is None:
            return
        for event in events:
            match event:
                case Started():
                    known = {"gen_ai.response.id": event.id, "gen_ai.response.model": event.model}
                    span.set_attributes({k: v for k, v in known.items() if v is not None})
                case Finished(stop_reason=str(reason)):
                    span.set_attribute("gen_ai.response.finish_reasons", [reason])

    def ended(self, job: Job, outcome: Outcome) -> None:
        """End the span. Only the kind of a failure is recorded, because a provider's message may
        quote the conversation."""
        span = self._spans.pop(job, None)
        if span is None:
            return
        from opentelemetry.trace import StatusCode

        used = usage_attributes(outcome.usage)
        span.set_attributes({key: value for key, value in used.items() if value is not None})
        if outcome.ending in ("refused", "broken"):
            kind = str(outcome.status) if outcome.status >= 400 else outcome.ending
            span.set_attribute("error.type", kind)
            span.set_status(StatusCode.ERROR)
        span.set_attribute("mull.gateway.ending", outcome.ending)
        span.end()


def _parent() -> Context | None:
    """The parent context of a span: the program's own current span, otherwise the client's
    trace."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers = _caller.get({})
    if not headers or get_current_span().get_span_context().is_valid:
        return None
    return TraceContextTextMapPropagator().extract(headers)
