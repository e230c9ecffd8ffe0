"""Refusals about items, signatures and reasoning fields of earlier answers."""

import pytest

from conversations import target
from healing import body, call, mended, open_turn, plain_turn, prepared, thinking
from mull.neutral.blocks import TextBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, user
from mull.policy.heal.lessons import Lessons, apply_lessons
from mull.testing.rules import refusal as rule

BUDGET = [{"type": "toggle"}, {"type": "budget_tokens", "min": 1024, "max": 32000}]
EFFORT = [{"type": "effort", "values": ("low", "high")}]
NEEDS = {"requires_reasoning": "tool_calls"}
CLAUDE = target("anthropic-budget", dialect="anthropic", options=BUDGET, compat=NEEDS)
RESPONSES = target("responses", dialect="openai-responses", options=EFFORT, compat=NEEDS)
GEMINI = target("gemini-level", dialect="gemini", options=EFFORT, compat=NEEDS)
CHAT = target("thinking-type", options=[{"type": "toggle"}], compat=NEEDS)

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
    again = prepared(apply_lessons(RESPONSES, lessons))
    assert body(again) == body(repaired)
    assert again.tokens < prepared(RESPONSES).tokens


def test_a_gateway_whose_model_knows_no_signatures_gets_no_thoughts():
    text = "This model doesn't support the reasoningContent.reasoningText.signature field."
    assert "Ta" not in str(body(mended(prepared(CHAT), text)))


def test_a_model_that_does_not_reason_is_not_asked_for_encrypted_reasoning():
    repaired = mended(
        prepared(RESPONSES, [user("q")]), "Encrypted content is not supported with this model."
    )
    assert "include" not in body(repaired)
    assert "reasoning" not in body(repaired)
    assert repaired.learn.facts == {"reasoning": False}
    assert repaired.learn.compat == {"thinkingWriter": "none"}


@pytest.mark.parametrize(
    "text",
    [
        "Encrypted content is not supported with this model.",
        "Unsupported parameter: 'include'",
        "Unknown parameter: 'include[0]'.",
        "include: Extra inputs are not permitted",
    ],
)
def test_an_unknown_model_is_asked_for_encrypted_reasoning_until_it_rejects_that(text):
    unlisted = target("usual", dialect="openai-responses", reasoning=False, known=False)
    refused = prepared(unlisted, [user("q")])
    assert body(refused)["include"] == ["reasoning.encrypted_content"]
    repaired = mended(refused, text)
    assert "include" not in body(repaired)
    learnt = apply_lessons(unlisted, Lessons().learn(unlisted, repaired.learn))
    assert "include" not in body(prepared(learnt, [user("q")]))


UNSIGNED = [
    "Function call is missing a thought_signature in functionCall parts. This is required for tools"
    " to work correctly, and missing thought_signature may lead to degraded model performance."
    " Additional data, function call `default_api:look` , position 2.",
    "Unable to submit request because function call `look` in the 3. content block is missing a"
    " `thought_signature`",
]


@pytest.mark.parametrize("text", UNSIGNED)
def test_unsigned_calls_of_the_turn_are_marked(text):
    facts = {"options": BUDGET[1:], "thinks_by_default": True}
    older = target("gemini-budget", dialect="gemini", compat=NEEDS, **facts)
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
    assert body(prepared(apply_lessons(GEMINI, lessons))) == wire


def test_signatures_in_the_openai_shape_go_too():
    extra = {"extra_content": {"google": {"thought_signature": "SIG-c"}, "other": {"x": 1}}}
    refused = prepared(CHAT, open_turn(CHAT, "c", wire=Wire("openai-chat", extra)))
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
    again = prepared(apply_lessons(unknown, Lessons().learn(unknown, repaired.learn)), history)
    assert body(again)["messages"] == body(repaired)["messages"]


def test_an_empty_filler_that_counts_as_missing_becomes_a_space():
    compat = {"requires_reasoning": "all", "missing_reasoning": ""}
    deep = target("thinking-type", options=[{"type": "toggle"}], compat=compat)
    history = [user("q"), assistant(TextBlock("a"), origin=deep.origin), user("q2")]
    text = "The reasoning_content in the thinking mode must be passed back to the API."
    repaired = mended(prepared(deep, history), text)
    assert body(repaired)["messages"][1]["reasoning_content"] == " "


def test_thoughts_are_passed_back_on_the_anthropic_route():
    plain = target("anthropic-budget", dialect="anthropic", options=BUDGET, compat=NEEDS)
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
    assert repaired.prepared.parts.thinking == 0 < prepared(CHAT).parts.thinking
    assert repaired.learn.compat["reasoningOut"] == "never"


def test_a_field_refused_without_a_path_stays_home_too():
    repaired = mended(prepared(CHAT), "property 'reasoning_content' is unsupported")
    assert "Ta" not in str(body(repaired))


def test_thoughts_of_every_dialect_are_as_their_endpoints_give_them():
    for one in (CLAUDE, RESPONSES, CHAT):
        assert thinking(one, "a").thought in str(body(prepared(one)))
