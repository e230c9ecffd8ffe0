"""Requests to the gateway as OpenTelemetry spans, with the attributes of the GenAI conventions.

A span belongs to the trace that the client says its request is part of, and the upstream is told
of it in the same way. Nothing of what was said is recorded.

It is on where the program has set OpenTelemetry up. `mull serve` does so itself if the usual
variables name an endpoint to export to.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from mull.agent.telemetry import find_tracer, usage_attributes
from mull.neutral.events import Event, Finished, Started

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from mull.client.access import Access
    from mull.gateway.observing import Outcome
    from mull.gateway.service import Job

__all__ = ["Tracing", "set_up_tracing", "tell_caller"]

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TRACE_HEADERS = ("traceparent", "tracestate")
_caller: ContextVar[Mapping[str, str]] = ContextVar("caller")


def tell_caller(headers: Mapping[str, str]) -> None:
    """Say what the request that is handled now tells of its trace."""
    _caller.set({name: headers[name] for name in _TRACE_HEADERS if name in headers})


def set_up_tracing(environ: Mapping[str, str]) -> str | None:
    """Export spans, if the environment says where to and the program does not do so yet. Says what
    is missing where they cannot be exported."""
    named = next((name for name in _ENDPOINTS if environ.get(name)), None)
    if named is None or "opentelemetry.sdk.trace" in sys.modules:
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return f"{named} is set, but no spans are exported: that needs pip install 'mull[otel]'"
    service = {"service.name": environ.get("OTEL_SERVICE_NAME", "mull-gateway")}
    provider = TracerProvider(resource=Resource.create(service))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return None


class Tracing:
    """An observer of requests, and what their upstreams are told."""

    def __init__(self) -> None:
        self._spans: dict[Job, Span] = {}

    def along(self, job: Job, way: Access) -> Access:
        """The way to the upstream, with the request's span as its parent."""
        span = self._spans.get(job)
        if span is None:
            return way
        from opentelemetry.trace import set_span_in_context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        told: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(told, set_span_in_context(span))
        return replace(way, headers={**way.headers, **told})

    def began(self, job: Job) -> None:
        """A request goes out: begin its span."""
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
            "mull.gateway.client": job.client.scope or None,
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

    def heard(self, job: Job, events: Sequence[Event]) -> None:
        """It is answered."""
        span = self._spans.get(job)
        if span is None:
            return
        for event in events:
            match event:
                case Started():
                    told = {"gen_ai.response.id": event.id, "gen_ai.response.model": event.model}
                    span.set_attributes({k: v for k, v in told.items() if v is not None})
                case Finished(stop_reason=str(reason)):
                    span.set_attribute("gen_ai.response.finish_reasons", [reason])

    def ended(self, job: Job, outcome: Outcome) -> None:
        """It is over: end its span. Of a failure only the kind is told, for a provider's words may
        quote what was said."""
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
    """Where a span belongs: below the program's own, else in the client's trace."""
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    told = _caller.get({})
    if not told or get_current_span().get_span_context().is_valid:
        return None
    return TraceContextTextMapPropagator().extract(told)
