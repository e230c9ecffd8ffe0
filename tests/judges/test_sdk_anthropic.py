"""The official SDK as a judge of what we send and of what we read.

Known differences: the SDK needs events with names, lets a later signature delta replace an
earlier one, drops deltas of blocks it does not know, and merges a spliced second answer into the
first; those streams are judged elsewhere.
"""

from __future__ import annotations

import json
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_wire import (
    HERE,
    STREAMS,
    WHOLES,
    answers,
    claude,
    decode,
    render_stream,
    render_whole,
    wire_block,
)
from conversations import as_taken, messages
from mull.dialects.registry import encode_request
from mull.neutral.blocks import OpaqueBlock, ToolResultBlock
from mull.neutral.messages import Message, user
from mull.neutral.request import NamedTool, Request, Tool
from mull.neutral.thinking import ThinkingPlan

sdk = pytest.importorskip("anthropic")
httpx = pytest.importorskip("httpx2")
pydantic = pytest.importorskip("pydantic")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

JUDGED = sorted(set(STREAMS) & set(WHOLES) - {"thinking_then_tools", "unknown_blocks"})
JUDGED.append("stop_reason_without_message_stop")


class Wire:
    """A client of the SDK whose server answers what it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer, self.kind, self.sent = b"", "", b""
        transport = httpx.MockTransport(self._reply)
        self.client = sdk.Anthropic(
            api_key="none",
            base_url="https://acme.example",
            max_retries=0,
            http_client=httpx.Client(transport=transport),
        )

    def _reply(self, request: Any) -> Any:
        self.sent = request.content
        return httpx.Response(200, headers={"content-type": self.kind}, content=self.answer)

    def read(self, answer: bytes, *, stream: bool) -> Any:
        self.answer, self.kind = answer, "text/event-stream" if stream else "application/json"
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        if not stream:
            return self.client.messages.create(**asked)
        with self.client.messages.stream(**asked) as found:
            return found.get_final_message()


@pytest.fixture(scope="module")
def wire():
    return Wire()


def content(found: Any) -> list[dict[str, Any]]:
    return [block.to_dict() for block in found.content]


@pytest.mark.parametrize("name", JUDGED)
def test_fixtures_are_read_alike(wire, name):
    theirs, ours = wire.read(STREAMS[name], stream=True), decode(STREAMS[name])
    assert content(theirs) == [wire_block(block) for block in ours.blocks]
    assert theirs.usage.output_tokens == ours.usage.output


def without_unknown(message: Message) -> bool:
    return not any(isinstance(block, OpaqueBlock) for block in message.blocks)


@settings(max_examples=80, deadline=None)
@given(answers.filter(without_unknown), st.integers(0, 2**16))
def test_streams_are_read_alike(wire, message, seed):
    data = render_stream(message, seed, neatly=True)
    theirs, ours = wire.read(data, stream=True), decode(data)
    assert content(theirs) == [wire_block(block) for block in ours.blocks]
    assert theirs.usage.output_tokens == ours.usage.output
    cached = theirs.usage.cache_read_input_tokens + theirs.usage.cache_creation_input_tokens
    assert theirs.usage.input_tokens + cached == ours.usage.input


@settings(max_examples=40, deadline=None)
@given(answers.filter(without_unknown))
def test_whole_responses_are_read_alike(wire, message):
    data = render_whole(message)
    theirs = wire.read(data, stream=False)
    assert content(theirs) == [wire_block(block) for block in decode(data).blocks]


PARAMS = {
    typing.get_args(typing.get_type_hints(param)["type"])[0]: param
    for param in typing.get_args(sdk.types.ContentBlockParam)
}


def judge(value: Any, kind: Any) -> None:
    """The SDK's type takes the value, and the value holds no key that the type does not name."""
    pydantic.TypeAdapter(kind).validate_python(value)
    assert set(value) <= set(kind.__annotations__), (value, kind)


def judge_block(block: dict[str, Any]) -> None:
    if block["type"] == "something_new":
        return
    judge(block, PARAMS[block["type"]])
    if block["type"] == "tool_result" and isinstance(block.get("content"), list):
        for inner in block["content"]:
            judge_block(inner)
    if block["type"] in ("image", "document"):
        assert block["source"]["type"] in ("base64", "url", "text")


def judge_body(body: dict[str, Any]) -> None:
    known = {**sdk.types.message_create_params.MessageCreateParamsBase.__annotations__}
    # Typed no longer, still taken by the models that know it.
    assert set(body) <= {*known, "stream", "temperature"}
    for message in body["messages"]:
        assert set(message) == {"role", "content"}
        for block in message["content"]:
            judge_block(block)
    for block in body.get("system", []):
        judge(block, sdk.types.TextBlockParam)
    for tool in body.get("tools", []):
        judge(tool, sdk.types.ToolParam)
    for name, kind in (
        ("thinking", sdk.types.ThinkingConfigParam),
        ("tool_choice", sdk.types.ToolChoiceParam),
        ("output_config", sdk.types.OutputConfigParam),
    ):
        if name in body:
            pydantic.TypeAdapter(kind).validate_python(body[name])


plans = st.sampled_from(
    [
        ThinkingPlan("absent"),
        ThinkingPlan("on", "anthropic-budget", budget=2048),
        ThinkingPlan("off", "anthropic-budget"),
        ThinkingPlan("default", "anthropic-adaptive"),
        ThinkingPlan("on", "anthropic-adaptive", effort="max"),
        ThinkingPlan("off", "anthropic-adaptive", off_type="between_tools"),
    ]
)
targets = st.sampled_from([HERE, claude(cost={"cache_write": 1})])
tools = st.sampled_from([(), (Tool("tide", "High water."), Tool("low", parameters={"a": 1}))])
choices = st.sampled_from([None, "auto", "none", "required", NamedTool("tide")])


def turn(number: int, answer: Message) -> list[Message]:
    results = tuple(ToolResultBlock(c.id, f"r{number}") for c in answer.tool_calls)
    return [
        user(f"q{number}"),
        answer,
        *([Message(role="tool", blocks=results)] if results else []),
    ]


@st.composite
def requests(draw: Any) -> Request:
    found = draw(st.lists(answers, max_size=3))
    history = [m for n, answer in enumerate(found) for m in turn(n, answer)]
    return Request(
        messages=(*history, user("next")),
        thinking=draw(plans),
        system=draw(st.sampled_from(["", "You know tides."])),
        tools=draw(tools),
        tool_choice=draw(choices),
        temperature=draw(st.none() | st.just(1.0)),
        max_tokens=draw(st.none() | st.just(9000)),
        stream=draw(st.booleans()),
    )


@settings(max_examples=80, deadline=None)
@given(requests(), targets)
def test_requests_are_of_the_sdk_s_types(request, where):
    judge_body(json.loads(encode_request(request, where).body))


def plain(message: Message) -> Message:
    """The message without what only another server's objects could hold."""
    bare = []
    for block in message.blocks:
        held = hasattr(block, "wire")
        bare.append(msgspec.structs.replace(block, wire=None) if held else block)
    kept = tuple(block for block in bare if not isinstance(block, OpaqueBlock))
    return msgspec.structs.replace(message, blocks=kept)


@settings(max_examples=80, deadline=None)
@given(st.lists(messages.map(plain), max_size=4), plans, targets)
def test_any_history_is_of_the_sdk_s_types(history, plan, where):
    asked = as_taken(Request(messages=(*history, user("next")), thinking=plan), where)
    judge_body(json.loads(encode_request(asked, where).body))


@settings(max_examples=30, deadline=None)
@given(requests(), targets)
def test_the_sdk_sends_our_body_unchanged(wire, request, where):
    body = json.loads(encode_request(request, where).body)
    wire.answer, wire.kind = WHOLES["redacted"], "application/json"
    if body.pop("stream", False):
        wire.answer, wire.kind = STREAMS["redacted"], "text/event-stream"
    temperature = {"temperature": body.pop("temperature")} if "temperature" in body else {}
    wire.client.messages.create(**body, extra_body=temperature)
    assert json.loads(wire.sent) == {**body, **temperature}


def test_the_sdk_s_own_way_back_is_ours(wire):
    """What the SDK would append to the messages is what we send."""
    for name in JUDGED:
        theirs = wire.read(STREAMS[name], stream=True)
        kept = [b for b in content(theirs) if b != {"type": "text", "text": ""}]
        while kept and "thinking" in kept[-1]["type"]:
            kept.pop()
        plan = ThinkingPlan("on", "anthropic-budget", budget=2048)
        history = (user("q"), decode(STREAMS[name]), user("next"))
        asked = as_taken(Request(messages=history, thinking=plan), HERE)
        body = json.loads(encode_request(asked, HERE).body)
        ours = body["messages"][1]["content"] if len(body["messages"]) > 1 else []
        assert ours == kept
