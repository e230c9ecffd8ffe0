"""What a dialect's writer makes of an answer is read again as the same answer.

Every fixture and every recording is read, written in its own dialect and read again, whole, byte
by byte and cut anywhere. What differs, and why:

| dialect   | difference                                    | reason                          |
|-----------|-----------------------------------------------|---------------------------------|
| all       | a failure's code is a word of the dialect     | clients look at it              |
| all       | what broke off has failed                     | it must not look finished       |
| all       | an end without a word is the usual one        | no wire has a word for it       |
| all       | what cannot be used is left out               | clients would send it back      |
| all       | counts that are unknown are 0, or not there   | clients add them up             |
| anthropic | a thought without a signature has an empty one | the API promises one           |
| chat      | all thoughts have the field of the first      | a second one would be a copy    |
| chat      | thoughts inside the content have a field      | few clients look for them there |
| chat      | a thought in its details alone has one too    | the same                        |
| chat      | a document tells thoughts, text, calls        | it has no other order           |
| responses | an item keeps the id that it began with       | clients go by it                |
| responses | an empty seal that came late is none          | it says nothing                 |
| responses | a document holds an item as it was finished   | where that is not as streamed   |
| gemini    | calls without an id get one                   | results are matched by it       |
| gemini    | a call that broke off is left out             | calls come whole here           |
| bedrock   | an answer has neither an id nor a model       | HTTP's headers and path do      |
| bedrock   | redacted thinking that is not base64 goes     | clients would not read it       |
"""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answers import (
    CALL_SIGNED,
    DIALECTS,
    FIXTURES,
    PAIRS,
    REDACTED,
    SEALED,
    THOUGHT_SIGNED,
    answers,
    assembled,
    carriers,
    counts,
    ending,
    essence,
    feedings,
    ids,
    is_base64,
    read,
    target_of,
    written,
)
from conversations import wired
from effort import tried
from mull.dialects.registry import codec
from mull.dialects.serving import answer_writer, write_answer, write_failure
from mull.dialects.writer import About
from mull.neutral.assemble import assemble, tell
from mull.neutral.blocks import (
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Wire,
    wire_of,
)
from mull.neutral.events import (
    Failed,
    Finished,
    OpaqueReceived,
    Reclassified,
    Started,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from mull.neutral.messages import Message, assistant
from mull.neutral.usage import Usage
from recordings import need_recordings, recorded_answers
from rows import for_each

RECORDED = recorded_answers()
replace = msgspec.structs.replace


def same(dialect: str, message: Message) -> Message:
    """The message without what differs by the table above."""
    blocks = []
    for block in message.blocks:
        if isinstance(block, OpaqueBlock) and block.broken:
            continue
        if isinstance(block, ThinkingBlock) and dialect == "anthropic":
            block = replace(block, signature=block.signature or None)
        elif isinstance(block, ThinkingBlock) and dialect == "openai-chat":
            field = block.source_field or ""
            inside = field.startswith("think_tags") or field in ("content_list", "extra_content")
            if inside or field == "reasoning_details":
                block = replace(block, source_field="reasoning_content")
        elif isinstance(block, ThinkingBlock) and dialect == "openai-responses":
            block = replace(block, encrypted=block.encrypted or None, id=None)
        elif isinstance(block, TextBlock | ToolCallBlock) and dialect == "openai-responses":
            held = {name: value for name, value in wired(block).items() if name != "id"}
            block = replace(block, wire=wire_of(dialect, held))
        elif isinstance(block, ToolCallBlock) and dialect == "gemini":
            block = replace(block, wire=Wire(dialect, {"id": block.id, **wired(block)}))
        blocks.append(block)
    status = "error" if message.status == "interrupted" else message.status
    reason = message.stop_reason or (None if status == "error" else "stop")
    usage = message.usage and Usage(*(n or None for n in msgspec.structs.astuple(message.usage)))
    usage = None if usage == Usage() else usage
    return replace(message, blocks=tuple(blocks), status=status, stop_reason=reason, usage=usage)


def check_own(dialect: str, name: str, body: bytes, few: bool = False) -> None:
    to = target_of(dialect, name.partition(".")[0])
    events = read(body, to)
    message = assemble(events)
    if dialect == "gemini" and isinstance(events[-1], Failed):
        message = replace(
            message, blocks=tuple(b for b in message.blocks if not isinstance(b, ToolCallBlock))
        )
    again = written(dialect, events)
    for cuts in feedings(again)[: 1 if few else 3]:
        found = assembled(again, to, cuts)
        assert same(dialect, found) == same(dialect, message)
    if isinstance(events[-1], Failed):
        failed = read(again, to)[-1]
        assert isinstance(failed, Failed)
        assert failed.text == events[-1].text


@pytest.mark.sweep
@pytest.mark.parametrize(("dialect", "name"), FIXTURES)
def test_a_fixture_is_written_as_it_was_read(dialect, name):
    check_own(dialect, name, FIXTURES[dialect, name])


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
def test_recordings_are_written_as_they_were_read(dialect):
    need_recordings()
    for name, body in RECORDED[dialect].items():
        check_own(dialect, name, body, few=len(body) > 20_000)


def check_document(dialect: str, name: str, body: bytes) -> None:
    to = target_of(dialect, name.partition(".")[0])
    events = read(body, to)
    message = assemble(events)
    if isinstance(events[-1], Failed) or any(getattr(e, "code", "") == "mismatch" for e in events):
        return
    found = assembled(write_answer(message, dialect).body, to)
    if dialect == "openai-chat":
        assert found.text == message.text
        assert ids(found) == ids(message)
        assert thoughts(found) == thoughts(message)
    else:
        assert same(dialect, found) == same(dialect, message)


def thoughts(message: Message) -> str:
    return "".join(block.thought for block in message.thinking).replace("\n\n", "")


@pytest.mark.sweep
@pytest.mark.parametrize(("dialect", "name"), FIXTURES)
def test_a_fixture_is_one_document_too(dialect, name):
    check_document(dialect, name, FIXTURES[dialect, name])


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
def test_recordings_are_documents_too(dialect):
    need_recordings()
    for name, body in RECORDED[dialect].items():
        check_document(dialect, name, body)


# The square: read in one dialect, written in another.


def check_square(one: str, other: str, message: Message, events: list) -> None:
    found = assembled(written(other, events, source=one), target_of(other))
    if isinstance(events[-1], Failed):
        assert thoughts(found) == thoughts(message)
        assert found.text == message.text
        return
    assert essence(found, other) == essence(message, other)
    assert ids(found) == ids(message)
    assert ending(found) == ending(message)
    assert counts(found, one, other) == counts(message, one, other)
    if one != other:
        assert_carried(one, other, found, message)


def assert_carried(one: str, other: str, found: Message, message: Message) -> None:
    told, kept = carriers(message), carriers(found)
    if other in THOUGHT_SIGNED:
        assert kept["signed"] == told["signed"]
    if one == "openai-responses" and other in SEALED:
        assert kept["sealed"] == told["sealed"]
    if one == "anthropic" and other in REDACTED:
        takes = is_base64 if other == "bedrock-converse" else bool
        assert kept["sealed"] == [*filter(takes, told["sealed"])]
    if one == "gemini" and other in CALL_SIGNED:
        assert kept["called"] == told["called"]


@pytest.mark.parametrize("pair", PAIRS, ids="-to-".join)
@tried(0.5)
@given(message=answers, cuts=st.lists(st.integers(1, 8), max_size=3))
def test_an_answer_crosses_any_pair_of_dialects(pair, message, cuts):
    one, other = pair
    first = written(one, cut_deltas(tell(message), cuts), source=one)
    events = read(first, target_of(one))
    begun = assemble(events)
    assert essence(begun) == essence(message)
    check_square(one, other, begun, events)


def cut_deltas(events, cuts):
    """The same events with their texts in pieces."""
    field = {TextDelta: "text", ThinkingDelta: "text", ToolCallDelta: "arguments"}
    out = []
    for event in events:
        name = field.get(type(event))
        text = getattr(event, name) if name else ""
        for size in cuts if len(text) > 1 else ():
            head, text = text[:size], text[size:]
            out.append(replace(event, **{name: head}))
            event = replace(event, **({"id": None, "name": None} if name == "arguments" else {}))
        out.append(replace(event, **{name: text}) if name else event)
    return out


@pytest.mark.sweep
@pytest.mark.parametrize(("dialect", "name"), FIXTURES)
def test_a_fixture_crosses_to_every_dialect(dialect, name):
    for_each(DIALECTS, lambda other: cross(dialect, name, FIXTURES[dialect, name], other))


@pytest.mark.sweep
@pytest.mark.parametrize("pair", PAIRS, ids="-to-".join)
def test_recordings_cross_to_every_dialect(pair):
    need_recordings()
    for name, body in RECORDED[pair[0]].items():
        cross(pair[0], name, body, pair[1])


def cross(dialect: str, name: str, body: bytes, other: str) -> None:
    events = read(body, target_of(dialect, name.partition(".")[0]))
    check_square(dialect, other, assemble(events), events)


@pytest.mark.parametrize("pair", PAIRS, ids="-to-".join)
@tried(0.5)
@given(message=answers)
def test_a_document_of_another_dialect_says_the_same(pair, message):
    one, other = pair
    begun = assembled(written(one, [*tell(message)], source=one), target_of(one))
    document = write_answer(begun, other, About(source=one)).body
    found = assembled(document, target_of(other))
    assert found.text == begun.text
    assert ids(found) == ids(begun)
    assert thoughts(found) == thoughts(begun)
    if other != "openai-chat":
        assert essence(found) == essence(begun)
    assert ending(found) == ending(begun)
    assert counts(found, one, other) == counts(begun, one, other)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_failure_has_the_shape_and_status_of_its_dialect(dialect):
    for source, code in (
        ("anthropic", "rate_limit_error"),
        ("gemini", "RESOURCE_EXHAUSTED"),
        ("openai-chat", "rate_limit_exceeded"),
        ("openai-responses", "rate_limit_exceeded"),
        ("bedrock-converse", "ThrottlingException"),
    ):
        status, body = write_failure(Failed("slow down", code), dialect, source=source)
        assert status == 429
        (failed,) = [e for e in read(body, target_of(dialect)) if isinstance(e, Failed)]
        assert failed.text == "slow down"
        assert codec(dialect).answer.STATUSES.status(failed.code) == 429


@pytest.mark.parametrize(
    ("dialect", "status", "error"),
    [
        ("anthropic", 400, {"type": "invalid_request_error", "message": "no"}),
        ("anthropic", 418, {"type": "invalid_request_error", "message": "no"}),
        ("anthropic", 502, {"type": "api_error", "message": "no"}),
        ("gemini", 404, {"code": 404, "message": "no", "status": "NOT_FOUND"}),
        (
            "openai-chat",
            401,
            {
                "message": "no",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_api_key",
            },
        ),
        (
            "openai-responses",
            503,
            {
                "message": "no",
                "type": "server_error",
                "param": None,
                "code": "server_is_overloaded",
            },
        ),
    ],
)
def test_an_error_document_is_the_vendors(dialect, status, error):
    told, body = write_failure(Failed("no"), dialect, status)
    assert told == status
    assert msgspec.json.decode(body)["error"] == error


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_without_an_end_does_not_look_finished(dialect):
    events = [Started("a", "m"), ThinkingDelta("so", 0), TextDelta("half", 1)]
    found = read(written(dialect, events), target_of(dialect))
    assert isinstance(found[-1], Failed)
    message = assemble(found)
    assert (thoughts(message), message.text) == ("so", "half")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_document_of_half_an_answer_does_not_pass_in_silence(dialect):
    body, notes = write_answer(assistant(TextBlock("half"), status="interrupted"), dialect)
    failed = isinstance(read(body, target_of(dialect))[-1], Failed)
    assert failed or [note.warning for note in notes] == [True]
    assert failed == (dialect == "openai-responses")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_was_counted_before_a_failure_is_told(dialect):
    events = [Started("a", "m"), UsageReported(Usage(input=5, output=1)), Failed("no", "502")]
    found = assemble(read(written(dialect, events), target_of(dialect)))
    assert found.status == "error"
    assert found.usage is not None
    assert (found.usage.input, found.usage.output) == (5, 1)


@pytest.mark.parametrize("fields", [("content_list", "reasoning"), ("reasoning", "thinking")])
def test_thoughts_of_two_fields_go_out_in_one(fields):
    """Readers take a second field for a copy of the first."""
    one, other = (ThinkingBlock(f"so {field}", field) for field in fields)
    message = assistant(one, TextBlock("and"), other, TextBlock("yes"), stop_reason="stop")
    to = target_of("openai-chat")
    streamed = assembled(written("openai-chat", [*tell(message)]), to)
    assert [block.thought for block in streamed.thinking] == [one.thought, other.thought]
    whole = assembled(write_answer(message, "openai-chat").body, to)
    assert thoughts(whole) == one.thought + other.thought


def test_a_thought_has_its_field_although_its_signature_came_first():
    events = [ThinkingCarrier(0, signature="c2ln"), ThinkingDelta("so", 0, "reasoning_text")]
    body = written("openai-chat", [*events, TextDelta("yes", 1), Finished("stop")])
    (thought,) = assembled(body, target_of("openai-chat")).thinking
    assert (thought.source_field, thought.signature) == ("reasoning_text", "c2ln")


@pytest.mark.parametrize("name", [n for d, n in FIXTURES if d == "gemini" and n.endswith("sse")])
def test_gemini_streams_a_list_where_it_is_asked_for_one(name):
    to = target_of("gemini")
    events = read(FIXTURES["gemini", name], to)
    told = written("gemini", events, as_list=True)
    assert isinstance(json.loads(told), list)
    assert assembled(told, to).blocks == assembled(written("gemini", events), to).blocks


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_written_after_the_end(dialect):
    for end in (Finished("stop"), Failed("no")):
        writer = answer_writer(dialect)
        for event in (Started("a", "m"), TextDelta("one", 0), TextDelta("two", 0), end):
            writer.feed(event)
        assert writer.feed(TextDelta("late", 0)) + writer.feed(Finished("stop")) == b""
        assert writer.close() == b""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_delta_is_written_at_once(dialect):
    writer = answer_writer(dialect)
    writer.feed(Started("a", "m"))
    writer.feed(TextDelta("first", 0))
    for piece in ("one", "two", "three"):
        assert piece.encode() in writer.feed(TextDelta(piece, 0))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_signs_of_life_may_stand_anywhere(dialect):
    writer = answer_writer(dialect)
    events = [Started("a", "m"), TextDelta("one ", 0), TextDelta("two", 0), Finished("stop")]
    body = b"".join(writer.ALIVE + writer.feed(event) for event in events)
    assert assembled(body, target_of(dialect)).text == "one two"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_calls_whose_pieces_alternate_stay_apart(dialect):
    events = [
        Started("a", "m"),
        ToolCallDelta(0, "c0", "read", '{"p":'),
        ToolCallDelta(1, "c1", "read", '{"p":'),
        ToolCallDelta(0, None, None, "1}"),
        ToolCallDelta(1, None, None, "2}"),
        Finished("tool_calls"),
    ]
    message = assembled(written(dialect, events, source="openai-chat"), target_of(dialect))
    assert [(call.id, call.input) for call in message.tool_calls] == [
        ("c0", {"p": 1}),
        ("c1", {"p": 2}),
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_waits_for_its_name(dialect):
    events = [ToolCallDelta(0, None, None, '{"p":'), ToolCallDelta(0, "c0", "read", "1}")]
    body = written(dialect, [*events, Finished("tool_calls")], source="openai-chat")
    (call,) = assembled(body, target_of(dialect)).tool_calls
    assert (call.id, call.name, call.input) == ("c0", "read", {"p": 1})


@pytest.mark.parametrize("pieces", [[""], ["", ""], ["{}"], ["{", "}"]])
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses"])
def test_a_call_without_arguments_has_an_empty_object_where_clients_parse_a_text(dialect, pieces):
    events = [ToolCallDelta(0, "c0", "read", pieces[0])]
    events += [ToolCallDelta(0, None, None, piece) for piece in pieces[1:]]
    body = written(dialect, [*events, Finished("tool_calls")], source="anthropic")
    chunks = [json.loads(line[6:]) for line in body.decode().splitlines() if "data: {" in line]
    if dialect == "openai-chat":
        deltas = [
            call for one in chunks for call in one["choices"][0]["delta"].get("tool_calls", ())
        ]
        told = "".join(call["function"]["arguments"] for call in deltas)
    else:
        told = chunks[-1]["response"]["output"][0]["arguments"]
        name = "response.function_call_arguments.delta"
        assert "".join(one["delta"] for one in chunks if one["type"] == name) == told
    assert told == "{}"


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "openai-chat"])
def test_a_signature_after_the_answer_began_is_not_lost(dialect):
    events = [
        Started("a", "m"),
        ThinkingDelta("so", 0),
        TextDelta("yes", 1),
        ThinkingCarrier(0, signature="c2ln"),
        Finished("stop"),
    ]
    message = assembled(written(dialect, events, source="openai-chat"), target_of(dialect))
    assert carriers(message)["signed"] == ["c2ln"]
    assert message.text == "yes"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_has_no_place_is_told(dialect):
    writer = answer_writer(dialect, About(source="gemini" if dialect != "gemini" else "anthropic"))
    for event in (OpaqueReceived({"type": "x"}, 0), TextDelta("a", 1), Reclassified(1)):
        writer.feed(event)
    assert len(writer.notes) == 2


@pytest.mark.parametrize("dialect", sorted({*DIALECTS} - {"bedrock-converse"}))
def test_id_and_model_are_what_the_caller_says(dialect):
    about = About(id="mine", model="theirs")
    events = [Started("a", "m"), TextDelta("yes", 0), Finished("stop")]
    writer = answer_writer(dialect, about)
    body = b"".join(map(writer.feed, events))
    assert next(e for e in read(body, target_of(dialect)) if isinstance(e, Started)) == Started(
        "mine", "theirs"
    )


@given(answers)
def test_a_message_told_is_the_message(message):
    told = assemble(tell(message))
    assert told.blocks == message.blocks
    assert (told.stop_reason, told.usage) == (message.stop_reason, message.usage)


@pytest.mark.parametrize("whole", [False, True])
def test_a_gemini_call_has_the_id_that_it_was_given_last(whole):
    """A gateway replaces ids; what came with the call holds the provider's own."""
    call = ToolCallBlock("call_mine", "look", {}, "{}", wire=wire_of("gemini", {"id": "call00001"}))
    answer = assistant(call, origin=target_of("gemini").origin)
    if whole:
        body = write_answer(answer, "gemini", About(source="gemini")).body
    else:
        body = written("gemini", tell(answer), source="gemini")
    found = assembled(body, target_of("gemini"))
    assert [call.id for call in found.tool_calls] == ["call_mine"]
