"""What a client wrote in one dialect, and mull does not know, goes to no endpoint of another."""

from __future__ import annotations

import msgspec
import pytest

from answers import DIALECTS, target_of
from conversations import snapshot
from mull.dialects.registry import encode_request
from mull.dialects.serving import decode_request
from mull.history.log import Log
from mull.neutral.messages import message_from_json, message_to_json
from mull.policy.prepare import prepare

MARK = "only-there"
_SEARCH = {"type": "search_result", "source": MARK, "title": "t", "content": []}
_TOOL_USE = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": MARK}}
_FOUND = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": MARK}}
CODE = {"executableCode": {"language": "PYTHON", "code": MARK}}
REQUESTS = {
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, _SEARCH]},
            {"role": "assistant", "content": [_TOOL_USE, {"type": "text", "text": "so"}]},
            {"role": "user", "content": [_SEARCH]},
        ],
    },
    "bedrock-converse": {
        "messages": [
            {"role": "user", "content": [{"text": "look"}, {"guardContent": {"text": MARK}}]},
            {"role": "assistant", "content": [{"searchResult": {"source": MARK}}, {"text": "so"}]},
            {"role": "user", "content": [{"guardContent": {"text": MARK}}]},
        ]
    },
    "gemini": {
        "contents": [
            {"role": "user", "parts": [{"text": "look"}, CODE]},
            {"role": "model", "parts": [CODE, {"text": "so"}]},
            {"role": "user", "parts": [CODE]},
        ]
    },
    "openai-chat": {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": MARK}]},
            {"role": "assistant", "content": [{"type": MARK}, {"type": "text", "text": "so"}]},
            {"role": "user", "content": [{"type": MARK}]},
        ],
    },
    "openai-responses": {
        "model": "m",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "look"}, {"type": "input_file", "file_id": MARK}]},
            _FOUND,
            {"role": "assistant", "content": "so"},
            {"role": "user", "content": [{"type": "input_file", "file_id": MARK}]},
        ],
    },
}  # fmt: skip


def sent(one: str, other: str) -> tuple[str, list[str]]:
    asked = decode_request(one, msgspec.json.encode(REQUESTS[one]))
    stored = [message_from_json(message_to_json(message)) for message in asked.messages]
    to = target_of(other)
    prepared = prepare(Log(stored), snapshot(includeInContext=True), to)
    wire = encode_request(prepared.request, to)
    back = decode_request(other, wire.body, wire.path, wire.headers)
    assert [m.text for m in back.messages if m.text] == ["look", "so"]
    return wire.body.decode(), [note.text for note in (*prepared.notes, *wire.notes)]


@pytest.mark.parametrize("other", DIALECTS)
@pytest.mark.parametrize("one", DIALECTS)
def test_it_goes_home_and_nowhere_else(one, other):
    body, notes = sent(one, other)
    told = "3 pieces of a kind that only another API supports left out"
    assert (MARK in body, told in notes) == (one == other, one != other)
