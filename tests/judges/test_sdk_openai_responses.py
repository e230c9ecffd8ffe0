"""The official SDK as a judge: its types of our requests, its accumulator of the same streams."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import json_objects, names, target, texts
from mull.dialects.registry import encode_request
from mull.neutral.blocks import TextBlock, ToolResultBlock
from mull.neutral.messages import Message, user
from mull.neutral.request import NamedTool, Request, Tool
from mull.neutral.thinking import ThinkingPlan
from openai_responses_wire import STREAMS, TARGET, Renderer, decode, pieces, response

openai = pytest.importorskip("openai", reason="the official SDK is not installed")
pydantic = pytest.importorskip("pydantic")
httpx2 = pytest.importorskip("httpx2", reason="the HTTP library of the SDK is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def adapter() -> Any:
    from openai.types.responses import response_create_params

    streaming = response_create_params.ResponseCreateParamsStreaming
    return pydantic.TypeAdapter(streaming, config=None)


def judge(adapter: Any, sent: dict[str, Any]) -> None:
    """Validate a body, lists that are checked only when they are read included.

    The types ask for an id and a status of every assistant message; the API does not, and codex
    sends neither. They are filled in so that the rest of the message is judged.
    """
    for item in sent["input"]:
        if item["type"] == "message" and item["role"] == "assistant":
            item.setdefault("id", "msg_x")
            item.setdefault("status", "completed")
    _read(adapter.validate_python(sent))


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
    st.just("responses"),
    st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    st.none(),
    st.sampled_from([None, "auto", "concise", "detailed"]),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    history = []
    for _ in range(draw(st.integers(0, 3))):
        history.append(user(draw(texts)))
        made = [p for p in draw(pieces()) if p.item["type"] != "crystal_ball_call"]
        message = decode(msgspec.json.encode(response(made))).message
        if draw(st.booleans()):
            blocks = tuple(b for b in message.blocks if b not in message.thinking)
            message = msgspec.structs.replace(message, blocks=blocks)
        history.append(message)
        if message.tool_calls:
            results = tuple(ToolResultBlock(call.id, draw(texts)) for call in message.tool_calls)
            history.append(Message(role="tool", blocks=results))
    return [*history, user(draw(texts))]


tools = st.builds(Tool, names, texts, json_objects)


@given(
    history=histories(),
    plan=plans,
    offered=st.lists(tools, max_size=2),
    choice=st.sampled_from([None, "auto", "none", "required", NamedTool("look")]),
    limit=st.none() | st.integers(1, 100_000),
    temperature=st.none() | st.floats(0, 2),
    developer=st.booleans(),
)
@settings(max_examples=120)
def test_requests_are_what_the_types_say(
    adapter, *, history, plan, offered, choice, limit, temperature, developer
):
    role = "developer" if developer else "system"
    at = target("responses", dialect="openai-responses", compat={"system_role": role})
    request = Request(
        tuple(history),
        plan,
        system="Be brief.",
        tools=tuple(offered),
        tool_choice=choice,
        temperature=temperature,
        max_tokens=limit,
    )
    judge(adapter, msgspec.json.decode(encode_request(request, at).body))


def test_the_judge_is_strict(adapter):
    request = Request((user("x"),), ThinkingPlan("absent"))
    body = msgspec.json.decode(encode_request(request, TARGET).body)
    body["input"][0]["content"][0]["type"] = "output_text"
    with pytest.raises(pydantic.ValidationError):
        judge(adapter, body)
    body["input"] = [{"type": "reasoning", "summary": [{"type": "text"}], "id": "rs"}]
    with pytest.raises(pydantic.ValidationError):
        judge(adapter, body)


def accumulate(stream: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The response as the SDK gives it at the end, and as it stood before the last event."""

    def reply(_: Any) -> Any:
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=stream)

    client = openai.OpenAI(
        api_key="none",
        base_url="https://sdk.invalid/v1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(reply)),
    )
    before: dict[str, Any] = {}
    with client.responses.stream(model="thinker", input="x") as events:
        for event in events:
            if event.type != "response.completed":
                snapshot = events._state._ResponseStreamState__current_snapshot
                before = _dump(snapshot)
        final = _dump(events.get_final_response())
    return final, before


def _dump(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", exclude_unset=True, warnings=False)
    return dumped


NOT_FOR_THE_SDK = {
    "rotating-ids": "it refuses a response whose id changes",
    "raw-without-indexes": "its helper needs output_index",
    "resumed-too-early": "it takes events that came twice for new ones",
    "done-only": "it wants every item to be added first",
    "cut-short-in-answer": "not completed",
    "cut-short-in-thought": "not completed",
    "cut": "not completed",
    "error-event": "not completed",
    "failed-after-thought": "not completed",
}


@pytest.mark.parametrize("name", sorted(set(STREAMS) - set(NOT_FOR_THE_SDK)))
def test_the_accumulator_agrees_on_fixtures(name):
    compare(STREAMS[name])


@given(made=pieces(), data=st.data())
@settings(max_examples=60)
def test_the_accumulator_agrees_on_rendered_streams(made, data):
    made = [piece for piece in made if piece.item["type"] != "crystal_ball_call"]
    renderer = Renderer(data.draw, complete=True)
    compare(renderer.render(response(made)))


def compare(stream: bytes) -> None:
    final, before = accumulate(stream)
    ours = decode(stream).message
    assert ours == decode(json.dumps(final).encode()).message
    assert _texts(before) == "".join(
        block.text
        for block in ours.blocks
        if isinstance(block, TextBlock) and "refusal" not in str(block.wire)
    )


def _texts(snapshot: dict[str, Any]) -> str:
    """The text that the SDK put together from deltas; it leaves refusals to the end."""
    parts = [part for item in snapshot["output"] for part in item.get("content") or ()]
    return "".join(part["text"] for part in parts if part["type"] == "output_text")
