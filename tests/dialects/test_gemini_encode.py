"""What a request to Gemini is made of."""

import msgspec
import pytest

from conversations import as_taken, target
from gemini_wire import ABSENT, BUDGET, LEVEL, decode, request, whole
from mull.dialects.registry import encode_request
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
from mull.neutral.request import NamedTool, Tool
from mull.neutral.thinking import UNSIGNED_CALL, ThinkingPlan

ON = ThinkingPlan("on", "gemini-level", effort="high")
DEFAULT = ThinkingPlan("default", "gemini-level")
OFF = ThinkingPlan("off", "gemini-budget", budget=0, thinks=False)
READ = Tool("read", "Reads a file.", {"type": "object", "properties": {"path": {"$ref": "#/x"}}})


def body_of(asked, to=LEVEL):
    return msgspec.json.decode(encode_request(as_taken(asked, to), to).body)


def contents_of(*messages, to=LEVEL, **more):
    return body_of(request(*messages, **more), to)["contents"]


def results(*blocks):
    return Message(role="tool", blocks=blocks)


def test_the_model_and_the_method_stand_in_the_path():
    wire = encode_request(request(user("hi")), LEVEL)
    assert wire.path == "/models/gemini-level:streamGenerateContent?alt=sse"
    assert wire.headers == {"content-type": "application/json", "accept": "text/event-stream"}
    wire = encode_request(request(user("hi"), stream=False), LEVEL)
    assert wire.path == "/models/gemini-level:generateContent"
    assert wire.headers["accept"] == "application/json"
    assert msgspec.json.decode(wire.body) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    }


@pytest.mark.parametrize(
    ("model", "path", "expected"),
    [
        ("models/gemini-x", None, "/models/gemini-x:generateContent"),
        ("tunedModels/mine", None, "/tunedModels/mine:generateContent"),
        ("x", "/v9/{model}/{method}", "/v9/x/generateContent"),
        ("x", "", ""),
    ],
)
def test_other_paths(model, path, expected):
    to = target("gemini-level", dialect="gemini", model=model, compat={"path": path})
    assert encode_request(request(user("hi"), stream=False), to).path == expected


def test_system_messages_first_are_instruction_and_later_stay_in_place():
    said = [Message(role="system", blocks=(TextBlock(text),)) for text in ("one", "two")]
    body = body_of(request(said[0], user("hi"), said[1], system="be kind"))
    assert body["systemInstruction"] == {"parts": [{"text": "be kind"}, {"text": "one"}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": "hi"}, {"text": "two"}]}]


def test_a_tool_round():
    call = ToolCallBlock(
        "fc-1", "read", {"path": "a"}, signature="S", wire=Wire("gemini", {"id": "fc-1"})
    )
    got = contents_of(
        user("look"),
        assistant(ThinkingBlock("hm", "thought"), call),
        results(ToolResultBlock("fc-1", "text of a")),
        assistant(TextBlock("done", "T")),
        user("thanks"),
    )
    assert got == [
        {"role": "user", "parts": [{"text": "look"}]},
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {
                    "functionCall": {"id": "fc-1", "name": "read", "args": {"path": "a"}},
                    "thoughtSignature": "S",
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "name": "read",
                        "response": {"result": "text of a"},
                        "id": "fc-1",
                    }
                }
            ],
        },
        {"role": "model", "parts": [{"text": "done", "thoughtSignature": "T"}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]


def test_an_id_that_the_wire_did_not_give_is_not_sent():
    call = ToolCallBlock("call_12_1", "f", {}, signature="S")
    _, model, answer = contents_of(
        user("u"), assistant(call), results(ToolResultBlock("call_12_1", "no", is_error=True))
    )
    assert model["parts"][0]["functionCall"] == {"name": "f", "args": {}}
    assert answer["parts"] == [{"functionResponse": {"name": "f", "response": {"error": "no"}}}]


def test_results_in_several_messages_are_one_content():
    calls = [ToolCallBlock(f"c{at}", f"f{at}", {"at": at}) for at in (1, 2)]
    got = contents_of(
        user("u"),
        assistant(*calls),
        results(ToolResultBlock("c1", "1")),
        Message(role="user", blocks=(ToolResultBlock("c2", "2"),)),
        user("and now"),
    )
    assert [content["role"] for content in got] == ["user", "model", "user"]
    assert [next(iter(part)) for part in got[2]["parts"]] == [
        "functionResponse",
        "functionResponse",
        "text",
    ]
    assert [p["functionResponse"]["name"] for p in got[2]["parts"][:2]] == ["f1", "f2"]


def test_calls_without_any_signature_get_googles_placeholder():
    calls = [ToolCallBlock(f"c{at}", "f", {"at": at}) for at in (1, 2)]
    wire = encode_request(request(user("u"), assistant(*calls)), LEVEL)
    parts = msgspec.json.decode(wire.body)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [UNSIGNED_CALL, None]
    assert any(UNSIGNED_CALL in note.text for note in wire.notes)
    wire = encode_request(request(user("u"), assistant(*calls)), BUDGET)
    assert b"thoughtSignature" not in wire.body


@pytest.mark.parametrize(
    ("given", "sent"), [(("S", None), ("S", None)), ((None, "S"), (UNSIGNED_CALL, "S"))]
)
def test_the_first_call_of_a_step_is_signed(given, sent):
    calls = [ToolCallBlock(f"c{at}", "f", signature=one) for at, one in enumerate(given)]
    parts = contents_of(user("u"), assistant(*calls))[1]["parts"]
    assert tuple(part.get("thoughtSignature") for part in parts) == sent


def test_the_placeholder_stays_when_the_turn_has_passed():
    turn = [user("u"), assistant(ToolCallBlock("c", "f")), results(ToolResultBlock("c", "r"))]
    later = [assistant(TextBlock("a")), user("next")]
    assert contents_of(*turn, *later)[:3] == contents_of(*turn)


def test_thoughts_go_back_as_policy_left_them():
    blocks = [
        ThinkingBlock("plain", "thought"),
        ThinkingBlock("signed", "thought", signature="S"),
        ThinkingBlock("", "thought", signature="T"),
        ThinkingBlock(" \n", "thought"),
        ThinkingBlock("", encrypted="elsewhere"),
        TextBlock("a"),
    ]
    signed = [
        {"text": "signed", "thought": True, "thoughtSignature": "S"},
        {"text": "", "thought": True, "thoughtSignature": "T"},
    ]
    plain = {"text": "plain", "thought": True}
    asked = (user("u"), assistant(*blocks), user("v"))
    for plan in (ABSENT, DEFAULT, ON):
        parts = contents_of(*asked, thinking=plan)[1]["parts"]
        assert parts == [plain, *signed, {"text": "a"}]
    parts = contents_of(*asked, thinking=OFF, to=BUDGET)[1]["parts"]
    assert parts == [*signed, {"text": "a"}]


def test_unknown_keys_of_parts_go_back_where_they_were():
    parts = [
        {"partMetadata": {"k": 2}, "text": "", "thought": True},
        {"partMetadata": {"k": 1}, "text": "a"},
        {"partMetadata": {"k": 3}, "functionCall": {"mood": "calm", "name": "f", "args": {}}},
    ]
    answer = decode(whole(*parts)).message
    assert contents_of(user("u"), answer, to=BUDGET)[1]["parts"] == parts
    foreign = ThinkingBlock(
        "t", "reasoning_details", wire=Wire("openai-chat", {"reasoning_details": [{}]})
    )
    assert contents_of(assistant(foreign))[0]["parts"] == [{"text": "t", "thought": True}]


def test_empty_text_goes_only_with_a_signature():
    blocks = [
        TextBlock(""),
        TextBlock("", "S"),
        TextBlock("a", wire=Wire("gemini", {"partMetadata": {"k": 1}})),
    ]
    assert contents_of(user(""), user("u"), assistant(*blocks))[1]["parts"] == [
        {"text": "", "thoughtSignature": "S"},
        {"partMetadata": {"k": 1}, "text": "a"},
    ]
    assert contents_of(assistant(TextBlock(""))) == []


def test_media():
    blocks = (
        MediaBlock("image/png", data="iVBO"),
        MediaBlock("video/mp4", url="gs://bucket/v"),
        MediaBlock("image/gif", url="data:image/webp;base64,R0lG"),
        MediaBlock("image/png"),
    )
    wire = encode_request(request(Message(role="user", blocks=blocks)), LEVEL)
    assert msgspec.json.decode(wire.body)["contents"][0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/v"}},
        {"inlineData": {"mimeType": "image/webp", "data": "R0lG"}},
    ]
    assert [note.text for note in wire.notes] == ["1 media left out: it has neither data nor a URL"]


@pytest.mark.parametrize(("to", "inside"), [(LEVEL, True), (BUDGET, False)])
def test_media_of_a_result(to, inside):
    picture = MediaBlock("image/png", data="iVBO")
    result = results(ToolResultBlock("c", "see", media=(picture,)))
    parts = contents_of(user("u"), assistant(ToolCallBlock("c", "f")), result, to=to)[2]["parts"]
    data = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
    assert parts[0]["functionResponse"].get("parts") == ([data] if inside else None)
    assert parts[1:] == ([] if inside else [data])


def test_calls_that_another_api_made():
    odd = ToolCallBlock("c", "f", {}, arguments='{"a": ')
    wire = encode_request(request(user("u"), assistant(odd)), BUDGET)
    part = msgspec.json.decode(wire.body)["contents"][1]["parts"][0]
    assert part == {"functionCall": {"name": "f", "args": {}}}
    spaced = ToolCallBlock("c", "f", {"a": 1}, arguments='{"a": 1}')
    wire = encode_request(request(user("u"), assistant(spaced), user("v")), BUDGET)
    assert wire.notes == ()


def test_a_result_of_an_unknown_call_has_at_least_its_id():
    (content,) = contents_of(results(ToolResultBlock("c9", "r")))
    assert content["parts"][0]["functionResponse"]["name"] == "c9"


def test_opaque_parts_go_back_as_they_came_and_are_not_changed():
    data = {"functionCall": {"args": {}}}
    block = OpaqueBlock(data)
    got = contents_of(user("u"), assistant(block, OpaqueBlock({}), ToolCallBlock("c", "f")))
    assert got[1]["parts"][0] == {"functionCall": {"args": {}}} == data
    assert got[1]["parts"][1]["thoughtSignature"] == UNSIGNED_CALL


def test_the_models_own_words_last_are_told_of():
    wire = encode_request(request(user("u"), assistant(TextBlock("a"))), LEVEL)
    assert [note.warning for note in wire.notes] == [True]


def test_tools():
    body = body_of(request(user("u"), tools=(READ, Tool("now")), tool_choice="auto"))
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {
                    "name": "read",
                    "description": "Reads a file.",
                    "parametersJsonSchema": READ.parameters,
                },
                {"name": "now", "description": ""},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (NamedTool("read"), {"mode": "ANY", "allowedFunctionNames": ["read"]}),
    ],
)
def test_tool_choice(choice, config):
    body = body_of(request(user("u"), tools=(READ,), tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}


def test_tool_choice_that_cannot_be_sent():
    wire = encode_request(request(user("u"), tool_choice="required"), LEVEL)
    assert (b"toolConfig" in wire.body, len(wire.notes)) == (False, 1)
    assert encode_request(request(user("u"), tool_choice="none"), LEVEL).notes == ()


PLANS = [
    (ABSENT, None),
    (DEFAULT, {"includeThoughts": True}),
    (ON, {"thinkingLevel": "HIGH", "includeThoughts": True}),
    (
        ThinkingPlan("on", "gemini-budget", budget=2048),
        {"thinkingBudget": 2048, "includeThoughts": True},
    ),
    (OFF, {"thinkingBudget": 0}),
]


@pytest.mark.parametrize(("plan", "config"), PLANS)
def test_thinking_takes_a_level_or_a_budget_never_both(plan, config):
    body = body_of(request(user("u"), thinking=plan, max_tokens=9, temperature=0.5))
    expected = {"maxOutputTokens": 9, "temperature": 0.5}
    if config is not None:
        expected["thinkingConfig"] = config
        assert not {"thinkingLevel", "thinkingBudget"} <= config.keys()
    assert body["generationConfig"] == expected


def test_compat_merges_last():
    extra = {
        "generationConfig": {"topK": 3, "temperature": 1},
        "toolConfig": {"includeServerSideToolInvocations": True},
    }
    to = target(
        "gemini-level",
        dialect="gemini",
        compat={"extra_body": extra, "keep_thinking": {"keep": {"thoughts": True}}},
    )
    asked = request(
        user("u"),
        temperature=0,
        tools=(READ,),
        tool_choice="none",
        thinking=ON,
        keep_thinking=True,
    )
    body = body_of(asked, to)
    assert body["generationConfig"] == {
        "temperature": 1,
        "thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True},
        "topK": 3,
    }
    assert body["toolConfig"] == {
        "functionCallingConfig": {"mode": "NONE"},
        "includeServerSideToolInvocations": True,
    }
    assert body["keep"] == {"thoughts": True}
    for other in (
        msgspec.structs.replace(asked, keep_thinking=False),
        msgspec.structs.replace(asked, thinking=OFF),
    ):
        assert "keep" not in body_of(other, to)
