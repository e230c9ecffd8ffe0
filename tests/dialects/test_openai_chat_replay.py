"""Where the thinking of an answer goes when it is sent back, and what stands in for none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conversations import as_taken, listed, target
from mull.dialects.openai_chat.encode import encode_request
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan

ON = ThinkingPlan("on", "openai-effort", effort="high")
OFF = ThinkingPlan("off", "thinking-type", thinks=False)
LEFT = ThinkingPlan("absent")
SILENT = ThinkingPlan("absent", thinks=False)
SIGNED = [{"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}]


def encode(*messages: Message, to: Target | None = None, **options: Any):
    to = to or target()
    asked = Request(messages, options.pop("thinking", ON), **options)
    made = encode_request(as_taken(asked, to), to)
    return msgspec.json.decode(made.body), made


def written(*blocks, to: Target | None = None, **options: Any) -> dict[str, Any]:
    """The one assistant's message made of these blocks."""
    body, _ = encode(user("q"), assistant(*blocks), user("r"), to=to, **options)
    assert len(body["messages"]) == 3
    return body["messages"][1]


def result(call_id: str = "c", output: str = "out", **more: Any) -> Message:
    return Message(role="tool", blocks=(ToolResultBlock(call_id, output, **more),))


# Reasoning


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking", "novel"])
def test_the_same_field_goes_back(field):
    message = written(ThinkingBlock(" hm\n", field), TextBlock("a"))
    assert message == {"role": "assistant", "content": "a", field: " hm\n"}


def test_thoughts_between_texts_are_joined_bare():
    message = written(
        ThinkingBlock("a", "reasoning"),
        TextBlock("b"),
        ThinkingBlock("c", "reasoning"),
        TextBlock("d"),
    )
    assert message == {"role": "assistant", "content": "bd", "reasoning": "ac"}


def test_summaries_are_paragraphs():
    parts = (ThinkingBlock(text, "reasoning", kind="summary") for text in ("a", "b"))
    assert written(*parts, TextBlock("c"))["reasoning"] == "a\n\nb"


def test_the_row_or_the_user_names_the_field():
    block = ThinkingBlock("hm", "reasoning")
    row = target(compat={"reasoning_out": "reasoning_content"})
    assert written(block, TextBlock("a"), to=row)["reasoning_content"] == "hm"
    message = written(block, TextBlock("a"), to=row, reasoning_field="mine")
    assert message == {"role": "assistant", "content": "a", "mine": "hm"}


def test_a_thought_from_outside_goes_in_the_endpoints_first_field():
    assert written(ThinkingBlock("hm"), TextBlock("a"))["reasoning_content"] == "hm"


def test_an_endpoint_that_reads_no_field_still_gets_one():
    row = target(compat={"reasoning_in": ()})
    assert written(ThinkingBlock("hm"), TextBlock("a"), to=row)["reasoning_content"] == "hm"


def test_never_means_never():
    row = target(compat={"reasoning_out": "never", "requires_reasoning": "all"})
    body, _ = encode(user("q"), assistant(ThinkingBlock("hm"), TextBlock("a")), user("r"), to=row)
    assert body["messages"][1] == {"role": "assistant", "content": "a"}


def test_details_go_back_as_they_came_and_stand_for_their_text():
    block = ThinkingBlock("hm", "reasoning", wire=listed(SIGNED))
    message = written(block, TextBlock("a"))
    assert message == {"role": "assistant", "content": "a", "reasoning_details": SIGNED}


def test_text_that_details_do_not_hold_goes_beside_them():
    encrypted = [{"type": "reasoning.encrypted", "data": "x"}]
    message = written(
        ThinkingBlock("hm", "reasoning", wire=listed(encrypted)),
        TextBlock("a"),
    )
    assert message["reasoning"] == "hm"
    assert message["reasoning_details"] == encrypted


def test_a_named_field_does_not_lose_carriers():
    row = target(compat={"reasoning_out": "reasoning_content"})
    message = written(
        ThinkingBlock("hm", "reasoning", wire=listed(SIGNED)),
        TextBlock("a"),
        to=row,
    )
    assert message["reasoning_content"] == "hm"
    assert message["reasoning_details"] == SIGNED
    plain = [{"type": "reasoning.text", "text": "hm"}]
    message = written(
        ThinkingBlock("hm", "reasoning", wire=listed(plain)),
        TextBlock("a"),
        to=row,
    )
    assert "reasoning_details" not in message
    block = ThinkingBlock("hm", "reasoning", wire=listed(SIGNED))
    message = written(block, TextBlock("a"), reasoning_field="reasoning")
    assert message == {"role": "assistant", "content": "a", "reasoning": "hm"}


def test_plain_text_takes_the_shape_of_details_where_the_row_wants_them():
    row = target(compat={"reasoning_out": "reasoning_details"})
    message = written(ThinkingBlock("hm", "reasoning_content"), TextBlock("a"), to=row)
    assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "hm"}]


def test_copilots_text_goes_only_with_its_signature():
    signed = ThinkingBlock("hm", "reasoning_text", signature="s")
    copilot = target(compat={"signed_only": True})
    message = written(signed, TextBlock("a"), to=copilot)
    assert message["reasoning_text"] == "hm"
    assert message["reasoning_opaque"] == "s"
    unsigned = ThinkingBlock("hm", "reasoning_text")
    message = written(unsigned, TextBlock("a"), to=copilot)
    assert message == {"role": "assistant", "content": "a"}
    anywhere = written(unsigned, TextBlock("a"))
    assert anywhere == {"role": "assistant", "content": "a", "reasoning_text": "hm"}
    bare = written(ThinkingBlock("", "reasoning_text", signature="s"), TextBlock("a"))
    assert bare == {"role": "assistant", "content": "a", "reasoning_opaque": "s"}
    named = written(signed, TextBlock("a"), reasoning_field="reasoning_text")
    assert named["reasoning_opaque"] == "s"


def test_a_content_list_goes_back_in_wire_order():
    reference = {"type": "reference", "reference_ids": [1]}
    inner = [{"type": "text", "text": "x"}, {"type": "tool_reference"}]
    message = written(
        ThinkingBlock("a", "content_list", signature="s"),
        TextBlock("b"),
        TextBlock("c"),
        OpaqueBlock(reference),
        ThinkingBlock("x", "content_list", wire=Wire("openai-chat", {"thinking": inner})),
        TextBlock("d"),
    )
    assert message == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "a"}], "signature": "s"},
            {"type": "text", "text": "bc"},
            reference,
            {"type": "thinking", "thinking": inner},
            {"type": "text", "text": "d"},
        ],
    }


def test_tags_go_back_inside_the_text():
    block = ThinkingBlock("\nhm\n", "think_tags")
    assert written(block, TextBlock("\n\na"))["content"] == "<think>\nhm\n</think>\n\na"
    other = ThinkingBlock("hm", "think_tags:<thinking>")
    assert written(other, TextBlock("a"))["content"] == "<thinking>hm</thinking>a"
    gone = ThinkingBlock("hm", "think_tags:<thoughts>")
    assert written(gone, TextBlock("a"))["content"] == "<think>hm</think>a"
    row = target(compat={"starts_in_reasoning": True, "tags": (("<t>", "</t>"),)})
    assert written(block, TextBlock("a"), to=row)["content"] == "\nhm\n</t>a"
    row = target(compat={"reasoning_out": "reasoning_content"})
    message = written(block, TextBlock("a"), to=row)
    assert (message["content"], message["reasoning_content"]) == ("a", "\nhm\n")


def test_marked_thoughts_and_pictures_do_not_go_back():
    picture = OpaqueBlock({"images": []})
    body, made = encode(
        user("q"),
        assistant(ThinkingBlock("hm", "extra_content"), picture, TextBlock("a")),
        user("r"),
    )
    assert body["messages"][1] == {"role": "assistant", "content": "a"}
    assert len(made.notes) == 1


def test_a_refusal_and_kept_keys_go_back_in_their_places():
    message = written(
        TextBlock("No", wire=Wire("openai-chat", {"refusal": True})),
        TextBlock(".", wire=Wire("openai-chat", {"refusal": True})),
    )
    assert message == {"role": "assistant", "content": "", "refusal": "No."}
    kept = {"extra_content": {"google": {"thought_signature": "s"}}}
    assert written(TextBlock("a", wire=Wire("openai-chat", kept))) == {
        "role": "assistant",
        "content": "a",
        **kept,
    }


def test_pictures_of_an_answer_are_left_out_and_said():
    _, made = encode(user("q"), assistant(MediaBlock("image/png", url="u"), TextBlock("a")))
    assert [note.about for note in made.notes] == ["media", "history"]


# Fillers


@pytest.mark.parametrize(
    ("needs", "calls", "filled"),
    [("no", True, False), ("tool_calls", True, True), ("tool_calls", False, False),
     ("all", False, True)],
)  # fmt: skip
def test_fillers_go_only_where_the_row_asks(needs, calls, filled):
    row = target(compat={"requires_reasoning": needs, "missing_reasoning": " "})
    blocks = (TextBlock("a"), *([ToolCallBlock("c", "f")] if calls else []))
    body, _ = encode(user("q"), assistant(*blocks), *([result()] if calls else [user("r")]), to=row)
    assert (body["messages"][1].get("reasoning_content") == " ") is filled


def test_fillers_never_stand_beside_reasoning_or_while_it_is_off():
    row = target(compat={"requires_reasoning": "all", "missing_reasoning": ""})
    assert written(ThinkingBlock("hm", "reasoning"), TextBlock("a"), to=row) == {
        "role": "assistant",
        "content": "a",
        "reasoning": "hm",
    }
    tagged = written(ThinkingBlock("hm", "think_tags"), TextBlock("a"), to=row)
    assert "reasoning_content" not in tagged
    for plan in (OFF, SILENT):
        assert "reasoning_content" not in written(TextBlock("a"), to=row, thinking=plan)
    for plan in (ON, LEFT):
        assert written(TextBlock("a"), to=row, thinking=plan)["reasoning_content"] == ""
    details = target(
        compat={
            "requires_reasoning": "all",
            "missing_reasoning": "",
            "reasoning_out": "reasoning_details",
        }
    )
    assert written(TextBlock("a"), to=details) == {"role": "assistant", "content": "a"}


def test_an_empty_thought_is_not_sent_without_a_filler():
    assert "reasoning_content" not in written(
        ThinkingBlock("", "reasoning_content"), TextBlock("a")
    )


def test_a_short_answer_stands_between_results_and_a_user_where_it_must():
    """Mistral refuses a user after tool results (avante-corp/avante.nvim#2562)."""
    result = Message(role="tool", blocks=(ToolResultBlock("a", "1"),))
    messages = (user("q"), assistant(ToolCallBlock("a", "f")), result, user("hurry"))
    request = Request(messages=messages, thinking=ThinkingPlan("absent"))
    sent, noted = [], []
    for strict in (False, True):
        wire = encode_request(request, target(compat={"assistant_after_results": strict}))
        sent.append(msgspec.json.decode(wire.body)["messages"])
        noted.append([note.text for note in wire.notes])
    assert [message["role"] for message in sent[0]] == ["user", "assistant", "tool", "user"]
    assert sent[1] == [
        *sent[0][:3],
        {"role": "assistant", "content": "I have the results."},
        sent[0][3],
    ]
    added = "1 × “I have the results.” added: here only an answer may follow tool results"
    assert (added in noted[0], added in noted[1]) == (False, True)


def test_ids_of_a_form_the_endpoint_takes_and_pairs_stay_pairs():
    """Mistral takes ids of nine letters and digits only (anomalyco/opencode#1680)."""
    strict = target(compat={"tool_id_length": 9})
    messages = (
        user("q"),
        assistant(ToolCallBlock("call_long-id", "f"), ToolCallBlock("abcDEF123", "g")),
        Message(
            role="tool",
            blocks=(ToolResultBlock("call_long-id", "1"), ToolResultBlock("abcDEF123", "2")),
        ),
    )
    request = Request(messages=messages, thinking=ThinkingPlan("absent"))
    sent = msgspec.json.decode(encode_request(request, strict).body)["messages"]
    first, second = (call["id"] for call in sent[1]["tool_calls"])
    assert (len(first), first.isalnum(), second) == (9, True, "abcDEF123")
    assert [message["tool_call_id"] for message in sent[2:]] == [first, second]
