"""Failures that other clients had with this API, each by its case number."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conversations import ELSEWHERE, snapshot, target, wired
from mull.dialects.registry import encode_request
from mull.history.log import Log
from mull.neutral.blocks import TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock, Wire
from mull.neutral.messages import Message, assistant, message_from_json, message_to_json, user
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.neutral.target import Target
from mull.policy.prepare import prepare
from openai_responses_wire import STREAMS, TARGET, WHOLE, cut, decode, sse

COMPAT = {"requires_reasoning": "tool_calls", "max_tokens_field": "max_output_tokens"}
EFFORTS = [{"type": "effort", "values": ("none", "low", "medium", "high")}]
OPENAI = target("responses", dialect="openai-responses", options=EFFORTS, compat=COMPAT)


def send(*history: Message, at: Target = OPENAI, talk: Any = None, **chosen: Any) -> dict[str, Any]:
    prepared = prepare(Log(history), snapshot(**chosen), at, talk or RequestOptions())
    return msgspec.json.decode(encode_request(prepared.request, at).body)


def told(*history: Message, **chosen: Any) -> str:
    prepared = prepare(Log(history), snapshot(**chosen), OPENAI)
    wire = encode_request(prepared.request, OPENAI)
    return "; ".join(note.text for note in (*prepared.notes, *wire.notes))


def answer(name: str, at: Target = OPENAI) -> Message:
    return msgspec.structs.replace(decode(STREAMS[name]).message, origin=at.origin)


def results(message: Message) -> Message:
    blocks = tuple(ToolResultBlock(call.id, "seen") for call in message.tool_calls)
    return Message(role="tool", blocks=blocks)


def kinds(sent: dict[str, Any]) -> list[str]:
    return [item["type"] for item in sent["input"]]


def event(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **more}


DONE = event("completed", response={"status": "completed"})


def test_b06_whitespace_deltas_are_kept():
    pieces = ["Hi", " ", "\n\n", "again", "a\r", "\nb"]
    at = {"item_id": "rs_1", "summary_index": 0}
    some = [event("reasoning_summary_text.delta", **at, delta=piece) for piece in pieces]
    assert decode(sse([*some, DONE])).message.thinking[0].thought == "".join(pieces)


def test_b07_empty_reasoning_is_a_state_of_its_own():
    item = {"type": "reasoning", "id": "rs_1", "summary": []}
    empty = decode(msgspec.json.encode({"status": "completed", "output": [item]})).message
    none = decode(msgspec.json.encode({"status": "completed", "output": []})).message
    assert [block.thought for block in empty.thinking] == [""]
    assert empty.thinking[0].is_blank
    assert not none.thinking


def test_b11_no_text_but_encrypted_content_is_a_full_block():
    thought = answer("hosted-search").thinking[1]
    assert (thought.thought, thought.encrypted) == ("", "gAAAAABtwo")
    assert not thought.is_blank
    sent = send(user("q"), answer("hosted-search"), user("more"), includeInContext=True)
    assert {
        "type": "reasoning",
        "id": "rs_h2",
        "summary": [],
        "encrypted_content": "gAAAAABtwo",
    } in (sent["input"])


def test_b13_summary_parts_are_paragraphs_and_stay_apart():
    some = [
        event("reasoning_summary_text.delta", item_id="rs_1", summary_index=index, delta=delta)
        for index, delta in ((0, "**"), (0, "A**"), (1, "**B"), (1, "**"))
    ]
    (thought,) = decode(sse([*some, DONE])).message.thinking
    assert thought.thought == "**A**\n\n**B**"
    assert [part["text"] for part in wired(thought)["parts"]] == ["**A**", "**B**"]


def test_b15_raw_reasoning_is_decoded_and_told_from_summaries():
    (raw,) = answer("raw-without-indexes").thinking
    assert (raw.kind, raw.source_field) == ("raw", "reasoning_text")
    summary, long = answer("both-kinds").thinking
    assert (summary.kind, summary.thought) == ("summary", "In short.")
    assert (long.kind, long.thought) == ("raw", "At length, and then some.")


def test_b19_calls_under_one_index_stay_apart():
    some = [
        event(
            "output_item.done",
            output_index=0,
            item={
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": f"call_{name}",
                "name": "read",
                "arguments": f'{{"path":"{name}"}}',
            },
        )
        for name in "ab"
    ]
    message = decode(sse([*some, DONE])).message
    assert [call.input for call in message.tool_calls] == [{"path": "a"}, {"path": "b"}]
    assert message.stop_reason == "tool_calls"


def test_b20_unknown_keys_of_a_call_are_echoed():
    message = answer("summary-then-calls")
    sent = send(user("q"), message, results(message))
    (call,) = (item for item in sent["input"] if item.get("id") == "fc_a2")
    assert call["namespace"] == "files"


def test_c01_characters_cut_in_half():
    data = STREAMS["summary-then-calls"]
    places = [at for at, byte in enumerate(data) if byte >= 0x80]
    assert decode(*cut(data, places)).message == decode(data).message


def test_c02_comments_are_not_data():
    data = b": processing\n\n" + STREAMS["done-only"].replace(b"event:", b":x\nevent:")
    assert decode(data).message == decode(STREAMS["done-only"]).message


def test_c04_an_error_inside_a_stream_keeps_what_came():
    failed = decode(STREAMS["error-event"])
    assert (failed.failed.text, failed.failed.code) == (
        "You have no credit left.",
        "insufficient_quota",
    )
    assert (failed.message.text, failed.message.status) == ("So far", "error")
    bare = decode(b'data: {"error":{"message":"quota exceeded"}}\n\ndata: [DONE]\n\n')
    assert bare.failed.text == "quota exceeded"


def test_c04_a_failed_response_keeps_what_came():
    failed = decode(STREAMS["failed-after-thought"])
    assert failed.failed.text == "The server had an error while it was thinking."
    assert failed.message.thinking[0].thought == "**Half a plan**"


def test_c05_an_end_without_its_marker_is_an_interruption():
    broken = decode(STREAMS["cut"])
    assert (broken.failed.code, broken.message.status) == ("incomplete", "interrupted")
    assert broken.message.text == "and half of th"
    assert broken.message.stop_reason is None


def test_c05_done_after_finished_items_is_an_end():
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
    data = sse([event("output_item.done", item=item)]) + b"data: [DONE]\n\n"
    message = decode(data).message
    assert (message.status, message.stop_reason) == ("complete", None)


def test_c09_the_last_usage_counts_and_ends_nothing():
    zero = {"input_tokens": 0, "output_tokens": 0}
    first = event("created", response={"status": "in_progress", "usage": zero})
    item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi"}]}
    last = event(
        "completed",
        response={"status": "completed", "usage": {"output_tokens": 3}, "output": [item]},
    )
    message = decode(sse([first, last])).message
    assert (message.usage.output, message.usage.input, message.text) == (3, None, "Hi")


def test_d08_wire_order_is_kept():
    sent = send(user("q"), answer("hosted-search"), user("more"), includeInContext=True)
    assert kinds(sent)[1:-1] == ["reasoning", "web_search_call", "reasoning", "message"]


def test_d12_foreign_thoughts_are_never_visible_text():
    foreign = assistant(ThinkingBlock("secret"), TextBlock("Hi"), origin=ELSEWHERE)
    sent = send(user("q"), foreign, user("more"), includeInContext=True)
    assert b"secret" not in msgspec.json.encode(sent)


def test_d13_carriers_of_another_endpoint_are_not_sent_and_come_back_later():
    elsewhere = msgspec.structs.replace(OPENAI, endpoint="https://azure.example/v1")
    log = (user("q"), answer("done-only"), results(answer("done-only")))
    there = send(*log, at=elsewhere, includeInContext=True)
    assert b"eHNlYWw=" not in msgspec.json.encode(there)
    assert all("id" not in item for item in there["input"])
    back = send(*log, includeInContext=True)
    assert kinds(back) == ["message", "reasoning", "function_call", "function_call_output"]


def test_d17_reasoning_without_its_follower_is_not_sent():
    alone = assistant(TextBlock("Hm"), answer("thought-alone").blocks[0], origin=OPENAI.origin)
    sent = send(user("q"), alone, user("more"), includeInContext=True)
    assert kinds(sent) == ["message", "message", "message"]
    assert "1 thought at the end of an answer not sent" in told(
        user("q"), alone, user("more"), includeInContext=True
    )


def test_d17_a_follower_without_its_reasoning_has_no_id():
    log = (user("q"), answer("both-kinds"), user("more"))
    kept = send(*log, includeInContext=True)["input"]
    stripped = send(*log)["input"]
    assert [item.get("id") for item in kept] == [None, "rs_b1", "msg_b1", None]
    assert [item.get("id") for item in stripped] == [None, None, None]


def test_d17_reasoning_of_an_open_tool_chain_is_sent_whatever_is_preferred():
    message = answer("summary-then-calls")
    sent = send(user("q"), message, results(message))
    assert kinds(sent)[1:4] == ["reasoning", "function_call", "function_call"]
    assert [item.get("id") for item in sent["input"][1:4]] == ["rs_a1", "fc_a1", "fc_a2"]


def test_d19_nothing_is_stored_and_encrypted_content_is_asked_for():
    sent = send(user("q"))
    assert sent["store"] is False
    assert sent["include"] == ["reasoning.encrypted_content"]


def test_d19_reasoning_without_encrypted_content_is_not_sent():
    bare = ThinkingBlock("why", "summary", id="rs_1", kind="summary")
    call = ToolCallBlock("c", "look", wire=Wire("openai-responses", {"id": "fc_1"}))
    message = assistant(bare, call, origin=OPENAI.origin)
    sent = send(user("q"), message, results(message))
    assert kinds(sent) == ["message", "function_call", "function_call_output"]
    assert "id" not in sent["input"][1]
    notes = told(user("q"), message, results(message), includeInContext=True)
    assert "1 thought not sent: the endpoint could not read them" in notes


def test_d19_raw_text_goes_back_to_the_server_that_sent_it():
    sent = send(user("q"), answer("raw-without-indexes"), user("more"), includeInContext=True)
    assert sent["input"][1] == {
        "type": "reasoning",
        "id": "rs_l1",
        "summary": [],
        "encrypted_content": "",
        "content": [
            {
                "type": "reasoning_text",
                "text": "First the easy half.\nThen the rest, slowly.\n",
            }
        ],
    }


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_d21_encrypted_content_only_ever_holds_wire_bytes(name):
    came = [
        item["encrypted_content"]
        for item in msgspec.json.decode(WHOLE[name])["output"]
        if "encrypted_content" in item
    ]
    sent = send(user("q"), answer(name), user("more"), includeInContext=True)
    found = [item["encrypted_content"] for item in sent["input"] if "encrypted_content" in item]
    assert set(found) <= set(came)
    assert all("status" not in item for item in sent["input"] if item["type"] == "reasoning")


def test_d23_old_thoughts_are_kept_on_request():
    keep = {"reasoning": {"context": "all_turns"}}
    at = target("responses", dialect="openai-responses", compat={**COMPAT, "keep_thinking": keep})
    message = answer("both-kinds", at)
    sent = send(user("q"), message, user("more"), at=at, includeInContext=True)
    assert sent["reasoning"]["context"] == "all_turns"
    assert "reasoning" in kinds(sent)


def test_d25_thoughts_alone_are_no_turn_of_their_own():
    sent = send(user("q"), answer("thought-alone"), user("more"), includeInContext=True)
    assert kinds(sent) == ["message", "message"]
    assert [item["role"] for item in sent["input"]] == ["user", "user"]


def test_e04_a_forced_tool_is_sent_beside_thinking():
    talk = RequestOptions(tools=(Tool("look"),), tool_choice=NamedTool("look"))
    sent = send(user("q"), talk=talk, effort="high")
    assert sent["tool_choice"] == {"type": "function", "name": "look"}
    assert sent["reasoning"]["effort"] == "high"


def test_e07_a_level_the_model_lacks_becomes_the_nearest():
    assert send(user("q"), effort="minimal")["reasoning"]["effort"] == "low"


def test_e10_off_is_said_in_the_apis_own_words():
    assert send(user("q"), enabled=False)["reasoning"] == {"effort": "none"}


def test_e14_settings_that_stay_give_the_same_bytes():
    log = [user("q"), answer("both-kinds"), user("more")]
    first = send(*log, includeInContext=True)
    log += [answer("summary-then-calls"), results(answer("summary-then-calls"))]
    second = send(*log, includeInContext=True)
    assert second["input"][: len(first["input"])] == first["input"]
    assert {**first, "input": None} == {**second, "input": None}


def test_s03_reasoning_alone_is_no_answer():
    message = answer("thought-alone")
    assert (message.status, message.stop_reason) == ("no_answer", "stop")


def test_s05_a_stored_answer_encodes_to_the_same_bytes():
    for name in WHOLE:
        message = answer(name)
        stored = message_from_json(message_to_json(message))
        log = (user("q"), message, results(message))
        again = (user("q"), stored, results(stored))
        assert send(*log, includeInContext=True) == send(*again, includeInContext=True)


def test_a09_truncated_in_thought():
    message = decode(STREAMS["cut-short-in-thought"]).message
    assert (message.status, message.text) == ("truncated_in_reasoning", "")
    assert message == decode(WHOLE["cut-short-in-thought"]).message
    assert message.origin == TARGET.origin


def test_a11_leading_whitespace_of_the_answer_is_kept():
    assert answer("raw-without-indexes").text.startswith("\n\nForty")
