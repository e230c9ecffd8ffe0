"""Real failures of other clients in this dialect, one test each, named by case."""

from __future__ import annotations

import msgspec
import pytest

from conversations import ELSEWHERE, listed, snapshot, target, wired
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import Failed
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare
from openai_chat_wire import STREAMS, chunk, decode, deltas, events_of, fixture, sse, whole

KEEP = snapshot(includeInContext=True)
TOGGLE = [{"type": "toggle"}]
CALL = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
DEEPSEEK = target(
    "thinking-type",
    options=TOGGLE,
    compat={
        "reasoning_out": "reasoning_content",
        "requires_reasoning": "all",
        "missing_reasoning": "",
    },
)


def results(*ids: str) -> Message:
    return Message(role="tool", blocks=tuple(ToolResultBlock(one, "done") for one in ids))


def send(messages, to=None, settings=KEEP, **options):
    """The body that goes out after all policies."""
    prepared = prepare(Log(messages), settings, to or target(), RequestOptions(**options))
    made = encode_request(prepared.request, to or target())
    return msgspec.json.decode(made.body), made


def every_split(text, to=None):
    """The same content whole, in two pieces at every place, and one character at a time."""
    splits = [[text], list(text), *([text[:n], text[n:]] for n in range(1, len(text)))]
    found = [decode(deltas(*({"content": part} for part in parts)), to) for parts in splits]
    found.append(decode(whole({"content": text}), to))
    assert all(message == found[0] for message in found)
    return found[0]


# A: tags


def test_a01_a_tag_split_across_chunks():
    message = every_split("<think>secret</think>ANSWER")
    assert message.blocks == (ThinkingBlock("secret", "think_tags"), TextBlock("ANSWER"))


@pytest.mark.parametrize("name", ["thinking", "reasoning"])
def test_a01_other_tags_that_models_use_are_read_and_remembered(name):
    message = every_split(f"\n<{name}>secret </think> too</{name}>ANSWER")
    thought = ThinkingBlock("\nsecret </think> too", f"think_tags:<{name}>")
    assert message.blocks == (thought, TextBlock("ANSWER"))


def test_a03_ordinary_angle_brackets_are_text():
    text = "if a < b use <thead> and <think-tank> <thi"
    assert every_split(text).blocks == (TextBlock(text),)
    assert every_split("<thinking-cap> <reason").text == "<thinking-cap> <reason"


def test_a04_the_opening_tag_is_in_the_prompt():
    started = target(compat={"starts_in_reasoning": True})
    message = every_split("internal reasoning</think>answer", started)
    expected = (ThinkingBlock("internal reasoning", "think_tags"), TextBlock("answer"))
    assert message.blocks == expected
    assert every_split("internal reasoning</think>answer").blocks == expected
    assert every_split("\n<think>hm</think>a").thinking[0].thought == "\nhm"


def test_a05_an_answer_may_talk_about_tags():
    for name in ("think", "thinking", "reasoning"):
        for text in (
            f"Use `<{name}>` to start and `</{name}>` to end it.",
            f"<answer>4</answer>\n<{name}>It is even.</{name}>",
        ):
            assert every_split(text).blocks == (TextBlock(text),)
    body = deltas({"reasoning_content": "hm"}, {"content": "<think>is a tag</think>"})
    assert decode(body).text == "<think>is a tag</think>"


def test_a09_truncated_in_a_thought():
    for body in (
        deltas({"content": "<think>The user"}, {"content": " is asking"}, reason="length"),
        whole({"content": "<think>The user is asking"}, "length"),
    ):
        message = decode(body)
        assert message.blocks == (ThinkingBlock("The user is asking", "think_tags"),)
        assert message.status == "truncated_in_reasoning"


def test_a11_nothing_is_trimmed():
    assert every_split("\n\n```py\nx\n```").text == "\n\n```py\nx\n```"
    assert every_split("<think> a </think>\n b \n").text == "\n b \n"


def test_a12_harmony_channels():
    text = (
        "<|channel|>analysis<|message|>think<|end|><|start|>assistant<|channel|>final<|message|>Hi"
    )
    assert every_split(text).blocks == (ThinkingBlock("think", "think_tags"), TextBlock("Hi"))
    call = '<|channel|>analysis to=functions.grep code<|message|>{"pattern":"X"}<|call|>'
    message = every_split(call)
    assert [(c.name, c.input) for c in message.tool_calls] == [("grep", {"pattern": "X"})]
    assert message.stop_reason == "tool_calls"


def test_a14_a_call_drafted_in_a_thought_is_no_call():
    draft = 'maybe <tool_call>{"name":"rm"}</tool_call>'
    message = every_split(f'<think>{draft}</think><tool_call>{{"name":"ls"}}</tool_call>')
    assert message.thinking[0].thought == draft
    assert [call.name for call in message.tool_calls] == ["ls"]


# B: fields


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking", "reasoning_text"])
def test_b01_whatever_the_field_is_called(field):
    """REQ-THINK-003.1, REQ-THINK-003.3: a streamed field is read, and the block names it."""
    body = deltas({field: "The"}, {field: " user"}, {"content": "Hi"})
    assert decode(body).blocks == (ThinkingBlock("The user", field), TextBlock("Hi"))


def test_b02_mirrored_text_is_read_once():
    assert fixture("mirrored-fields").thinking[0].thought == "The user user"
    details = [{"type": "reasoning.text", "text": "Hi", "index": 0}]
    message = decode(deltas({"reasoning": "Hi", "reasoning_details": details}))
    assert message.blocks == (ThinkingBlock("Hi", "reasoning", wire=listed(details)),)


def test_b05_the_end_of_a_thought_and_the_beginning_of_the_answer_in_one_delta():
    body = deltas({"content": "The", "reasoning": " so 4"}, {"content": " answer"})
    assert decode(body).blocks == (ThinkingBlock(" so 4", "reasoning"), TextBlock("The answer"))
    body = deltas({"tool_calls": [CALL], "reasoning": "hm"})
    assert decode(body).blocks == (ThinkingBlock("hm", "reasoning"), ToolCallBlock("c1", "f"))


def test_b06_blanks_are_text():
    pieces = ["Hi", " ", "\n\n", "again", "a\r", "\nb"]
    body = deltas(*({"reasoning_content": piece} for piece in pieces))
    assert decode(body).thinking[0].thought == "Hi \n\nagaina\r\nb"


def test_b07_an_empty_thought_is_not_no_thought():
    """REQ-THINK-003.4: an answer without reasoning has no thinking block, and nothing breaks."""
    assert decode(deltas({"reasoning_content": "", "tool_calls": [CALL]})).blocks == (
        ThinkingBlock("", "reasoning_content"),
        ToolCallBlock("c1", "f"),
    )
    assert decode(deltas({"tool_calls": [CALL]})).thinking == ()
    assert fixture("empty-after-text").thinking == ()


def test_b08_content_as_a_list():
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Okay"}]}
    odd = {"type": "novel", "x": [1]}
    body = deltas({"content": [thinking]}, {"content": ""}, {"content": [odd]}, {"content": "Hi"})
    assert decode(body).blocks == (
        ThinkingBlock("Okay", "content_list"),
        OpaqueBlock(odd),
        TextBlock("Hi"),
    )


def test_b12_fragments_of_details_are_one_entry():
    def piece(**more):
        return {"reasoning_details": [{"type": "reasoning.text", "index": 0, **more}]}

    body = deltas(
        piece(text="Let", format="anthropic-claude-v1"),
        piece(text=" me compute"),
        piece(signature="Et8B"),
    )
    (entry,) = wired(decode(body).thinking[0])["reasoning_details"]
    assert entry == {
        "type": "reasoning.text",
        "index": 0,
        "text": "Let me compute",
        "format": "anthropic-claude-v1",
        "signature": "Et8B",
    }


def test_b19_calls_without_index_or_with_a_wrong_one():
    for name in ("calls-share-an-index", "calls-without-index"):
        message = fixture(name)
        assert [call.id for call in message.tool_calls] == ["call_a", "call_b"]
        assert all(call.arguments is None for call in message.tool_calls)
        assert message.stop_reason == "tool_calls"


def test_b20_a_signature_inside_a_call_goes_back_in_its_place():
    signed = {"extra_content": {"vertex": {"thought_signature": "EjQK"}}}
    message = decode(deltas({"tool_calls": [CALL | signed]}))
    body, _ = send([user("q"), message, results("c1")])
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == signed["extra_content"]


def test_b21_an_answer_in_the_reasoning_field_is_not_promoted():
    message = fixture("answer-in-reasoning")
    assert (message.text, message.status) == ("", "no_answer")


# C: framing


def test_c01_characters_cut_in_half():
    body = deltas({"reasoning_content": "那个"}, {"content": "🌍"})
    expected = decode(body)
    assert expected.blocks == (ThinkingBlock("那个", "reasoning_content"), TextBlock("🌍"))
    assert all(decode(body, cuts=[cut]) == expected for cut in range(len(body)))


def test_c02_comments_are_no_data():
    body = b": OPENROUTER PROCESSING\n\n:x\n" + deltas({"content": "a"}) + b": x-latency=337\n\n"
    assert decode(body) == decode(deltas({"content": "a"}))


def test_c04_an_error_inside_the_stream():
    end = events_of(STREAMS["error-midway"])[-1]
    assert isinstance(end, Failed)
    assert (end.text, end.code) == ("Upstream gave up", "502")
    message = fixture("error-midway")
    assert (message.text, message.thinking[0].thought, message.status) == ("Par", "Hm", "error")


def test_c05_the_end_of_a_stream():
    assert fixture("cut").status == "interrupted"
    end = events_of(STREAMS["cut"])[-1]
    assert isinstance(end, Failed)
    assert end.code == "incomplete"
    for body in (STREAMS["done-without-reason"], sse(chunk({"content": "a"}), chunk({}, None))):
        message = decode(body)
        assert (message.status, message.stop_reason) == ("complete", None)
    assert fixture("reason-without-done").status == "complete"


def test_c09_the_last_usage_wins_and_ends_nothing():
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    last = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    body = sse(
        chunk({"reasoning_content": "a"}, usage=zero),
        chunk({"reasoning_content": "b"}, usage=zero),
        chunk({"content": "c"}, "stop", usage=None),
        {"choices": [], "usage": last},
        {"choices": [], "usage": None},
    )
    message = decode(body)
    assert message.blocks == (ThinkingBlock("ab", "reasoning_content"), TextBlock("c"))
    assert message.usage == Usage(9, 5, None, 14)


# D: replay


def test_d01_every_message_of_a_tool_chain_carries_its_exact_text():
    texts = [" first\n", "second"]
    turn = [user("q")]
    for number, text in enumerate(texts):
        call = {**CALL, "id": f"c{number}"}
        turn.append(decode(deltas({"reasoning_content": text}, {"tool_calls": [call]})))
        turn.append(results(f"c{number}"))
    row = target(compat={"requires_reasoning": "tool_calls"})
    body, _ = send(turn, row, snapshot())
    sent = [m["reasoning_content"] for m in body["messages"] if m["role"] == "assistant"]
    assert sent == texts


def test_d02_messages_the_model_never_wrote_get_the_rows_filler():
    history = [user("q"), assistant(ToolCallBlock("c1", "f")), results("c1"), user("r")]
    body, _ = send(history, DEEPSEEK)
    assert body["messages"][1]["reasoning_content"] == ""
    body, _ = send(history)
    assert "reasoning_content" not in body["messages"][1]


def test_d04_an_endpoint_gets_back_only_what_it_sent():
    mistral = target(compat={"stream_usage": False})
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Okay"}]}
    answer = decode(deltas({"content": [thinking]}, {"content": "Hi"}))
    body, _ = send([user("q"), answer, user("r")], mistral)
    assert body["messages"][1] == {
        "role": "assistant",
        "content": [thinking, {"type": "text", "text": "Hi"}],
    }


def test_d05_the_key_that_was_seen_goes_back():
    answer = decode(deltas({"reasoning": "r"}, {"content": "Hi"}))
    body, _ = send([user("q"), answer, user("r")])
    assert body["messages"][1] == {"role": "assistant", "content": "Hi", "reasoning": "r"}


def test_d12_d13_foreign_thoughts_do_not_become_text():
    details = [{"type": "reasoning.text", "text": "t", "signature": "s"}]
    foreign = assistant(
        ThinkingBlock("t", "reasoning", wire=listed(details)),
        TextBlock("a"),
        origin=ELSEWHERE,
    )
    body, _ = send([user("q"), foreign, user("r")])
    assert body["messages"][1] == {"role": "assistant", "content": "a"}


def test_d13_switching_back_restores_the_carriers():
    details = [{"type": "reasoning.text", "text": "t", "signature": "s"}]
    home = target()
    own = assistant(
        ThinkingBlock("t", "reasoning", wire=listed(details)),
        TextBlock("a"),
        origin=home.origin,
    )
    log = [user("q"), own, user("r"), assistant(TextBlock("b"), origin=ELSEWHERE), user("s")]
    assert send(log, home)[0]["messages"][1]["reasoning_details"] == details


def test_d23_old_thoughts_are_kept_where_asked():
    row = target(
        "thinking-type",
        options=TOGGLE,
        compat={"keep_thinking": {"thinking": {"clear_thinking": False}}},
    )
    kept, _ = send([user("q")], row, snapshot(includeInContext=True, effort="high"))
    assert kept["thinking"] == {"type": "enabled", "clear_thinking": False}
    bare, _ = send([user("q")], row, snapshot(effort="high"))
    assert bare["thinking"] == {"type": "enabled"}


def test_d25_an_empty_answer_never_ends_a_request():
    for blocks in ((ThinkingBlock(""),), (TextBlock(""),), (ThinkingBlock("hm"), TextBlock(""))):
        body, _ = send([user("q"), assistant(*blocks)])
        assert body["messages"][-1]["role"] == "user"
    _, made = send([user("q"), assistant(TextBlock("Begin"))])
    assert made.notes[-1].warning


# E: settings


def test_e09_a_model_whose_tools_need_another_api_is_not_silently_stopped_thinking():
    row = target("openai-effort", compat={"tools_need_responses": True})
    body, _ = send([user("q")], row)
    assert "reasoning_effort" not in body


def test_e10_off_is_said_in_the_endpoints_own_words():
    body, _ = send([user("q")], DEEPSEEK, snapshot(enabled=False))
    assert body["thinking"] == {"type": "disabled"}


def test_e12_thinking_that_needs_a_stream_gets_one():
    row = target("enable-thinking", options=TOGGLE, compat={"thinking_needs_stream": True})
    body, made = send([user("q")], row, snapshot(effort="high"), stream=False)
    assert (body["stream"], body["enable_thinking"]) == (True, True)
    assert made.headers["accept"] == "text/event-stream"
    assert made.notes[0].about == "stream"
    body, _ = send([user("q")], row, snapshot(enabled=False), stream=False)
    assert (body["stream"], body["enable_thinking"]) == (False, False)


def test_e14_the_parameters_do_not_move_with_the_history():
    row = target("openai-effort", options=[{"type": "effort", "values": ("low", "high")}])
    short, _ = send([user("q")], row, snapshot(effort="low"))
    longer, _ = send([user("q"), assistant(TextBlock("a")), user("r")], row, snapshot(effort="low"))
    assert {**short, "messages": 0} == {**longer, "messages": 0}
