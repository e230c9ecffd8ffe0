"""Histories with stopped and failed turns: what came is sent, what failed does not pile up, and
every dialect takes the request."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import snapshot, target, thought
from effort import tried
from mull.dialects.registry import encode_request
from mull.dialects.traits import DIALECTS
from mull.history.log import Entry, Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import FAILED, Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.view.repair import BROKEN_OFF, INTERRUPTED
from mull.testing.rules.anthropic import check_anthropic
from mull.testing.rules.bedrock import check_bedrock
from mull.testing.rules.chat import check_pairs
from mull.testing.rules.gemini import check_gemini
from mull.testing.rules.responses import check_responses

CHECKS = {
    "anthropic": check_anthropic,
    "bedrock-converse": check_bedrock,
    "gemini": check_gemini,
    "openai-chat": check_pairs,
    "openai-responses": check_responses,
}
TOOLS = RequestOptions(tools=(Tool("look", "looks", {"type": "object"}),))
ENDS = ("complete", "stopped", "cut", "error", "in thought", "in call", "in tools", "nothing")
PARTLY = ("stopped", "cut", "error", "in call")


def there(dialect):
    signed_only = dialect in ("anthropic", "bedrock-converse")
    return target(dialect=dialect, compat={"signed_only": signed_only})


def signed(dialect, text):
    if dialect in ("anthropic", "bedrock-converse"):
        return ThinkingBlock(text, signature=f"sig of {text}")
    if dialect == "openai-responses":
        return ThinkingBlock(text, id=f"rs_{text}", encrypted=f"sealed {text}", kind="summary")
    return thought(text)


def answer_of(dialect, n, end, origin):
    text, call = TextBlock(f"text{n}"), ToolCallBlock(f"never{n}", "look", arguments='{"at')
    match end:
        case "complete":
            return [assistant(signed(dialect, f"thought{n}"), text, origin=origin)]
        case "stopped":
            return [assistant(signed(dialect, f"t{n}"), text, origin=origin, status="interrupted")]
        case "cut":
            cut = assistant(text, origin=origin, status="interrupted", stop_reason=FAILED)
            return [cut]
        case "error":
            return [assistant(text, origin=origin, status="error")]
        case "in thought":
            half = ThinkingBlock(f"half{n}", id=f"rs_{n}", kind="summary")
            return [assistant(half, origin=origin, status="interrupted")]
        case "in call":
            return [assistant(text, call, origin=origin, status="interrupted")]
        case "in tools":
            made = ToolCallBlock(f"stopped{n}", "look", {"at": n}, signature="s")
            stopped = ToolResultBlock(made.id, "Stopped by the user", is_error=True)
            return [assistant(made, origin=origin), Message(role="tool", blocks=(stopped,))]
    return []


@st.composite
def histories(draw):
    """Turns, each with rounds of tools that ran, words said meanwhile, and an end."""
    dialect = draw(st.sampled_from(DIALECTS))
    origin, log, shape = there(dialect).origin, Log(), []
    for n in range(draw(st.integers(1, 5))):
        rounds = draw(st.integers(0, 2))
        steered = draw(st.booleans()) and rounds > 0
        end = draw(st.sampled_from(ENDS))
        log.append(user(f"question{n}"), at=1.0)
        for at in range(rounds):
            call = ToolCallBlock(f"c{n}-{at}", "look", {"at": at}, signature="s")
            log.append(assistant(signed(dialect, f"r{n}-{at}"), call, origin=origin), at=1.0)
            result = Message(role="tool", blocks=(ToolResultBlock(call.id, f"seen{n}-{at}"),))
            log.append(result, at=1.0)
            if steered:
                log.add(Entry(user(f"steer{n}-{at}"), 1.0, steers=True))
        for message in answer_of(dialect, n, end, origin):
            log.append(message, at=1.0)
        shape.append((rounds, steered, end))
    log.append(user("go on"), at=1.0)
    return dialect, log, shape


@tried(1)
@given(histories(), st.booleans())
def test_what_came_is_in_every_body_and_every_dialect_takes_it(history, include):
    dialect, log, shape = history
    to = there(dialect)
    prepared = prepare(log, snapshot(includeInContext=include), to, TOOLS)
    body = json.loads(encode_request(prepared.request, to).body)
    assert CHECKS[dialect](body) is None
    sent = json.dumps(body)
    for n, (rounds, steered, end) in enumerate(shape):
        failed = end == "nothing" and not rounds
        assert (f"question{n}" in sent) != failed
        assert all(f"seen{n}-{at}" in sent for at in range(rounds))
        assert all((f"steer{n}-{at}" in sent) == steered for at in range(rounds))
        assert (f"text{n}" in sent) == (end in (*PARTLY, "complete"))
        assert f"never{n}" not in sent
    ends = [end for _, _, end in shape]
    stopped = sum(end in ("stopped", "in thought", "in call") for end in ends)
    assert sent.count(INTERRUPTED) == stopped
    assert sent.count(BROKEN_OFF) == sum(end in ("cut", "error") for end in ends)
    asked = [m.role for m in prepared.request.messages if m.role != "tool"]
    assert (
        ("user", "user") not in pairwise(asked)
        or any(end == "nothing" or steered for _, steered, end in shape)
        or "in tools" in ends
    )


@tried(0.5)
@given(histories())
def test_a_log_that_grew_step_by_step_is_sent_as_one_that_is_new(history):
    dialect, log, _ = history
    grown = Log()
    for record in log:
        grown.add(record)
        prepare(grown, snapshot(includeInContext=True), there(dialect), TOOLS)
    one = prepare(grown, snapshot(includeInContext=True), there(dialect), TOOLS)
    other = prepare(log, snapshot(includeInContext=True), there(dialect), TOOLS)
    assert tuple(one.request.messages) == tuple(other.request.messages)
    assert one.parts == other.parts


@pytest.mark.parametrize("dialect", DIALECTS)
def test_questions_that_failed_are_sent_no_more_and_that_is_said(dialect):
    log = Log()
    for n in range(4):
        log.append(user(f"try{n}"), at=1.0)
    prepared = prepare(log, snapshot(), there(dialect))
    assert [m.text for m in prepared.request.messages] == ["try3"]
    assert [n.text for n in prepared.notes if n.kind == "unanswered"] == [
        "3 questions without an answer not sent again"
    ]


def test_questions_in_a_row_that_were_given_from_elsewhere_are_all_sent():
    log = Log([user("context"), user("question")])
    prepared = prepare(log, snapshot(), there("openai-chat"))
    assert [m.text for m in prepared.request.messages] == ["context", "question"]


@pytest.mark.parametrize(
    ("blocks", "sent"),
    [
        ("tc", []),  # the call that followed is not sent
        ("t", []),  # nothing followed
        ("txtc", ["t0"]),  # a text followed the first
        ("tctx", ["t2"]),
        ("ttc", []),
        ("ttx", ["t0", "t1"]),
    ],
)
def test_an_encrypted_thought_is_sent_only_before_what_followed_it(blocks, sent):
    to = there("openai-responses")
    made = {
        "t": lambda n: signed("openai-responses", f"t{n}"),
        "c": lambda n: ToolCallBlock(f"c{n}", "look", {"at": 1}),
        "x": lambda n: TextBlock(f"x{n}"),
    }
    broken = [made[kind](n) for n, kind in enumerate(blocks)]
    log = Log([user("q"), assistant(*broken, origin=to.origin, status="error"), user("go on")])
    prepared = prepare(log, snapshot(includeInContext=True), to, TOOLS)
    items = json.loads(encode_request(prepared.request, to).body)["input"]
    assert [item["id"] for item in items if item["type"] == "reasoning"] == [
        f"rs_{t}" for t in sent
    ]
    left = blocks.count("t") - len(sent)
    assert any("not sent" in note.text for note in prepared.notes) == bool(left)


def test_a_thought_that_is_not_encrypted_stays_in_an_answer_that_broke_off():
    to = there("openai-responses")
    raw = ThinkingBlock("aloud", id="rs_1", kind="raw")
    call = ToolCallBlock("c", "look", {"at": 1})
    log = Log([user("q"), assistant(raw, call, origin=to.origin, status="error"), user("go on")])
    prepared = prepare(log, snapshot(includeInContext=True), to, TOOLS)
    assert [block.thought for m in prepared.request.messages for block in m.thinking] == ["aloud"]
