"""Failures that other clients had with Gemini, one test for each case."""

import msgspec
import pytest

from conversations import ELSEWHERE, snapshot, target
from gemini_wire import COUNTS, LEVEL, decode, ended, fixture, response, sse, whole
from mull.dialects.registry import decoder, encode_request
from mull.history.log import Log
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.thinking import UNSIGNED_CALL
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare


def thought(text, **more):
    return ThinkingBlock(text, "thought", kind="summary", **more)


def both(*parts, finish="STOP"):
    """The answer of a stream, which must be that of the whole response."""
    streamed = decode(ended(*parts, finish=finish))
    assert streamed.message == decode(whole(*parts, finish=finish)).message
    return streamed


def sent(messages, to=LEVEL, **settings):
    """The body of the request that the whole road makes of these messages."""
    prepared = prepare(Log(tuple(messages)), snapshot(**settings), to)
    return msgspec.json.decode(encode_request(prepared.request, to).body)


def results(*pairs):
    return Message(role="tool", blocks=tuple(ToolResultBlock(*pair) for pair in pairs))


def test_b05_end_of_thought_and_start_of_answer_in_one_chunk():
    body = sse(
        response([{"text": " so 4", "thought": True}, {"text": "The"}]),
        response([{"text": " answer"}], finish="STOP"),
    )
    assert decode(body).blocks == (thought(" so 4"), TextBlock("The answer"))
    call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    got = decode(sse(response([{"text": "go", "thought": True}, call], finish="STOP")))
    assert got.blocks == (thought("go"), ToolCallBlock("c", "f", wire=Wire("gemini", {"id": "c"})))


def test_b06_whitespace_is_kept():
    pieces = ["Hi", " ", "\n\n", "again", "a\r", "\nb", "\u2028", "\t"]
    got = both(*({"text": piece, "thought": True} for piece in pieces), {"text": " x "})
    assert got.blocks == (thought("".join(pieces)), TextBlock(" x "))


def test_b07_an_empty_thought_is_not_no_thought():
    call = {"functionCall": {"id": "c", "name": "f", "args": {}}}
    assert both({"text": "", "thought": True}, call).message.thinking == (thought(""),)
    assert both(call).message.thinking == ()


def test_b11_empty_text_and_a_signature_are_a_full_part():
    got = both({"text": "a"}, {"text": "", "thoughtSignature": "EqQB"})
    assert got.blocks == (TextBlock("a"), TextBlock("", "EqQB"))
    parts = sent([user("u"), got.message, user("v")])["contents"][1]["parts"]
    assert parts == [{"text": "a"}, {"text": "", "thoughtSignature": "EqQB"}]


def test_b13_summaries_keep_the_boundary_that_the_wire_gives_them():
    got = both({"text": "**A**\n\n\n", "thought": True}, {"text": "**B**\n\n\n", "thought": True})
    assert got.blocks == (thought("**A**\n\n\n**B**\n\n\n"),)


def test_b16_thought_parts_are_not_the_answer():
    got = both({"text": "Summary of thinking", "thought": True}, {"text": "Answer"})
    assert (got.message.text, got.blocks[0]) == ("Answer", thought("Summary of thinking"))


def test_b16_a_signature_does_not_make_a_thought():
    assert both({"text": "Answer", "thoughtSignature": "S"}).message.thinking == ()


def test_b19_calls_present_mean_tool_calls_although_the_wire_says_stop():
    got = both({"functionCall": {"name": "read", "args": {"path": "a"}}})
    assert got.message.stop_reason == "tool_calls"


def test_b19_calls_of_the_same_name_are_not_merged():
    calls = [{"functionCall": {"name": "read", "args": {"path": path}}} for path in "ab"]
    one, two = both(*calls).blocks
    assert (one.input, two.input) == ({"path": "a"}, {"path": "b"})
    assert one.id != two.id


def test_b21_an_answer_among_the_thoughts_is_not_promoted():
    got = both({"text": '{"joke": 1}', "thought": True})
    assert (got.message.text, got.message.status) == ("", "no_answer")


def test_c01_characters_cut_in_half():
    body = ended({"text": "那个", "thought": True}, {"text": "🌍"})
    for at in range(len(body)):
        assert decode(body[:at], body[at:]).blocks == (thought("那个"), TextBlock("🌍"))


def test_c02_comments_are_signs_of_life_only():
    reading = decoder(LEVEL)
    reading.feed(fixture("comments.sse"))
    reading.close()
    assert reading.comments == 3
    got = decode(fixture("comments.sse"))
    assert (got.blocks, got.message.status) == ((TextBlock("a\r\nb  "),), "complete")


def test_c04_an_error_inside_the_stream_keeps_what_came():
    got = decode(fixture("error-midway.sse"))
    assert got.blocks == (thought("Ponder."), TextBlock("So far so"))
    assert got.message.status == "error"
    assert got.error.text == "The model is overloaded. Please try again later."
    assert got.error.code == "UNAVAILABLE"
    assert got.message.usage == Usage(input=5, output=7, reasoning=3, total=12)


def test_c05_an_end_without_a_finish_reason_is_incomplete():
    got = decode(fixture("cut-off.sse"))
    assert (got.message.status, got.error.code) == ("interrupted", "incomplete")
    assert got.message.stop_reason is None
    assert got.message.text == "Half an ans"
    assert decode(sse(response([]))).error.code == "incomplete"
    assert decode(b": nothing but a comment\n\n").error.code == "incomplete"


def test_c05_a_gateway_that_says_done_is_believed():
    got = decode(sse(response([{"text": "a"}])) + b"data: [DONE]\n\n")
    assert (got.message.status, got.message.stop_reason) == ("complete", None)


def test_c09_the_last_known_counts_win_and_end_nothing():
    body = sse(
        response([{"text": "a"}], counts={"promptTokenCount": 0, "totalTokenCount": 0}),
        response([{"text": "b"}], counts=COUNTS),
        response([{"text": "c"}], finish="STOP", counts={"candidatesTokenCount": 21}),
        {"usageMetadata": {"totalTokenCount": 36, "thoughtsTokenCount": None}},
        {"usageMetadata": None},
    )
    got = decode(body)
    assert got.blocks == (TextBlock("abc"),)
    assert got.message.usage == Usage(input=10, output=26, reasoning=5, total=36)


def test_d08_parts_go_back_in_the_order_they_came():
    parts = msgspec.json.decode(fixture("other-parts.json"))["candidates"][0]["content"]["parts"]
    answer = decode(fixture("other-parts.json")).message
    body = sent([user("u"), answer, user("v")], includeInContext=True)
    assert body["contents"][1]["parts"] == parts


def test_d12_foreign_thoughts_do_not_become_text():
    foreign = assistant(thought("secret plan"), TextBlock("a"), origin=ELSEWHERE)
    body = sent([user("u"), foreign, user("v")], includeInContext=True)
    assert body["contents"][1]["parts"] == [{"text": "a"}]


def test_d13_carriers_of_another_origin_stay_home_and_come_back():
    answer = decode(fixture("other-parts.sse")).message
    history = [user("u"), answer, user("v")]
    other = target("gemini-level", dialect="gemini", model="another")
    body = sent(history, to=other)
    assert "thoughtSignature" not in msgspec.json.encode(body).decode()
    assert "".join(part["text"] for part in body["contents"][1]["parts"]) == answer.text
    signed = [b for b in answer.blocks if isinstance(b, OpaqueBlock)]
    back = sent(history)["contents"][1]["parts"]
    assert [block.data for block in signed] == [part for part in back if "text" not in part]


def test_d15_the_signature_is_a_sibling_of_the_call():
    answer = both({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "S"}).message
    history = [user("u"), answer, results((answer.tool_calls[0].id, "r"))]
    for settings in ({}, {"includeInContext": True}, {"stripFromContext": "all"}):
        (part,) = sent(history, **settings)["contents"][1]["parts"]
        assert part == {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "S"}


def test_d15_calls_of_another_model_pass_the_validation():
    calls = [ToolCallBlock("c1", "f", {"a": 1}), ToolCallBlock("c2", "g")]
    history = [user("u"), assistant(*calls, origin=ELSEWHERE), results(("c1", "1"), ("c2", "2"))]
    _, model, answers = sent(history)["contents"]
    assert model["parts"] == [
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": UNSIGNED_CALL},
        {"functionCall": {"name": "g", "args": {}}},
    ]
    assert [part["functionResponse"]["name"] for part in answers["parts"]] == ["f", "g"]


def test_d16_parallel_calls_are_one_content_with_one_signature():
    answer = decode(fixture("parallel-calls.sse")).message
    one, two = answer.tool_calls
    history = [user("u"), answer, results((one.id, "813")), results((two.id, "1006"))]
    _, model, answers = sent(history)["contents"]
    assert [
        (part["functionCall"]["id"], part.get("thoughtSignature")) for part in model["parts"]
    ] == [("fc-a1", one.signature), ("fc-b2", None)]
    assert [part["functionResponse"]["id"] for part in answers["parts"]] == ["fc-a1", "fc-b2"]


def test_d16_every_step_of_the_turn_keeps_its_own_signature():
    history = [user("u")]
    for step in "abc":
        call = {"functionCall": {"id": step, "name": "f", "args": {}}, "thoughtSignature": step}
        history += [both(call).message, results((step, "r"))]
    models = [c for c in sent(history)["contents"] if c["role"] == "model"]
    assert [c["parts"][0]["thoughtSignature"] for c in models] == ["a", "b", "c"]


def test_d25_empty_answers_are_not_sent():
    history = [user("u"), assistant(thought("")), user("v")]
    assert [c["role"] for c in sent(history, includeInContext=True)["contents"]] == ["user"]


PRO = target(
    "gemini-budget",
    dialect="gemini",
    options=[{"type": "budget_tokens", "min": 128, "max": 32768}],
    thinks_by_default=True,
)
FLASH = target(
    "gemini-budget",
    dialect="gemini",
    options=[{"type": "budget_tokens", "min": 0, "max": 24576}],
    thinks_by_default=True,
)
THREE = target(
    "gemini-level",
    dialect="gemini",
    options=[{"type": "effort", "values": ["low", "high"]}],
    thinks_by_default=True,
)


@pytest.mark.parametrize("to", [PRO, FLASH, THREE])
@pytest.mark.parametrize("effort", [None, "none", "minimal", "low", "medium", "high", "max"])
def test_e07_exactly_one_of_level_and_budget(to, effort):
    settings = {"effort": effort} if effort else {}
    config = sent([user("u")], to, **settings)["generationConfig"]["thinkingConfig"]
    steered = {"thinkingLevel", "thinkingBudget"} & config.keys()
    expected = "thinkingLevel" if to is THREE else "thinkingBudget"
    assert steered == ({expected} if effort else set())


def test_e07_a_level_the_model_has_not_becomes_the_nearest():
    config = sent([user("u")], THREE, effort="medium")["generationConfig"]["thinkingConfig"]
    assert config["thinkingLevel"] == "HIGH"


def test_e10_off_is_said_or_the_minimum_is_asked_for():
    def asked(to):
        return sent([user("u")], to, enabled=False)["generationConfig"]["thinkingConfig"]

    assert asked(FLASH) == {"thinkingBudget": 0}
    assert asked(PRO)["thinkingBudget"] == 128
    assert asked(THREE)["thinkingLevel"] == "LOW"
