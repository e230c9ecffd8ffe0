"""What one request does otherwise after a refusal: prepared, counted and told like any other."""

import pytest

from conversations import snapshot, target, thought
from healing import ASK, LOOK, body, mended, open_turn, plain_turn, prepared, steered, thoughts
from mull.dialects.openai_chat.replay import call_seals, with_seal
from mull.history.log import Condensed, Log
from mull.neutral.blocks import TextBlock, ToolCallBlock, Wire, wire_of
from mull.neutral.messages import assistant, user
from mull.neutral.request import RequestOptions
from mull.policy.heal.amendment import (
    UNAMENDED,
    Amendment,
    amend_messages,
    amend_options,
    thought_name,
)
from mull.policy.heal.lessons import fingerprints
from mull.policy.prepare import prepare

TOGGLE = {"type": "toggle"}
BUDGET = {"type": "budget_tokens", "min": 1024, "max": 64_000}
CLAUDE = target(
    "anthropic-budget",
    dialect="anthropic",
    options=[TOGGLE, BUDGET],
    compat={"requires_reasoning": "tool_calls"},
    output=128_000,
)
KIMI = target("thinking-type", options=[TOGGLE], compat={"requires_reasoning": "tool_calls"})
ASKED = RequestOptions(
    tools=(LOOK,), tool_choice="required", temperature=0.2, max_tokens=9_000, stream=False
)


@pytest.mark.parametrize(
    ("amendment", "changed"),
    [
        (UNAMENDED, {}),
        (Amendment(without=frozenset({"thinking"})), {"least_thinking": True}),
        (Amendment(without=frozenset({"temperature"})), {"temperature": None}),
        (Amendment(without=frozenset({"tool_choice"})), {"tool_choice": None}),
        (Amendment(without=frozenset({"whole_answer"})), {"stream": True}),
        (Amendment(limit=500), {"max_tokens": 500}),
        (Amendment(limit=90_000), {}),
    ],
)
def test_only_what_is_named_of_the_callers_options_changes(amendment, changed):
    after = amend_options(ASKED, amendment)
    names = RequestOptions.__struct_fields__
    assert {
        n: getattr(after, n) for n in names if getattr(after, n) != getattr(ASKED, n)
    } == changed


def amended(where, messages, amendment, **settings):
    refused = prepared(where, messages, settings=settings)
    return refused, refused.anew(where, amendment)


def test_a_limit_bends_numbers_that_the_user_gave():
    refused = prepared(CLAUDE, ASK, settings={"maxTokens": 30_000}, max_tokens=40_000)
    wire = body(refused.anew(CLAUDE, Amendment(limit=8_000)))
    assert (wire["max_tokens"], wire["thinking"]["budget_tokens"]) == (8_000, 8_000 - 1_024)
    assert refused.anew(CLAUDE) == refused


def test_thoughts_that_are_left_out_are_neither_counted_nor_missed_in_silence():
    history = [*plain_turn(CLAUDE, "a"), *open_turn(CLAUDE, "c")]
    gone = prepared(CLAUDE, history).request.messages[1].thinking[0]
    refused, after = amended(CLAUDE, history, Amendment(thoughts=frozenset({thought_name(gone)})))
    assert thoughts(body(after)) == ["Tc"]
    assert after.tokens < refused.tokens
    assert "1 thought left out: the endpoint rejected them" in [note.text for note in after.notes]


def test_a_thought_that_went_in_its_shorter_form_is_left_out_in_it():
    log = Log([user("q"), assistant(thought("long " * 40), TextBlock("a")), user("r")])
    log.add(Condensed(1, 0, "in short"))
    wanted = snapshot(includeInContext=True, condenseOver=50)
    refused = prepare(log, wanted, KIMI)
    (short,) = refused.request.messages[1].thinking
    assert short.thought == "in short"
    after = refused.anew(KIMI, Amendment(thoughts=frozenset({thought_name(short)})))
    assert after.request.messages[1].blocks == (TextBlock("a"),)
    assert after.parts.thinking == 0
    assert {note.kind for note in after.notes} & {"refused", "condensed"} == {"refused"}


def test_what_is_not_amended_is_the_same_object():
    messages = prepared(KIMI).request.messages
    assert amend_messages(messages, UNAMENDED, "openai-chat") is messages
    nothing = Amendment(without=frozenset({"empty_end"}), keys=frozenset({"nothing"}))
    assert amend_messages(messages, nothing, "openai-chat") is messages


def test_a_server_that_does_not_know_its_budget_is_still_told_to_think():
    qwen = target("enable-thinking", options=[TOGGLE, BUDGET])
    refused = prepared(qwen, ASK, settings={"maxTokens": 2_000})
    assert steered(body(refused)) == {"enable_thinking": True, "thinking_budget": 2_000}
    repaired = mended(refused, "Unknown parameter: 'thinking_budget'.")
    assert steered(body(repaired)) == {"enable_thinking": True}


def test_a_refused_seal_of_a_call_in_openais_shape_is_marked_from_then_on():
    sealed = with_seal(
        ToolCallBlock("c", "look", wire=Wire("openai-chat", {"x": 1})), "vertex", "SIG"
    )
    assert call_seals(sealed) == {"vertex": "SIG"}
    assert sealed.wire.data["x"] == 1
    assert len(list(fingerprints(sealed))) == 1
    refused = prepared(KIMI, open_turn(KIMI, "c", wire=sealed.wire))
    repaired = mended(refused, "Invalid thought signature")
    later = refused.anew(repaired.target)
    for one in (repaired, later):
        extra = body(one)["messages"][1]["tool_calls"][0]["extra_content"]
        assert extra["vertex"] == {"thought_signature": "skip_thought_signature_validator"}


def test_a_call_whose_extra_is_no_namespace_has_no_seal():
    for extra in ({}, {"extra_content": "x"}, {"extra_content": {"google": "x"}}):
        assert call_seals(ToolCallBlock("c", "look", wire=wire_of("openai-chat", extra))) == {}
