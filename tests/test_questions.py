"""The task that assistants are compared on: each gets every call in its own words."""

import json

import pytest
from tools.questions import ASSISTANTS, TASK, Player

from conversations import target
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.testing import Recorded

WORDS = {"home": "/home", "folder": "/ledger", "url": "http://127.0.0.1:9"}
TOOL = {"name": "any", "parameters": {}, "input_schema": {}, "function": {"name": "any"}}
PATHS = {
    "mull": ("/v1/chat/completions", "openai-chat", "messages"),
    "Claude Code": ("/v1/messages?beta=true", "anthropic", "messages"),
    "codex": ("/v1/responses", "openai-responses", "input"),
    "kimi-code": ("/v1/chat/completions", "openai-chat", "messages"),
}


def called(name, result=None):
    """What the model calls after this result, as it stands on the wire, and its message."""
    path, dialect, field = PATHS[name]
    given = [{"role": "user", "content": TASK["question"]}]
    if result and dialect == "openai-chat":
        key, text = result
        given += [{"role": "tool", "tool_call_id": key, "content": text}]
    elif result and dialect == "anthropic":
        block = {"type": "tool_result", "tool_use_id": result[0], "content": result[1]}
        given += [{"role": "user", "content": [block]}]
    elif result:
        given += [{"type": "function_call_output", "call_id": result[0], "output": result[1]}]
    body = {"model": "m", "stream": True, "max_tokens": 9, field: given, "safeguards": []}
    body["tools"] = [{"type": "function" if dialect != "anthropic" else "custom", **TOOL}]
    reply = Player(ASSISTANTS[name], WORDS).reply(
        Recorded("POST", path, {}, json.dumps(body).encode(), 0)
    )
    data = b"".join(step for step in reply.steps if isinstance(step, bytes))
    reading = decoder(target(dialect=dialect))
    return data.decode(), assemble([*reading.feed(data), *reading.close()])


def test_the_task_has_forty_calls():
    assert len(TASK["steps"]) == 40


@pytest.mark.parametrize("name", PATHS)
def test_each_assistant_gets_each_call_after_the_one_before(name):
    for number, step in enumerate(TASK["steps"], 1):
        data, _ = called(name, (f"step_{number - 1:02}_0", "done") if number > 1 else None)
        kind = next(iter(step))
        tool, _ = ASSISTANTS[name].tools[kind]
        assert f"step_{number:02}_0" in data
        assert f'"{tool}"' in data
        assert "{url}" not in data
    _, last = called(name, ("step_40_0", "done"))
    assert last.text.startswith("Done")
    assert not last.tool_calls


def test_what_a_sandbox_refused_is_asked_for_once():
    refused = "fatal: cannot lock ref: Read-only file system"
    _, again = called("codex", ("step_12_0", refused))
    (call,) = again.tool_calls
    assert (call.id, call.input["sandbox_permissions"]) == ("step_12_1", "require_escalated")
    data, _ = called("codex", ("step_12_1", refused))
    assert "step_13_0" in data


def test_a_safety_check_of_the_server_passes_every_call():
    data, message = called("Claude Code")
    sent = [json.loads(line[6:]) for line in data.splitlines() if line.startswith("data: ")]
    (delta,) = [event["delta"] for event in sent if event["type"] == "message_delta"]
    (found,) = delta["safeguard_results"]
    assert list(found["status"]["tool_uses"]) == [message.tool_calls[0].id]
