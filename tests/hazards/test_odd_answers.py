"""What broken servers and proxies send, as a user gets it: the answer, and the next request."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from conversations import target
from mull.cli.main import main
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.events import Failed, Warned
from mull.testing.server import Reply, ScriptedServer

FIXTURES = Path(__file__).parent.parent / "fixtures"
STREAMS = {
    f"{folder}/{file.stem}": file.read_bytes()
    for folder in ("anthropic", "gemini", "openai_chat", "openai_responses")
    for file in sorted((FIXTURES / folder).glob("*.sse"))
    if file.stem != "dirty"
}
KEYS = {"GOOGLE": "GEMINI", "MOONSHOTAI": "MOONSHOT"}
BLANK_LINE = re.compile(rb"(?:\r?\n){2}")
MODELS = (
    "openai-compatible/thinker",
    "moonshotai/kimi-k2-thinking",
    "openrouter/deepseek/deepseek-r1",
    "chutes/Qwen/Qwen3-32B",
)


def read(name, body, cuts=None):
    """The message of a stream and its warnings."""
    one = decoder(target(dialect=name.partition("/")[0].replace("_", "-")))
    chunks = [body] if cuts is None else [body[at : at + cuts] for at in range(0, len(body), cuts)]
    events = [event for chunk in chunks for event in one.feed(chunk)] + one.close()
    return assemble(events), [e for e in events if isinstance(e, Warned)], events[-1]


@pytest.fixture
def ask(capsys, monkeypatch):
    """Asks a model twice and gives what was told of the first answer, and the second request."""

    def ask(model, reply, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        provider = model.partition("/")[0].upper().replace("-", "_")
        monkeypatch.setenv(f"{KEYS.get(provider, provider)}_API_KEY", "key")
        with ScriptedServer([reply, reply]) as server:
            place = ["-m", model, "--base-url", server.url]
            keep = ["--set", "reasoning.includeInContext=true"]
            assert main(["ask", *place, *keep, *words, "first"]) == 0
            told = capsys.readouterr()
            assert main(["ask", "--continue", *keep, "second"]) == 0
            capsys.readouterr()
        return told.out, told.err, server.requests[1].json

    return ask


def stream(*deltas):
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return Reply.events(*({"choices": [choice]} for choice in choices), "[DONE]")


# One thought in several fields


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": " ", "reasoning": "The real thought"}],
        [{"reasoning_content": "\n"}, {"reasoning": "The real"}, {"reasoning": " thought"}],
        [{"reasoning": "The real"}, {"reasoning": " ", "thinking": " thought"}],
        [{"reasoning_content": "The real"}, {"reasoning": "The real thought"}],
        [
            {"reasoning_content": "The real thought"},
            {"reasoning": "The "},
            {"reasoning": "real thought"},
        ],
        [{"reasoning": "The ", "thinking": "The real"}, {"reasoning": "real thought"}],
    ],
)
def test_the_thought_is_told_and_sent_back_once(ask, model, deltas):
    told, _, request = ask(model, stream(*deltas, {"content": "Answer"}), "--json")
    shown = json.loads(told)
    assert (shown["text"], shown["thinking"]) == ("Answer", "The real thought")
    assert json.dumps(request["messages"][1]).count("real thought") == 1
    assert request["messages"][1]["content"] == "Answer"


@pytest.mark.parametrize("model", MODELS)
def test_a_thought_that_goes_on_in_another_field_is_whole(ask, model):
    deltas = [{"reasoning_content": "First half, "}, {"reasoning": "second half."}]
    told, _, request = ask(model, stream(*deltas, {"content": "Answer"}), "--json")
    assert json.loads(told)["thinking"] == "First half, second half."
    assert "First half, second half." in json.dumps(request["messages"][1])


# Tags


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("content", "thought"),
    [
        ("<think>a</think></think>Answer", "a"),
        ("<think>a</think>\n</think>Answer</think>", "a"),
        ("<think>a<think>b</think>c</think>Answer", "a<think>b</think>c"),
        ("<think><think>a</think></think>Answer", "<think>a</think>"),
        ("a</think></think>Answer", "a"),
        ("<thinking>a</thinking></thinking>Answer", "a"),
        ("<reasoning>a<reasoning>b</reasoning></reasoning>Answer", "a<reasoning>b</reasoning>"),
    ],
)
def test_no_tag_is_left_in_the_answer(ask, model, content, thought):
    for parts in ([content], list(content)):
        reply = stream(*({"content": part} for part in parts))
        shown = json.loads(ask(model, reply, "--json")[0])
        assert (shown["text"].strip(), shown["thinking"]) == ("Answer", thought)


@pytest.mark.parametrize(
    "content", ["<think>a<think>b</think>c</think>Answer", "<think>a</think></think>Answer"]
)
def test_no_tag_and_no_thought_is_left_in_a_pipe(ask, content):
    out, err, _ = ask(MODELS[0], stream(*({"content": part} for part in content)))
    assert (out, err) == ("Answer\n", "")


@pytest.mark.parametrize(
    "left", ["</think>", "\n</think>\n", "<think>a thought</think>", "<think></think>"]
)
def test_tags_left_behind_by_a_server_that_takes_thoughts_out(ask, left):
    reply = stream({"reasoning_content": "a thought"}, {"content": left}, {"content": "Answer"})
    shown = json.loads(ask(MODELS[0], reply, "--json")[0])
    assert (shown["text"].strip(), shown["thinking"]) == ("Answer", "a thought")


# Frames


@pytest.mark.parametrize("glue", [b"", b" ", b"\n", b"\r\n"])
@pytest.mark.parametrize("name", sorted(STREAMS))
def test_no_event_is_lost_where_a_proxy_glues_them(name, glue):
    body = STREAMS[name]
    message, warned, _ = read(name, body)
    glued = BLANK_LINE.sub(glue, body)
    again, told, _ = read(name, glued)
    assert again == message
    assert len(told) <= len(warned) + 1
    assert read(name, glued, 7)[0] == message


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_bad_event_takes_no_good_one_with_it(name):
    body = STREAMS[name]
    message, *_ = read(name, body)
    head, data, rest = body.partition(b"data: {")
    bad = head + data + rest[: rest.index(b"\n") // 2]
    again, told, end = read(name, bad + body[len(head) :])
    assert again.blocks == message.blocks
    assert [warning.code for warning in told].count("unreadable") == 1
    assert isinstance(end, Failed)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic/display_omitted"),
        ("openai/gpt-5", "openai_responses/both-kinds"),
        ("google/gemini-2.5-pro", "gemini/thoughts"),
        ("openai-compatible/thinker", "openai_chat/reasoning-field"),
    ],
)
def test_a_glued_stream_is_the_same_answer_with_one_warning(ask, model, name):
    def reply(body):
        return Reply(200, {"content-type": "text/event-stream"}, (body,))

    plain, nothing, request = ask(model, reply(STREAMS[name]))
    glued, warned, again = ask(model, reply(BLANK_LINE.sub(b"", STREAMS[name])))
    assert (glued, again) == (plain, request)
    assert (nothing, warned.count("were separated")) == ("", 1)
