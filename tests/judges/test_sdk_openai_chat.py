"""The official SDK as a judge: its types of our requests, its accumulator of the same streams."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import json_objects, media, names, target, texts, wired
from mull.dialects.registry import encode_request
from mull.neutral.blocks import TextBlock, ToolResultBlock
from mull.neutral.messages import Message, user
from mull.neutral.request import NamedTool, Request, Tool
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan
from openai_chat_wire import STREAMS, TARGETS, answers, decode, render_stream, render_whole

openai = pytest.importorskip("openai", reason="the official SDK is not installed")
pydantic = pytest.importorskip("pydantic")
httpx2 = pytest.importorskip("httpx2", reason="the HTTP library of the SDK is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

RAISES = {
    "calls-without-index": TypeError,
    "details-alone": RuntimeError,
    "dirty": AttributeError,
    "error-midway": openai.APIError,
}
"""Streams that the SDK gives up, and with what."""
MUDDLES = {"calls-share-an-index", "content-list"}
"""Streams that it reads into something else: two calls in one, a part of the text."""


@pytest.fixture(scope="module")
def adapters() -> dict[bool, Any]:
    from openai.types.chat import completion_create_params as params

    return {
        True: pydantic.TypeAdapter(params.CompletionCreateParamsStreaming),
        False: pydantic.TypeAdapter(params.CompletionCreateParamsNonStreaming),
    }


def judge(adapters: dict[bool, Any], sent: dict[str, Any]) -> None:
    """Validate a body, lists that are checked only when they are read included."""
    _read(adapters[sent["stream"]].validate_python(sent))


def _read(value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, str | bytes | int | float | None):
        return
    for inner in value:
        _read(inner)


plans = st.builds(
    ThinkingPlan,
    st.sampled_from(["absent", "default", "on", "off"]),
    st.just("openai-effort"),
    st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
)
tools = st.builds(Tool, names, texts, json_objects)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    history = []
    for _ in range(draw(st.integers(0, 3))):
        blocks = (TextBlock(draw(texts)), *draw(st.lists(media, max_size=2)))
        history.append(Message(role="user", blocks=blocks))
        message = draw(answers())
        history.append(message)
        if message.tool_calls:
            results = tuple(ToolResultBlock(call.id, draw(texts)) for call in message.tool_calls)
            history.append(Message(role="tool", blocks=results))
    return [*history, user(draw(texts))]


rows = st.fixed_dictionaries(
    {
        "system_role": st.sampled_from(["system", "developer"]),
        "max_tokens_field": st.sampled_from(["max_tokens", "max_completion_tokens"]),
        "stream_usage": st.booleans(),
        "empty_content": st.sampled_from([None, "", " "]),
        "reasoning_out": st.sampled_from(["same", "never", "reasoning_content"]),
    }
)


@given(
    history=histories(),
    plan=plans,
    offered=st.lists(tools, max_size=2),
    choice=st.sampled_from([None, "auto", "none", "required", NamedTool("look")]),
    limit=st.none() | st.integers(1, 100_000),
    temperature=st.none() | st.floats(0, 2),
    row=rows,
    stream=st.booleans(),
)
@settings(max_examples=120)
def test_requests_are_what_the_types_say(
    adapters, *, history, plan, offered, choice, limit, temperature, row, stream
):
    request = Request(
        tuple(history),
        plan,
        system="Be brief.",
        tools=tuple(offered),
        tool_choice=choice,
        temperature=temperature,
        max_tokens=limit,
        stream=stream,
    )
    judge(adapters, msgspec.json.decode(encode_request(request, target(compat=row)).body))


def test_the_judge_is_strict(adapters):
    request = Request((user("x"),), ThinkingPlan("absent"))
    body = msgspec.json.decode(encode_request(request, target()).body)
    body["messages"][0]["content"] = [{"type": "image_url", "image_url": "data:,"}]
    with pytest.raises(pydantic.ValidationError):
        judge(adapters, body)


def client(body: bytes) -> Any:
    kind = "application/json" if body.startswith(b"{") else "text/event-stream"

    def answer(request: Any) -> Any:
        return httpx2.Response(200, headers={"content-type": kind}, content=body)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    return openai.OpenAI(api_key="x", base_url="https://acme.example/v1", http_client=http)


def accumulated(body: bytes) -> Any:
    """The message that the SDK puts together from a stream."""
    with client(body).chat.completions.stream(
        model="thinker", messages=[{"role": "user", "content": "x"}]
    ) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot


def agree(body: bytes, to: Target | None = None) -> None:
    theirs, ours = accumulated(body), decode(body, to)
    message = theirs.choices[0].message
    extra = message.model_extra or {}
    thought = "".join(block.thought for block in ours.thinking)
    fields = [extra[f] for f in ("reasoning_content", "reasoning", "reasoning_text", "thinking")
              if extra.get(f)]  # fmt: skip
    if fields:
        assert all(field == thought for field in fields)
    if not any((block.source_field or "").startswith("think_tags") for block in ours.thinking):
        assert (message.content or "") + (message.refusal or "") == ours.text
    calls = message.tool_calls or []
    assert [(call.id, call.function.name) for call in calls] == [
        (call.id, call.name) for call in ours.tool_calls
    ]
    for call, kept in zip(calls, ours.tool_calls, strict=True):
        if kept.arguments is not None:
            assert call.function.arguments == kept.arguments
        else:
            assert msgspec.json.decode(call.function.arguments or "{}") == kept.input
    if theirs.usage is not None and ours.usage is not None:
        assert theirs.usage.prompt_tokens == ours.usage.input
        assert theirs.usage.total_tokens == ours.usage.total


@pytest.mark.parametrize("name", sorted(set(STREAMS) - set(RAISES) - MUDDLES))
def test_the_sdk_makes_the_same_of_our_streams(name):
    agree(STREAMS[name], TARGETS.get(name))


@pytest.mark.parametrize("name", sorted(RAISES))
def test_what_the_sdk_gives_up_is_read_here(name):
    with pytest.raises(RAISES[name]):
        accumulated(STREAMS[name])
    assert decode(STREAMS[name]).blocks


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("name", sorted(MUDDLES))
def test_what_the_sdk_muddles_is_read_here(name):
    theirs, ours = accumulated(STREAMS[name]).choices[0].message, decode(STREAMS[name])
    ids = [call.id for call in theirs.tool_calls or []]
    assert (theirs.content or "", ids) != (ours.text, [call.id for call in ours.tool_calls])
    assert ours.blocks


@given(answers(), st.data())
@settings(max_examples=40)
def test_the_sdk_makes_the_same_of_any_stream(message, data):
    agree(render_stream(data.draw, message))


@given(answers())
@settings(max_examples=40)
def test_the_sdk_makes_the_same_of_any_whole_response(message):
    body = render_whole(message)
    made = client(body).chat.completions.create(
        model="thinker", messages=[{"role": "user", "content": "x"}]
    )
    theirs, ours = made.choices[0].message, decode(body)
    assert (theirs.content or "") == ours.text
    assert [c.id for c in theirs.tool_calls or []] == [c.id for c in ours.tool_calls]
    extra = theirs.model_extra or {}
    assert extra.get("reasoning_details") == (
        wired(ours.thinking[0]).get("reasoning_details") if ours.thinking else None
    )
