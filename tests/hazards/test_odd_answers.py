"""What broken servers and proxies send, as a user gets it: the answer, and the next request."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

import mull
from conversations import target
from mull.cli.main import main
from mull.dialects.registry import decoder
from mull.neutral.assemble import assemble
from mull.neutral.events import Failed, Warned
from mull.testing import refusal
from mull.testing.server import Reply, ScriptedServer

FIXTURES = Path(__file__).parent.parent / "fixtures"
STREAMS = {
    f"{folder}/{file.stem}": file.read_bytes()
    for folder in ("anthropic", "gemini", "openai_chat", "openai_responses")
    for file in sorted((FIXTURES / folder).glob("*.sse"))
    if file.stem != "dirty"
}
KEYS = {"GOOGLE": "GEMINI", "MOONSHOTAI": "MOONSHOT"}
BLANK_LINE = re.compile(rb"(?:\r?\n){2}")
MODELS = (
    "openai-compatible/thinker",
    "moonshotai/kimi-k2-thinking",
    "openrouter/deepseek/deepseek-r1",
    "chutes/Qwen/Qwen3-32B",
)


def read(name, body, cuts=None):
    """The message of a stream and its warnings."""
    one = decoder(target(dialect=name.partition("/")[0].replace("_", "-")))
    chunks = [body] if cuts is None else [body[at : at + cuts] for at in range(0, len(body), cuts)]
    events = [event for chunk in chunks for event in one.feed(chunk)] + one.close()
    return assemble(events), [e for e in events if isinstance(e, Warned)], events[-1]


@pytest.fixture
def ask(capsys, monkeypatch):
    """Asks a model twice and gives what was told of the first answer, and the second request."""

    def ask(model, reply, *words):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        provider = model.partition("/")[0].upper().replace("-", "_")
        monkeypatch.setenv(f"{KEYS.get(provider, provider)}_API_KEY", "key")
        with ScriptedServer([reply, reply]) as server:
            place = ["-m", model, "--base-url", server.url]
            keep = ["--set", "reasoning.includeInContext=true"]
            assert main(["ask", *place, *keep, *words, "first"]) == 0
            told = capsys.readouterr()
            assert main(["ask", "--continue", *keep, "second"]) == 0
            capsys.readouterr()
        return told.out, told.err, server.requests[1].json

    return ask


def stream(*deltas, ending="stop"):
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": ending})
    return Reply.events(*({"choices": [choice]} for choice in choices), "[DONE]")


# One thought in several fields


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "deltas",
    [
        [{"reasoning_content": " ", "reasoning": "The real thought"}],
        [{"reasoning_content": "\n"}, {"reasoning": "The real"}, {"reasoning": " thought"}],
        [{"reasoning": "The real"}, {"reasoning": " ", "thinking": " thought"}],
        [{"reasoning_content": "The real"}, {"reasoning": "The real thought"}],
        [
            {"reasoning_content": "The real thought"},
            {"reasoning": "The "},
            {"reasoning": "real thought"},
        ],
        [{"reasoning": "The ", "thinking": "The real"}, {"reasoning": "real thought"}],
    ],
)
def test_the_thought_is_told_and_sent_back_once(ask, model, deltas):
    told, _, request = ask(model, stream(*deltas, {"content": "Answer"}), "--json")
    shown = json.loads(told)
    assert (shown["text"], shown["thinking"]) == ("Answer", "The real thought")
    assert json.dumps(request["messages"][1]).count("real thought") == 1
    assert request["messages"][1]["content"] == "Answer"


@pytest.mark.parametrize("model", MODELS)
def test_a_thought_that_goes_on_in_another_field_is_whole(ask, model):
    deltas = [{"reasoning_content": "First half, "}, {"reasoning": "second half."}]
    told, _, request = ask(model, stream(*deltas, {"content": "Answer"}), "--json")
    assert json.loads(told)["thinking"] == "First half, second half."
    assert "First half, second half." in json.dumps(request["messages"][1])


# Tags


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("content", "thought"),
    [
        ("<think>a</think></think>Answer", "a"),
        ("<think>a</think>\n</think>Answer</think>", "a"),
        ("<think>a<think>b</think>c</think>Answer", "a<think>b</think>c"),
        ("<think><think>a</think></think>Answer", "<think>a</think>"),
        ("a</think></think>Answer", "a"),
        ("<thinking>a</thinking></thinking>Answer", "a"),
        ("<reasoning>a<reasoning>b</reasoning></reasoning>Answer", "a<reasoning>b</reasoning>"),
    ],
)
def test_no_tag_is_left_in_the_answer(ask, model, content, thought):
    for parts in ([content], list(content)):
        reply = stream(*({"content": part} for part in parts))
        shown = json.loads(ask(model, reply, "--json")[0])
        assert (shown["text"].strip(), shown["thinking"]) == ("Answer", thought)


@pytest.mark.parametrize(
    "content", ["<think>a<think>b</think>c</think>Answer", "<think>a</think></think>Answer"]
)
def test_no_tag_and_no_thought_is_left_in_a_pipe(ask, content):
    out, err, _ = ask(MODELS[0], stream(*({"content": part} for part in content)))
    assert (out, err) == ("Answer\n", "")


@pytest.mark.parametrize(
    "left", ["</think>", "\n</think>\n", "<think>a thought</think>", "<think></think>"]
)
def test_tags_left_behind_by_a_server_that_takes_thoughts_out(ask, left):
    reply = stream({"reasoning_content": "a thought"}, {"content": left}, {"content": "Answer"})
    shown = json.loads(ask(MODELS[0], reply, "--json")[0])
    assert (shown["text"].strip(), shown["thinking"]) == ("Answer", "a thought")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize(
    ("thought", "content", "whole"),
    [
        ("I was about to", " say it.\n</think>\n\nAnswer", "I was about to say it.\n"),
        ("Let me see.", " Yes, so it is.</think>Answer", "Let me see. Yes, so it is."),
        ("So be", " it</mm:think>\nAnswer", "So be it"),
        (f"{'so it is, ' * 9}a thou", "ght</think>Answer", f"{'so it is, ' * 9}a thought"),
    ],
)
def test_the_rest_of_a_thought_in_the_content_belongs_to_it(
    ask, model, field, thought, content, whole
):
    message = {"role": "assistant", field: thought, "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    replies = [
        stream({field: thought}, {"content": content}),
        stream({field: thought}, *({"content": part} for part in content)),
        Reply.json({"choices": [choice]}),
    ]
    for reply in replies:
        out, _, request = ask(model, reply, "--stream-json")
        events = [json.loads(line) for line in out.splitlines()]
        assert "".join(e["text"] for e in events if e["type"] == "text").strip() == "Answer"
        assert "".join(e["text"] for e in events if e["type"] == "thinking") == whole
        assert "reclassified" not in {e["type"] for e in events}
        assert "think>" not in json.dumps(request)
        if model == MODELS[0]:
            assert request["messages"][1][field] == whole


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
@pytest.mark.parametrize(
    ("thought", "rest", "tag"),
    [
        ("Let me see.", "So the answer is 4.", "</think>"),
        ("Let me see", "\n\nSo the answer is 4.\n", "</mm:think>"),
        ("让我想想。", "Wait, no.\n\nIt is 4.\n\n", "</thinking>"),
        ("Let me see.", f"It is 4. {'And so on. ' * 300}\n", "</think></think>"),
    ],
)
def test_a_rest_that_was_told_as_an_answer_is_taken_back(ask, model, field, thought, rest, tag):
    content = f"{rest}{tag}\n\nFour."
    message = {"role": "assistant", field: thought, "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    replies = [
        stream({field: thought}, *({"content": part} for part in content)),
        Reply.json({"choices": [choice]}),
    ]
    for reply in replies:
        out, _, request = ask(model, reply, "--json")
        shown = json.loads(out)
        assert (shown["text"].strip(), shown["thinking"]) == ("Four.", thought + rest)
        assert "think" not in request["messages"][1]["content"]
        assert rest not in request["messages"][1]["content"]
        if model == MODELS[0]:
            assert request["messages"][1][field] == thought + rest
    out, err, _ = ask(model, replies[0])
    assert "</" not in out
    assert "what was written first was thinking" in err


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_rest_before_a_call_is_no_answer(field):
    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
    deltas = [{field: "Let me see."}, {"content": "So I look.</think>"}, {"tool_calls": [call]}]
    with ScriptedServer([stream(*deltas)]) as server:
        answer = mull.complete([mull.user("hi")], MODELS[0], base_url=server.url)
    assert (answer.text, answer.thinking) == ("", "Let me see.So I look.")
    assert [call.name for call in answer.message.tool_calls] == ["look"]


@pytest.mark.parametrize(
    ("model", "opener", "closer"),
    [
        ("openai-compatible/thinker", "<mm:think>", "</mm:think>"),
        ("openrouter/minimax/minimax-m3", "<mm:think>", "</mm:think>"),
        ("vllm/MiniMax-M3", "<mm:think>", "</mm:think>"),
        ("lmstudio/exaone-deep-7.8b", "<thought>", "</thought>"),
        ("openai-compatible/gemini-3-pro", "<thought>", "</thought>"),
        ("llama.cpp/Seed-OSS-36B", "<seed:think>", "</seed:think>"),
        ("sglang/command-a-reasoning", "<|START_THINKING|>", "<|END_THINKING|>"),
        ("vllm/mistralai/Magistral-Small-2509", "[THINK]", "[/THINK]"),
        ("vllm/meituan-longcat/LongCat-Flash-Thinking", "<longcat_think>", "</longcat_think>"),
        ("vllm/moonshotai/Kimi-VL-A3B-Thinking-2506", "◁think▷", "◁/think▷"),
    ],
)
def test_the_tags_that_some_models_have_are_tags_everywhere(ask, model, opener, closer):
    for content in (f"{opener}a thought{closer}Answer", f"a thought{closer}Answer"):
        for parts in ([content], content):
            reply = stream(*({"content": part} for part in parts))
            shown = json.loads(ask(model, reply, "--json")[0])
            assert (shown["text"].strip(), shown["thinking"]) == ("Answer", "a thought")


CALL = '<tool_call>\n{"name": "look", "arguments": {"word": "mill"}}\n</tool_call>'


@pytest.mark.parametrize("arrived", [*range(2, len(CALL), 3), len(CALL)])
def test_a_call_of_the_embedded_model_that_its_limit_cut_off_is_no_answer(arrived):
    one = decoder(mull.resolve("local/smollm2"))
    body = b"".join(stream({"content": CALL[:arrived]}, ending="length").steps)
    events = one.feed(body) + one.close()
    message = assemble(events)
    assert (message.text, message.status) == ("", "truncated")
    assert [call.name for call in message.tool_calls] == ["look"] * ('"look"' in CALL[:arrived])


# Frames


@pytest.mark.parametrize("glue", [b"", b" ", b"\n", b"\r\n"])
@pytest.mark.parametrize("name", sorted(STREAMS))
def test_no_event_is_lost_where_a_proxy_glues_them(name, glue):
    body = STREAMS[name]
    message, warned, _ = read(name, body)
    glued = BLANK_LINE.sub(glue, body)
    again, told, _ = read(name, glued)
    assert again == message
    assert len(told) <= len(warned) + 1
    assert read(name, glued, 7)[0] == message


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_a_bad_event_takes_no_good_one_with_it(name):
    body = STREAMS[name]
    message, *_ = read(name, body)
    head, data, rest = body.partition(b"data: {")
    bad = head + data + rest[: rest.index(b"\n") // 2]
    again, told, end = read(name, bad + body[len(head) :])
    assert again.blocks == message.blocks
    assert [warning.code for warning in told].count("unreadable") == 1
    assert isinstance(end, Failed)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic/display_omitted"),
        ("openai/gpt-5", "openai_responses/both-kinds"),
        ("google/gemini-2.5-pro", "gemini/thoughts"),
        ("openai-compatible/thinker", "openai_chat/reasoning-field"),
    ],
)
def test_a_glued_stream_is_the_same_answer_with_one_warning(ask, model, name):
    def reply(body):
        return Reply(200, {"content-type": "text/event-stream"}, (body,))

    plain, nothing, request = ask(model, reply(STREAMS[name]))
    glued, warned, again = ask(model, reply(BLANK_LINE.sub(b"", STREAMS[name])))
    assert (glued, again) == (plain, request)
    assert (nothing, warned.count("were separated")) == ("", 1)


# What cannot be what it says it is

GEMINI, CLAUDE, GPT, CHAT, NOVA = ODD_MODELS = (
    "google/gemini-3-pro-preview",
    "anthropic/claude-opus-4-8",
    "openai/gpt-5",
    "openai-compatible/m",
    "amazon-bedrock/amazon.nova-pro-v1:0",
)
HISTORY = {GEMINI: "contents", GPT: "input"}
DIALECT_OF = {CLAUDE: "anthropic", CHAT: "openai-chat", NOVA: "bedrock-converse"}


def document(model, *parts):
    """An answer of these parts in one piece."""
    if model == GEMINI:
        return {"candidates": [{"content": {"parts": [*parts]}, "finishReason": "STOP"}]}
    if model == CLAUDE:
        end = {"stop_reason": "end_turn", "usage": {"output_tokens": 1}}
        return {"id": "m", "type": "message", "role": "assistant", "content": [*parts], **end}
    if model == GPT:
        return {"id": "r", "status": "completed", "output": [*parts]}
    if model == NOVA:
        message = {"role": "assistant", "content": [*parts]}
        return {"output": {"message": message}, "stopReason": "end_turn"}
    message = {"role": "assistant"}
    for part in parts:
        message |= part
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def in_pieces(model, *parts):
    """The same as a stream of text; Amazon's is none, and is tested with its dialect."""
    if model == GEMINI:
        *first, last = parts
        chunks = [{"candidates": [{"content": {"parts": [part]}}]} for part in first]
        return Reply.events(*chunks, document(model, last))
    if model == CLAUDE:
        events = [{"type": "message_start", "message": {"id": "m", "content": []}}]
        for at, part in enumerate(parts):
            events.append({"type": "content_block_start", "index": at, "content_block": part})
            events.append({"type": "content_block_stop", "index": at})
        events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
        return Reply.events(*events, {"type": "message_stop"})
    if model == GPT:
        events = []
        for at, part in enumerate(parts):
            for word in ("added", "done"):
                kind = f"response.output_item.{word}"
                events.append({"type": kind, "output_index": at, "item": part})
        return Reply.events(*events, {"type": "response.completed", "response": {"output": []}})
    return stream(*parts)


def spoken(model):
    match model:
        case "google/gemini-3-pro-preview" | "amazon-bedrock/amazon.nova-pro-v1:0":
            return {"text": "Good."}
        case "anthropic/claude-opus-4-8":
            return {"type": "text", "text": "Good."}
        case "openai/gpt-5":
            said = [{"type": "output_text", "text": "Good.", "annotations": []}]
            return {"type": "message", "id": "msg_1", "role": "assistant", "content": said}
    return {"content": "Good."}


def called(model, name, call_id="id-of-it"):
    named = {} if name is Ellipsis else {"name": name}
    match model:
        case "google/gemini-3-pro-preview":
            return {"functionCall": {**named, "args": {}, "id": call_id}}
        case "anthropic/claude-opus-4-8":
            return {"type": "tool_use", "id": call_id, **named, "input": {}}
        case "openai/gpt-5":
            item = {"type": "function_call", "id": f"fc_{name}", "call_id": call_id}
            return {**item, **named, "arguments": "{}"}
        case "amazon-bedrock/amazon.nova-pro-v1:0":
            return {"toolUse": {"toolUseId": call_id, **named, "input": {}}}
    function = {**named, "arguments": "{}"}
    return {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}


UNUSABLE = [
    *((model, called(model, name)) for model in ODD_MODELS for name in ("", None, 5, {}, Ellipsis)),
    (GEMINI, {"functionCall": "id-of-it"}),
    (GEMINI, {"text": 5, "id-of-it": 1}),
    (GEMINI, {"functionResponse": {"name": "id-of-it", "response": {}}}),
    (GEMINI, {"functionResponse": {}}),
    (CLAUDE, {"text": "id-of-it"}),
    (CLAUDE, {"type": 5, "id": "id-of-it"}),
    (CLAUDE, {"type": "text", "text": ["id-of-it"]}),
    (CLAUDE, {"type": "tool_result", "tool_use_id": "id-of-it", "content": "x"}),
    (CLAUDE, {"type": "redacted_thinking", "id": "id-of-it"}),
    (GPT, {"id": "id-of-it"}),
    (GPT, {"type": "function_call_output", "call_id": "id-of-it", "output": "x"}),
    *(
        (GPT, {"type": "message", "role": "assistant", "content": [part]})
        for part in (
            {"type": "output_text", "text": 5, "x": "id-of-it"},
            {"type": "refusal", "refusal": None, "x": "id-of-it"},
            {"text": "id-of-it"},
        )
    ),
    (CHAT, {"content": {"id-of-it": 1}}),
    (CHAT, {"content": [{"type": "text", "text": 5, "x": "id-of-it"}]}),
    (CHAT, {"content": ["", {"x": "id-of-it"}]}),
    (CHAT, {"tool_calls": "id-of-it"}),
    (NOVA, {"text": 5, "x": "id-of-it"}),
    (NOVA, {"toolUse": "id-of-it"}),
    (NOVA, {"toolResult": {"toolUseId": "id-of-it", "content": []}}),
    (NOVA, {"reasoningContent": "id-of-it"}),
]


@pytest.mark.parametrize("name", ["", None, Ellipsis])
@pytest.mark.parametrize("model", [CLAUDE, CHAT, NOVA])
def test_an_answer_does_not_end_with_calls_of_which_none_can_be_run(model, name):
    """A client of the gateway would wait for calls that it never gets."""

    def ended(*parts):
        said = json.dumps(document(model, *parts))
        for plain, calls in (("end_turn", "tool_use"), ('"stop"', '"tool_calls"')):
            said = said.replace(plain, calls)
        one = decoder(target(dialect=DIALECT_OF[model]))
        return assemble([*one.feed(said.encode()), *one.close()]).stop_reason

    assert ended(called(model, name)) == "stop"
    assert ended(called(model, "look")) == "tool_calls"


@pytest.fixture
def twice(capsys, monkeypatch):
    """Asks a model twice in one session: what the first answer was told of, and the requests."""

    def twice(model, reply, ends):
        monkeypatch.setattr("sys.stdin", io.StringIO())
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "key")
        for name in ("GEMINI", "ANTHROPIC", "OPENAI", "OPENAI_COMPATIBLE"):
            monkeypatch.setenv(f"{name}_API_KEY", "key")
        again = Reply.json(document(model, spoken(model)))
        with ScriptedServer([reply, again]) as server:
            place = ["-m", model, "--base-url", server.url]
            assert main(["ask", *place, "--name", "x", "first"]) == ends
            told = capsys.readouterr()
            assert main(["ask", "--session", "x", "second"]) == 0
            assert capsys.readouterr().out == "Good.\n"
        sent = [request.json[HISTORY.get(model, "messages")] for request in server.requests]
        return told.out, told.err, json.dumps(sent[1])

    return twice


WAYS = [(model, whole) for model in ODD_MODELS for whole in (True, False)][:-1]


@pytest.mark.parametrize(
    ("model", "part", "whole"), [(*one, w) for one in UNUSABLE for m, w in WAYS if one[0] == m]
)
def test_what_cannot_be_used_is_told_and_not_sent_back(twice, model, part, whole):
    reply = Reply.json(document(model, part)) if whole else in_pieces(model, part)
    out, err, sent = twice(model, reply, 4)
    assert out.strip() == ""
    assert "cannot be" in err
    assert "id-of-it" not in sent
    assert "first" in sent
    assert "second" in sent


@pytest.mark.parametrize("model", [*ODD_MODELS[:3], NOVA])
def test_the_rest_of_an_answer_with_an_unusable_call_is_kept(twice, model):
    reply = Reply.json(document(model, spoken(model), called(model, "")))
    out, err, sent = twice(model, reply, 0)
    assert out == "Good.\n"
    assert "tool call without a name" in err or "a call without a name" in err
    assert "id-of-it" not in sent
    assert "Good." in sent


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("more", [{}, {"thought": False}, {"partMetadata": {"a": 1}}])
def test_a_signature_of_gemini_that_is_none_is_told_and_not_sent_back(twice, more, whole):
    part = {"text": "Good.", "thoughtSignature": ["id-of-it"], **more}
    reply = Reply.json(document(GEMINI, part)) if whole else in_pieces(GEMINI, part)
    out, err, sent = twice(GEMINI, reply, 0)
    assert out == "Good.\n"
    assert "a signature in the answer cannot be used" in err
    assert "id-of-it" not in sent
    assert "Good." in sent


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("kind", ["inlineData", "executableCode", "aNewKind"])
def test_an_empty_part_of_gemini_is_not_put_into_the_text_after_it(twice, kind, whole):
    parts = ({kind: {}}, {"text": "Good."})
    reply = Reply.json(document(GEMINI, *parts)) if whole else in_pieces(GEMINI, *parts)
    out, _, sent = twice(GEMINI, reply, 0)
    assert out == "Good.\n"
    assert json.loads(sent)[1]["parts"] == list(parts)


def test_a_block_of_bedrock_that_holds_two_kinds_is_two(twice):
    both = {"text": "Good.", **called(NOVA, "look")}
    out, err, sent = twice(NOVA, Reply.json(document(NOVA, both, 5)), 0)
    assert out == "Good.\n"
    assert "a block that is not an object" in err
    assert "the model called look" in err
    assert refusal("bedrock-converse", {"messages": json.loads(sent), "toolConfig": {}}) is None


@pytest.mark.parametrize(("model", "whole"), WAYS)
def test_two_calls_of_one_id_are_two_calls_with_their_results(model, whole, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "key")
    if model == CHAT:
        calls = [called(model, name)["tool_calls"][0] for name in ("one", "two")]
        parts = [{"tool_calls": calls}]
        if not whole:
            parts = [{"tool_calls": [{"index": at, **c}]} for at, c in enumerate(calls)]
    else:
        parts = [called(model, name) for name in ("one", "two")]
    reply = Reply.json(document(model, *parts)) if whole else in_pieces(model, *parts)
    tools = [mull.Tool(name, "", {"type": "object"}) for name in ("one", "two")]
    with ScriptedServer([reply, Reply.json(document(model, spoken(model)))]) as server:
        given = {"base_url": server.url, "key": "k", "tools": tools}
        history = [mull.user("Go.")]
        result = mull.complete(history, model, **given)
        assert [call.name for call in result.tool_calls] == ["one", "two"]
        assert len({call.id for call in result.tool_calls}) == 2
        history.append(result.message)
        for call in result.tool_calls:
            block = mull.ToolResultBlock(call.id, f"of {call.name}")
            history.append(mull.Message(role="tool", blocks=(block,)))
        mull.complete(history, model, **given)
    sent = json.dumps(server.requests[1].json)
    assert "of one" in sent
    assert "of two" in sent
    ids = re.findall(r'"(?:id|tool_use_id|tool_call_id|call_id|toolUseId)": "([^"]*)"', sent)
    ids = [one for one in ids if not one.startswith("fc_")]
    assert all(ids.count(one) == 2 for one in ids)
    assert ids.count("id-of-it") == 2  # one call and its result


def test_a_client_may_answer_two_calls_of_one_id_in_their_order():
    items = [
        {"type": "function_call", "call_id": "c", "name": "one", "arguments": "{}"},
        {"type": "function_call", "call_id": "c", "name": "two", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "of one"},
        {"type": "function_call_output", "call_id": "c", "output": "of two"},
    ]
    with ScriptedServer([Reply.json(document(GPT, spoken(GPT)))]) as server:
        mull.complete([{"role": "user", "content": "Go."}, *items], GPT, base_url=server.url)
    sent = server.requests[0].json["input"]
    outputs = {one["call_id"]: one["output"] for one in sent if "output" in one}
    names = {one["call_id"]: one["name"] for one in sent if "name" in one}
    assert {names[one]: outputs[one] for one in names} == {"one": "of one", "two": "of two"}


# After Gemini's own end


def gemini_read(*chunks):
    body = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return read("gemini/x", body)


def chunk(text, reason=None, **part):
    candidate = {"content": {"parts": [{"text": text, **part}]}}
    return {"candidates": [candidate | ({"finishReason": reason} if reason else {})]}


def test_what_follows_geminis_end_is_left_out_and_counts_are_read():
    counts = {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3}}
    call = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "rm"}}]}}]}
    for first in ([chunk("A", "STOP")], [chunk("A"), chunk("", "STOP")]):
        for late in (chunk("B"), {**chunk("B"), **counts}, call):
            message, warnings, _ = gemini_read(*first, late, counts)
            assert message.text == "A"
            assert not message.tool_calls
            assert message.usage.input == 7
            assert [one.code for one in warnings] == ["after_end"]
    message, _, _ = gemini_read(chunk("A"), chunk("B", "STOP"), chunk("C", "STOP"))
    assert message.text == "AB"


def test_a_server_that_ends_with_every_chunk_is_read_to_its_last():
    message, warnings, _ = gemini_read(chunk("A", "STOP"), chunk("B", "STOP"), chunk("C", "STOP"))
    assert message.text == "ABC"
    assert not warnings


def test_a_signature_after_geminis_end_is_kept():
    message, warnings, _ = gemini_read(chunk("A", "STOP"), chunk("", thoughtSignature="Sig"))
    assert message.blocks[-1].signature == "Sig"
    assert not warnings


# What is refused though it came from there

UNKNOWN = {
    GEMINI: {"novelPart": {"of": "it"}},
    CLAUDE: {"type": "novel_block", "of": "it"},
    GPT: {"type": "novel_item", "id": "ni_1", "encrypted_content": "it"},
    NOVA: {"novelBlock": {"of": "it"}},
}
REFUSALS = {
    GEMINI: {"error": {"code": 400, "message": "Invalid JSON payload received."}},
    CLAUDE: {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "messages.1.content.0: Input tag 'novel_block' found using 'type' does not"
            " match any of the expected tags",
        },
    },
    GPT: {"error": {"message": "The item 'ni_1' could not be read.", "type": "invalid_request"}},
    NOVA: {"message": "Unknown block novelBlock", "__type": "ValidationException"},
}


@pytest.mark.parametrize("model", UNKNOWN)
def test_a_part_that_its_own_provider_refuses_is_left_out_and_stays_so(model, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "key")
    said = Reply.json(document(model, spoken(model)))
    replies = [
        Reply.json(document(model, UNKNOWN[model], spoken(model))),
        Reply.json(REFUSALS[model], 400),
        said,
        said,
    ]
    with ScriptedServer(replies) as server:
        talk = mull.Conversation(model, base_url=server.url, key="k")
        talk.ask("One?")
        second = talk.ask("Two?")
        talk.ask("Three?")
    asked = [json.dumps(request.json) for request in server.requests]
    kind = next(iter(UNKNOWN[model]), "")
    kind = UNKNOWN[model].get("type", kind)
    assert [kind in one for one in asked] == [False, True, False, False]
    assert second.text == "Good."
    assert any("unknown part of earlier answers left out" in note.text for note in second.notes)


def test_a_refusal_about_something_else_is_not_blamed_on_unknown_parts():
    refusal = Reply.json({"error": {"message": "Incorrect API key", "type": "auth"}}, 401)
    reply = Reply.json(document(CLAUDE, UNKNOWN[CLAUDE], spoken(CLAUDE)))
    with ScriptedServer([reply, refusal]) as server:
        talk = mull.Conversation(CLAUDE, base_url=server.url, key="k")
        talk.ask("One?")
        with pytest.raises(mull.RefusedError):
            talk.ask("Two?")
    assert len(server.requests) == 2
