"""Refusals that are about the history: what is left out, and what stays."""

import pytest
from msgspec.structs import replace

from conversations import listed, target
from healing import (
    body,
    call,
    conversation,
    mended,
    open_turn,
    plain_turn,
    prepared,
    signed,
    thoughts,
)
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.policy.failure import Failure
from mull.policy.heal.healing import heal
from mull.policy.heal.lessons import Lessons, apply_lessons
from mull.testing.rules import refusal as rule

BUDGET = [{"type": "toggle"}, {"type": "budget_tokens", "min": 1024, "max": 32000}]
SEPARATE = {"requires_reasoning": "tool_calls"}
CLAUDE = target(
    "anthropic-budget",
    dialect="anthropic",
    options=BUDGET,
    compat=SEPARATE,
    thinks_by_default=False,
)
ADAPTIVE = target(
    "anthropic-adaptive",
    dialect="anthropic",
    options=[{"type": "effort", "values": ("low", "high")}],
    compat=SEPARATE,
)

INVALID = "Invalid `signature` in `thinking` block"
MODIFIED = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."
    " These blocks must remain as they were in the original response."
)
BOUND = (
    f"messages.3.content.0: {INVALID}. The block is bound to a different conversation. Remove the"
    ' block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    " The `system` prompt differs from the one this block was created with."
)
EXPECTED = (
    "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    " When `thinking` is enabled, a final `assistant` message must start with a thinking block"
    " (preceeding the lastmost set of `tool_use` and `tool_result` blocks). To avoid this"
    " requirement, disable `thinking`."
)


@pytest.mark.parametrize("text", [INVALID, "Invalid `data` in `redacted_thinking` block"])
@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("messages.1.content.0: ", ["Tc"]),
        ("messages.3.content.0: ", ["Ta", "Tc"]),
        ("", ["Tc"]),
        ("messages.2.content.0: ", ["Tc"]),  # a person's message: the path is of no use
        ("messages.99.content.0: ", ["Tc"]),
        ("messages.123456789012345678901.content.0: ", ["Tc"]),
    ],
)
def test_completed_turns_give_up_unverified_thoughts_from_the_named_one_on(path, text, left):
    repaired = mended(prepared(CLAUDE), path + text)
    assert thoughts(body(repaired)) == left
    assert body(repaired)["thinking"] == {"type": "enabled", "budget_tokens": 10_000}
    assert repaired.learn.only_carriers
    assert len(repaired.learn.refused) == 3 - len(left)
    assert replace(repaired.target, refused=()) == CLAUDE


def test_an_unverified_thought_of_the_open_chain_stops_the_budget_from_thinking():
    repaired = mended(prepared(CLAUDE), f"messages.5.content.0: {INVALID}")
    wire = body(repaired)
    assert thoughts(wire) == []
    assert "thinking" not in wire
    assert rule("anthropic", wire) is None
    assert repaired.change.endswith("; thinking: off")


def test_a_chain_that_lost_a_later_thought_is_not_thought_on_in():
    """The endpoint knows its own calls: a thought that is missing is a thought that was taken."""
    first, second = open_turn(CLAUDE, "c"), open_turn(CLAUDE, "d")[1:]
    repaired = mended(prepared(CLAUDE, [*first, *second]), f"messages.3.content.0: {INVALID}")
    wire = body(repaired)
    assert thoughts(wire) == []
    assert "thinking" not in wire


def test_an_adaptive_model_thinks_on_without_its_unverified_thought():
    repaired = mended(prepared(ADAPTIVE), f"messages.5.content.0: {INVALID}")
    wire = body(repaired)
    assert thoughts(wire) == ["Ta", "Tb"]
    assert wire["thinking"]["type"] == "adaptive"


def test_without_completed_thoughts_all_go():
    repaired = mended(prepared(ADAPTIVE, open_turn(ADAPTIVE, "c")), INVALID)
    assert thoughts(body(repaired)) == []


def test_redacted_data_goes_with_its_block():
    hidden = ThinkingBlock("", "thinking", redacted="EmwK")
    history = [user("q"), assistant(hidden, TextBlock("a"), origin=CLAUDE.origin), user("q2")]
    text = "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
    repaired = mended(prepared(CLAUDE, history), text)
    assert thoughts(body(repaired)) == []


def test_the_error_is_the_same_inside_a_stream_and_through_a_proxy():
    text = '{"type":"error","error":{"message":"messages.1.content.0: Invalid `signature` in'
    repaired = mended(prepared(CLAUDE), text + ' `thinking` block"}}', status=200)
    assert thoughts(body(repaired)) == ["Tc"]


def test_details_of_a_gateway_lose_what_does_not_verify():
    router = target("openrouter", options=[{"type": "toggle"}], compat=SEPARATE)
    entry = {"type": "reasoning.text", "text": "T", "signature": "SIG", "index": 0}
    block = ThinkingBlock("T", "reasoning_details", wire=listed([entry]))
    history = [user("q"), assistant(block, TextBlock("a"), origin=router.origin), user("q2")]
    repaired = mended(prepared(router, history), f"messages.1.content.0: {INVALID}")
    assert body(repaired)["messages"][1] == {"role": "assistant", "content": "a"}
    lessons = Lessons().learn(router, repaired.learn)
    again = prepared(apply_lessons(router, lessons), history)
    assert again.request.messages == repaired.request.messages


def test_a_bound_thought_takes_the_later_ones_with_it_and_teaches_that_the_model_binds():
    refused = prepared(ADAPTIVE)
    repaired = mended(refused, BOUND)
    assert thoughts(body(repaired)) == ["Ta"]
    assert repaired.target.compat.binds_thinking
    lessons = Lessons().learn(ADAPTIVE, repaired.learn)
    again = prepared(apply_lessons(ADAPTIVE, lessons))
    assert thoughts(body(again)) == ["Ta"]
    assert again.prefix is not None
    assert refused.prefix is None
    everything = mended(prepared(ADAPTIVE), BOUND.partition(": ")[2])
    assert thoughts(body(everything)) == []


@pytest.mark.parametrize(("path", "left"), [("messages.3.content.0: ", ["Ta"]), ("", [])])
def test_an_unverified_thought_takes_all_that_are_bound_to_it_along(path, left):
    binding = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=[{"type": "effort", "values": ("low", "high")}],
        compat={**SEPARATE, "binds_thinking": True},
    )
    repaired = mended(prepared(binding), path + INVALID)
    assert thoughts(body(repaired)) == left
    assert "of the conversation left out" in repaired.change


@pytest.mark.parametrize("path", ["messages.5.content.8: ", ""])
def test_modified_thoughts_of_the_latest_answer_go_together(path):
    first = assistant(signed("c"), signed("d"), call(ADAPTIVE, "c"), origin=ADAPTIVE.origin)
    result = Message(role="tool", blocks=(ToolResultBlock("call_c", "saw c"),))
    history = [*conversation(ADAPTIVE, chain=False)[:-1], user("look at c"), first, result]
    repaired = mended(prepared(ADAPTIVE, history), path + MODIFIED)
    assert thoughts(body(repaired)) == ["Ta", "Tb"]
    assert repaired.learn is None


def test_a_thought_behind_text_goes():
    text = (
        "messages.5: If an assistant message contains any thinking blocks, the first block must be"
        " `thinking` or `redacted_thinking`. Found `text`."
    )
    repaired = mended(prepared(ADAPTIVE), text)
    assert thoughts(body(repaired)) == ["Ta", "Tb"]


def test_unsigned_thoughts_go_where_a_signature_is_required():
    demanding = target(
        "anthropic-budget",
        dialect="anthropic",
        options=BUDGET,
        compat={"requires_reasoning": "all"},
    )
    bare = assistant(ThinkingBlock("Tx"), TextBlock("answer x"), origin=demanding.origin)
    history = [user("q"), bare, *plain_turn(demanding, "a"), user("q2")]
    repaired = mended(
        prepared(demanding, history), "messages.1.content.0.thinking.signature: Field required"
    )
    assert thoughts(body(repaired)) == ["Ta"]


def test_empty_thoughts_go_the_unsigned_ones_first():
    demanding = target(
        "anthropic-budget",
        dialect="anthropic",
        options=BUDGET,
        compat={"requires_reasoning": "all"},
    )
    empty = ThinkingBlock("")
    silent = ThinkingBlock("", "thinking", signature="SIG-s")
    history = [
        user("q"),
        assistant(empty, TextBlock("x"), origin=demanding.origin),
        user("q2"),
        assistant(silent, TextBlock("y"), origin=demanding.origin),
        user("q3"),
    ]
    text = "messages.1.content.0.thinking: each thinking block must contain thinking"
    repaired = mended(prepared(demanding, history), text)
    content = [m["content"] for m in body(repaired)["messages"] if m["role"] == "assistant"]
    assert [[block["type"] for block in one] for one in content] == [["text"], ["thinking", "text"]]
    history[1] = assistant(TextBlock("x"), origin=demanding.origin)
    assert thoughts(body(mended(prepared(demanding, history), text))) == []


def test_a_key_that_is_not_taken_back_goes():
    text = TextBlock("answer", wire=Wire("anthropic", {"signature": "S", "citations": []}))
    history = [user("q"), assistant(text, origin=CLAUDE.origin), user("q2")]
    repaired = mended(
        prepared(CLAUDE, history),
        "messages.1.content.0.text.signature: Extra inputs are not permitted",
    )
    block = body(repaired)["messages"][1]["content"][0]
    assert block == {"type": "text", "text": "answer", "citations": []}


def test_a_thought_at_the_end_of_an_answer_goes():
    router = target("openrouter", options=[{"type": "toggle"}], compat=SEPARATE)
    late = assistant(
        TextBlock("a"), ThinkingBlock("late", "reasoning_content"), origin=router.origin
    )
    text = "messages.1: The final block in an assistant message cannot be `thinking`."
    repaired = mended(prepared(router, [user("q"), late, user("q2")]), text)
    assert body(repaired)["messages"][1] == {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("text", [EXPECTED, EXPECTED.partition("is enabled, ")[2]])
def test_a_chain_without_its_thought_is_asked_for_without_thinking(text):
    hard = target("anthropic-budget", dialect="anthropic", options=BUDGET, compat=SEPARATE)
    refused = prepared(hard)
    repaired = mended(refused, text)
    wire = body(repaired)
    assert wire["thinking"] == {"type": "disabled"}
    assert thoughts(wire) == []
    assert rule("anthropic", wire) is None
    assert repaired.learn is None


def test_a_model_that_cannot_stop_is_not_asked_to():
    always = target("anthropic-budget", dialect="anthropic", options=BUDGET[1:], compat=SEPARATE)
    assert heal(prepared(always), Failure(EXPECTED, 400)) is None


def test_thoughts_of_the_open_turn_go_where_thinking_is_off():
    hopeful = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=[{"type": "effort", "values": ("low", "high")}],
        compat=SEPARATE,
        off_type="between_tools",
        can_be_off=True,
    )
    refused = prepared(hopeful)
    text = (
        "When thinking is disabled, an `assistant` message in the final position cannot contain"
        " `thinking`. To use thinking blocks, enable `thinking` in your request."
    )
    repaired = mended(refused, text)
    assert thoughts(body(repaired)) == ["Ta", "Tb"]
