"""Refusals that are about the history: what is left out, and what stays."""

import pytest

from conversations import target
from healing import (
    body,
    call,
    conversation,
    mended,
    open_turn,
    plain_turn,
    prepared,
    signed,
    thinking,
    thoughts,
)
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message, assistant, user
from mull.policy.heal import Refusal, heal, leave_out_refused
from mull.policy.lessons import Lessons
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
RESPONSES = target(
    "responses",
    dialect="openai-responses",
    options=[{"type": "effort", "values": ("low", "high")}],
    compat=SEPARATE,
)
GEMINI = target(
    "gemini-level",
    dialect="gemini",
    options=[{"type": "effort", "values": ("low", "high")}],
    compat=SEPARATE,
)
CHAT = target("thinking-type", options=[{"type": "toggle"}], compat=SEPARATE)

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
    assert repaired.target == CLAUDE


def test_an_unverified_thought_of_the_open_chain_stops_the_budget_from_thinking():
    repaired = mended(prepared(CLAUDE), f"messages.5.content.0: {INVALID}")
    wire = body(repaired)
    assert thoughts(wire) == ["Ta", "Tb"]
    assert "thinking" not in wire
    assert rule("anthropic", wire) is None
    assert "off for this request" in repaired.change


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
    block = ThinkingBlock("T", "reasoning_details", details=[entry])
    history = [user("q"), assistant(block, TextBlock("a"), origin=router.origin), user("q2")]
    repaired = mended(prepared(router, history), f"messages.1.content.0: {INVALID}")
    assert body(repaired)["messages"][1] == {"role": "assistant", "content": "a"}
    lessons = Lessons().learn(router, repaired.learn)
    again = leave_out_refused(prepared(router, history), lessons)
    assert again.request.messages == repaired.request.messages


def test_a_bound_thought_takes_the_later_ones_with_it_and_teaches_nothing():
    repaired = mended(prepared(ADAPTIVE), BOUND)
    assert thoughts(body(repaired)) == ["Ta"]
    assert repaired.learn is None
    everything = mended(prepared(ADAPTIVE), BOUND.partition(": ")[2])
    assert thoughts(body(everything)) == []


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
    text = TextBlock("answer", extra={"signature": "S", "citations": []})
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


def test_a_chain_without_its_thought_is_asked_for_without_thinking():
    hard = target("anthropic-budget", dialect="anthropic", options=BUDGET, compat=SEPARATE)
    refused = prepared(hard)
    repaired = mended(refused, EXPECTED)
    wire = body(repaired)
    assert wire["thinking"] == {"type": "disabled"}
    assert thoughts(wire) == ["Ta", "Tb"]
    assert rule("anthropic", wire) is None
    assert repaired.learn is None


def test_a_model_that_cannot_stop_is_not_asked_to():
    always = target("anthropic-budget", dialect="anthropic", options=BUDGET[1:], compat=SEPARATE)
    assert heal(prepared(always), Refusal(400, EXPECTED)) is None


def test_thoughts_of_the_open_turn_go_where_thinking_is_off():
    hopeful = target(
        "anthropic-adaptive",
        dialect="anthropic",
        options=[{"type": "effort", "values": ("low", "high")}],
        compat=SEPARATE,
        off_type="between_tools",
        can_be_off=True,
    )
    refused = prepared(hopeful, settings={"enabled": False})
    text = (
        "When thinking is disabled, an `assistant` message in the final position cannot contain"
        " `thinking`. To use thinking blocks, enable `thinking` in your request."
    )
    repaired = mended(refused, text)
    assert thoughts(body(repaired)) == ["Ta", "Tb"]


PAIRING = [
    ("Item 'msg_a' of type 'message' was provided without its required 'reasoning' item", None),
    (
        "Item 'fc_c' of type 'function_call' was provided without its required 'reasoning' item",
        None,
    ),
    ("Item 'rs_c' of type 'reasoning' was provided without its required following item.", None),
    (
        "Item with id 'rs_a' not found. Items are not persisted when `store` is set to false. Try"
        " again with `store` set to true, or remove this item from your input.",
        None,
    ),
    (
        "The encrypted content for item rs_a could not be verified. Reason: Encrypted content"
        " organization_id did not match the target organization.",
        "invalid_encrypted_content",
    ),
    ("The encrypted content gAAA...c90= could not be verified.", None),
    ("Encrypted content for item rs_a could not be decrypted or parsed.", None),
    ("", "invalid_encrypted_content"),
    ("reasoning `encrypted_content` was not issued to this caller", None),
    ("item['content'] is empty", None),
]


@pytest.mark.parametrize(("text", "code"), PAIRING)
def test_reasoning_items_go_with_the_ids_that_ask_for_them(text, code):
    repaired = mended(prepared(RESPONSES), text, 404 if "not found" in text else 400, code=code)
    items = body(repaired)["input"]
    assert {item["type"] for item in items} == {"message", "function_call", "function_call_output"}
    assert not any("id" in item for item in items)
    assert rule("openai-responses", body(repaired)) is None
    assert body(repaired)["include"] == ["reasoning.encrypted_content"]
    lessons = Lessons().learn(RESPONSES, repaired.learn)
    again = leave_out_refused(prepared(RESPONSES), lessons)
    assert body(again) == body(repaired)
    assert leave_out_refused(again, lessons) is again


def test_a_model_that_does_not_reason_is_not_asked_for_encrypted_reasoning():
    repaired = mended(
        prepared(RESPONSES, [user("q")]), "Encrypted content is not supported with this model."
    )
    assert "include" not in body(repaired)
    assert "reasoning" not in body(repaired)
    assert repaired.learn.facts == {"reasoning": False}
    assert repaired.learn.compat == {"thinkingWriter": "none"}


UNSIGNED = [
    "Function call is missing a thought_signature in functionCall parts. This is required for tools"
    " to work correctly, and missing thought_signature may lead to degraded model performance."
    " Additional data, function call `default_api:look` , position 2.",
    "Unable to submit request because function call `look` in the 3. content block is missing a"
    " `thought_signature`",
]


@pytest.mark.parametrize("text", UNSIGNED)
def test_unsigned_calls_of_the_turn_are_marked(text):
    older = target("gemini-budget", dialect="gemini", options=BUDGET[1:], compat=SEPARATE)
    history = [*plain_turn(older, "a"), *open_turn(older, "c", signature=None)]
    repaired = mended(prepared(older, history), text)
    wire = body(repaired)
    part = wire["contents"][3]["parts"][1]
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
    assert wire["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
    assert rule("gemini", wire) is None
    assert repaired.learn.compat == {"thinkingWriter": "gemini-level"}


@pytest.mark.parametrize("text", UNSIGNED)
def test_a_signature_on_the_wrong_call_of_a_step_is_not_enough(text):
    first = ToolCallBlock("c1", "look", {"at": "1"})
    second = ToolCallBlock("c2", "look", {"at": "2"}, signature="SIG-2")
    results = (ToolResultBlock("c1", "1"), ToolResultBlock("c2", "2"))
    step = assistant(first, second, origin=GEMINI.origin)
    refused = prepared(GEMINI, [user("q"), step, Message(role="tool", blocks=results)])
    parts = body(mended(refused, text))["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [
        "skip_thought_signature_validator",
        None,
    ]


@pytest.mark.parametrize("text", UNSIGNED)
def test_calls_in_the_openai_shape_are_marked_in_their_place(text):
    repaired = mended(prepared(CHAT), text)
    marked = body(repaired)["messages"][5]["tool_calls"][0]["extra_content"]
    assert marked == {"google": {"thought_signature": "skip_thought_signature_validator"}}


@pytest.mark.parametrize(
    "text",
    [
        "Invalid thought signature",
        "Corrupted thought signature.",
        "Unable to submit request because Thought signature is not valid",
    ],
)
def test_signatures_that_do_not_verify_go(text):
    repaired = mended(prepared(GEMINI), text)
    wire = body(repaired)
    part = wire["contents"][5]["parts"][1]
    assert part["thoughtSignature"] == "skip_thought_signature_validator"
    assert "SIG-c" not in str(wire)
    assert rule("gemini", wire) is None
    lessons = Lessons().learn(GEMINI, repaired.learn)
    assert body(leave_out_refused(prepared(GEMINI), lessons)) == wire


def test_signatures_in_the_openai_shape_go_too():
    extra = {"extra_content": {"google": {"thought_signature": "SIG-c"}, "other": {"x": 1}}}
    refused = prepared(CHAT, open_turn(CHAT, "c", extra=extra))
    repaired = mended(refused, "Invalid thought signature")
    marked = body(repaired)["messages"][1]["tool_calls"][0]["extra_content"]
    assert marked["google"] == {"thought_signature": "skip_thought_signature_validator"}
    assert marked["other"] == {"x": 1}


@pytest.mark.parametrize(
    ("text", "requires", "filler"),
    [
        (
            "thinking is enabled but reasoning_content is missing in assistant tool call message"
            " at index 13",
            "tool_calls",
            " ",
        ),
        ("The reasoning_content in the thinking mode must be passed back to the API.", "all", ""),
        ("The `reasoning_content` in the thinking mode must be passed back to the API.", "all", ""),
        ("Missing reasoning_content field in the assistant message at message index 6", "all", ""),
        (
            "preserved thinking (thinking.keep=all) requires reasoning_content on every assistant"
            " message, but assistant message at index 6 is missing reasoning_content",
            "all",
            " ",
        ),
    ],
)
def test_missing_reasoning_is_filled_in(text, requires, filler):
    unknown = target("none", reasoning=False, known=False)
    step = assistant(call(unknown, "c"), origin=unknown.origin)
    result = Message(role="tool", blocks=(ToolResultBlock("call_c", "saw c"),))
    history = [*plain_turn(unknown, "a"), user("q"), step, result]
    history[1:1] = [assistant(TextBlock("hello"), origin=unknown.origin), user("and")]
    repaired = mended(prepared(unknown, history), text)
    answers = [m for m in body(repaired)["messages"] if m["role"] == "assistant"]
    hello, answer, called = (m.get("reasoning_content") for m in answers)
    assert answer == "Ta"
    assert called == filler
    assert hello == (filler if requires == "all" else None)
    assert repaired.learn.compat["requiresReasoning"] == requires
    assert repaired.renew


def test_an_empty_filler_that_counts_as_missing_becomes_a_space():
    compat = {"requires_reasoning": "all", "missing_reasoning": ""}
    deep = target("thinking-type", options=[{"type": "toggle"}], compat=compat)
    history = [user("q"), assistant(TextBlock("a"), origin=deep.origin), user("q2")]
    text = "The reasoning_content in the thinking mode must be passed back to the API."
    repaired = mended(prepared(deep, history), text)
    assert body(repaired)["messages"][1]["reasoning_content"] == " "


def test_thoughts_are_passed_back_on_the_anthropic_route():
    plain = target("anthropic-budget", dialect="anthropic", options=BUDGET, compat=SEPARATE)
    bare = assistant(TextBlock("a"), origin=plain.origin)
    text = "The `content[].thinking` in the thinking mode must be passed back to the API."
    repaired = mended(prepared(plain, [user("q"), bare, user("q2")]), text)
    assert body(repaired)["messages"][1]["content"][0]["type"] == "thinking"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (
            '{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant",'
            '"reasoning_content"],"msg":"Extra inputs are not permitted","input":"Ta"}]}',
            422,
        ),
        (
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' :"
            " property 'reasoning_content' is unsupported)]",
            400,
        ),
        (
            "messages.1.assistant.reasoning_content: property"
            " 'messages.1.assistant.reasoning_content' is unsupported",
            400,
        ),
        ("Extra inputs are not permitted, field: 'messages[1].reasoning', value: 'Ta'", 400),
    ],
)
def test_reasoning_stays_home_where_its_field_is_refused(text, status):
    repaired = mended(prepared(CHAT), text, status)
    assert "Ta" not in str(body(repaired))
    assert body(repaired)["thinking"] == body(prepared(CHAT))["thinking"]
    assert repaired.learn.compat["reasoningOut"] == "never"


def test_thoughts_of_every_dialect_are_as_their_endpoints_give_them():
    for one in (CLAUDE, ADAPTIVE, RESPONSES, CHAT):
        assert thinking(one, "a").thought in str(body(prepared(one)))
