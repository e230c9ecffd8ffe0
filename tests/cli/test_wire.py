"""`mull wire`: exactly what would be sent and what is read, with nothing secret in it."""

import io
import json
import os
from pathlib import Path

import pytest

from mull.cli.main import main

COMMAND = "wire"
TALK = {
    "system": "be brief",
    "messages": [
        {"role": "user", "blocks": [{"type": "text", "text": "What is in a.py?"}]},
        {
            "role": "assistant",
            "blocks": [
                {"type": "thinking", "thought": "look", "sourceField": "reasoning_content"},
                {"type": "tool_call", "id": "c1", "name": "read", "input": {"path": "a.py"}},
            ],
        },
        {"role": "tool", "blocks": [{"type": "tool_result", "callId": "c1", "output": "x = 1"}]},
    ],
    "tools": [{"name": "read", "description": "reads", "parameters": {"type": "object"}}],
    "toolChoice": "auto",
}
STREAM = (
    b'data: {"choices":[{"delta":{"role":"assistant","reasoning_content":"h\xc3\xa9"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"yes"}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}\n\n'
    b"data: [DONE]\n\n"
)


def encode(call, *words, talk=TALK):
    status, out, err = call("encode", *words, "-", stdin=json.dumps(talk).encode())
    assert (status, err) == (0, "")
    return json.loads(out)


def test_encode_prints_the_request(call):
    shown = encode(call, "-m", "moonshotai/kimi-k2-thinking")
    assert list(shown) == ["method", "url", "headers", "body", "notes", "tokens"]
    assert shown["method"] == "POST"
    assert shown["url"] == "https://api.moonshot.ai/v1/chat/completions"
    assert shown["headers"]["authorization"] == "Bearer ***"
    assert shown["body"]["model"] == "kimi-k2-thinking"
    assert shown["body"]["messages"][2] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "look",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": '{"path":"a.py"}'},
            }
        ],
    }
    assert shown["tokens"] > 0
    assert {"about", "text"} <= set(shown["notes"][0])


@pytest.mark.parametrize(
    ("model", "url", "header"),
    [
        ("anthropic/claude-sonnet-4-5", "https://api.anthropic.com/v1/messages", "x-api-key"),
        ("openai/gpt-5", "https://api.openai.com/v1/responses", "authorization"),
        (
            "google/gemini-2.5-pro",
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro"
            ":streamGenerateContent?alt=sse",
            "x-goog-api-key",
        ),
    ],
)
def test_every_dialect(call, model, url, header):
    shown = encode(call, "-m", model)
    assert shown["url"] == url
    assert "***" in shown["headers"][header]


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("xai/grok-4", "grok-4"),
        ("openrouter/x-ai/grok-4", "x-ai/grok-4"),
        ("anthropic/claude-3-7-sonnet", "claude-3-7-sonnet-20250219"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("moonshotai/kimi-k2", "kimi-k2"),
        ("openai/gpt-5-2025-99-99", "gpt-5-2025-99-99"),
    ],
)
def test_a_name_that_is_not_listed_goes_out_as_typed_and_every_guess_is_told(call, typed, sent):
    shown = encode(call, "-m", typed, talk={"messages": TALK["messages"][:1]})
    assert shown["body"]["model"] == sent
    told = [note["text"] for note in shown["notes"] if note["about"] == "model"]
    assert told
    assert repr(typed.partition("/")[2]) in told[0]


BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 10_000}}
LEVEL = {"thinkingConfig": {"thinkingLevel": "MEDIUM", "includeThoughts": True}}
OWN = {
    "anthropic/house": BUDGET,
    "acme-messages/house": BUDGET,
    "openai/house": {"reasoning": {"effort": "medium", "summary": "auto"}},
    "acme-responses/house": {"reasoning": {"effort": "medium", "summary": "auto"}},
    "google/house": {"generationConfig": LEVEL},
    "amazon-bedrock/house": {"additionalModelRequestFields": BUDGET},
    "mistral/house": {"reasoning_effort": "medium"},
    "moonshotai/house": {"thinking": {"type": "enabled"}},
    "openrouter/me/house": {"reasoning": {"enabled": True}},
    "openai-compatible/house": {"reasoning_effort": "medium"},
    "acme-chat/house": {"reasoning_effort": "medium"},
}
DIALECT_OF = {
    "acme-messages": "anthropic",
    "acme-responses": "openai-responses",
    "acme-chat": "openai-chat",
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("said", [True, None, False])
def test_reasoning_in_ones_own_entry_is_enough_in_every_dialect(call, name, said):
    provider = name.partition("/")[0]
    lines = [f'[models."{name}"]', "tool_call = true"]
    lines += [] if said is None else [f"reasoning = {str(said).lower()}"]
    if provider in DIALECT_OF:
        lines += [f"[providers.{provider}]", 'base_url = "https://acme.example/v1"']
        lines += [f'dialect = "{DIALECT_OF[provider]}"']
    folder = Path(os.environ["MULL_CONFIG_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    if said and provider == "anthropic":  # the other place for entries of one's own
        entry = {"models": {"house": {"reasoning": True}}}
        (folder / "models.json").write_text(json.dumps({provider: entry}))
    else:
        (folder / "config.toml").write_text("\n".join(lines))
    talk = {"messages": TALK["messages"][:1]}
    body = encode(call, "-m", name, talk=talk)["body"]
    says = {key: body[key] for key in OWN[name] if key in body}
    assert (says == OWN[name]) is (said is True)
    body = encode(call, "-m", name, "--set", "reasoning.enabled=false", talk=talk)["body"]
    assert {key: body.get(key) for key in OWN[name]} != OWN[name]


def test_levels_settings_and_limits_reach_the_body(call):
    shown = encode(call, "-m", "anthropic/claude-haiku-4-5/low", "--max-tokens", "20000")
    assert shown["body"]["max_tokens"] == 20_000
    plain = {**TALK, "messages": TALK["messages"][:1]}
    shown = encode(call, "-m", "anthropic/claude-haiku-4-5/low", talk=plain)
    assert shown["body"]["thinking"] == {"type": "enabled", "budget_tokens": 11_349}
    shown = encode(call, "-m", "claude-haiku-4-5", "--thinking-budget", "5000", talk=plain)
    assert shown["body"]["thinking"]["budget_tokens"] == 5000
    shown = encode(call, "-m", "openai/gpt-5", "--no-stream", talk=plain)
    assert not shown["body"].get("stream")


def test_an_endpoint_of_ones_own_with_its_quirks(call):
    shown = encode(
        call,
        "-m",
        "openai-compatible/qwen3/none",
        "--base-url",
        "http://127.0.0.1:8080/v1/",
        "--compat",
        '{"thinkingWriter": "template-kwargs"}',
    )
    assert shown["url"] == "http://127.0.0.1:8080/v1/chat/completions"
    shown = encode(call, "-m", "openai/gpt-4o", "--dialect", "openai-chat")
    assert shown["url"] == "https://api.openai.com/v1/chat/completions"


@pytest.mark.parametrize("chunk", [None, 1, 7])
def test_decode_prints_the_message_whatever_the_cuts(call, chunk):
    cut = ["--chunk", str(chunk)] if chunk else []
    status, out, _ = call("decode", "-m", "deepseek/deepseek-v4-pro", *cut, "-", stdin=STREAM)
    assert status == 0
    assert json.loads(out) == {
        "role": "assistant",
        "status": "complete",
        "stopReason": "stop",
        "origin": {
            "provider": "deepseek",
            "dialect": "openai-chat",
            "model": "deepseek-v4-pro",
            "endpoint": "https://api.deepseek.com",
        },
        "blocks": [
            {"type": "thinking", "thought": "hé", "sourceField": "reasoning_content"},
            {"type": "text", "text": "yes"},
        ],
        "usage": {
            "input": 3,
            "output": 2,
            "reasoning": None,
            "total": 5,
            "cacheRead": None,
            "cacheWrite": None,
        },
        "warnings": [],
        "error": None,
    }


def test_what_decode_prints_can_be_given_to_encode(call):
    _, out, _ = call("decode", "-m", "moonshotai/kimi-k2.5", "-", stdin=STREAM)
    talk = {"messages": [*TALK["messages"][:1], json.loads(out), TALK["messages"][0]]}
    sent = encode(call, "-m", "moonshotai/kimi-k2.5", talk=talk)["body"]["messages"][1]
    assert (sent["content"], sent["reasoning_content"]) == ("yes", "hé")


def test_nothing_is_left_out_because_it_is_empty(call):
    stream = (
        b'data: {"choices":[{"delta":{"reasoning_content":"","tool_calls":[{"index":0,"id":"a",'
        b'"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\n'
    )
    _, out, _ = call("decode", "-m", "moonshotai/kimi-k2.5", "-", stdin=stream)
    shown = json.loads(out)
    assert shown["usage"] is None
    assert shown["blocks"] == [
        {"type": "thinking", "thought": "", "sourceField": "reasoning_content"},
        {"type": "tool_call", "id": "a", "name": "f", "input": {}},
    ]


def test_a_profiles_parameters_reach_the_body(call, capsys):
    main(
        [
            "profile",
            "save",
            "warm",
            "--temperature",
            "0.5",
            "--max-tokens",
            "99",
            "-m",
            "openai/gpt-4o",
        ]
    )
    capsys.readouterr()
    plain = {"messages": TALK["messages"][:1]}
    body = encode(call, "--profile", "warm", talk=plain)["body"]
    assert (body["temperature"], body["max_output_tokens"]) == (0.5, 99)


def test_decode_tells_what_went_wrong_and_keeps_the_rest(call):
    broken = STREAM[: STREAM.index(b"data: [DONE]") - 120]
    _, out, _ = call("decode", "-m", "deepseek/deepseek-v4-pro", stdin=broken)
    shown = json.loads(out)
    assert shown["status"] in ("interrupted", "error")
    assert shown["error"]["text"]
    assert shown["blocks"][0]["thought"] == "hé"


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["encode", "-"], b"{}", "no model given: use -m PROVIDER/MODEL"),
        (["encode", "-m", "gpt-5"], b"{", "not a conversation: input data was truncated"),
        (
            ["encode", "-m", "gpt-5"],
            b'{"messages":[{"role":"user","block":[]}]}',
            "not a conversation: object contains unknown field `block` - at `$.messages[0]`",
        ),
        (["encode", "-m", "gpt-5", "no/such/file"], b"", "cannot read no/such/file: No such file"),
        (["encode", "-m", "gpt-5", "--compat", "["], b"", "--compat is not a JSON object"),
        (
            ["encode", "-m", "gpt-5", "--dialect", "latin"],
            b'{"messages":[]}',
            "there is no dialect 'latin'",
        ),
        (["decode", "-m", "gpt-5", "--chunk", "0"], b"", "--chunk cannot be 0"),
        (["encode", "-m", "gpt-5", "--max-tokens", "0"], b"", "--max-tokens cannot be 0: use a"),
        (["encode", "-m", "gpt-5", "--max-tokens", "-5"], b"", "--max-tokens cannot be -5: use a"),
        (
            ["encode", "-m", "gpt-5"],
            b'{"messages":[],"maxTokens":0}',
            "not a conversation: expected `int` >= 1 - at `$.maxTokens`",
        ),
        (
            ["encode", "-m", "anthropic/claude-haiku-4-5/90000"],
            b'{"messages":[]}',
            "a thinking budget of 90,000 is above 32,000, the maximum of claude-haiku-4-5",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call, words, stdin, said):
    status, out, err = call(*words, stdin=stdin)
    assert (status, out) == (2, "")
    assert err.startswith(f"mull: {said}")
    assert err.count("\n") <= 2


@pytest.mark.parametrize(
    "choice",
    ["any", {"type": "function", "function": {"name": "read"}}, {"name": 1}, {}, ["read"]],
)
def test_a_tool_choice_is_a_word_or_a_name_and_nothing_else(call, choice):
    talk = json.dumps({**TALK, "toolChoice": choice}).encode()
    status, out, err = call("encode", "-m", "gpt-5", stdin=talk)
    assert (status, out) == (2, "")
    assert err == (
        'mull: not a conversation: toolChoice must be "auto", "none", "required" or'
        ' {"name": TOOL}\n'
    )


def test_a_tool_chosen_by_name_is_said_in_the_words_of_each_dialect(call):
    talk = {**TALK, "messages": TALK["messages"][:1], "toolChoice": {"name": "read"}}
    shown = encode(call, "-m", "openai/gpt-5", talk=talk)
    assert shown["body"]["tool_choice"] == {"type": "function", "name": "read"}
    shown = encode(call, "-m", "google/gemini-2.5-pro", talk=talk)
    assert shown["body"]["toolConfig"] == {
        "functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}
    }


def test_headers_of_ones_own_are_shown_without_their_values(call, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text(
        "[providers.moonshotai.headers]\n"
        '"X-Title" = "canary one"\n"Authorization" = "canary ${TWO}"\n'
    )
    shown = encode(call, "-m", "moonshotai/kimi-k2-thinking", "--config", str(config))
    assert shown["headers"]["x-title"] == shown["headers"]["authorization"] == "***"
    assert "canary" not in json.dumps(shown)
    shown = encode(call, "-m", "openai/gpt-5", "--config", str(config))
    assert "x-title" not in shown["headers"]


def test_no_key_is_shown(call, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary")
    assert "sk-canary" not in json.dumps(encode(call, "-m", "claude-sonnet-4-5"))


def test_help_teaches(capsys):
    with pytest.raises(SystemExit):
        main(["wire", "encode", "--help"])
    out = capsys.readouterr().out
    assert '"sourceField": "reasoning_content"' in out
    assert "examples:" in out


@pytest.mark.parametrize("dialect", ["anthropic", "gemini", "openai-chat", "openai-responses"])
def test_an_answer_goes_out_in_any_dialect_and_comes_back(call, dialect):
    _, read, _ = call("decode", "-m", "deepseek/deepseek-v4-pro", "-", stdin=STREAM)
    for words in ((), ("--no-stream",)):
        given = read.encode()
        status, out, err = call(
            "encode", "--answer", "--dialect", dialect, *words, "-", stdin=given
        )
        assert (status, err) == (0, "")
        back = ("decode", "-m", "acme/thinker", "--base-url", "http://127.0.0.1:1/v1")
        _, again, _ = call(*back, "--dialect", dialect, "-", stdin=out.encode())
        blocks = json.loads(again)["blocks"]
        assert [b.get("thought", b.get("text")) for b in blocks] == ["hé", "yes"]
        assert json.loads(again)["usage"]["total"] == 5


def test_a_stream_that_is_no_text_goes_out_as_it_is(capsysbinary, monkeypatch):
    def call(*words, stdin):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        assert main(["wire", *words, "-"]) == 0
        return capsysbinary.readouterr().out

    read = call("decode", "-m", "deepseek/deepseek-v4-pro", stdin=STREAM)
    out = call("encode", "--answer", "--dialect", "bedrock-converse", stdin=read)
    there = ("-m", "acme/thinker", "--base-url", "http://127.0.0.1:1", "--dialect")
    again = json.loads(call("decode", *there, "bedrock-converse", stdin=out))
    assert [b.get("thought", b.get("text")) for b in again["blocks"]] == ["hé", "yes"]


def test_what_a_dialect_has_no_place_for_is_told(call):
    said = {
        "role": "assistant",
        "origin": {"provider": "openai", "dialect": "openai-responses", "model": "gpt-5"},
        "blocks": [{"type": "opaque", "data": {"type": "web_search_call"}}],
    }
    status, _, err = call(
        "encode", "--answer", "--dialect", "gemini", "-", stdin=json.dumps(said).encode()
    )
    assert status == 0
    assert err == "mull: left out: 1 × a block specific to openai-responses\n"


def test_a_failed_answer_is_written_with_its_own_words(call):
    _, read, _ = call("decode", "-m", "deepseek/deepseek-v4-pro", "-", stdin=STREAM[:90])
    _, out, _ = call("encode", "--answer", "--dialect", "anthropic", "-", stdin=read.encode())
    assert "event: error" in out
    assert json.loads(read)["error"]["text"] in out


def test_a_request_is_read_as_a_server_reads_it(call):
    talk = {**TALK, "messages": TALK["messages"][:1]}
    body = encode(call, "-m", "anthropic/claude-sonnet-4-5/high", talk=talk)["body"]
    status, out, err = call(
        "decode", "--request", "--dialect", "anthropic", "-", stdin=json.dumps(body).encode()
    )
    assert (status, err) == (0, "")
    asked = json.loads(out)
    assert asked["model"] == "claude-sonnet-4-5"
    assert asked["system"] == "be brief"
    assert asked["thinking"]["state"] == "on"
    (said,) = asked["messages"]
    marked = {"dialect": "anthropic", "data": {"cache_control": {"type": "ephemeral"}}}
    (tool,) = asked["tools"]
    assert said["blocks"][0].pop("wire") == tool.pop("wire") == marked
    assert ([said], [tool]) == (talk["messages"], TALK["tools"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("decode", "--request"), "no dialect given"),
        (("decode", "--request", "--dialect", "morse"), "unknown dialect 'morse'"),
        (("encode", "--answer", "--dialect", "gemini"), "not a message"),
        (("decode", "--request", "--dialect", "gemini"), "the body is not JSON"),
    ],
)
def test_the_other_direction_says_what_is_wrong(call, words, text):
    status, out, err = call(*words, "-", stdin=b"{")
    assert (status, out) == (2, "")
    assert text in err
