"""The embedded model as a judge: a real llama.cpp server answers our requests on loopback.

What the model says is not judged here (test_taught_model.py does that), but that thought and answer
come apart, that levels do what they say, and that no process is left behind; with the adapter and
without. Temperature 0 makes it repeatable.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from mull.catalog.resolve import resolve
from mull.dialects.registry import decode_response, decoder, encode_request
from mull.history.log import Log
from mull.local import template, weights
from mull.local.manage import Embedded
from mull.local.place import FileLock, Running, ServerFolder
from mull.local.server import MODEL
from mull.neutral.assemble import assemble
from mull.neutral.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import Message, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.thinking.budget import budget_for_level
from mull.settings.layers import Settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not weights.is_installed(), reason="`mull local install` was not run"),
]

TARGET = resolve(MODEL)
ASK = "What is the capital of France?"
BRIEF = "<|im_start|>system\nThink in a few words.\n<|im_end|>\n"
LISTED = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": [],
}
WEATHER = Tool(
    "get_weather",
    "The weather in a city now",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("embedded") / "local"


@pytest.fixture(scope="module")
def running(directory):
    one = Embedded(directory)
    yield one.ensure()
    one.close()
    with FileLock(ServerFolder(directory).alive_lock):  # it ends without being told
        pass


@contextmanager
def exchange(
    running: Running, method: str, path: str, body: Any = None, headers: Any = None
) -> Iterator[http.client.HTTPResponse]:
    """One request on a connection of its own, closed at the end however far it was read."""
    address = urlsplit(running.base_url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=50)
    try:
        key = {"Authorization": f"Bearer {running.key}"}
        connection.request(method, path, body, key | (headers or {}))
        with connection.getresponse() as response:
            yield response
    finally:
        connection.close()


def send(
    running: Running, level: str | None, messages: list[Message], **options: Any
) -> AbstractContextManager[http.client.HTTPResponse]:
    """Our own request, from the settings to the bytes."""
    settings = Settings()
    if level:
        settings.set("reasoning.effort", level)
    settings.set("reasoning.includeInContext", "true")
    asked = RequestOptions(temperature=0, **options)
    prepared = prepare(Log(messages), settings.snapshot(), TARGET, asked)
    wire = encode_request(prepared.request, TARGET)
    path = urlsplit(running.base_url).path + wire.path
    return exchange(running, wire.method, path, wire.body, wire.headers)


def stream(running: Running, level: str | None, *messages: Message, **options: Any) -> list[Event]:
    with send(running, level, list(messages or [user(ASK)]), **options) as response:
        assert response.status == 200
        reader, events = decoder(TARGET), list[Event]()
        while piece := response.read1(65536):
            events += reader.feed(piece)
        return [*events, *reader.close()]


def fetch(running: Running, method: str, path: str, body: Any = None) -> Any:
    sent = None if body is None else json.dumps(body)
    with exchange(running, method, path, sent) as response:
        return json.loads(response.read())


def tokens(running: Running, text: str) -> list[int]:
    return fetch(running, "POST", "/tokenize", {"content": text})["tokens"]


def test_the_closing_tag_has_the_tokens_the_grammar_says(running):
    assert tokens(running, "</think>") == list(TARGET.compat.grammar.close)


@pytest.mark.parametrize(("thinks", "end"), [(True, "<think>"), (False, "")])
def test_the_generation_prompt_ends_exactly_there(running, thinks, end):
    body = {
        "messages": [{"role": "user", "content": "hi"}],
        "chat_template_kwargs": {"enable_thinking": thinks},
    }
    prompt = fetch(running, "POST", "/apply-template", body)["prompt"]
    assert prompt == f"<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n{end}"


def test_a_small_budget_asks_for_few_words(running):
    body = {"messages": [{"role": "user", "content": "hi"}]}
    prompts = {
        budget: fetch(
            running,
            "POST",
            "/apply-template",
            {**body, "chat_template_kwargs": {"thinking_budget": budget}},
        )["prompt"]
        for budget in (template.BRIEF_BELOW - 1, template.BRIEF_BELOW)
    }
    assert [prompt.startswith(BRIEF) for prompt in prompts.values()] == [True, False]


def test_a_tool_is_shown_in_one_line(running):
    tools = [
        {"type": "function", "function": {"name": name, "description": said, "parameters": schema}}
        for name, said, schema in (
            ("get_weather", WEATHER.description, WEATHER.parameters),
            ("list", "List a folder. Folders end in a slash.", LISTED),
            ("now", "The time", {"type": "object", "properties": {}}),
        )
    ]
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": tools}
    prompt = fetch(running, "POST", "/apply-template", body)["prompt"]
    assert prompt.startswith(
        "<|im_start|>system\nTools:\nget_weather(city): The weather in a city now\n"
        "list(path): List a folder\nnow(): The time\n<|im_end|>\n<|im_start|>user\n"
    )


def test_reasoning_that_is_sent_back_reaches_the_model(running):
    events = stream(running, "minimal")
    first = assemble(events, TARGET.origin)
    body = {
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": ASK},
            {"role": "assistant", "content": "A", "reasoning_content": first.thinking[0].thought},
            {"role": "user", "content": "again"},
        ]
    }
    prompt = fetch(running, "POST", "/apply-template", body)["prompt"]
    assert f"<think>{first.thinking[0].thought.strip()}\n</think>\n\nA<|im_end|>" in prompt
    assert prompt.startswith("<|im_start|>system\nS\n<|im_end|>\n<|im_start|>user\n")


def test_it_listens_on_loopback_and_wants_its_key(running):
    address = urlsplit(running.base_url)
    assert address.hostname == "127.0.0.1"
    wrong = {"Authorization": "Bearer no"}
    with exchange(running, "POST", "/v1/chat/completions", "{}", wrong) as response:
        assert response.status == 401


def test_a_streamed_answer_thinks_first(running):
    events = stream(running, "low")
    kinds = [type(event) for event in events if isinstance(event, TextDelta | ThinkingDelta)]
    assert kinds.count(ThinkingDelta) > 5  # it came piece by piece
    assert kinds == sorted(kinds, key=[ThinkingDelta, TextDelta].index)
    message = assemble(events, TARGET.origin)
    (thought,) = message.thinking
    assert thought.source_field == "reasoning_content"
    assert thought.thought.strip()
    assert "think>" not in thought.thought + message.text
    assert message.text.strip()
    assert message.status == "complete"
    assert message.usage.output > 5


def test_the_whole_answer_is_the_streamed_one(running):
    streamed = assemble(stream(running, "low"), TARGET.origin)
    with send(running, "low", [user(ASK)], stream=False) as response:
        whole = assemble(decode_response(response.read(), TARGET), TARGET.origin)
    assert whole.blocks == streamed.blocks
    assert whole.status == streamed.status
    assert whole.stop_reason == streamed.stop_reason
    assert whole.usage.output == streamed.usage.output


def test_none_does_not_think(running):
    events = stream(running, "none")
    assert not [event for event in events if isinstance(event, ThinkingDelta)]
    message = assemble(events, TARGET.origin)
    assert [type(block) for block in message.blocks] == [TextBlock]
    assert message.text.strip()


def test_levels_are_kept_and_differ(running):
    """A thought that would run on is ended; the lowest level thinks less than the highest."""
    ask = user("Write the numbers from one to two hundred, as words, with commas, on one line.")
    lengths = {}
    for level in ("minimal", "low", "high"):
        for question in (ask, user("What is 347 + 586?")):
            message = assemble(stream(running, level, question), TARGET.origin)
            (thought,) = message.thinking
            lengths[level] = len(tokens(running, thought.thought))
            assert lengths[level] <= budget_for_level(TARGET.facts.budget, level) + 1, level
            assert message.text.strip(), level
        assert "think>" not in message.text, level  # of the sum, which nothing cut short
    assert lengths["minimal"] < lengths["high"]


@pytest.mark.parametrize(
    "ask",
    [
        "What is 17 + 25?",
        "Name three animals that can fly.",
        "Write a short poem about rain.",
        "Is <b>bold</b> an HTML tag? Answer with the tag.",
        "こんにちは。空は何色ですか。",
    ],
)
def test_every_thought_ends_in_an_answer(running, ask):
    events = stream(running, None, user(ask), max_tokens=300)
    assert isinstance(events[-1], Finished)
    message = assemble(events, TARGET.origin)
    assert message.text.strip()
    assert "think>" not in message.text


def test_a_tool_call_and_its_answer(running):
    """The grammar makes the call; the thought before it comes back with it."""
    ask = user("What is the weather in Paris?")
    first = assemble(
        stream(running, "minimal", ask, tools=(WEATHER,), tool_choice="required"), TARGET.origin
    )
    (call,) = [block for block in first.blocks if isinstance(block, ToolCallBlock)]
    assert call.name == "get_weather"
    assert call.input == {"city": "Paris"}
    assert first.thinking
    result = Message(role="tool", blocks=(ToolResultBlock(call.id, "18 degrees, sunny"),))
    second = stream(running, "minimal", ask, first, result, tools=(WEATHER,))
    assert not [event for event in second if isinstance(event, Failed)]
    assert assemble(second, TARGET.origin).blocks


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("get_weather", "{"),
        ("", '{"city": "Par'),
        ("get weather", "NaN"),
        ("größe", "[1]"),
        ("a\0b", "{'city': 1}"),
        ("x" * 300, "```{}```"),
    ],
)
def test_no_call_that_is_replayed_ends_a_conversation(running, name, said):
    """This server parses the arguments of every call in the history, and fails where it cannot."""
    events = [ToolCallDelta(0, "c", name, said), Finished("tool_calls")]
    answer = assemble(events, TARGET.origin)
    result = Message(role="tool", blocks=(ToolResultBlock("c", "no such thing"),))
    talk = [user("What is the weather?"), answer, result, user("Just say yes.")]
    with send(running, "none", talk, tools=(WEATHER,), max_tokens=1) as response:
        assert response.status == 200
    raw = {"id": "c", "type": "function", "function": {"name": "f", "arguments": said}}
    history = [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [raw]}]
    body = json.dumps({"messages": history, "max_tokens": 1})
    path = urlsplit(running.base_url).path + "/chat/completions"
    with exchange(running, "POST", path, body) as response:
        assert response.status != 200  # so it would have been


def is_busy(running: Running) -> bool:
    (slot,) = fetch(running, "GET", "/slots")
    return slot["is_processing"]


def test_a_cancelled_answer_frees_its_slot(running):
    ask = user("Write a very long story about a river.")
    with send(running, "high", [ask], max_tokens=2000) as response:
        while b"reasoning_content" not in response.read1(65536):
            pass
        assert is_busy(running)
    until = time.monotonic() + 10
    while is_busy(running) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_busy(running)
    assert stream(running, "minimal")


def test_no_key_in_the_log(running, directory):
    assert running.key not in (directory / "server.log").read_text()


USER = """
import sys
from pathlib import Path
from mull.local.manage import ensure
print(ensure(Path(sys.argv[1])).pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_user_leaves_no_server(tmp_path):
    command = [sys.executable, "-c", USER, str(tmp_path / "local")]
    one = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(one.stdout.readline())
    os.kill(pid, 0)
    one.send_signal(signal.SIGKILL)
    one.communicate()
    with FileLock(ServerFolder(tmp_path / "local").alive_lock):
        pass
    assert ServerFolder(tmp_path / "local").read() is None


def test_start_time_speed_and_memory(tmp_path, record_property):
    one = Embedded(tmp_path / "local")
    begun = time.perf_counter()
    running = one.ensure()
    started = time.perf_counter() - begun
    begun = time.perf_counter()
    one.ensure()
    again = time.perf_counter() - begun
    with send(running, "high", [user("Tell me about rivers.")], stream=False) as response:
        timings = json.loads(response.read())["timings"]
    status = one.status()
    assert status.tokens_written >= timings["predicted_n"]
    assert one.stop()
    one.close()
    figures = {
        "start_s": round(started, 2),
        "ensure_ms": round(again * 1000, 2),
        "tokens_per_s": round(timings["predicted_per_second"], 1),
        "memory_mb": status.memory // 1_000_000,
    }
    print(figures)
    for name, value in figures.items():
        record_property(name, value)
    assert status.memory < 1_000_000_000
    with pytest.raises(ProcessLookupError):
        os.kill(status.pid, 0)
