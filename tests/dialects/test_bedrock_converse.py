"""Converse: what its streams and documents mean, and the requests that go there."""

from __future__ import annotations

import json

import msgspec
import pytest

from answers import FIXTURES, assembled, feedings, read, target_of, written
from conversations import snapshot, target
from mull.catalog.resolve import resolve
from mull.dialects.eventstream import message as binary
from mull.dialects.eventstream import stamp
from mull.dialects.registry import encode_request
from mull.dialects.serving import write_answer
from mull.history.log import Log
from mull.neutral.assemble import assemble, tell
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Wire,
)
from mull.neutral.events import Failed, Finished, Warned
from mull.neutral.messages import Message, assistant, user
from mull.neutral.request import NamedTool, RequestOptions, Tool
from mull.neutral.usage import Usage
from mull.policy.prepare import prepare

HERE = target_of("bedrock-converse")
SONNET = resolve("amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0")
NOVA = resolve("amazon-bedrock/amazon.nova-2-lite-v1:0")
LS = Tool("ls", "Lists.", {"properties": {"dir": {"type": "string"}}})


def fixture(name):
    return FIXTURES["bedrock-converse", name]


def stream(*events):
    return b"".join(binary(stamp(name), json.dumps(value).encode()) for name, value in events)


def delta(index, **value):
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": value}


@pytest.mark.parametrize("name", sorted(n for d, n in FIXTURES if d == "bedrock-converse"))
def test_any_cut_gives_the_same_message(name):
    first, *others = [assembled(fixture(name), HERE, cuts) for cuts in feedings(fixture(name))]
    assert all(other == first for other in others)


def test_thinking_text_and_calls_in_order():
    found = assembled(fixture("thinking_then_tools.eventstream"), HERE)
    assert found.blocks == (
        ThinkingBlock(
            "The user wants two files.", "reasoningContent", signature="EqoBCkgIARABGAIiQL8="
        ),
        TextBlock("I will look."),
        ToolCallBlock("tooluse_aB-1", "read_file", {"path": "a.py"}),
        ToolCallBlock("tooluse_aB-2", "list_files"),
    )
    assert found.usage == Usage(1440, 96, None, 1536, 1000, 20)
    assert found.stop_reason == "tool_calls"
    assert assembled(fixture("thinking_then_tools.json"), HERE) == found


def test_redacted_data_in_pieces_is_one():
    first, second, _ = assembled(fixture("redacted.eventstream"), HERE).blocks
    assert first == ThinkingBlock(source_field="redactedContent", redacted="RW13S0FoZ0I=")
    assert second.redacted == "AAECAwQFBg=="


def test_a_signature_without_a_text_is_a_thought_too():
    thought, _ = assembled(fixture("signature_alone.eventstream"), HERE).blocks
    assert thought == ThinkingBlock("", "reasoningContent", signature="EqoBCkgIAbCd")


def test_half_a_signature_is_none():
    events = read(fixture("cut_in_signature.eventstream"), HERE)
    (thought,) = assemble(events).blocks
    assert (thought.thought, thought.signature) == ("Half a thought", None)
    assert events[-1].status == "interrupted"


def test_text_and_redacted_data_in_one_block_are_two_thoughts():
    pieces = [
        delta(0, reasoningContent={"text": "Hm"}),
        delta(0, reasoningContent={"redactedContent": "AAEC"}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    thought, redacted = assembled(stream(*pieces), HERE).blocks
    assert (thought.thought, thought.redacted, redacted.redacted) == ("Hm", None, "AAEC")


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        (
            "exception_midway.eventstream",
            "The model stopped unexpectedly.",
            "ModelStreamErrorException",
        ),
        (
            "throttled_at_once.eventstream",
            "Too many requests, please wait before trying again.",
            "ThrottlingException",
        ),
    ],
)
def test_an_exception_ends_the_answer_in_the_services_words(name, text, code):
    end = read(fixture(name), HERE)[-1]
    assert isinstance(end, Failed)
    assert (end.text, end.code, end.status) == (text, code, "error")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"message": "no"}, None),
        ({"Message": "no"}, None),
        (
            {"__type": "com.amazon.coral#ThrottlingException", "message": "no"},
            "ThrottlingException",
        ),
        ({"code": "ValidationException:http://x/", "message": "no"}, "ValidationException"),
        ({"error": {"message": "no", "type": "proxy_error"}}, "proxy_error"),
    ],
)
def test_an_error_document_is_a_failure(body, code):
    end = read(msgspec.json.encode(body), HERE)[-1]
    assert isinstance(end, Failed)
    assert (end.text, end.code) == ("no", code)


def test_what_the_provider_runs_itself_is_not_ours_to_run():
    found = assembled(fixture("server_tool.eventstream"), HERE)
    call, result, text = found.blocks
    assert call == OpaqueBlock(
        {
            "toolUse": {
                "toolUseId": "srv_1",
                "name": "nova_grounding",
                "type": "server_tool_use",
                "input": {"q": "rain"},
            }
        }
    )
    assert result.data["toolResult"]["content"] == [{"text": "It "}, {"text": "rains."}]
    assert (text, found.stop_reason) == (TextBlock("It rains."), "stop")
    assert sent([user("?"), replace_origin(found), user("and?")])["messages"][1]["content"] == [
        call.data,
        result.data,
        {"text": "It rains."},
    ]


def test_unknown_blocks_are_kept_and_unknown_events_pass():
    block, text = assembled(fixture("unknown_blocks.eventstream"), HERE).blocks
    assert block == OpaqueBlock({"hologram": {"format": "x", "data": "abcd"}})
    assert text == TextBlock("Hi")


def test_citations_go_back_with_their_text():
    found = assembled(fixture("cites.eventstream"), HERE)
    content = sent([user("?"), replace_origin(found), user("and?")])["messages"][1]["content"]
    assert content[0]["citationsContent"]["content"] == [{"text": "Water boils at 100 °C"}]
    assert content[0]["citationsContent"]["citations"][0]["title"] == "Physics"
    assert content[1] == {"text": "."}


@pytest.mark.parametrize(
    ("word", "neutral"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("malformed_tool_use", "malformed_tool_use"),
    ],
)
def test_stop_reasons(word, neutral):
    body = stream(delta(0, text="a"), ("messageStop", {"stopReason": word}))
    assert read(body, HERE)[-1] == Finished(neutral)


def test_odd_streams_do_no_harm():
    body = stream(
        ("contentBlockDelta", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {}}),
        ("contentBlockStop", {"contentBlockIndex": 7}),
        delta(0, toolUse={"input": "{}"}),
        delta(1, text="a"),
        delta(1, reasoningContent={"text": "strange"}),
        ("metadata", {}),
        ("messageStop", {}),
        ("messageStop", {"stopReason": "end_turn"}),
    )
    events = read(body, HERE)
    assert assemble(events).text == "a"
    assert [e.code for e in events if isinstance(e, Warned)] == ["unexpected_delta"] * 2
    assert events[-1] == Finished("stop")


def test_an_index_that_starts_again_is_another_block():
    start = {"toolUse": {"toolUseId": "t", "name": "ls"}}
    body = stream(
        ("contentBlockStart", {"contentBlockIndex": 0, "start": start}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": start}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "tool_use"}),
    )
    assert [call.id for call in assembled(body, HERE).tool_calls] == ["t", "t_1"]


# Requests.


def replace_origin(message, to=HERE):
    return msgspec.structs.replace(message, origin=to.origin)


def wire_of(history, to=HERE, options=None, **settings):
    wish = snapshot(**settings)
    request = prepare(Log(history), wish, to, options or RequestOptions()).request
    return encode_request(request, to)


def sent(history, to=HERE, options=None, **settings):
    return json.loads(wire_of(history, to, options, **settings).body)


def test_the_model_and_the_stream_stand_in_the_path():
    path = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    assert wire_of([user("hi")], SONNET).path == f"{path}-stream"
    assert wire_of([user("hi")], SONNET, RequestOptions(stream=False)).path == path


def test_a_budget_goes_into_the_makers_fields():
    body = sent([user("hi")], SONNET, RequestOptions(tools=(LS,)), maxTokens=4096)
    assert body["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "anthropic_beta": ["interleaved-thinking-2025-05-14"],
    }
    assert body["inferenceConfig"]["maxTokens"] > 4096
    assert "thinking" not in body


@pytest.mark.parametrize("target", [NOVA, resolve("amazon-bedrock/us.amazon.nova-2-lite-v1:0")])
def test_nova_has_words_of_its_own_and_thinks_by_default_in_every_region(target):
    assert sent([user("hi")], target)["additionalModelRequestFields"] == {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}
    }
    assert sent([user("hi")], target, effort="low")["additionalModelRequestFields"] == {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}
    }
    assert sent([user("hi")], target, effort="none")["additionalModelRequestFields"] == {
        "reasoningConfig": {"type": "disabled"}
    }


def test_a_tool_round_goes_back_signed():
    answer = replace_origin(assembled(fixture("thinking_then_tools.eventstream"), SONNET), SONNET)
    results = Message(
        role="tool",
        blocks=(
            ToolResultBlock("tooluse_aB-1", "one", media=(MediaBlock("image/png", "iVBO"),)),
            ToolResultBlock("tooluse_aB-2", "", True),
        ),
    )
    body = sent([user("go"), answer, results], SONNET, RequestOptions(tools=(LS,)))
    _, said, given = body["messages"]
    assert said["content"][0] == {
        "reasoningContent": {
            "reasoningText": {
                "text": "The user wants two files.",
                "signature": "EqoBCkgIARABGAIiQL8=",
            }
        }
    }
    assert [next(iter(block)) for block in said["content"]] == [
        "reasoningContent",
        "text",
        "toolUse",
        "toolUse",
    ]
    assert given["content"] == [
        {
            "toolResult": {
                "toolUseId": "tooluse_aB-1",
                "content": [
                    {"text": "one"},
                    {"image": {"format": "png", "source": {"bytes": "iVBO"}}},
                ],
            }
        },
        {"toolResult": {"toolUseId": "tooluse_aB-2", "content": [], "status": "error"}},
        {"cachePoint": {"type": "default"}},
    ]


def test_calls_in_a_history_without_tools_are_declared():
    answer = assistant(ToolCallBlock("c", "ls", {"dir": "."}))
    result = Message(role="tool", blocks=(ToolResultBlock("c", "a.py"),))
    wire = wire_of([user("go"), answer, result])
    assert json.loads(wire.body)["toolConfig"] == {
        "tools": [{"toolSpec": {"name": "ls", "inputSchema": {"json": {"type": "object"}}}}]
    }
    assert "declared by name only" in wire.notes[0].text


@pytest.mark.parametrize(
    ("choice", "written"),
    [
        ("auto", {"auto": {}}),
        ("required", {"any": {}}),
        (NamedTool("ls"), {"tool": {"name": "ls"}}),
        ("none", None),
    ],
)
def test_tool_choices(choice, written):
    wire = wire_of([user("go")], HERE, RequestOptions(tools=(LS,), tool_choice=choice))
    assert json.loads(wire.body)["toolConfig"].get("toolChoice") == written
    warned = [note.text for note in wire.notes if note.warning]
    assert bool(warned) == (written is None)


def test_ids_have_few_characters_and_are_short():
    long = "call/" + "x" * 80
    answer = assistant(ToolCallBlock(long, "ls"), ToolCallBlock("y" * 65, "ls"))
    results = [ToolResultBlock(long, "1"), ToolResultBlock("y" * 65, "2")]
    messages = sent([user("go"), answer, Message(role="tool", blocks=tuple(results))])["messages"]
    ids = [block["toolUse"]["toolUseId"] for block in messages[1]["content"]]
    assert ids == [block["toolResult"]["toolUseId"] for block in messages[2]["content"]]
    assert len(set(ids)) == 2
    assert all(len(one) <= 64 and one.replace("_", "").isalnum() for one in ids)


def test_attachments():
    blocks = (
        TextBlock("look"),
        MediaBlock("application/pdf", "JVBE", name="my: file.pdf"),
        MediaBlock("application/pdf", "JVBE", name="my: file.pdf"),
        MediaBlock("image/png", url="s3://b/a.png"),
        MediaBlock("image/png", url="https://example.org/a.png"),
        MediaBlock("video/mp4", "AAAA"),
    )
    everything = target(dialect="bedrock-converse", input=("text", "image", "pdf", "video"))
    wire = wire_of([Message(role="user", blocks=blocks)], everything)
    assert json.loads(wire.body)["messages"][0]["content"][1:] == [
        {"document": {"format": "pdf", "name": "my- file-pdf", "source": {"bytes": "JVBE"}}},
        {"document": {"format": "pdf", "name": "my- file-pdf (2)", "source": {"bytes": "JVBE"}}},
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/a.png"}}}},
        {"video": {"format": "mp4", "source": {"bytes": "AAAA"}}},
    ]
    assert any("1 attachment not sent" in note.text for note in wire.notes)


def test_what_a_thought_says_beside_its_text_goes_back():
    thought = {"reasoningText": {"text": "so", "signature": "c2ln", "novel": 1}}
    content = [{"reasoningContent": thought}, {"text": "yes"}]
    whole = {"output": {"message": {"role": "assistant", "content": content}}}
    message = assembled(msgspec.json.encode({**whole, "stopReason": "end_turn"}), HERE)
    assert message.thinking[0].wire == Wire("bedrock-converse", {"novel": 1})
    stream = written("bedrock-converse", [*tell(message)])
    for body in (stream, write_answer(message, HERE.dialect).body):
        assert assembled(body, HERE).blocks == message.blocks
