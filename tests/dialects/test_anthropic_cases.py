"""Failures of other clients on the Messages API, one test each; ids as in the acceptance list."""

from __future__ import annotations

import json

import pytest

from anthropic_wire import (
    BUDGET,
    HERE,
    STREAMS,
    begin,
    claude,
    decode,
    delta,
    ended,
    ending,
    events_of,
    sse,
    started,
    stop,
    wire_block,
)
from conversations import ELSEWHERE, snapshot
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.errors import BudgetError
from mull.neutral.events import Failed, Finished
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.policy.view.repair import INTERRUPTED

TIDE = Tool("tide")
SIGNED = ThinkingBlock("t", "thinking", signature="EqQB…")
CALL = ToolCallBlock("toolu_1", "tide", {"port": "x"})
RESULT = Message(role="tool", blocks=(ToolResultBlock("toolu_1", "4"),))
ADAPTIVE = claude(
    "anthropic-adaptive",
    options=[{"type": "effort", "values": ["low", "medium", "high", "xhigh", "max"]}],
)


def own(*blocks, where=HERE, **more):
    return assistant(*blocks, origin=where.origin, **more)


def sent(*messages, where=HERE, conversation=None, **settings):
    """The body that these messages and settings come to, and all notes."""
    log = Log()
    for message in messages:
        log.append(message)
    settings = {"includeInContext": True, **settings}
    prepared = prepare(log, snapshot(**settings), where, conversation or RequestOptions())
    wire = encode_request(prepared.request, where)
    notes = [note.text for note in (*prepared.notes, *wire.notes)]
    return json.loads(wire.body), notes


def test_b06_whitespace_deltas_are_kept():
    pieces = ["Hi", " ", "\n\n", "a\r", "\nb"]
    for kind, field in (("thinking", "thinking"), ("text", "text")):
        deltas = [delta(0, kind, **{field: piece}) for piece in pieces]
        data = sse(started(), begin(0, type=kind, **{field: ""}), *deltas, stop(0), *ended())
        (block,) = decode(data).blocks
        assert getattr(block, "thought" if kind == "thinking" else "text") == "Hi \n\na\r\nb"


def test_b07_empty_reasoning_is_not_absent_reasoning():
    empty = sse(started(), begin(0, type="thinking", thinking=""), stop(0), *ended())
    absent = sse(started(), *ended())
    assert decode(empty).blocks == (ThinkingBlock("", "thinking"),)
    assert decode(absent).blocks == ()


def test_b09_redacted_arrives_whole():
    first, second, *_ = decode(STREAMS["redacted"]).blocks
    assert first == ThinkingBlock(
        source_field="redacted_thinking", redacted="EvgFmullRedactedOne+/=="
    )
    assert second.redacted == "EtUFmullRedactedTwo"
    found, _ = sent(user("q"), decode(STREAMS["redacted"]), user("next"))
    assert found["messages"][1]["content"][:2] == [
        {"type": "redacted_thinking", "data": "EvgFmullRedactedOne+/=="},
        {"type": "redacted_thinking", "data": "EtUFmullRedactedTwo"},
    ]


def test_b09_redacted_counts_before_its_stop():
    data = sse(started(), begin(0, type="redacted_thinking", data="EmwK"))
    assert decode(data).thinking[0].redacted == "EmwK"


def test_b11_empty_text_with_a_signature_is_a_full_block():
    message = decode(STREAMS["display_omitted"])
    found, _ = sent(user("q"), message, user("next"))
    assert found["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "",
        "signature": "EqQBonlyASignature",
    }


def test_b11_empty_text_without_a_signature_goes():
    message = own(ThinkingBlock("", "thinking", signature=""), TextBlock("a"))
    found, _ = sent(user("q"), message, user("next"))
    assert found["messages"][1]["content"] == [{"type": "text", "text": "a"}]


def test_b11_an_empty_signature_is_returned_as_it_came():
    message = decode(STREAMS["text_opens_before_thinking_stops"])
    found, _ = sent(user("q"), message, user("next"))
    assert found["messages"][1]["content"][0] == {
        "type": "thinking",
        "thinking": "Short waves scatter.",
        "signature": "",
    }


def test_b19_interleaved_calls_go_by_their_index():
    data = sse(
        started(),
        begin(0, type="tool_use", id="a", name="f", input={}),
        begin(1, type="tool_use", id="b", name="f", input={}),
        delta(0, "input_json", partial_json='{"p":'),
        delta(1, "input_json", partial_json='{"q":'),
        delta(0, "input_json", partial_json="1}"),
        delta(1, "input_json", partial_json="2}"),
        *ended("end_turn"),
    )
    assert [call.input for call in decode(data).tool_calls] == [{"p": 1}, {"q": 2}]
    assert ending(data) == Finished("tool_calls")


def test_c01_characters_cut_in_half_come_whole():
    data = STREAMS["thinking_then_tools"]
    for at in range(len(data)):
        if data[at] & 0xC0 == 0x80:  # inside a character
            assert decode(data, size=at) == decode(data)


def test_c02_comments_are_signs_of_life():
    data = STREAMS["redacted"].replace(b"\n\n", b"\n\n: keep-alive\n\n:x\n")
    assert decode(data) == decode(STREAMS["redacted"])


def test_c04_an_error_inside_the_stream_keeps_what_came():
    message, last = decode(STREAMS["error_midway"]), ending(STREAMS["error_midway"])
    assert isinstance(last, Failed)
    assert (last.text, last.code) == ("Overloaded", "overloaded_error")
    assert (message.thinking[0].thought, message.status) == ("Half a thou", "error")


@pytest.mark.parametrize("cut", ["cut_in_signature", "error_midway"])
def test_c05_a_stream_that_just_ends_is_incomplete(cut):
    data = STREAMS["cut_in_signature"]
    assert ending(data).code == "incomplete"
    assert decode(data).status == "interrupted"
    assert not isinstance(ending(STREAMS[cut]), Finished)


def test_c05_a_stop_reason_without_message_stop_is_complete():
    data = STREAMS["stop_reason_without_message_stop"]
    ended = ending(data)
    assert isinstance(ended, Finished)
    assert (decode(data).status, ended.stop_reason) == ("complete", "stop")


def test_c09_the_last_usage_wins():
    values = [
        started(usage={"input_tokens": 0, "output_tokens": 0}),
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": None},
        *ended(input_tokens=20, output_tokens=9),
    ]
    usage = decode(sse(*values)).usage
    assert (usage.input, usage.output, usage.total) == (20, 9, 29)


def test_d07_thinking_precedes_its_call():
    found, _ = sent(
        user("q"), own(SIGNED, CALL), RESULT, where=HERE, conversation=RequestOptions(tools=(TIDE,))
    )
    assert found["thinking"]["type"] == "enabled"
    assert [b["type"] for b in found["messages"][1]["content"]] == ["thinking", "tool_use"]


def test_d07_also_when_preferences_would_strip_it():
    found, notes = sent(user("q"), own(SIGNED, CALL), RESULT, includeInContext=False)
    assert found["messages"][1]["content"][0]["signature"] == "EqQB…"
    assert any("the endpoint requires them" in note for note in notes)


def test_d07_a_chain_without_a_usable_thought_is_sent_with_thinking_off():
    foreign = assistant(SIGNED, CALL, origin=ELSEWHERE)
    found, notes = sent(user("q"), foreign, RESULT)
    assert found["thinking"] == {"type": "disabled"}
    assert any(note.startswith("Thinking is off for this request") for note in notes)


def test_d08_interleaved_order_comes_back_as_it_was():
    message = decode(STREAMS["interleaved"])
    found, _ = sent(user("q"), message, user("next"))
    assert found["messages"][1]["content"] == [wire_block(block) for block in message.blocks]
    assert found["messages"][1]["content"][0] == {"type": "text", "text": "\n\n"}


def test_d09_an_answer_of_thinking_alone_is_not_sent():
    found, _ = sent(user("q"), own(SIGNED), user("next"))
    assert [m["role"] for m in found["messages"]] == ["user"]


def test_d09_trailing_thinking_goes_and_earlier_turns_stay():
    first = own(SIGNED, TextBlock("a"))
    second = own(ThinkingBlock("u", "thinking", signature="S2"), TextBlock("b"), SIGNED)
    found, notes = sent(user("q"), first, user("r"), second, user("s"))
    kinds = [[b["type"] for b in m["content"]] for m in found["messages"]]
    assert kinds[1] == kinds[3] == ["thinking", "text"]
    assert "1 thought at the end of an answer not sent: the API accepts none there" in notes


def test_d11_thinking_off_takes_the_thoughts_out():
    found, _ = sent(user("q"), own(SIGNED, CALL), RESULT, enabled=False)
    assert found["thinking"] == {"type": "disabled"}
    assert [b["type"] for b in found["messages"][1]["content"]] == ["tool_use"]


def test_d12_foreign_and_unsigned_thoughts_never_become_text():
    foreign = assistant(ThinkingBlock("secret", "thinking"), TextBlock("a"), origin=ELSEWHERE)
    unsigned = own(ThinkingBlock("secret", "thinking"), TextBlock("b"))
    found, notes = sent(user("q"), foreign, user("r"), unsigned, user("s"))
    assert "secret" not in json.dumps(found)
    assert "1 thought not sent: no signature to verify" in notes


def test_d13_a_carrier_goes_home_only():
    message = own(SIGNED, TextBlock("a"))
    away = claude(model="other-thinker")
    found, _ = sent(user("q"), message, user("next"), where=away)
    assert found["messages"][1]["content"] == [{"type": "text", "text": "a"}]
    found, _ = sent(user("q"), message, user("next"))
    assert found["messages"][1]["content"][0]["signature"] == "EqQB…"


def test_d25_empty_answers_do_not_end_a_request():
    found, _ = sent(user("q"), own(ThinkingBlock("", "thinking"), TextBlock("")))
    assert [m["role"] for m in found["messages"]] == ["user"]


def test_e01_a_budget_stays_under_max_tokens():
    found, _ = sent(user("q"), conversation=RequestOptions(max_tokens=3000), effort="high")
    assert found["max_tokens"] > found["thinking"]["budget_tokens"]
    with pytest.raises(BudgetError):
        sent(user("q"), conversation=RequestOptions(max_tokens=1024), maxTokens=2048)


def test_e03_a_temperature_does_not_go_beside_thinking():
    found, notes = sent(user("q"), conversation=RequestOptions(temperature=0.2))
    assert "temperature" not in found
    assert any("temperature" in note for note in notes)
    found, _ = sent(user("q"), conversation=RequestOptions(temperature=0.2), enabled=False)
    assert found["temperature"] == 0.2


def test_e04_a_forced_tool_is_never_sent_beside_thinking():
    forced = RequestOptions(tools=(TIDE,), tool_choice="required")
    found, notes = sent(user("q"), conversation=forced)
    assert found["tool_choice"] == {"type": "any"}
    assert found["thinking"] == {"type": "disabled"}
    assert any("forced tool" in note for note in notes)


def test_e05_adaptive_models_get_effort_and_no_budget():
    found, _ = sent(user("q"), where=ADAPTIVE, effort="high")
    assert found["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert found["output_config"] == {"effort": "high"}


def test_e06_thoughts_are_asked_for_and_their_absence_is_kept():
    found, _ = sent(user("q"), where=ADAPTIVE)
    assert found["thinking"]["display"] == "summarized"
    shown, _ = sent(user("q"), where=ADAPTIVE, includeInResponse=False)
    assert shown == found


def test_e10_off_is_said_outright():
    found, _ = sent(user("q"), enabled=False)
    assert found["thinking"] == {"type": "disabled"}
    bound = claude(options=[BUDGET], can_be_off=False)
    found, notes = sent(user("q"), where=bound, enabled=False)
    assert found["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert "This model does not support disabling thinking" in notes


def test_e14_parameters_are_stable_from_turn_to_turn():
    history = [user("q"), own(SIGNED, TextBlock("a")), user("r"), own(SIGNED, TextBlock("b"))]
    first, _ = sent(history[0])
    later, _ = sent(*history, user("s"))
    assert {k: v for k, v in first.items() if k != "messages"} == {
        k: v for k, v in later.items() if k != "messages"
    }
    assert later["messages"][:1] == first["messages"]


def test_f01_thinking_is_part_of_the_output():
    counts = {"output_tokens": 136, "output_tokens_details": {"thinking_tokens": 31}}
    usage = decode(sse(started(usage={"input_tokens": 51}), *ended(**counts))).usage
    assert (usage.input, usage.output, usage.reasoning, usage.total) == (51, 136, 31, 187)


def test_s01_an_interrupted_answer_is_sent_without_a_thought_that_nobody_signed():
    message = decode(STREAMS["cut_in_signature"])
    assert message.thinking[0].thought == "Half a thou"
    found, _ = sent(user("q"), message, user("next"))
    assert [m["role"] for m in found["messages"]] == ["user", "assistant", "user"]
    assert found["messages"][1]["content"] == [{"type": "text", "text": INTERRUPTED}]


def test_ping_says_nothing():
    assert len(events_of(sse({"type": "ping"}))) == 1
