"""The provider that terminal assistants are compared on: every scene in every dialect it speaks."""

from __future__ import annotations

import json

import pytest
from tools.played import SCENES, reply

from conversations import target
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.testing import CUT, STALL, Recorded

PARAMETERS = {"type": "object", "properties": {"command": {}, "path": {}, "old": {}, "new": {}}}
FUNCTION = {"name": "run", "parameters": PARAMETERS}
ASKED = {
    "/v1/chat/completions": ("openai-chat", "messages", {"type": "function", "function": FUNCTION}),
    "/v1/messages?beta=true": (
        "anthropic",
        "messages",
        {"name": "run", "input_schema": PARAMETERS},
    ),
    "/v1/responses": ("openai-responses", "input", {"type": "function", **FUNCTION}),
}


def played(path, text):
    _, field, tool = ASKED[path]
    body = {"model": "m", "stream": True, field: [{"role": "user", "content": text}]}
    more = {"max_tokens": 100} if "messages?" in path else {}
    data = json.dumps({**body, **more, "tools": [tool]}).encode()
    return reply(Recorded("POST", path, {}, data, 0))


def message(path, answer):
    reading = decoder(target(dialect=ASKED[path][0]))
    events = [
        event for step in answer.steps if isinstance(step, bytes) for event in reading.feed(step)
    ]
    return assemble([*events, *reading.close()])


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("name", SCENES)
def test_every_scene_is_an_answer_of_the_dialect(path, name):
    answer = played(path, f"play:{name} please")
    got = message(path, answer)
    breaks = any(step in (CUT, STALL) for step in answer.steps if not isinstance(step, bytes))
    assert (got.status == "complete") is not breaks
    assert got.text or got.tool_calls
    if name in ("run", "fail", "work", "rounds"):
        assert [call.name for call in got.tool_calls] == ["run"]


@pytest.mark.parametrize("path", ASKED)
def test_other_questions_are_quoted_and_numbers_are_refusals(path):
    assert message(path, played(path, "but wait")).text == "You said: but wait"
    assert played(path, "play:500").status == 500
