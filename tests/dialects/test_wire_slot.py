"""What a block keeps for one dialect is read by that dialect alone, whatever is in it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answers import DIALECTS, PAIRS, target_of
from conversations import blocks, snapshot, wires
from mull.dialects.registry import encode_request
from mull.dialects.serving import write_answer
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.policy.prepare import prepare

MARK = "only-its-own"
KEYS = ("novel", "id", "part", "parts", "item", "thinking", "reasoning_details", "extra_content")


def sent(target, answer):
    results = tuple(ToolResultBlock(call.id, "seen") for call in answer.tool_calls)
    messages = [user("q"), answer, *([Message(role="tool", blocks=results)] if results else [])]
    prepared = prepare(Log([*messages, user("r")]), snapshot(includeInContext=True), target)
    return encode_request(prepared.request, target).body


def answer_with(wire, origin=None):
    return assistant(
        ThinkingBlock("why", "reasoning", signature="c2ln", encrypted="gAAA", wire=wire),
        TextBlock("so", wire=wire),
        ToolCallBlock("c", "look", wire=wire),
        origin=origin,
    )


@pytest.mark.parametrize(("wrote", "reads"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_no_dialect_sends_what_another_kept(wrote, reads):
    held = {name: {"x": MARK} for name in KEYS} | {"reasoning_details": [{"text": MARK}]}
    answer = answer_with(Wire(wrote, held))
    assert MARK not in sent(target_of(reads), answer).decode()
    assert MARK not in write_answer(answer, reads).body.decode()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_dialect_sends_what_it_kept_itself(dialect):
    held = {"novel": MARK}
    if dialect == "openai-chat":
        held["reasoning_details"] = [{"type": "reasoning.text", "text": "why", "signature": MARK}]
    if dialect == "openai-responses":
        held["item"] = {"novel": MARK}
    target = target_of(dialect)
    body = sent(target, answer_with(Wire(dialect, held), target.origin)).decode()
    places = 2 if dialect == "bedrock-converse" else 3  # whose text has no other keys
    assert body.count(MARK) >= places  # the thought, the text and the call


@settings(max_examples=60)
@given(st.sampled_from(DIALECTS), st.lists(blocks, max_size=3), wires)
def test_whatever_is_kept_can_be_sent(dialect, more, wire):
    answer = msgspec.structs.replace(answer_with(wire), blocks=(*answer_with(wire).blocks, *more))
    target = target_of(dialect)
    msgspec.json.decode(sent(target, answer))
    msgspec.json.decode(write_answer(answer, dialect).body)
