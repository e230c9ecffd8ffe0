"""Refusals that are about the rest of a request, and refusals that are nothing to mend."""

import json

import pytest

from conversations import snapshot, target
from healing import body, mended, open_turn, plain_turn, prepared
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, Wire
from mull.neutral.messages import assistant, user
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.policy.failure import Failure
from mull.policy.heal.advice import explain
from mull.policy.heal.causes import CAUSES
from mull.policy.heal.healing import heal
from mull.policy.heal.lessons import Lessons, apply_lessons
from mull.policy.prepare import prepare
from mull.testing.rules import refusal as rule

TOGGLE = {"type": "toggle"}
EFFORT = {"type": "effort", "values": ("none", "low", "medium", "high")}
ASK = [user("question")]
FORCED = {"type": "function", "function": {"name": "look"}}
CHAT = target(
    "openai-effort",
    options=[EFFORT],
    compat={"max_tokens_field": "max_completion_tokens", "system_role": "developer"},
)


def test_an_endpoint_that_wants_an_answer_after_results_gets_one():
    history = [*open_turn(CHAT, "c"), user("hurry")]
    refused = prepared(CHAT, history)
    assert [message["role"] for message in body(refused)["messages"]][-2:] == ["tool", "user"]
    repaired = mended(refused, "Unexpected role 'user' after role 'tool'")
    assert repaired.learn.compat == {"assistantAfterResults": True}
    sent = json.loads(encode_request(repaired.request, repaired.target).body)["messages"]
    assert [message["role"] for message in sent][-3:] == ["tool", "assistant", "user"]


@pytest.mark.parametrize(
    "text",
    [
        "Function tools with reasoning_effort are not supported for gpt-5.4 in"
        " /v1/chat/completions. Please use /v1/responses instead.",
        "Function tools with reasoning_effort are not supported for gpt-5.6 in"
        " /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort"
        " to 'none'.",
        "This model is only supported in v1/responses and not in v1/chat/completions.",
    ],
)
@pytest.mark.parametrize("origin", [CHAT.origin, None])
def test_tools_with_reasoning_move_to_the_responses_api(text, origin):
    history = [
        *plain_turn(CHAT, "a"),
        *open_turn(CHAT, "c", wire=Wire("openai-chat", {"extra_content": {"x": 1}})),
    ]
    for at, message in enumerate(history):
        if message.role == "assistant":
            history[at] = assistant(*message.blocks, origin=origin)
    settings = {"effort": "high"}
    refused = prepared(CHAT, history, system="Be kind.", max_tokens=2_000, settings=settings)
    repaired = mended(refused, text)
    wire = encode_request(repaired.request, repaired.target)
    sent = json.loads(wire.body)
    assert wire.path == "/responses"
    assert sent["reasoning"] == {"effort": "high", "summary": "auto"}
    assert sent["max_output_tokens"] == 2_000
    assert "Ta" not in str(sent)
    assert "extra_content" not in str(sent)
    assert sent["tools"][0]["name"] == "look"
    assert rule("openai-responses", sent) is None
    lessons = Lessons().learn(CHAT, repaired.learn)
    later = prepared(apply_lessons(CHAT, lessons), history, system="Be kind.", settings=settings)
    assert encode_request(later.request, later.target).path == "/responses"
    assert body(later)["reasoning"] == sent["reasoning"]


@pytest.mark.parametrize(
    "text",
    [
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "parameter.enable_thinking only support stream call",
        "This model only support stream mode, please enable the stream parameter to access the"
        " model.",
    ],
)
def test_what_thinks_in_streams_only_is_streamed(text):
    qwen = target("enable-thinking", options=[TOGGLE])
    refused = prepared(qwen, ASK, stream=False, settings={"effort": "high"})
    repaired = mended(refused, text)
    assert body(repaired)["stream"] is True
    assert body(repaired)["enable_thinking"] is True
    lessons = Lessons().learn(qwen, repaired.learn)
    again = apply_lessons(qwen, lessons)
    assert body(prepared(again, ASK, stream=False, settings={"effort": "high"}))["stream"] is True
    streamed = prepared(qwen, ASK, settings={"effort": "high"})
    assert heal(streamed, Failure(text, 400)) is None


@pytest.mark.parametrize(
    ("text", "lasting"),
    [
        ("`temperature` may only be set to 1 when thinking is enabled.", False),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the"
            " default (1) value is supported.",
            True,
        ),
        ("invalid temperature: only 1 is allowed for this model", True),
        ("`temperature` is deprecated for this model.", True),
        ("Unsupported parameter: 'temperature' is not supported with this model.", True),
    ],
)
def test_a_temperature_that_is_refused_is_left_out(text, lasting):
    refused = prepared(CHAT, ASK, temperature=0.2)
    repaired = mended(refused, text)
    assert "temperature" not in body(repaired)
    assert (repaired.learn is not None) == lasting


def test_who_refuses_one_sampling_parameter_is_sent_no_other():
    refused = prepared(CHAT, ASK, temperature=0.2, top_p=0.5, seed=7)
    repaired = mended(refused, "invalid top_p: only 0.95 is allowed for this model")
    assert not {"temperature", "top_p"} & body(repaired).keys()
    assert body(repaired)["seed"] == 7
    assert repaired.learn.compat["omits"][-1] == "top_p"


def test_a_field_of_the_dialect_that_is_refused_is_left_out():
    refused = prepared(CHAT, ASK, wire=Wire("openai-chat", {"min_p": 0.1}))
    assert body(refused)["min_p"] == 0.1
    repaired = mended(refused, "Unrecognized request argument supplied: min_p")
    assert "min_p" not in body(repaired)


def test_a_sampling_parameter_of_a_row_is_left_out():
    rowed = target("openai-effort", options=[EFFORT], compat={"extra_body": {"top_p": 0.5, "n": 1}})
    repaired = mended(prepared(rowed, ASK), "top_p is not supported while thinking")
    assert "top_p" not in body(repaired)
    assert repaired.learn.compat == {"extraBody": {"n": 1}}


FORCE = [
    "Thinking may not be enabled when tool_choice forces tool use.",
    "The tool_choice parameter does not support being set to required or object in thinking mode",
    "tool_choice 'specified' is incompatible with thinking enabled",
]


@pytest.mark.parametrize("text", FORCE)
def test_a_forced_tool_is_kept_and_thinking_stops(text):
    kimi = target("thinking-type", options=[TOGGLE])
    for choice, sent in (("required", "required"), (NamedTool("look"), FORCED)):
        repaired = mended(prepared(kimi, ASK, tool_choice=choice), text)
        assert body(repaired)["thinking"] == {"type": "disabled"}
        assert body(repaired)["tool_choice"] == sent
        assert repaired.learn is None


@pytest.mark.parametrize("text", FORCE)
def test_a_model_that_cannot_stop_is_not_left_the_choice(text):
    always = target("thinking-type", options=[TOGGLE], can_be_off=False)
    for choice in ("required", NamedTool("look"), "auto"):
        assert heal(prepared(always, ASK, tool_choice=choice), Failure(text, 400)) is None


def test_a_tool_choice_that_nobody_takes_is_left_out_unless_it_forces():
    text = "Unsupported parameter: 'tool_choice'"
    repaired = mended(prepared(CHAT, ASK, tool_choice="auto"), text)
    assert "tool_choice" not in body(repaired)
    assert heal(prepared(CHAT, ASK, tool_choice="required"), Failure(text, 400)) is None


def test_json_mode_goes_before_thinking():
    qwen = target("enable-thinking", options=[TOGGLE])
    text = "Json mode response is not supported when enable_thinking is true"
    repaired = mended(prepared(qwen, ASK, settings={"effort": "high"}), text)
    assert body(repaired)["enable_thinking"] is False


def test_the_limit_gets_the_name_that_the_refusal_gives():
    plain = target("openai-effort", options=[EFFORT])
    text = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead."
    )
    repaired = mended(prepared(plain, ASK, max_tokens=100), text)
    assert body(repaired)["max_completion_tokens"] == 100
    assert "max_tokens" not in body(repaired)
    assert repaired.learn.compat == {"maxTokensField": "max_completion_tokens"}
    forbidden = "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens')}]"
    back = mended(prepared(CHAT, ASK, max_tokens=100), forbidden)
    assert body(back)["max_tokens"] == 100


@pytest.mark.parametrize(
    "text",
    [
        "Assistant response prefill is incompatible with enable_thinking.",
        "This model does not support assistant message prefill. The conversation must end with a"
        " user message.",
        "The conversation must end with a user message.",
    ],
)
def test_an_empty_answer_at_the_end_is_left_out(text):
    claude = target("anthropic-adaptive", dialect="anthropic", options=[TOGGLE])
    blank = assistant(ThinkingBlock("T", signature="S"), TextBlock(" "), origin=claude.origin)
    repaired = mended(prepared(claude, [*ASK, blank]), text)
    assert [m["role"] for m in body(repaired)["messages"]] == ["user"]


def test_words_put_into_its_mouth_stay_where_thinking_can_go():
    llama = target("template-kwargs", options=[TOGGLE])
    history = [*ASK, assistant(TextBlock("The answer is"), origin=llama.origin)]
    refused = prepared(llama, history, settings={"effort": "high"})
    text = "Assistant response prefill is incompatible with enable_thinking."
    repaired = mended(refused, text, status=500)
    assert body(repaired)["chat_template_kwargs"] == {
        "enable_thinking": False,
        "thinking": False,
    }
    strict = "This model does not support assistant message prefill."
    assert heal(refused, Failure(strict, 400)) is None


def test_a_parameter_is_left_out_by_whatever_sent_it():
    keeping = target(
        "openai-effort", options=[EFFORT], compat={"keep_thinking": {"clear_thinking": False}}
    )
    repaired = mended(prepared(keeping, ASK), "Unknown parameter: 'clear_thinking'.")
    assert "clear_thinking" not in body(repaired)
    assert repaired.learn.compat == {"keepThinking": None}
    usage = mended(prepared(CHAT, ASK), "stream_options: Extra inputs are not permitted", 422)
    assert "stream_options" not in body(usage)
    edits = {"context_management": {"edits": []}}
    claude = target(
        "anthropic-budget", dialect="anthropic", options=[TOGGLE], compat={"extra_body": edits}
    )
    text = "context_management: Extra inputs are not permitted"
    assert "context_management" not in body(mended(prepared(claude, ASK), text))
    assert heal(prepared(CHAT, ASK), Failure("Unknown parameter: 'frobnicate'.", 400)) is None


OTHERS = [
    (401, "Incorrect API key provided: sk-proj-abcdefghijklmnop1234.", "invalid_api_key"),
    (402, "Your credit balance is too low to access the API.", None),
    (429, "Rate limit reached; thinking is not supported right now", "rate_limit_exceeded"),
    (400, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
    (
        400,
        "This model's maximum context length is 128000 tokens. However, your messages resulted in"
        " 200000 tokens.",
        "context_length_exceeded",
    ),
    (400, "prompt is too long: 210000 tokens > 200000 maximum", None),
    (400, "The response was filtered due to the content policy.", "content_filter"),
    (404, "The model `x` does not exist or you do not have access to it.", "model_not_found"),
    (500, "Internal server error", None),
    (503, "Invalid `signature` in `thinking` block", None),
    (400, "", None),
]


@pytest.mark.parametrize(("status", "text", "code"), OTHERS)
def test_refusals_with_another_subject_are_nothing_to_mend(status, text, code):
    claude = target("anthropic-adaptive", dialect="anthropic", options=[TOGGLE, EFFORT])
    for one in (CHAT, claude):
        assert heal(prepared(one), Failure(text, status, code)) is None
        told = explain(Failure(text, status, code), one)
        did = "could not answer" if status >= 500 else "rejected"
        assert f"Acme {did} the request for thinker" in told
        assert len(told.splitlines()) <= 2


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (
            Failure("messages.1.content.0: Invalid `signature` in `thinking` block", 400),
            "Acme rejected the request for thinker (400): messages.1.content.0: Invalid `signature`"
            " in `thinking` block\nThe endpoint cannot verify the signature of earlier thinking;"
            " set reasoning.stripFromContext=all to continue without earlier thinking.",
        ),
        (
            Failure("Incorrect API key provided: sk-proj-abcdefghijklmnop1234.", 401),
            "Acme rejected the request for thinker (401): Incorrect API key provided: ***\nThe key"
            " was not accepted; store another with `mull keys set acme`.",
        ),
        (
            Failure("I am a teapot", 418),
            "Acme rejected the request for thinker (418): I am a teapot",
        ),
        (
            Failure("", 500),
            "Acme could not answer the request for thinker (500) without a reason\n"
            "The problem is on the provider's side; try again later.",
        ),
    ],
)
def test_the_user_is_told_what_why_and_what_to_do(refusal, told):
    assert explain(refusal, CHAT) == told


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-AAAAbbbbCCCC1111",
        "gsk_abcdefgh12345678",
        "AIzaSyA1234567890abcdefg",
        "xai-abcdefghijkl123",
        "github_pat_11ABCDEFG0abc",
        "0123456789abcdef0123456789abcdef",
    ],
)
def test_no_key_is_told(secret):
    for text in (f"bad key {secret}", f"Authorization: Bearer {secret}", f"api_key={secret}!"):
        assert secret not in explain(Failure(text, 401), CHAT)


def test_a_long_refusal_is_shortened():
    told = explain(Failure("no " * 1000, 400), CHAT)
    assert len(told) < 400
    assert told.endswith("…")


def test_every_row_says_where_it_was_seen_and_what_to_do():
    for cause in CAUSES:
        assert cause.why[0].islower()
        assert cause.advice
        assert cause.texts
        for text in cause.texts:
            assert text.source


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("openai-chat", "Unknown parameter: 'tools[0].function.strict'."),
        ("openai-chat", "property 'tools.0.function.strict' is unsupported"),
        ("anthropic", "tools.0.custom.strict: Extra inputs are not permitted"),
    ],
)
def test_a_tool_whose_schema_cannot_be_enforced_is_offered_all_the_same(dialect, text):
    there = target(dialect=dialect)
    whole = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    tool = Tool("look", "Looks.", whole, strict=True)
    refused = prepare(Log(ASK), snapshot(), there, RequestOptions(tools=(tool,)))
    assert '"strict":true' in encode_request(refused.request, there).body.decode()
    repaired = mended(refused, text)
    assert repaired.learn.compat == {"strictTools": False}
    assert "strict" not in str(body(repaired)["tools"])
    assert any("strict of look not sent" in note.text for note in repaired.prepared.notes)
