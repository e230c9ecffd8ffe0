"""Google's own SDK as the judge of what we send and of what we read.

The SDK's models refuse unknown keys, so a body that they take and give back unchanged is one that
the SDK could have sent. For answers the SDK reads the same bytes, and its chat shows what Google
itself would send back after them.
"""

import base64
import json
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations import json_objects, names, texts
from gemini_wire import (
    ABSENT,
    BUDGET,
    LEVEL,
    answers,
    decode,
    fixture,
    request,
    stream_of,
)
from mull.dialects.registry import encode_request
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import NamedTool, Tool
from mull.neutral.thinking import ThinkingPlan

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@cache
def sdk():
    """The SDK; it takes a second to import, which only those who run the judges should wait."""
    return pytest.importorskip("google.genai")


signatures = st.binary(min_size=1, max_size=9).map(lambda raw: base64.b64encode(raw).decode())
media = st.builds(
    MediaBlock,
    st.sampled_from(["image/png", "application/pdf"]),
    st.binary(max_size=6).map(lambda raw: base64.b64encode(raw).decode()),
) | st.builds(lambda name: MediaBlock("video/mp4", url=f"https://files.example/{name}"), names)
calls = st.builds(
    lambda given, name, args, signature, known: ToolCallBlock(
        given, name, args, None, signature, Wire("gemini", {"id": given}) if known else None
    ),
    st.uuids().map(str),
    names,
    json_objects,
    st.none() | signatures,
    st.booleans(),
)
code = st.builds(
    lambda text, signature: OpaqueBlock(
        {"executableCode": {"language": "PYTHON", "code": text}, "thoughtSignature": signature}
    ),
    texts,
    signatures,
)
answer_blocks = st.lists(
    st.one_of(
        st.builds(TextBlock, texts, st.none() | signatures),
        st.builds(lambda t, s: ThinkingBlock(t, "thought", signature=s), texts, signatures),
        st.builds(lambda t: ThinkingBlock(t, "thought"), texts),
        calls,
        code,
    ),
    max_size=4,
)


@st.composite
def histories(draw):
    history = []
    for _ in range(draw(st.integers(1, 3))):
        shown = draw(st.lists(media, max_size=1))
        history.append(Message(role="user", blocks=(TextBlock(draw(texts)), *shown)))
        answer = assistant(*draw(answer_blocks))
        history.append(answer)
        given_back = [
            ToolResultBlock(call.id, draw(texts), draw(st.booleans()), tuple(draw(st.lists(media))))
            for call in answer.tool_calls
        ]
        if given_back:
            history.append(Message(role="tool", blocks=tuple(given_back)))
    return [*history, user("go on")]


plans = st.one_of(
    st.just(ABSENT),
    st.just(ThinkingPlan("default", "gemini-level")),
    st.sampled_from(["minimal", "low", "medium", "high"]).map(
        lambda effort: ThinkingPlan("on", "gemini-level", effort=effort)
    ),
    st.integers(-1, 32768).map(lambda n: ThinkingPlan("on", "gemini-budget", budget=n)),
    st.just(ThinkingPlan("off", "gemini-budget", budget=0)),
)
schema = {
    "type": "object",
    "properties": {"path": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/p"}]}},
    "$defs": {"p": {"type": "object", "additionalProperties": False}},
}
tool_lists = st.sampled_from([(), (Tool("read", "Reads.", schema), Tool("now"))])
choices = st.sampled_from([None, "auto", "none", "required", NamedTool("read")])


def standard(value):
    """Base64 in one alphabet and numbers in one type, so that only meaning is compared."""
    if isinstance(value, dict):
        return {
            key: _bytes(inner) if key in ("thoughtSignature", "data") else standard(inner)
            for key, inner in value.items()
        }
    return [standard(inner) for inner in value] if isinstance(value, list) else value


def _bytes(text):
    return base64.b64decode(text.replace("-", "+").replace("_", "/") + "==").hex()


def judged(model, value):
    """What the SDK's model makes of a value."""
    taken = model.model_validate_json(json.dumps(value))
    return json.loads(taken.model_dump_json(by_alias=True, exclude_none=True))


@given(
    histories(),
    plans,
    tool_lists,
    choices,
    st.none() | st.integers(1, 65536),
    st.none() | st.floats(0, 2),
    st.sampled_from([LEVEL, BUDGET]),
)
@settings(max_examples=200)
def test_bodies_are_what_the_sdk_could_send(history, plan, tools, choice, limit, heat, to):
    asked = request(
        *history,
        thinking=plan,
        system="be brief",
        tools=tools,
        tool_choice=choice,
        max_tokens=limit,
        temperature=heat,
    )
    body, types = json.loads(encode_request(asked, to).body), sdk().types
    for content in [*body["contents"], body["systemInstruction"]]:
        assert standard(judged(types.Content, content)) == standard(content)
    for tool in body.get("tools", []):
        assert judged(types.Tool, tool) == tool
    for key, model in (
        ("toolConfig", types.ToolConfig),
        ("generationConfig", types.GenerationConfig),
    ):
        assert judged(model, body.get(key, {})) == body.get(key, {})
    config = body.get("generationConfig", {}).get("thinkingConfig", {})
    assert not {"thinkingLevel", "thinkingBudget"} <= config.keys()
    known = {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"}
    assert body.keys() <= known


class SdkClient:
    """A client of the SDK whose server says the given bytes and remembers what it was asked."""

    def __init__(self, body):
        self.body, self.asked = body, []
        httpx = pytest.importorskip("httpx2")

        def answer(asked):
            self.asked.append(json.loads(asked.content))
            return httpx.Response(
                200, headers={"content-type": "text/event-stream"}, content=self.body
            )

        self.http = httpx.Client(transport=httpx.MockTransport(answer))
        options = sdk().types.HttpOptions(httpx_client=self.http)
        self.client = sdk().Client(api_key="none", http_options=options)

    def stream(self):
        asked = self.client.models.generate_content_stream(model="m", contents="hi")
        return list(asked)

    def chat_history(self):
        """The parts that the SDK's chat sends back in its next request."""
        chat = self.client.chats.create(model="m")
        list(chat.send_message_stream("one"))
        list(chat.send_message_stream("two"))
        return [
            part
            for content in self.asked[-1]["contents"]
            if content["role"] == "model"
            for part in content["parts"]
        ]


@cache
def wire():
    return SdkClient(b"")


def escaped(body):
    """The same JSON in ASCII: the SDK takes U+2028 and U+0085 inside a string for line ends."""
    frames = [json.loads(frame.removeprefix(b"data: ")) for frame in body.split(b"\r\n\r\n")[:-1]]
    return b"".join(b"data: " + json.dumps(frame).encode() + b"\r\n\r\n" for frame in frames)


def sdk_parts(responses):
    return [
        part
        for response in responses
        for candidate in response.candidates or []
        if candidate.content
        for part in candidate.content.parts or []
    ]


def agree(body):
    wire().body = body
    parts, got = sdk_parts(wire().stream()), decode(body)
    spoken = [part for part in parts if part.text is not None]
    assert got.message.text == "".join(p.text for p in spoken if not p.thought)
    assert "".join(t.thought for t in got.message.thinking) == "".join(
        p.text for p in spoken if p.thought
    )
    assert [(c.name, c.input) for c in got.message.tool_calls] == [
        (p.function_call.name, p.function_call.args or {})
        for p in parts
        if p.function_call and p.function_call.name
    ]
    held = [
        block.data.get("thoughtSignature") if isinstance(block, OpaqueBlock) else block.signature
        for block in got.blocks
    ]
    assert [_bytes(signature) for signature in held if signature] == [
        part.thought_signature.hex() for part in parts if part.thought_signature
    ]


@pytest.mark.parametrize(
    "name", ["thoughts", "parallel-calls", "calls-without-ids", "cut-in-thought", "safety"]
)
def test_the_sdk_reads_the_fixtures_as_we_do(name):
    agree(fixture(f"{name}.sse"))
    last = SdkClient(fixture(f"{name}.sse")).stream()[-1].usage_metadata
    usage = decode(fixture(f"{name}.sse")).message.usage
    assert usage.output == (last.candidates_token_count or 0) + (last.thoughts_token_count or 0)
    assert (usage.input, usage.total) == (last.prompt_token_count, last.total_token_count)


def _plain(blocks):
    """Blocks that the SDK's strict models take: no kinds of parts that do not exist."""
    return tuple(block for block in blocks if not isinstance(block, OpaqueBlock))


def _signed(blocks):

    return tuple(
        msgspec.structs.replace(b, signature=base64.b64encode(b.signature.encode()).decode())
        if b.signature
        else b
        for b in blocks
    )


@given(answers.map(_plain).map(_signed), st.lists(st.integers(0, 50), max_size=3))
@settings(max_examples=60)
def test_the_sdk_reads_any_stream_as_we_do(blocks, places):
    agree(escaped(stream_of(blocks, places)))


@pytest.mark.parametrize("name", ["thoughts", "parallel-calls", "calls-without-ids", "other-text"])
def test_the_chat_of_the_sdk_sends_back_what_we_send(name):
    """It sends every delta as a part of its own; joined like ours they are the same."""
    if name == "other-text":
        blocks = (TextBlock("a b c"), TextBlock("d", "c2ln"), TextBlock("e"))
        body = stream_of(blocks, [1, 3])
    else:
        body = fixture(f"{name}.sse")
    theirs = join(SdkClient(body).chat_history())
    answer = decode(body).message
    sent = json.loads(encode_request(request(user("one"), answer, user("two")), BUDGET).body)
    ours = [part for content in sent["contents"][1:2] for part in content["parts"]]
    assert standard(join(ours)) == standard(theirs)


def join(parts):
    out = []
    for part in parts:
        if "functionCall" in part:
            part["functionCall"].setdefault("args", {})
        signed = "thoughtSignature" in part
        if not signed and part.get("text") == "":
            continue
        before = out[-1] if out else {}
        kin = "text" in part and "text" in before and "thoughtSignature" not in before
        if kin and not signed and part.get("thought") == before.get("thought"):
            before["text"] += part["text"]
        else:
            out.append(dict(part))
    return out


def test_errors_are_the_same_words():
    error = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}
    body = json.dumps({"error": error}).encode()
    raised = sdk().errors.APIError(429, {"error": error})
    got = decode(body).error
    assert (got.text, got.code) == (raised.message, raised.status)
