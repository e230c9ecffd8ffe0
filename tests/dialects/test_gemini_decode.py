"""What a Gemini answer becomes, from a stream and from a whole response."""

import msgspec
import pytest

from conversations import wired
from gemini_wire import COUNTS, decode, ended, fixture, fixture_names, response, sse, whole
from mull.neutral.blocks import OpaqueBlock, TextBlock, ThinkingBlock, Wire
from mull.neutral.events import Started, TextDelta, ThinkingDelta
from mull.neutral.usage import Usage

PAIRS = [name[: -len(".json")] for name in fixture_names("json")]


def thought(text, **more):
    return ThinkingBlock(text, "thought", kind="summary", **more)


def test_thoughts_text_and_a_signature_without_text():
    got = decode(fixture("thoughts.sse"))
    assert got.blocks == (
        thought("**Counting the sheep**\n\nTwo flocks, seven and five. 羊\n\n\n"),
        TextBlock("There are **12** sheep \n"),
        TextBlock("", "c2lnLW9mLXRoZS1mbG9jaw=="),
    )
    assert (got.message.stop_reason, got.message.status) == ("stop", "complete")
    assert got.message.usage == Usage(input=12, output=52, reasoning=44, total=64)
    assert got.events[0] == Started("fx-1", "gemini-fixture")
    assert got.events[1] == ThinkingDelta(
        "**Counting the sheep**\n\nTwo flocks, ", None, "thought", "summary"
    )


def test_one_delta_is_one_event():
    got = decode(ended({"text": "a"}, {"text": "b"}, {"text": "c", "thought": True}))
    assert [type(event) for event in got.events[1:4]] == [TextDelta, TextDelta, ThinkingDelta]


def test_a_signed_part_is_a_block_of_its_own():
    parts = [{"text": "a"}, {"text": "b", "thoughtSignature": "S"}, {"text": "c"}, {"text": "d"}]
    got = decode(ended(*parts))
    assert got.blocks == (TextBlock("a"), TextBlock("b", "S"), TextBlock("cd"))
    assert got.message == decode(whole(*parts)).message


def test_two_signed_parts_stay_two():
    signed = [{"text": "a", "thoughtSignature": "S"}, {"text": "b", "thoughtSignature": "T"}]
    assert decode(ended(*signed)).blocks == (TextBlock("a", "S"), TextBlock("b", "T"))
    signed = [{**part, "thought": True} for part in signed]
    assert decode(ended(*signed)).blocks == (
        thought("a", signature="S"),
        thought("b", signature="T"),
    )


def test_a_signature_alone_is_kept_and_is_no_thought():
    assert decode(ended({"thoughtSignature": "S"})).blocks == (TextBlock("", "S"),)
    signed = {"thought": True, "thoughtSignature": "S"}
    assert decode(ended(signed)).blocks == (thought("", signature="S"),)


def test_an_empty_thought_is_a_thought_and_empty_text_is_nothing():
    got = decode(ended({"text": "", "thought": True}, {"text": ""}, {"text": "a"}))
    assert got.blocks == (thought(""), TextBlock("a"))


def test_unknown_keys_of_a_part_stay_with_it():
    parts = [
        {"text": "a", "partMetadata": {"k": 1}},
        {"text": "t", "thought": True, "partMetadata": {"k": 2}},
        {"functionCall": {"name": "f", "args": {}, "mood": "calm"}, "partMetadata": {"k": 3}},
    ]
    text, seen, call = decode(ended(*parts)).blocks
    assert text == TextBlock("a", wire=Wire("gemini", {"partMetadata": {"k": 1}}))
    assert seen == thought("t", wire=Wire("gemini", {"partMetadata": {"k": 2}}))
    assert wired(call) == {"mood": "calm", "part": {"partMetadata": {"k": 3}}}


def test_text_beside_a_call_in_one_part_is_not_lost():
    call = {"functionCall": {"name": "f", "args": {"a": 1}}, "text": "hm", "thoughtSignature": "S"}
    text, seen = decode(ended(call)).blocks
    assert text == TextBlock("hm")
    assert (seen.name, seen.input, seen.signature, seen.wire) == ("f", {"a": 1}, "S", None)


def test_other_parts_are_kept_in_place():
    parts = msgspec.json.decode(fixture("other-parts.json"))["candidates"][0]["content"]["parts"]
    blocks = decode(fixture("other-parts.sse")).blocks
    assert blocks[0] == thought("Search, run, draw.", signature="dGhvdWdodA==")
    assert blocks[1:8] == tuple(map(OpaqueBlock, parts[1:8]))
    assert [b.text for b in blocks[8:]] == [
        "High tide is at 14:05.",
        " Bring boots.",
        " And a map.",
    ]


@pytest.mark.parametrize(
    ("finish", "reason", "warned"),
    [
        ("STOP", "stop", False),
        ("MAX_TOKENS", "length", False),
        ("CONTINUATION", "length", True),
        ("SAFETY", "content_filter", True),
        ("RECITATION", "content_filter", True),
        ("BLOCKLIST", "content_filter", True),
        ("PROHIBITED_CONTENT", "content_filter", True),
        ("SPII", "content_filter", True),
        ("IMAGE_SAFETY", "content_filter", True),
        ("MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL", True),
        ("UNEXPECTED_TOOL_CALL", "UNEXPECTED_TOOL_CALL", True),
        ("OTHER", "OTHER", True),
        ("SOMETHING_NEW", "SOMETHING_NEW", True),
    ],
)
def test_finish_reasons(finish, reason, warned):
    for body in (ended({"text": "a"}, finish=finish), whole({"text": "a"}, finish=finish)):
        got = decode(body)
        assert got.message.stop_reason == reason
        assert [finish in text for _, text in got.warnings] == ([True] if warned else [])


def test_calls_make_a_stop_a_tool_call_but_not_a_cut_or_a_refusal():
    call = {"functionCall": {"name": "f", "args": {}}}
    assert decode(ended(call)).message.stop_reason == "tool_calls"
    assert decode(ended(call, finish="MAX_TOKENS")).message.status == "truncated"
    assert decode(ended(call, finish="SAFETY")).message.stop_reason == "content_filter"


def test_a_finish_message_is_told():
    ((code, text),) = decode(fixture("malformed-call.sse")).warnings
    assert code == "MALFORMED_FUNCTION_CALL"
    assert "print(default_api.go())" in text


def test_safety_keeps_what_came():
    got = decode(fixture("safety.sse"))
    assert got.blocks == (TextBlock("The mixture of "),)
    assert (got.message.stop_reason, got.message.status) == ("content_filter", "complete")


def test_a_blocked_prompt():
    got = decode(fixture("blocked-prompt.sse"))
    assert (got.message.stop_reason, got.message.status) == ("content_filter", "no_answer")
    said = "the provider blocked the prompt: PROHIBITED_CONTENT (The prompt was blocked.)"
    assert got.warnings == [("content_filter", said)]
    assert got.message.usage == Usage(input=8, total=8)


def test_cut_while_thinking():
    got = decode(fixture("cut-in-thought.sse"))
    assert (got.message.stop_reason, got.message.status) == ("length", "truncated_in_reasoning")
    assert got.message.usage == Usage(input=8, output=64, reasoning=64, total=72)


def test_usage_of_tools_and_cache():
    usage = decode(fixture("other-parts.sse")).message.usage
    assert usage == Usage(input=53, output=75, reasoning=15, total=128, cache_read=8)


@pytest.mark.parametrize("counts", [None, {}, {"trafficType": "ON_DEMAND"}, "12", {"x": True}])
def test_unknown_usage_is_unknown(counts):
    assert decode(sse(response([], finish="STOP", counts=counts))).message.usage is None


def test_a_second_candidate_is_told_of_once():
    other = {"index": 1, "content": {"parts": [{"text": "b"}]}}
    chunks = [response([{"text": "a"}]) for _ in range(2)]
    for chunk in chunks:
        chunk["candidates"].append(other)
    got = decode(sse(*chunks, response([], finish="STOP")))
    assert (got.blocks, len(got.warnings)) == ((TextBlock("aa"),), 1)


@pytest.mark.parametrize("reason", ["FINISH_REASON_UNSPECIFIED", "", None, [], {"a": 1}, 4])
def test_a_finish_reason_that_says_nothing_is_none(reason):
    assert decode(sse(response([{"text": "a"}], finish=reason))).error.code == "incomplete"


def test_an_odd_first_chunk_starts_the_answer_all_the_same():
    assert decode(sse({}, response([{"text": "a"}], finish="STOP"))).events[0] == Started()


def test_code_assist_wraps_its_chunks():
    chunk = response([{"text": "a"}], finish="STOP", counts=COUNTS)
    assert decode(sse({"response": chunk, "traceId": "t"})).blocks == (TextBlock("a"),)


def test_a_json_array_is_a_stream_too():
    chunks = [response([{"text": "a"}]), response([{"text": "b"}], finish="STOP", counts=COUNTS)]
    got = decode(msgspec.json.encode(chunks))
    assert (got.blocks, got.message.status) == ((TextBlock("ab"),), "complete")


def test_an_array_of_an_error():
    error = {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}
    got = decode(msgspec.json.encode([{"error": error}]))
    assert (got.error.text, got.error.code, got.error.body) == ("no", "INVALID_ARGUMENT", error)


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        ({"message": "m", "code": 7}, "m", "7"),
        ({"detail": 1}, "the provider reported an error", None),
        ("plain", "plain", None),
    ],
)
def test_errors_of_any_shape(error, text, code):
    got = decode(sse(response([{"text": "kept"}]), {"error": error}))
    assert (got.error.text, got.error.code, got.message.status) == (text, code, "error")
    assert got.blocks == (TextBlock("kept"),)


def test_an_error_beside_an_answer():
    got = decode(sse(response([{"text": "kept"}], error={"message": "m"}, finish="STOP")))
    assert (got.error.text, got.blocks) == ("m", (TextBlock("kept"),))


def test_a_whole_response_needs_no_finish_reason_but_an_answer():
    got = decode(msgspec.json.encode(response([{"text": "a"}])))
    assert (got.message.stop_reason, got.message.status) == (None, "complete")
    assert decode(b'{"modelVersion":"m"}').error.text == "no answer received"
    assert decode(b'"word"').error is not None


def test_dirty_chunks():
    got = decode(fixture("dirty.sse"))
    assert got.blocks == (TextBlock("An answer."),)
    assert got.message.usage == Usage(input=7, output=3, total=10)
    assert [code for code, _ in got.warnings] == ["candidates"]
    assert got.message.stop_reason == "stop"


@pytest.mark.parametrize("value", ["word", 5, [], None])
def test_chunks_and_parts_of_the_wrong_type_are_told_of(value):
    got = decode(sse(value, response([{"text": "a"}], finish="STOP")))
    assert got.blocks == (TextBlock("a"),)
    got = decode(sse(response([{"text": "a"}, value]), response(value, finish="STOP")))
    assert got.blocks == (TextBlock("a"),)
    assert got.message.status == "complete"


def test_a_call_that_broke_off_shows_what_came():
    got = decode(fixture("cut-off-in-call.sse"))
    (call,) = got.blocks
    assert (call.name, call.input, got.message.status) == (
        "write",
        {"text": "Dear S"},
        "interrupted",
    )
