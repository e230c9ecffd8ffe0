"""What an answer is found by."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.dialects.serving import decode_request
from mull.gateway.anchors import (
    NOBODY,
    Identity,
    Past,
    answer_key,
    call_key,
    carrier_key,
    carriers_of,
    identify,
    is_place,
    is_proof,
    is_said,
    same_calls,
    same_text,
    same_thoughts,
    session_in,
    strength,
    thought_keys,
)
from mull.gateway.attach import keys_of, past_of
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.messages import Dialect, Message, assistant, user


def SHUT(_):
    """No envelope opens."""


ID = "toolu_a1b2c3d4e5f6a7b8"
CALL = assistant(ToolCallBlock(ID, "read", {"path": "a"}))
RESULT = Message(role="tool", blocks=(ToolResultBlock(ID, "milk"),))
DONE = assistant(TextBlock("Done."))
ANN = Identity("Be brief.", "ann")


def found(stored: list[Message], sent: list[Message], *who: Identity) -> set[str]:
    """The kinds of keys that the last answer has in both conversations; `who` says whose the first
    and the second one are."""
    one, other = who or (NOBODY, NOBODY)
    kept, wanted = keys_of(stored, SHUT, one), keys_of(sent, SHUT, other)
    both = {*kept.of_each[-1].own} & {*wanted.of_each[-1].own}
    return {key.partition(":")[0] for key in both}


# Kinds of keys.


def test_keys_that_prove_more_come_first():
    past = past_of([user("q"), CALL, RESULT])
    named = Past(ANN)
    named.add(user("q"))
    thought = assistant(ThinkingBlock("Hm."), TextBlock("Done."))
    keys = [answer_key("a"), carrier_key("s"), call_key(ID), *thought_keys(thought)]
    keys += [*past.keys(DONE), *named.keys(DONE)]
    kinds = [key.partition(":")[0] for key in sorted(dict.fromkeys(keys), key=strength)]
    assert kinds == ["answer", "carrier", "call", "thought", "after", "turn", "turn", "session"]
    by_kind = {key.partition(":")[0]: key for key in keys}
    assert [kind for kind, key in by_kind.items() if is_proof(key)] == ["answer", "carrier", "call"]
    assert [kind for kind, key in by_kind.items() if is_place(key)] == ["after"]
    assert [kind for kind, key in by_kind.items() if is_said(key)] == ["turn", "session"]


def test_a_call_is_the_same_whatever_a_client_does_to_its_id():
    assert call_key("toolu_A1-b2") == call_key("TOOLU.a1:b2_") == "call:toolu_a1_b2"
    assert call_key("a1") != call_key("a2")


def test_a_carrier_is_not_in_its_key():
    assert carrier_key("secret") == carrier_key("secret") != carrier_key("other")
    assert "secret" not in carrier_key("secret")


@pytest.mark.parametrize(
    ("block", "carriers"),
    [
        (ThinkingBlock("Hm.", signature="a", encrypted="b", redacted="c"), ("a", "b", "c")),
        (ThinkingBlock("Hm."), ()),
        (ThinkingBlock("", signature="", encrypted="e"), ("e",)),
        (TextBlock("t", signature="s"), ("s",)),
        (TextBlock("t"), ()),
        (ToolCallBlock("i", "n", signature="s"), ("s",)),
        (ToolCallBlock("i", "n"), ()),
        (ToolCallBlock("i", "n", wire=Wire("openai-chat", {"index": 1})), ()),
        (OpaqueBlock({"type": "compaction", "encrypted_content": "e", "signature": "s"}), "se"),
        (OpaqueBlock({"type": "compaction", "encrypted_content": "", "signature": 3}), ()),
        (OpaqueBlock({"type": "web_search", "encrypted_content": "e"}), ()),
        (ToolResultBlock("i", "r"), ()),
        (MediaBlock("image/png", "d"), ()),
    ],
)
def test_carriers_are_what_only_the_origin_reads(block, carriers):
    assert carriers_of(block) == tuple(carriers)


def test_carriers_may_be_in_what_only_one_api_understands():
    """As OpenRouter keeps the signature of a call."""
    extra = {"google": {"thought_signature": "g"}}
    wire = Wire("openai-chat", {"extra_content": extra})
    assert carriers_of(ToolCallBlock("i", "n", signature="s", wire=wire)) == ("s", "g")
    assert carriers_of(ToolCallBlock("i", "n", wire=wire)) == ("g",)
    assert carriers_of(TextBlock("t", signature="s", wire=Wire("openai-chat", {}))) == ("s",)


# The same answer.


def test_texts_are_the_same_joined_or_block_by_block():
    whole = assistant(TextBlock(" one\r\ntwo "))
    assert same_text(whole, assistant(TextBlock("one\n"), TextBlock("two")))
    assert same_text(assistant(TextBlock("a "), TextBlock(" b")), assistant(*map(TextBlock, "ab")))
    blank = assistant(TextBlock("a "), ThinkingBlock("t"), TextBlock(" "), TextBlock(" b"))
    assert same_text(blank, assistant(*map(TextBlock, "ab")))
    assert not same_text(assistant(TextBlock("a b")), assistant(TextBlock("ab")))
    assert not same_text(assistant(TextBlock("a")), assistant(TextBlock("b")))


def test_calls_are_the_same_however_their_arguments_are_written():
    one = ToolCallBlock("x", "read", {"a": 1, "b": 2})
    assert same_calls(assistant(one), assistant(ToolCallBlock("y", "read", {"b": 2, "a": 1}, "{}")))
    for other in (
        ToolCallBlock("x", "write", {"a": 1, "b": 2}),
        ToolCallBlock("x", "read", {"a": 1}),
    ):
        assert not same_calls(assistant(one), assistant(other))
        assert not same_calls(assistant(one, other), assistant(other, one))
    assert not same_calls(assistant(one), assistant(one, one))
    assert not same_calls(assistant(one), assistant())


def test_thoughts_are_the_same_however_they_are_divided():
    one = assistant(ThinkingBlock("I look.\n\nThen"), TextBlock("t"), ThinkingBlock(" I think."))
    assert same_thoughts(one, assistant(ThinkingBlock("I look. Then I think.")))
    assert not same_thoughts(one, assistant(ThinkingBlock("I look.")))
    assert not same_thoughts(one, assistant(TextBlock("I look. Then I think.")))


def test_a_thought_is_found_with_its_answer_alone():
    def keys(thought: str, *blocks):
        return [*thought_keys(assistant(ThinkingBlock(thought), *blocks))]

    (key,) = keys("Hm. So.", TextBlock("Yes."))
    assert keys("Hm.\nSo.", TextBlock("Yes. ")) == [key]
    assert keys("Hm. So.", TextBlock("No.")) != [key]
    assert keys("Hm.", TextBlock("Yes.")) != [key]
    assert keys("Hm. So.", ToolCallBlock("i", "read")) != [key]
    assert keys("a|b", TextBlock("c")) != keys("a", TextBlock("b|c"))
    assert keys(" ", TextBlock("Yes.")) == []
    assert [*thought_keys(assistant(TextBlock("Yes.")))] == []
    assert keys("\ud800", TextBlock("\ud800"))  # which no encoding has


# What was said.


def test_an_answer_is_found_by_its_turn():
    turn = [user("q"), CALL, RESULT, DONE]
    assert found(turn, [user("p"), DONE, *turn]) == {"after", "turn"}
    assert found([user("q"), DONE], [user(" q\r\n"), assistant(TextBlock("Do ne.\n"))]) == {"turn"}
    assert found([user("a\r\nb"), DONE], [user("a\nb"), DONE]) == {"turn"}
    assert not found([user("q"), DONE], [user("p"), DONE])
    assert not found([user("q"), DONE], [user("q"), assistant(TextBlock("No."))])
    assert not found([user("q"), DONE], [user("q"), CALL])
    assert not found([user("a"), DONE], [user("a"), DONE, user("b"), DONE])
    assert not found([user("q"), CALL], [user("q"), CALL, RESULT, CALL]) - {"call"}


def test_calls_are_the_content_of_an_answer_too():
    def turn(name: str, **given: object) -> list[Message]:
        return [user("q"), assistant(ToolCallBlock("", name, given))]

    assert found(turn("read", a=1, b=2), turn("read", b=2, a=1)) == {"call", "turn"}
    assert found(turn("read", a=1), turn("write", a=1)) == {"call"}
    assert found(turn("read", a=1), turn("read", a=2)) == {"call"}
    assert found(turn("read"), [user("q"), assistant(TextBlock("read"))]) == set()


def test_a_turn_has_a_hash_of_its_own():
    one, other = past_of([user("a"), DONE, user("q")]), past_of([user("q")])
    assert one.turn() == other.turn() != past_of([user("p")]).turn()


def test_a_summary_may_stand_before_the_turn():
    assert found([user("q"), DONE], [user("So far: nothing."), user("q"), DONE]) == {"turn"}
    assert found([user("q"), DONE], [user("old"), CALL, RESULT, user("q"), DONE]) == {"turn"}


def test_tool_results_are_part_of_the_turn():
    other = Message(role="tool", blocks=(ToolResultBlock(ID, "eggs"),))
    assert found([user("q"), CALL, RESULT, CALL], [user("q"), CALL, other, CALL]) == {"call"}
    assert found([user("q"), CALL, RESULT, CALL], [user("q"), CALL, RESULT, CALL]) > {"turn"}


def test_pieces_of_a_message_do_not_run_into_each_other():
    one = Message(role="user", blocks=(TextBlock("1:a"), TextBlock("b")))
    for other in ("1:ab", "1:a1:b", "a1:b"):
        assert not found([one, DONE], [user(other), DONE])
    assert found([one, DONE], [one, DONE])


def test_pictures_are_part_of_the_turn():
    def asked(**picture: str) -> Message:
        return Message(role="user", blocks=(MediaBlock("image/png", **picture), TextBlock("q")))

    assert found([asked(data="aa"), DONE], [asked(data="aa"), DONE])
    assert not found([asked(data="aa"), DONE], [asked(data="bb"), DONE])
    assert not found([asked(url="x"), DONE], [asked(url="y"), DONE])
    assert found([asked(), DONE], [asked(), DONE])


def test_system_messages_in_between_are_not_part_of_it():
    reminder = Message(role="system", blocks=(TextBlock("It is Monday."),))
    assert found([user("q"), DONE], [user("q"), reminder, DONE]) == {"turn"}


def test_system_prompt_and_session_tell_conversations_apart():
    talk = [user("q"), DONE]
    assert found(talk, talk, ANN, ANN) == {"turn", "session"}
    assert found(talk, talk, ANN, Identity("Be long.", "ann")) == {"session"}
    other = [user("q"), assistant(TextBlock("No."))]
    assert not found(talk, other, ANN, Identity("Be long.", "ann"))
    assert not found(talk, talk, ANN, Identity("Be brief.", "bob"))
    assert not found(talk, talk, ANN, Identity("Be brief."))
    assert not found(talk, talk, Identity("Be brief."), NOBODY)
    assert not found(talk, talk, Identity("a", "b"), Identity("b", "a"))


def test_an_answer_to_nothing_has_a_key_too():
    assert found([DONE], [DONE]) == {"turn"}


def test_what_no_encoding_has_is_no_error():
    odd = "\ud800"
    result = Message(role="tool", blocks=(ToolResultBlock(ID, odd),))
    assert found([user(odd), DONE], [user(odd), DONE])
    assert found([user("q"), CALL, result, DONE], [user("q"), CALL, result, DONE])


# The place after a call.


def test_an_answer_is_found_though_a_reminder_in_the_question_moved():
    stored = [user("The date is Monday."), user("What is to buy?"), CALL, RESULT, DONE]
    assert found(stored, [user("Buy what?"), CALL, RESULT, DONE]) == {"after"}
    assert found(stored, [user("q"), CALL, RESULT, user("Be quick."), DONE]) == {"after"}
    renamed = assistant(ToolCallBlock(ID.upper().replace("_", "-"), "read", {"path": "b"}))
    assert found(stored, [user("q"), renamed, RESULT, DONE]) == {"after"}


def test_an_answer_after_another_call_is_not_found():
    other = assistant(ToolCallBlock("toolu_ffffffffffffffff0", "read", {"path": "a"}))
    assert not found([user("q"), CALL, RESULT, DONE], [user("p"), other, RESULT, DONE])
    two = assistant(*other.tool_calls, *CALL.tool_calls)  # the last one counts
    assert found([user("q"), CALL, RESULT, DONE], [user("p"), two, RESULT, DONE]) == {"after"}


def test_two_answers_to_the_same_results_have_places_of_their_own():
    other = assistant(TextBlock("Done, I think."))
    assert not found([user("q"), CALL, RESULT, DONE], [user("p"), CALL, RESULT, other])


def test_only_what_directly_follows_the_results_is_found_by_its_place():
    once = [user("q"), CALL, RESULT, DONE]
    assert not found(once, [user("p"), CALL, RESULT, DONE, user("again"), DONE])
    assert not found(once, [user("p"), CALL, RESULT, DONE, RESULT, DONE])
    assert not found(once, [user("p"), CALL, DONE])
    assert not found(once, [user("p"), CALL, RESULT, CALL, DONE])
    assert not found([user("q"), CALL, user("a"), DONE], [user("q"), CALL, user("b"), DONE])
    assert not found([user("q"), RESULT, DONE], [user("p"), RESULT, DONE])


def test_a_call_is_found_by_its_own_id_not_by_its_place():
    second = assistant(ToolCallBlock("toolu_ffffffffffffffff0", "read", {"path": "a"}))
    assert found([user("q"), CALL, RESULT, second], [user("p"), CALL, RESULT, second]) == {"call"}


@given(st.lists(st.sampled_from([user("q"), CALL, RESULT, DONE]), max_size=8))
@tried(1)
def test_a_conversation_that_comes_back_unchanged_is_found_by_every_key(messages):
    stored = [*messages, DONE]
    assert {*past_of(messages).keys(DONE)} <= {*keys_of(stored, SHUT).of_each[-1].own}


# Who asks.

REQUESTS: dict[Dialect, dict[str, object]] = {
    "openai-chat": {"messages": [{"role": "user", "content": "q"}]},
    "anthropic": {"max_tokens": 9, "messages": [{"role": "user", "content": "q"}]},
    "openai-responses": {"input": "q"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
}


def who(dialect: Dialect, session: str = "", **more: object) -> Identity:
    body = json.dumps({"model": "m", **REQUESTS[dialect], **more}).encode()
    return identify(decode_request(dialect, body, "/v1beta/models/m:generateContent"), session)


@pytest.mark.parametrize("dialect", REQUESTS)
@pytest.mark.parametrize(
    "name",
    [
        "user",
        "prompt_cache_key",
        "safety_identifier",
        "user_id",
        "session_id",
        "conversation_id",
        "thread_id",
        "chat_id",
    ],
)
def test_a_name_counts_in_a_request_and_in_its_metadata(dialect, name):
    nobody = who(dialect)
    assert nobody == NOBODY
    inside = {"metadata": {name: "ann"}}
    for given_name, other in (({name: "ann"}, {name: "bob"}), (inside, {"metadata": {name: "b"}})):
        ann = who(dialect, **given_name)
        assert ann != nobody
        assert ann == who(dialect, **given_name)
        assert ann != who(dialect, **other)
        assert ann != who(dialect, "session", **given_name) != who(dialect, "session", **other)
    assert who(dialect, **{name: ""}) == nobody


def test_a_name_may_be_a_number_and_nothing_else():
    assert who("openai-chat", session_id=7) != who("openai-chat", session_id=8)
    assert who("openai-chat", session_id={"a": 1}) == NOBODY
    assert who("openai-chat", metadata="ann") == NOBODY


def test_names_of_two_kinds_are_two_names():
    assert who("openai-chat", user="ann", session_id="b") != who("openai-chat", user="ann")
    assert who("openai-chat", user="a") != who("openai-chat", session_id="a")


@pytest.mark.parametrize(
    ("header", "counts"),
    [
        ("x-session-id", True),
        ("x-claude-code-session-id", True),
        ("session_id", True),
        ("thread-id", True),
        ("conversation_id", True),
        ("x-sessionid", True),
        ("x-openwebui-chat-id", True),
        ("x-openwebui-user-id", True),
        ("x-session-affinity", False),
        ("x-request-id", False),
        ("obsession-id", False),
        ("x-session-id-of", False),
    ],
)
def test_headers_that_name_a_session(header, counts):
    one = session_in({header: "a", "host": "h"})
    assert bool(one) == counts
    assert one == session_in({header: "a", "host": "other"})
    assert (one != session_in({header: "b"})) == counts
    assert (who("gemini", one) != NOBODY) == counts


PROMPTS: list[tuple[Dialect, dict[str, object]]] = [
    ("openai-chat", {"messages": [{"role": "system", "content": "X"}]}),
    (
        "openai-chat",
        {"messages": [{"role": "system", "content": "A"}, {"role": "developer", "content": "X"}]},
    ),
    ("anthropic", {"system": "X"}),
    ("anthropic", {"system": [{"type": "text", "text": "X", "cache_control": {"type": "e"}}]}),
    (
        "anthropic",
        {
            "system": [
                {"type": "text", "text": "x-anthropic-billing-header: cch=1;"},
                {"type": "text", "text": "A"},
                {"type": "text", "text": "X", "cache_control": {"type": "ephemeral"}},
            ]
        },
    ),
    ("openai-responses", {"instructions": "X"}),
    (
        "openai-responses",
        {"instructions": "A", "input": [{"role": "developer", "content": "X"}]},
    ),
    ("gemini", {"systemInstruction": {"parts": [{"text": "A"}, {"text": "X"}]}}),
]


@pytest.mark.parametrize(("dialect", "prompt"), PROMPTS)
def test_every_part_of_a_system_prompt_counts(dialect, prompt):
    def with_prompt(text: str) -> Identity:
        more = json.loads(json.dumps(prompt).replace("X", text))
        for place in ("messages", "input"):
            if place in more:
                more[place].append({"role": "user", "content": "q"})
        return who(dialect, **more)

    one = with_prompt("You are One.")
    assert "You are One." in one.system
    assert one.session == ""
    assert one == with_prompt(r"You are One.\r\n")
    assert one != with_prompt("You are Two.")


def test_what_is_said_to_the_model_later_is_not_its_system_prompt():
    said = [{"role": "user", "content": "q"}, {"role": "system", "content": "It is Monday."}]
    assert who("openai-chat", messages=said) == NOBODY


def test_the_line_that_differs_in_every_request_does_not_count():
    lines = [f"x-anthropic-billing-header: cch={n};\nYou are One." for n in range(2)]
    assert who("anthropic", system=lines[0]) == who("anthropic", system=lines[1])
    assert who("anthropic", system=lines[0]).system == "You are One."

    def blocks(line: str) -> list[dict[str, object]]:
        cached = {"type": "text", "text": line, "cache_control": {"type": "ephemeral"}}
        return [cached, {"type": "text", "text": "You are One."}]

    assert who("anthropic", system=blocks(lines[0][:31])).system == "You are One."


def test_a_request_without_messages_is_nobodys():
    from mull.neutral.asked import Asked

    assert identify(Asked(()), "") == NOBODY
