"""Calls that servers number badly, and every way an answer ends: reasons, errors, counts."""

from __future__ import annotations

import msgspec
import pytest

from conversations import target
from mull.dialects.openai_chat.usage import read_usage
from mull.dialects.registry import decoder
from mull.neutral.blocks import TextBlock, ToolCallBlock, Wire
from mull.neutral.events import (
    Failed,
    Finished,
    TextDelta,
    Warned,
)
from mull.neutral.usage import Usage
from openai_chat_wire import (
    DONE,
    STREAMS,
    chunk,
    decode,
    deltas,
    events_of,
    sse,
    whole,
)


def call(id_: str | None = None, name: str | None = None, arguments: str = "", **more):
    return {"id": id_, "function": {"name": name, "arguments": arguments}, **more}


# Calls


def calls_of(*pieces):
    body = deltas(*({"tool_calls": piece} for piece in pieces))
    return [(c.id, c.name, c.input) for c in decode(body).tool_calls]


def test_a_known_id_wins_over_the_index():
    found = calls_of(
        [call("a", "f", '{"x":', index=0)],
        [call("b", "g", "{}", index=1)],
        [call("a", "f", "1}", index=1)],
    )
    assert found == [("a", "f", {"x": 1}), ("b", "g", {})]


def test_calls_without_id_and_index_are_told_apart_by_their_names():
    one = [{"function": {"name": "f", "arguments": "{}"}}]
    assert calls_of(one * 2, one, [{"function": {"name": "g"}}]) == [
        ("call_0", "f", {}),
        ("call_1", "f", {}),
        ("call_2", "f", {}),
        ("call_3", "g", {}),
    ]
    halves = [[{"function": {"name": "f", "arguments": part}}] for part in ('{"x":', "1}")]
    assert calls_of(*halves) == [("call_0", "f", {"x": 1})]


def test_an_id_may_come_after_its_call_began():
    found = calls_of([call(None, "f", "{", index=0)], [call("a", None, "}", index=0)])
    assert found == [("a", "f", {})]


def test_another_name_at_a_used_index_is_another_call():
    found = calls_of([call(None, "f", "{}", index=0)], [call(None, "g", "{}", index=0)])
    assert found == [("call_0", "f", {}), ("call_1", "g", {})]


def test_arguments_may_be_an_object_and_kinds_may_be_unknown():
    odd = {"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    message = decode(whole({"tool_calls": [call("b", "f", {"x": 1}, strict=True), odd]}))
    assert message.tool_calls == (
        ToolCallBlock("b", "f", {"x": 1}, wire=Wire("openai-chat", {"strict": True})),
        ToolCallBlock(
            "a", "", wire=Wire("openai-chat", {"custom": odd["custom"], "type": "custom"})
        ),
    )


def test_the_function_call_of_old_servers_is_a_call():
    body = deltas({"function_call": {"name": "f", "arguments": "{"}},
                  {"function_call": {"arguments": "}"}}, reason="function_call")  # fmt: skip
    message = decode(body)
    assert message.tool_calls == (ToolCallBlock("call_0", "f"),)
    assert message.stop_reason == "tool_calls"


# Ends, errors and counts


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("end_turn", "stop"),
        ("function_call", "tool_calls"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("sensitive", "content_filter"),
        ("content-filter", "content_filter"),
        ("pondering", "pondering"),
    ],
)
def test_reasons_have_one_spelling(word, reason):
    assert decode(deltas({"content": "a"}, reason=word)).stop_reason == reason


def test_a_cut_call_is_not_a_finished_one():
    message = decode(deltas({"tool_calls": [call("a", "f", "{")]}, reason="length"))
    assert (message.stop_reason, message.status) == ("length", "truncated")


def test_a_later_stop_does_not_hide_the_reason():
    body = sse(chunk({"content": "a"}, "length"), chunk({}, "stop"))
    assert decode(body).stop_reason == "length"


@pytest.mark.parametrize("word", ["network_error", "insufficient_system_resource", "abort"])
def test_a_broken_answer_is_no_answer(word):
    end = events_of(deltas({"content": "a"}, reason=word))[-1]
    assert isinstance(end, Failed)
    assert (end.code, end.status) == (word, "interrupted")


def quoting(raw):
    return {"error": {"message": "no", "metadata": {"raw": raw, "provider_name": "Anthropic"}}}


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        ({"error": {"message": "quota exceeded"}}, "quota exceeded", None),
        ({"error": {"message": "no", "code": 429, "type": "x"}}, "no", "429"),
        ({"error": {"message": "no", "type": "overloaded"}, "choices": []}, "no", "overloaded"),
        ({"error": "plain words"}, "plain words", None),
        ({"object": "error", "message": "no", "code": 400}, "no", "400"),
        ({"base_resp": {"status_code": 1004, "status_msg": "no key"}, "choices": None},
         "no key", "1004"),
        ({"detail": "Not Found"}, "Not Found", None),
        ({"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "m"}}]},
         "m", None),
        (quoting('{"type": "error", "error": {"message": "why"}}'), "no: why", None),
        (quoting('{"message": "why"}'), 'no: {"message": "why"}', None),
        (quoting("[why]"), "no: [why]", None),
        (quoting("why\n"), "no: why\n", None),
        (quoting({"message": "why"}), "no", None),
        ({"error": {"message": "no", "metadata": "why"}}, "no", None),
    ],
)  # fmt: skip
def test_errors_are_found_wherever_they_are(error, text, code):
    for body in (sse(chunk({"content": "kept"}), error), sse(error, done=False)):
        end = events_of(body)[-1]
        assert isinstance(end, Failed)
        assert (end.text, end.code, end.status) == (text, code, "error")
    assert decode(sse(chunk({"content": "kept"}), error)).text == "kept"
    end = events_of(msgspec.json.encode(error))[-1]
    assert isinstance(end, Failed)
    assert end.text == text


def test_a_named_error_event_is_an_error():
    end = events_of(b'event: error\ndata: {"message":"gone"}\n\n')[-1]
    assert isinstance(end, Failed)
    assert end.text == "gone"


def test_a_good_message_is_not_replaced_by_a_bare_word():
    body = sse({"error": {"message": "why"}}, chunk({}, "error"))
    end = events_of(body)[-1]
    assert isinstance(end, Failed)
    assert end.text == "why"


@pytest.mark.parametrize("body", [b"{}", b"7", b'{"choices":[]}', b"[]", b""])
def test_no_answer_at_all_is_a_failure_or_empty(body):
    message = decode(body)
    assert message.blocks == ()
    assert message.status in ("error", "interrupted", "no_answer")


def test_done_alone_is_an_end():
    assert events_of(DONE)[-1] == Finished(None)


def test_a_message_in_a_stream_counts_only_where_no_deltas_come():
    full = {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}
    assert decode(sse(full)).text == "ab"
    mixed = {"choices": [{"delta": {"content": "b"}, "message": {"content": "ab"}}]}
    assert decode(sse(chunk({"content": "a"}), mixed, full)).text == "ab"


def test_an_answer_in_two_choices_without_numbers_is_one_answer():
    choices = [
        {"message": {"content": "a"}, "finish_reason": "tool_calls"},
        {"message": {"tool_calls": [call("c", "f", "{}")]}, "finish_reason": "tool_calls"},
    ]
    message = decode(msgspec.json.encode({"choices": choices}))
    assert message.blocks == (TextBlock("a"), ToolCallBlock("c", "f"))


def test_another_answer_is_left_out_with_a_warning():
    second = {"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}]}
    found = events_of(sse(chunk({"content": "a"}), second, second, chunk({}, "stop")))
    assert sum(isinstance(event, Warned) for event in found) == 1
    assert [e.text for e in found if isinstance(e, TextDelta)] == ["a"]


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({"prompt_tokens": 43, "completion_tokens": 10, "total_tokens": 53,
          "completion_tokens_details": {"reasoning_tokens": 11}}, Usage(43, 10, 10, 53)),
        ({"prompt_tokens": 5, "completion_tokens": 9, "reasoning_tokens": 4}, Usage(5, 9, 4)),
        ({"input_tokens": 5, "output_tokens": 9, "output_tokens_details": None}, Usage(5, 9)),
        ({"prompt_cache_hit_tokens": 3}, Usage(cache_read=3)),
        ({"prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 7}},
         Usage(cache_read=0, cache_write=7)),
        ({"prompt_tokens": -1, "completion_tokens": 1.5, "total_tokens": False}, Usage()),
    ],
)  # fmt: skip
def test_counts_are_found_by_any_name(raw, usage):
    assert read_usage(raw) == usage


def test_a_decoder_is_found_by_dialect():
    one = decoder(target())
    assert [*one.feed(STREAMS["refusal"]), *one.close()][-1] == Finished("refusal")
