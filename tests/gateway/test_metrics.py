"""Metrics, read by Prometheus' own parser, and spans, held by the OpenTelemetry SDK's exporter."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from gateway.test_app import KIMI, QUESTION, SCRIPT, STREAMED
from gateway.test_team import MESSAGES, SECRET, Team
from mull.gateway.labels import ModelNames
from mull.gateway.limits import LimitName
from mull.gateway.metrics import Metrics
from mull.gateway.tokens import Limits
from mull.gateway.tracing import set_up_tracing
from mull.neutral.target import Compat, ModelFacts, Target
from mull.testing import CUT, Reply, ScriptedServer, StrictServer

CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hm"}}]}


def run(work):
    return asyncio.run(work())


def read(text: str) -> dict[str, float]:
    """Each sample under its name and labels, as the parser reads them."""
    samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sample.labels.items())
            name = f"{sample.name}{{{labels}}}".replace("mull_gateway_", "")
            assert name not in samples
            samples[name] = sample.value
    return samples


def test_requests_are_counted_by_what_they_were_and_how_they_ended():
    async def work():
        with StrictServer("kimi", SCRIPT * 2) as server:
            async with Team(server.url, Limits(requests_per_minute=2)) as team:
                usage = (await team.ask("/v1/chat/completions", QUESTION)).json["usage"]
                await team.ask("/v1/messages", MESSAGES)
                assert (await team.ask("/v1/messages", MESSAGES)).status == 429
                team.gateway.store_failures["read"] += 1
                answer = await team.ask("/metrics", b"")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        found = read(answer.body.decode())
        for dialect in ("openai-chat", "anthropic"):
            labels = f"model={KIMI},client_dialect={dialect},upstream_dialect=openai-chat"
            assert found[f"requests_total{{{labels},ending=complete,status=200}}"] == 1
        assert found["open_requests{}"] == 0
        assert found["limited_total{limit=requests per minute}"] == 1
        assert found["store_failures_total{operation=read}"] == 1
        tokens = {kind: found[f"tokens_total{{model={KIMI},kind={kind}}}"] for kind in KINDS}
        assert tokens["input"] >= usage["prompt_tokens"]
        assert tokens["output"] > tokens["reasoning"] > 0
        assert found[f"cost_dollars_total{{model={KIMI}}}"] > 0
        for name in ("first_event_seconds", "request_seconds"):
            assert found[f"{name}_count{{model={KIMI}}}"] == 2
            assert found[f"{name}_bucket{{model={KIMI},le=+Inf}}"] == 2
            steps = [v for k, v in found.items() if k.startswith(f"{name}_bucket")]
            assert steps == sorted(steps)
        assert SECRET not in answer.body.decode()

    run(work)


def test_answers_that_nobody_knows_are_counted():
    async def work():
        said = [{"role": "assistant", "content": "Tea."}, {"role": "user", "content": "no"}]
        asked = json.loads(QUESTION)
        body = json.dumps({**asked, "messages": [*asked["messages"], *said]}).encode()
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits()) as team:
                await team.ask("/v1/chat/completions", body)
                found = read((await team.ask("/metrics", b"")).body.decode())
        assert found["unattached_total{answers=unknown}"] == 1

    run(work)


KINDS = ("input", "cached", "output", "reasoning")


@pytest.mark.parametrize(
    ("reply", "ending"),
    [
        (Reply.json({"error": {"message": "no"}}, 429), "ending=refused,status=429"),
        (Reply.events(CHUNK, CUT), "ending=broken,status=200"),
    ],
)
def test_failures_are_counted_by_their_kind(reply, ending):
    async def work():
        with ScriptedServer([reply]) as server:
            async with Team(server.url, Limits()) as team:
                await team.ask("/v1/chat/completions", STREAMED)
                found = read((await team.ask("/metrics", b"")).body.decode())
        (name,) = [name for name in found if name.startswith("requests_total")]
        assert ending in name

    run(work)


def test_metrics_need_a_token_where_there_are_tokens():
    async def work():
        async with Team(limits=Limits()) as team:
            assert (await team.ask("/metrics", b"", authorization="")).status == 401
            assert (await team.ask("/metrics", b"")).status == 200

    run(work)


def target(model: str, *, known: bool = False) -> Target:
    return Target("p", "P", model, "openai-chat", ModelFacts(), Compat(), known=known)


def test_labels_are_bounded_and_written_so_that_they_can_be_read():
    names = ModelNames()
    made = {names.of(target(f"m{n}")) for n in range(300)}
    assert len(made) == 101
    assert "p/other" in made
    assert names.of(target("m7")) == "p/m7"
    assert names.of(target("listed", known=True)) == "p/listed"
    metrics = Metrics()
    odd: LimitName = 'a"b\\c\nd'  # type: ignore[assignment]
    metrics.limited(odd)
    assert read(metrics.text())[f"limited_total{{limit={odd}}}"] == 1


@pytest.fixture
def spans(monkeypatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter.get_finished_spans


TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


def test_a_request_is_a_span_of_its_clients_trace_and_so_is_the_upstreams(spans):
    async def work():
        with StrictServer("kimi", SCRIPT) as server:
            async with Team(server.url, Limits()) as team:
                more = {"traceparent": PARENT, "tracestate": "a=b"}
                usage = (await team.ask("/v1/messages", MESSAGES, **more)).json["usage"]
        (span,) = spans()
        assert span.name == "chat kimi-k2.5"
        assert f"{span.context.trace_id:032x}" == TRACE
        assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
        told = server.requests[0].headers
        assert told["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"
        assert told["tracestate"] == "a=b"
        attributes = dict(span.attributes)
        assert attributes["gen_ai.operation.name"] == "chat"
        assert attributes["gen_ai.provider.name"] == "moonshotai"
        assert attributes["gen_ai.usage.input_tokens"] == usage["input_tokens"]
        assert attributes["gen_ai.usage.output_tokens"] == usage["output_tokens"]
        assert attributes["gen_ai.usage.reasoning.output_tokens"] > 0
        assert attributes["gen_ai.response.finish_reasons"] == ("stop",)
        assert attributes["mull.gateway.client"] == "ann"
        assert attributes["mull.gateway.ending"] == "complete"
        assert attributes["server.port"] == server.port
        assert "Let me see" not in span.to_json()
        assert SECRET not in span.to_json()

    run(work)


def test_a_trace_that_is_none_is_not_taken_up(spans):
    async def work():
        with StrictServer("kimi", SCRIPT * 2) as server:
            async with Team(server.url, Limits()) as team:
                await team.ask("/v1/messages", MESSAGES, traceparent="00-nonsense-1-01")
                await team.ask("/v1/messages", MESSAGES)
        assert [span.parent for span in spans()] == [None, None]
        assert [r.headers["traceparent"][:3] for r in server.requests] == ["00-", "00-"]

    run(work)


def test_a_failed_request_is_a_span_that_says_its_kind_alone(spans):
    async def work():
        reply = Reply.json({"error": {"message": "not with 'a secret thing'"}}, 403)
        with ScriptedServer([reply]) as server:
            async with Team(server.url, Limits()) as team:
                await team.ask("/v1/chat/completions", QUESTION)
        (span,) = spans()
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.attributes["error.type"] == "403"
        assert "secret thing" not in span.to_json()
        assert span.parent is None

    run(work)


def test_an_endpoint_without_anything_that_exports_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter", None)
    monkeypatch.delitem(sys.modules, "opentelemetry.sdk.trace")
    told = set_up_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert told is not None
    assert told.startswith("OTEL_EXPORTER_OTLP_ENDPOINT is set, but exporting spans needs")
    assert told.endswith("'mull-reasoning[otel]'")
    assert set_up_tracing({}) is None
