"""Spans, held against the OpenTelemetry SDK's own exporter."""

from __future__ import annotations

import asyncio
import json

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mull.agent import telemetry
from mull.agent.engine import CONTENT_VARIABLE, Engine
from mull.agent.library import Conversation
from mull.neutral.errors import RefusedError
from mull.testing import Call, Say, StrictServer, Think
from mull.testing.server import STALL, Reply, ScriptedServer

KIMI = "moonshotai/kimi-k2-thinking"
USAGE = {
    "prompt_tokens": 90,
    "completion_tokens": 10,
    "completion_tokens_details": {"reasoning_tokens": 7},
    "prompt_tokens_details": {"cached_tokens": 64},
}
SECRET = "a secret thing"


@pytest.fixture
def spans(monkeypatch):
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


def look(at: str) -> str:
    """Look."""
    return f"{at}: {SECRET}"


def answered(**more):
    chunk = {"id": "c1", "model": "k2-0905", "choices": [], **more}
    delta = {"reasoning_content": SECRET, "content": "yes"}
    return Reply.events(
        {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE},
        "[DONE]",
    )


def test_a_request_says_what_was_asked_and_what_it_cost(spans):
    with ScriptedServer([answered()]) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k", max_tokens=900)
        talk.ask("q")
    found = spans()
    assert set(found) == {"invoke_agent mull", "chat kimi-k2-thinking"}
    whole, request = found["invoke_agent mull"], found["chat kimi-k2-thinking"]
    assert request.parent.span_id == whole.context.span_id
    assert request.kind is trace.SpanKind.CLIENT
    assert whole.start_time <= request.start_time <= request.end_time <= whole.end_time
    assert dict(request.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "moonshotai",
        "gen_ai.request.model": "kimi-k2-thinking",
        "gen_ai.request.max_tokens": 900,
        "gen_ai.response.id": "c1",
        "gen_ai.response.model": "k2-0905",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 90,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 64,
        "mull.request.thinking": request.attributes["mull.request.thinking"],
        "server.address": "127.0.0.1",
        "server.port": server.port,
    }


@pytest.mark.parametrize("asked", ["no", "by the program", "by the environment"])
def test_content_is_recorded_only_when_that_is_asked_for(spans, monkeypatch, asked):
    if asked == "by the environment":
        monkeypatch.setenv(CONTENT_VARIABLE, "true")
    engine = Engine(record_content=True if asked == "by the program" else None)
    script = [[Think(SECRET), Call("look", {"at": SECRET})], [Think("so"), Say(SECRET)]]
    with StrictServer("kimi", script) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k", tools=[look], engine=engine)
        talk.ask(SECRET)
    found = spans()
    told = "".join(str(dict(span.attributes)) for span in found.values())
    assert (SECRET in told) == (asked != "no")
    if asked != "no":
        (said,) = json.loads(found["chat kimi-k2-thinking"].attributes["gen_ai.output.messages"])
        kinds = [part["type"] for part in said["parts"]]
        assert kinds == ["reasoning", "text"]


def test_tools_are_spans_beside_the_requests(spans):
    def fail() -> str:
        """Fail."""
        raise ValueError("no")

    script = [[Think("hm"), Call("look", {"at": "pond"}), Call("fail", {})], [Say("done")]]
    with StrictServer("kimi", script) as server:
        Conversation(KIMI, base_url=server.url, key="k", tools=[look, fail]).ask("q")
    found = spans()
    whole = found["invoke_agent mull"]
    good, bad = found["execute_tool look"], found["execute_tool fail"]
    assert good.parent.span_id == bad.parent.span_id == whole.context.span_id
    assert good.attributes["gen_ai.tool.name"] == "look"
    assert good.attributes["gen_ai.tool.call.id"]
    assert good.status.status_code is trace.StatusCode.UNSET
    assert bad.status.status_code is trace.StatusCode.ERROR


def test_retries_are_spans_of_their_request(spans):
    busy = Reply.json({"error": {"message": "overloaded"}}, 529, {"retry-after": "0"})
    with ScriptedServer([busy, answered()]) as server:
        Conversation(KIMI, base_url=server.url, key="k").ask("q")
    found = spans()
    retry, request = found["retry"], found["chat kimi-k2-thinking"]
    assert retry.parent.span_id == request.context.span_id
    assert retry.attributes["mull.retry.attempt"] == 2
    assert request.status.status_code is trace.StatusCode.UNSET


def test_a_repair_is_a_span_of_its_request(spans):
    no = Reply.json({"error": {"message": "Unsupported parameter: stream_options"}}, 400)
    with ScriptedServer([no, answered()]) as server:
        Conversation(KIMI, base_url=server.url, key="k").ask("q")
    found = spans()
    assert found["heal"].parent.span_id == found["chat kimi-k2-thinking"].context.span_id
    assert found["heal"].attributes["mull.healing.change"] == "usage not requested in the stream"


def test_a_refusal_is_told_by_its_kind_alone(spans):
    no = Reply.json({"error": {"message": f"not you: {SECRET}"}}, 403)
    with ScriptedServer([no]) as server, pytest.raises(RefusedError):
        Conversation(KIMI, base_url=server.url, key="k").ask("q")
    found = spans()
    assert set(found) == {"invoke_agent mull", "chat kimi-k2-thinking"}
    for span in found.values():
        assert span.status.status_code is trace.StatusCode.ERROR
        assert span.attributes["error.type"] == "403"
        assert SECRET not in str(span.to_json())


def test_a_program_without_open_telemetry_gets_none_of_it(monkeypatch):
    monkeypatch.delitem(telemetry.sys.modules, "opentelemetry.trace")
    assert telemetry.find_tracer() is None


def test_a_request_that_was_left_before_its_answer_began_is_a_span_too(spans):
    async def leave():
        asking = asyncio.ensure_future(talk.ask_async("q"))
        await asyncio.to_thread(server.wait_requests)
        asking.cancel()
        await asyncio.wait({asking})

    with ScriptedServer([Reply(before=(STALL,))]) as server:
        talk = Conversation(KIMI, base_url=server.url, key="k")
        asyncio.run(leave())
    assert set(spans()) == {"invoke_agent mull", "chat kimi-k2-thinking"}
