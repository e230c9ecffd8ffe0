"""What is told of a request that was refused and repaired: it is true of the bytes that passed."""

import io
import json

import pytest

from mull.cli.main import main
from mull.testing import Reply, ScriptedServer

CHAT = ({"choices": [{"index": 0, "delta": {"content": "B"}, "finish_reason": "stop"}]}, "[DONE]")
MESSAGES = (
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "B"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    {"type": "message_stop"},
)
ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "B"}]}
RESPONSES = (
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {"type": "response.completed", "response": {"status": "completed", "output": [ITEM]}},
)
NO_EFFORT = "Unrecognized request argument supplied: reasoning_effort"
NO_MEDIUM = "Unsupported value: 'medium' is not supported. Supported values are: 'low' and 'high'."
NO_BUDGET = "thinking.type.enabled is not supported for this model"
REFUSALS = [
    ("openai-compatible/z/xhigh", NO_EFFORT, CHAT),
    ("openai-compatible/z/none", NO_EFFORT, CHAT),
    ("openai-compatible/z/5000", NO_EFFORT, CHAT),
    ("gpt-5.1", NO_MEDIUM, RESPONSES),
    ("gpt-5.1/med", NO_MEDIUM, RESPONSES),
    ("claude-sonnet-4-5", NO_BUDGET, MESSAGES),
    ("claude-sonnet-4-5/high", NO_BUDGET, MESSAGES),
]
LISTED = [
    "invalid value for reasoning_effort: 'xhigh', must be one of low, medium, high",
    "reasoning_effort: unknown variant `xhigh`, expected one of `low`, `medium`, `high`",
    "`reasoning_effort` must be one of `low`, `medium`, or `high`",
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def ask(capsys, monkeypatch):
    """Ask a scripted server, each time with these words; its bodies, and what each printed."""
    monkeypatch.setattr("sys.stdin", Terminal())
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", "k")

    def ask(replies, *commands):
        said = []
        with ScriptedServer(replies) as server:
            for words in commands:
                assert main(["ask", "--base-url", server.url, *words, "Hi"]) == 0
                said.append(capsys.readouterr())
        return [one.json for one in server.requests], said

    return ask


def refused(text):
    return Reply.json({"error": {"type": "invalid_request_error", "message": text}}, 400)


@pytest.mark.parametrize(("model", "text", "events"), REFUSALS)
def test_the_outcome_of_a_healed_request_is_read_off_the_one_that_passed(ask, model, text, events):
    bodies, [said] = ask([refused(text), Reply.events(*events)], ["-m", model, "--json"])
    notes = json.loads(said.out)["notes"]
    [outcome] = [note for note in notes if note.get("kind") == "outcome"]
    asked = json.loads(outcome.get("sentAs", "{}"))
    named = {"reasoning_effort", "reasoning", "thinking", "output_config"}
    assert asked == {name: value for name, value in bodies[1].items() if name in named}
    assert bodies[0] != bodies[1]
    assert outcome["text"] == outcome["effective"]
    assert [note["about"] for note in notes if note.get("warning")] == ["healed"]


@pytest.mark.parametrize(("model", "text", "events"), REFUSALS)
def test_a_repair_is_told_once_and_nothing_is_told_of_what_was_refused(ask, model, text, events):
    _, [said] = ask([refused(text), Reply.events(*events)], ["-m", model])
    [line] = said.err.splitlines()
    assert line.startswith("mull: the endpoint rejected the request (")


def test_debug_tells_the_effort_of_the_request_that_passed(ask, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    replies = [refused(NO_EFFORT), Reply.events(*CHAT)]
    _, [said] = ask(replies, ["-m", "openai-compatible/z/high"])
    assert said.err.splitlines()[-1] == "mull: Reasoning: OFF"


@pytest.mark.parametrize("text", LISTED)
def test_levels_that_an_unknown_endpoint_lists_are_used_from_then_on(ask, text):
    model = "openai-compatible/z"
    bodies, said = ask(
        [refused(text), *[Reply.events(*CHAT)] * 5],
        ["-m", f"{model}/xhigh"],
        ["-m", f"{model}/xhigh"],
        ["-m", f"{model}/low"],
        ["-m", f"{model}/none"],
        ["-m", model],
    )
    sent = [body.get("reasoning_effort") for body in bodies]
    assert sent == ["xhigh", "high", "high", "low", "low", "medium"]
    assert "no xhigh level; thinking: high effort" in said[0].err
    assert said[1].err == "mull: This model has no xhigh level: using high\n"
    assert said[2].err == said[4].err == ""


def unsigned():
    """An answer whose thought has an empty signature, as relays give it that lose the real one."""
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    thought = {"type": "thinking_delta", "thinking": "hm"}
    return Reply.events(
        MESSAGES[0],
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_delta", "index": 0, "delta": thought},
        {"type": "content_block_stop", "index": 0},
        *({**event, "index": 1} if "index" in event else event for event in MESSAGES[1:]),
    )


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-5", "anthropic/claude-ft"])
def test_an_empty_signature_that_is_refused_is_left_out_from_then_on(ask, monkeypatch, model):
    monkeypatch.setenv("MULL_REASONING_INCLUDEINCONTEXT", "true")
    no = refused("messages.1.content.0: Invalid `signature` in `thinking` block")
    first, later = ["-m", model, "--name", "s"], ["-m", model, "--session", "s"]
    bodies, said = ask([unsigned(), no, *[unsigned()] * 2], first, later, later)
    assert ['"signature"' in json.dumps(body) for body in bodies] == [False, True, False, False]
    assert "cannot verify" in said[1].err
    assert "refused" not in said[2].err
