"""The vendors' SDKs read what our writers write: the accumulator of each gives the same answer."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings

from answers import FIXTURES, answers, assembled, read, target_of, written
from mull.dialects.openai_chat.places import DETAILS
from mull.dialects.serving import write_answer
from mull.dialects.writer import About
from mull.neutral.assemble import assemble, tell
from mull.neutral.events import Failed
from mull.neutral.messages import Message
from mull.neutral.target import Compat

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
httpx = pytest.importorskip("httpx2")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

Said = tuple[str, str, list[tuple[Any, str, Any]]]
ASKED = [{"role": "user", "content": "x"}]


class _Wire:
    """Answers every request with the body it was told."""

    def __init__(self) -> None:
        self.body = b""
        self.http = httpx.Client(transport=httpx.MockTransport(self._reply))

    def _reply(self, _: Any) -> Any:
        kind = "application/json" if self.body.startswith(b"{") else "text/event-stream"
        return httpx.Response(200, headers={"content-type": kind}, content=self.body)


WIRE = _Wire()
ABOUT = {"api_key": "x", "base_url": "https://a.example", "http_client": WIRE.http}


@cache
def _genai() -> Any:
    genai = pytest.importorskip("google.genai")
    options = genai.types.HttpOptions(httpx_client=WIRE.http)
    return genai.Client(api_key="x", http_options=options)


def by_anthropic(body: bytes) -> Said:
    client = anthropic.Anthropic(**ABOUT)
    asked = {"model": "m", "max_tokens": 9, "messages": ASKED}
    if body.startswith(b"{"):
        found = client.messages.create(**asked)
    else:
        with client.messages.stream(**asked) as stream:
            found = stream.get_final_message()
    blocks = found.content
    return (
        "".join(b.thinking for b in blocks if b.type == "thinking"),
        "".join(b.text for b in blocks if b.type == "text"),
        [(b.id, b.name, b.input) for b in blocks if b.type == "tool_use"],
    )


def _openai(body: bytes) -> Any:
    return openai.OpenAI(**ABOUT)


def by_chat(body: bytes) -> Said:
    if body.startswith(b"{"):
        found = _openai(body).chat.completions.create(model="m", messages=ASKED)
    else:
        with _openai(body).chat.completions.stream(model="m", messages=ASKED) as stream:
            for _ in stream:
                pass
            found = stream.current_completion_snapshot
    message = found.choices[0].message
    calls = [
        (c.id, c.function.name, _loads(c.function.arguments)) for c in message.tool_calls or ()
    ]
    extra = message.model_extra or {}
    thought = "".join(extra.get(name) or "" for name in Compat().reasoning_in if name != DETAILS)
    return thought, (message.content or "") + (message.refusal or ""), calls


def by_responses(body: bytes) -> Said:
    if body.startswith(b"{"):
        found = _openai(body).responses.create(model="m", input="x")
    else:
        with _openai(body).responses.stream(model="m", input="x") as stream:
            for event in stream:
                if event.type in ("response.completed", "response.incomplete"):
                    found = event.response
    thoughts, texts, calls = [], [], []
    for item in found.output:
        if item.type == "reasoning":
            parts = [*item.summary, *(item.content or ())]
            thoughts += [part.text for part in parts]
        elif item.type == "message":
            texts += [getattr(p, "text", None) or getattr(p, "refusal", "") for p in item.content]
        elif item.type == "function_call":
            calls.append((item.call_id, item.name, _loads(item.arguments)))
        elif item.type == "custom_tool_call":
            calls.append((item.call_id, item.name, {"input": item.input}))
    return "".join(thoughts), "".join(texts), calls


def by_gemini(body: bytes) -> Said:
    client = _genai()
    if body.startswith(b"{"):
        found = [client.models.generate_content(model="m", contents="x")]
    else:
        found = [*client.models.generate_content_stream(model="m", contents="x")]
    parts = [p for one in found for c in one.candidates or () for p in c.content.parts or ()]
    return (
        "".join(p.text or "" for p in parts if p.thought),
        "".join(p.text or "" for p in parts if not p.thought),
        [
            (p.function_call.id, p.function_call.name, p.function_call.args)
            for p in parts
            if p.function_call
        ],
    )


READERS = {  # botocore judges Bedrock, in a file of its own
    "anthropic": by_anthropic,
    "openai-chat": by_chat,
    "openai-responses": by_responses,
    "gemini": by_gemini,
}


def _loads(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def said(message: Message) -> Said:
    calls = [(call.id, call.name, call.input) for call in message.tool_calls]
    return "".join(t.thought for t in message.thinking), message.text, calls


def agree(dialect: str, body: bytes) -> None:
    WIRE.body = body
    theirs, ours = READERS[dialect](body), said(assembled(body, target_of(dialect)))
    assert theirs[1:] == ours[1:]
    assert theirs[0].replace("\n\n", "") == ours[0].replace("\n\n", "")


@pytest.mark.parametrize("dialect", READERS)
@given(message=answers)
@settings(max_examples=60)
def test_the_sdk_reads_a_written_answer_as_we_do(dialect, message):
    agree(dialect, written(dialect, [*tell(message)], source="openai-chat"))
    agree(dialect, write_answer(message, dialect, About(source="openai-chat")).body)


UNREAD = ("details-alone", "content-list", "dirty", "mirrored-fields")
"""What the SDK of its own vendor cannot read either: lists without an index, members of content."""


@pytest.mark.parametrize("dialect", READERS)
@pytest.mark.parametrize(("source", "name"), FIXTURES)
def test_the_sdk_reads_a_fixture_in_every_dialect(source, name, dialect):
    events = read(FIXTURES[source, name], target_of(source, name.partition(".")[0]))
    if isinstance(events[-1], Failed) or not assemble(events).blocks:
        return
    if (source, dialect) == ("openai-chat", "openai-chat") and name.startswith(UNREAD):
        return
    agree(dialect, written(dialect, events, source=source))
