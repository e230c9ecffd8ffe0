"""Conversations of other programs and of ours come back with their reasoning, in order."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings

from conversations import listed, plain_turn, snapshot, target, thought, tool_turn
from mull.dialects.registry import encode_request
from mull.history.log import Entry, Log
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Message, assistant, messages_to_json, user
from mull.neutral.request import RequestOptions, Tool
from mull.policy.prepare import prepare
from mull.transcripts.formats import to_json, to_jsonl
from mull.transcripts.reading import read_transcript
from mull.transcripts.transcript import Transcript
from recordings import exchanges, need_recordings
from transcript_samples import SAMPLE, transcripts

CHAT = target("none", compat={"requires_reasoning": "all"})
CLAUDE = target(
    "anthropic-budget",
    dialect="anthropic",
    options=[{"type": "budget_tokens", "min": 1024, "max": 64_000}],
)
RESPONSES = target("none", dialect="openai-responses")
GEMINI = target("none", dialect="gemini")
CONVERSE = target(
    "anthropic-budget",
    dialect="bedrock-converse",
    options=[{"type": "budget_tokens", "min": 1024, "max": 64_000}],
)
LOOK = Tool("look", "Looks.", {"type": "object"})
PNG = MediaBlock("image/png", "iVBORw0KGgo=")


def _encoded(records, to, system="Be brief.", **more) -> bytes:
    prepared = prepare(
        Log(records=records),
        snapshot(includeInContext=True),
        to,
        RequestOptions(system=system, tools=(LOOK,), **more),
    )
    return encode_request(prepared.request, to).body


def _said(transcript: Transcript) -> list[Message]:
    return [record.message for record in transcript.records]


def _blocks(transcript: Transcript):
    return [(message.role, *message.blocks) for message in _said(transcript)]


def _read(value, **more) -> Transcript:
    return read_transcript(json.dumps(value).encode(), **more)


def _carried(dialect: str, name: str, n: int) -> tuple[ThinkingBlock, ...]:
    """Every kind of thought that an endpoint of the dialect gives and takes back."""
    words = f"because {name} {n}"
    match dialect:
        case "openai-chat":
            details = [{"type": "reasoning.text", "text": words, "signature": "S", "index": 0}]
            opaque = [{"type": "reasoning.encrypted", "data": "ENC"}]
            return (
                ThinkingBlock(words, "reasoning_content"),
                ThinkingBlock(words, "reasoning"),
                ThinkingBlock(words, "thinking"),
                ThinkingBlock(
                    words,
                    "reasoning_details",
                    wire=listed(details),
                ),
                ThinkingBlock("", "reasoning_details", wire=listed(opaque)),
                ThinkingBlock(words, "reasoning_text", signature="OPAQUE"),
                ThinkingBlock(words, "content_list"),
                ThinkingBlock(words, "think_tags"),
            )
        case "anthropic":
            return (
                ThinkingBlock(words, "thinking", signature="SIG"),
                ThinkingBlock("", "thinking", signature="SIG"),
                ThinkingBlock("", "redacted_thinking", redacted="DATA"),
            )
        case "bedrock-converse":
            return (
                ThinkingBlock(words, "reasoningContent", signature="SIG"),
                ThinkingBlock("", "reasoningContent", signature="SIG"),
                ThinkingBlock("", "redactedContent", redacted="DATA"),
            )
        case "openai-responses":
            return (
                ThinkingBlock(words, "reasoning", encrypted="ENC", id=f"rs_{n}", kind="summary"),
                ThinkingBlock("", "reasoning", encrypted="ENC", id=f"rs_{n}", kind="summary"),
                ThinkingBlock(words, "reasoning", id=f"rs_{n}"),
            )
        case _:
            return (
                ThinkingBlock(words, "thought", kind="summary"),
                ThinkingBlock(words, "thought", signature="SIG", kind="summary"),
            )


def _turn(dialect: str, name: str, first: ThinkingBlock, last: ThinkingBlock) -> list[Message]:
    wire = Wire(dialect, {"id": f"fc_{name}"}) if dialect == "openai-responses" else None
    signature = "SIG" if dialect == "gemini" else None
    calls = [
        ToolCallBlock(f"call_{name}_{n}", "look", {"at": n}, None, signature, wire) for n in (1, 2)
    ]
    results = tuple(ToolResultBlock(call.id, f"saw {call.id}") for call in calls)
    return [
        user(f"look at {name}"),
        assistant(first, *calls, stop_reason="tool_calls"),
        Message(role="tool", blocks=results),
        assistant(last, TextBlock(f"It is {name}."), stop_reason="stop"),
    ]


def _cases():
    for to in (CHAT, CLAUDE, RESPONSES, GEMINI, CONVERSE):
        kinds = len(_carried(to.dialect, "x", 0))
        for one, other in itertools.product(range(kinds), repeat=2):
            yield pytest.param(to, one, other, id=f"{to.dialect}-{one}-{other}")


@pytest.mark.parametrize(("to", "one", "other"), [*_cases()])
def test_what_an_encoder_writes_comes_back_and_is_written_again(to, one, other):
    first = _carried(to.dialect, "a", 1)[one]
    last = _carried(to.dialect, "a", 2)[other]
    talk = [*_turn(to.dialect, "a", first, last), user("and now?")]
    body = _encoded(tuple(map(Entry, talk)), to)
    read = read_transcript(body)
    assert read.system == "Be brief."
    assert read.title == "look at a"
    assert _encoded(read.records, to) == body
    assert [m.role for m in _said(read)] == [m.role for m in talk]
    if to.dialect in ("openai-chat", "anthropic", "bedrock-converse"):
        assert [m.blocks for m in _said(read)] == [m.blocks for m in talk]


@pytest.mark.parametrize("to", [CHAT, CLAUDE], ids=["openai-chat", "anthropic"])
def test_the_shared_conversations_come_back_as_the_same_blocks(to):
    signed = [
        Message(
            role=m.role,
            status=m.status,
            blocks=tuple(
                ThinkingBlock(b.thought, "thinking", signature="SIG")
                if isinstance(b, ThinkingBlock) and to is CLAUDE
                else b
                for b in m.blocks
            ),
        )
        for m in [*tool_turn("a", 3), *plain_turn("b"), *plain_turn("c", thinks=False), user("d")]
    ]
    read = read_transcript(_encoded(tuple(map(Entry, signed)), to))
    assert [m.blocks for m in _said(read)] == [m.blocks for m in signed]


def test_media_come_back():
    pdf = MediaBlock("application/pdf", "JVBERi0=", name="a.pdf")
    spoken = Message(role="user", blocks=(TextBlock("see"), PNG, pdf))
    for to in (CHAT, CLAUDE, RESPONSES):
        body = _encoded((Entry(spoken),), to)
        assert _said(read_transcript(body)) == [spoken], to.dialect
    read = _said(read_transcript(_encoded((Entry(spoken),), GEMINI)))
    assert read[0].blocks == (TextBlock("see"), PNG, MediaBlock("application/pdf", "JVBERi0="))
    far = MediaBlock("image/png", url="https://a.b/c.png?d")
    for to in (CHAT, CLAUDE, RESPONSES, GEMINI):
        body = _encoded((Entry(Message(role="user", blocks=(far,))),), to)
        assert _said(read_transcript(body))[0].blocks == (far,), to.dialect


def test_an_image_in_a_result_comes_back():
    result = ToolResultBlock("a-0", "shot", is_error=True, media=(PNG,))
    talk = [*tool_turn("a")[:2], Message(role="tool", blocks=(result,))]
    body = _encoded(tuple(map(Entry, talk)), CLAUDE)
    assert _said(read_transcript(body))[-1] == talk[-1]


@pytest.mark.parametrize(
    "field", ["reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details"]
)
def test_every_reasoning_field_of_a_chat_list_is_read_before_the_answer(field):
    value = [{"type": "reasoning.text", "text": "hm"}] if field == "reasoning_details" else "hm"
    read = _read(
        [{"role": "user", "content": "q"}, {"role": "assistant", field: value, "content": "a"}]
    )
    (_, _), (role, reasoning, answer) = _blocks(read)
    assert (role, answer) == ("assistant", TextBlock("a"))
    assert (reasoning.thought, reasoning.source_field) == ("hm", field)


def test_three_states_of_reasoning_stay_three():
    for given_, blocks in (
        ({}, ()),
        ({"reasoning_content": ""}, (ThinkingBlock("", "reasoning_content"),)),
        ({"reasoning_content": "hm"}, (thought("hm"),)),
    ):
        read = _read(
            [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", **given_}]
        )
        assert _said(read)[1].blocks == (*blocks, TextBlock("a"))


def test_a_chat_list_with_everything_in_it():
    read = _read(
        {
            "model": "gpt-x",
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Rules."}]},
                {"role": "user", "content": ["a", {"type": "video", "video": 1}]},
                {
                    "role": "assistant",
                    "content": None,
                    "refusal": None,
                    "tool_calls": [
                        {
                            "id": "c1",
                            "type": "function",
                            "function": {"name": "f", "arguments": '{ "a": 1}'},
                            "extra_content": {"google": {"thought_signature": "S"}},
                        }
                    ],
                },
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
                {"role": "system", "content": "Later."},
                {"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "new"}]},
            ],
        }
    )
    assert (read.system, read.model) == ("Rules.", "gpt-x")
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    assert _blocks(read) == [
        ("user", TextBlock("a"), OpaqueBlock({"type": "video", "video": 1}, "openai-chat")),
        (
            "assistant",
            ToolCallBlock("c1", "f", {"a": 1}, '{ "a": 1}', wire=Wire("openai-chat", extra)),
        ),
        ("tool", ToolResultBlock("c1", "r")),
        ("system", TextBlock("Later.")),
        ("assistant", TextBlock("x"), OpaqueBlock({"type": "new"}, "openai-chat")),
    ]


def test_calls_and_results_without_ids_find_each_other():
    read = _read(
        [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "r"},
        ]
    )
    (call,) = _said(read)[1].tool_calls
    assert _said(read)[2].blocks == (ToolResultBlock(call.id, "r"),)


def test_an_anthropic_list_with_everything_in_it():
    read = _read(
        {
            "system": [{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "q"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "S1"},
                        {"type": "redacted_thinking", "data": "D"},
                        {"type": "text", "text": "I look."},
                        {"type": "server_tool_use", "id": "s1", "name": "web", "input": {}},
                        {"type": "thinking", "thinking": "", "signature": "S2"},
                        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "t1",
                            "content": [{"type": "text", "text": "r"}, {"type": "odd"}],
                            "is_error": True,
                            "cache_control": {"type": "ephemeral"},
                        },
                        {"type": "text", "text": "go on"},
                        {"type": "search_result", "title": "x"},
                    ],
                },
            ],
        }
    )
    assert read.system == "Rules."
    assert _blocks(read) == [
        ("user", TextBlock("q")),
        (
            "assistant",
            ThinkingBlock("hm", "thinking", signature="S1"),
            ThinkingBlock("", "redacted_thinking", redacted="D"),
            TextBlock("I look."),
            OpaqueBlock(
                {"type": "server_tool_use", "id": "s1", "name": "web", "input": {}}, "anthropic"
            ),
            ThinkingBlock("", "thinking", signature="S2"),
            ToolCallBlock("t1", "f", {"a": 1}),
        ),
        ("tool", ToolResultBlock("t1", 'r\n{"type":"odd"}', is_error=True)),
        (
            "user",
            TextBlock("go on"),
            OpaqueBlock({"type": "search_result", "title": "x"}, "anthropic"),
        ),
    ]
    assert [m.origin for m in _said(read)] == [None] * 4


def test_who_wrote_it_can_be_said_and_is_said_of_answers_only():
    listed = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    for to in (CHAT, CLAUDE, GEMINI, RESPONSES):
        read = _read(listed, written_by=to)
        assert [m.origin for m in _said(read)] == [None, to.origin]
        assert read.model == "acme/thinker"


def test_carriers_of_another_dialect_than_the_writer_speaks_are_refused():
    signed = {"type": "thinking", "thinking": "hm", "signature": "S"}
    said = [{"role": "user", "content": "q"}, {"role": "assistant", "content": [signed]}]
    with pytest.raises(ConfigError) as refused:
        _read(said, written_by=CHAT)
    assert str(refused.value) == (
        "messages[1] contains data that only anthropic endpoints understand, but acme/thinker"
        " speaks openai-chat: give the model that wrote it, or none"
    )
    said[1]["content"] = [{"type": "thinking", "thinking": "hm"}]
    assert _said(_read(said, written_by=CHAT))[1].origin == CHAT.origin


def test_a_chat_list_may_have_its_system_prompt_beside_it():
    said = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "reasoning": "r"},
    ]
    read = _read({"system": "Rules.", "messages": said})
    assert (read.system, _said(read)[1].thinking[0].source_field) == ("Rules.", "reasoning")


def test_a_writer_is_stamped_on_answers_of_our_own_that_have_none():
    talk = (Entry(user("q")), Entry(assistant(TextBlock("a"))), *SAMPLE.records[:2])
    read = read_transcript(to_json(Transcript(records=talk)), written_by=CHAT)
    kimi = SAMPLE.records[1].message.origin
    assert [r.message.origin for r in read.records] == [None, CHAT.origin, None, kimi]


@settings(max_examples=25)
@given(transcripts)
def test_our_own_formats_are_known_and_come_back_whole(transcript):
    assert read_transcript(to_json(transcript)) == transcript
    assert read_transcript(b"\xef\xbb\xbf\n" + to_jsonl(transcript)) == transcript


def test_a_conversation_as_mull_wire_reads_and_prints_it():
    talk = json.loads(messages_to_json(tool_turn("a")))
    talk[1] |= {"warnings": [], "error": None}
    read = _read({"system": "Be brief.", "messages": talk, "tools": []})
    assert read.system == "Be brief."
    assert _said(read) == tool_turn("a")


def test_messages_a_line():
    lines = b'{"role":"user","content":"q"}\n\n{"role":"assistant","content":"a","reasoning":"r"}\n'
    assert [m.role for m in _said(read_transcript(lines))] == ["user", "assistant"]
    assert _said(read_transcript(lines))[1].thinking[0].thought == "r"


def test_bare_lists_of_items_and_contents_are_known():
    items = [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "r"},
        {"role": "assistant", "content": "done"},
    ]
    read = _blocks(_read(items))
    assert [blocks[0] for blocks in read] == ["user", "assistant", "tool", "assistant"]
    assert read[1][1].encrypted == "E"
    assert read[2][1] == ToolResultBlock("c", "r")
    contents = [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"x": 1}}}]},
    ]
    _, (_, call), (_, result) = _blocks(_read(contents))
    assert (result.call_id, result.output) == (call.id, '{"x":1}')
    assert _blocks(_read({"input": "q"})) == [("user", TextBlock("q"))]


def test_every_recorded_request_is_read_with_its_reasoning():
    need_recordings()
    read = thoughts = 0
    for conversation in exchanges():
        for exchange in conversation:
            if not isinstance(exchange.request, dict):
                continue
            body = json.dumps(exchange.request)
            if not exchange.request.keys() & {"messages", "contents", "input"}:
                continue
            transcript = read_transcript(body.encode())
            read += 1
            thoughts += sum(len(message.thinking) for message in _said(transcript))
    assert read > 100
    assert thoughts > 20


def test_what_has_no_place_in_a_session_is_told():
    system = [{"type": "text", "text": "Be kind."}, {"type": "image", "source": {"type": "file"}}]
    body = {"system": system, "messages": [{"role": "user", "content": "hi", "x_new": 1}]}
    told = []
    read_transcript(json.dumps(body).encode(), tell=told.append)
    assert told == [
        "not imported, because sessions cannot hold it: messages[0].x_new",
        "not imported, because sessions cannot hold it: 1 of the system prompt's parts",
    ]
