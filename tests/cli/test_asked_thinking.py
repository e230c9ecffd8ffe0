"""What a user's word on thinking becomes on the wire: `mull ask`, `mull wire`, `mull models show`.

Named endpoints, unlisted models and addresses that nobody knows, in all four dialects.
"""

from __future__ import annotations

import io
import json

import pytest

from mull.cli.main import main
from mull.testing.server import Reply, ScriptedServer


def chunk(delta, finish=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


GOOD = Reply.events(chunk({"content": "yes"}), chunk({}, "stop"), "[DONE]")
TALK = {"messages": [{"role": "user", "blocks": [{"type": "text", "text": "Hi"}]}]}
STEERING = (
    "thinking",
    "output_config",
    "reasoning",
    "reasoning_effort",
    "enable_thinking",
    "thinking_budget",
    "thinking_token_budget",
    "reasoning_budget_tokens",
    "chat_template_kwargs",
)


def steering(body):
    said = {name: body[name] for name in STEERING if name in body}
    config = body.get("generationConfig", {}).get("thinkingConfig")
    return said if config is None else {**said, "thinkingConfig": config}


@pytest.fixture(autouse=True)
def nothing_piped(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture
def ask(capsys, monkeypatch):
    """Ask a played server; the bodies it was sent, and what was told."""

    def ask(model, *words, replies=(GOOD,), **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        with ScriptedServer(list(replies)) as server:
            place = ["-m", model, "--base-url", server.url, "--no-save"]
            status = main(["ask", *place, *words, "hi"])
        for name in environ:
            monkeypatch.delenv(name)
        said = capsys.readouterr()
        assert (status, said.out) == (0, "yes\n")
        return [steering(request.json) for request in server.requests], said.err

    return ask


@pytest.fixture
def encode(capsys, monkeypatch):
    """What `mull wire encode` prints."""

    def encode(model, *words, **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        source = io.TextIOWrapper(io.BytesIO(json.dumps(TALK).encode()))
        monkeypatch.setattr("sys.stdin", source)
        assert main(["wire", "encode", "-m", model, *words, "-"]) == 0
        for name in environ:
            monkeypatch.delenv(name)
        return json.loads(capsys.readouterr().out)

    return encode


def outcome(shown):
    (found,) = [note for note in shown["notes"] if note.get("kind") == "outcome"]
    return found


UNKNOWN = [
    "openai-compatible/gpt-5",
    "openai-compatible/o3",
    "openai-compatible/qwen3",
    "openai-compatible/kimi-k2-thinking",
    "openai-compatible/nobody-knows",
    "someone/their-model",
]


@pytest.mark.parametrize("model", UNKNOWN)
def test_an_effort_goes_to_an_endpoint_that_nobody_knows(ask, model):
    """Documents 001, 003 and 004: `reasoning_effort`, with a word that it is a guess."""
    (body,), err = ask(model, REASONING_EFFORT="high")
    assert body == {"reasoning_effort": "high"}
    assert "is sent as most servers accept it; set thinkingWriter in a [[compat]] row" in err
    (body,), _ = ask(model, "--set", "reasoning.effort=low")
    assert body == {"reasoning_effort": "low"}
    (body,), err = ask(f"{model}/medium")
    assert body == {"reasoning_effort": "medium"}


@pytest.mark.parametrize("model", UNKNOWN)
def test_without_a_wish_an_endpoint_that_nobody_knows_gets_no_parameter(ask, model):
    (body,), err = ask(model)
    assert body == {}
    assert "most servers" not in err


def test_a_server_of_which_little_is_known_is_told_in_both_ways(ask):
    (body,), err = ask("lmstudio/qwen3-8b/none")
    assert body == {"chat_template_kwargs": OFF, "reasoning_effort": "none"}
    assert "off is sent as most servers accept it, and thinking may continue" in err
    (body,), err = ask("lmstudio/nobody-knows/high")
    words = {**ON, "reasoning_effort": "high"}
    assert body == {"chat_template_kwargs": words, "reasoning_effort": "high"}
    assert "most servers" in err


@pytest.mark.parametrize("model", ["openai-compatible/nobody-knows"])
def test_off_on_and_a_budget_go_there_too(ask, model):
    for settings in ({"THINKING": "off"}, {"REASONING_EFFORT": "none"}):
        (body,), err = ask(model, **settings)
        assert body == {"reasoning_effort": "none"}
        assert "thinking may continue" in err
    (body,), err = ask(model, THINKING="on")
    assert body == {"reasoning_effort": "medium"}
    (body,), err = ask(f"{model}/20000")
    assert body == {"reasoning_effort": "medium"}
    assert "20,000 tokens sent as medium" in err


@pytest.mark.parametrize(
    "refusal",
    [
        Reply.json({"error": {"message": "Unsupported parameter: 'reasoning_effort'"}}, 400),
        Reply.json(
            {"detail": [{"type": "extra_forbidden", "loc": ["body", "reasoning_effort"]}]}, 422
        ),
        Reply.json({"error": "no such setting as a reasoning effort here"}, 400),
        Reply.json({"error": {"message": "Bad Request"}}, 400),
    ],
)
@pytest.mark.parametrize("wish", ["high", "none", "9000"])
def test_what_is_refused_there_is_left_out_at_once_and_from_then_on(refusal, wish):
    with ScriptedServer([refusal, GOOD, GOOD, GOOD]) as server:
        where = ["ask", "-m", f"openai-compatible/m/{wish}", "--base-url", server.url, "--no-save"]
        assert main([*where, "hi"]) == 0
        assert main([*where, "hi"]) == 0
        bodies = [steering(request.json) for request in server.requests]
    assert [bool(body) for body in bodies] == [True, False, False]


def test_the_user_learns_that_nothing_is_sent_any_more_and_a_row_brings_it_back(
    encode, capsys, tmp_path
):
    refusal = Reply.json({"error": {"message": "Unsupported parameter: 'reasoning_effort'"}}, 400)
    told = []
    config = tmp_path / "config.toml"
    config.write_text(
        '[[compat]]\nmatch = { provider = "openai-compatible" }\n'
        'set = { thinkingWriter = "thinking-type" }\n'
    )
    with ScriptedServer([refusal, GOOD, GOOD, GOOD, GOOD]) as server:
        place = ("--base-url", server.url)
        for wish in ("high", "high", "none"):
            main(["ask", "-m", f"openai-compatible/m/{wish}", *place, "--no-save", "hi"])
            told.append(capsys.readouterr().err)
        shown = encode("openai-compatible/m/high", *place)
        settled = ("--config", str(config), *place)
        main(["ask", "-m", "openai-compatible/m/none", *settled, "--no-save", "hi"])
        capsys.readouterr()
        again = encode("openai-compatible/m/none", *settled)
        bodies = [steering(request.json) for request in server.requests]
    assert "no thinking parameter sent" in told[0]
    assert "m accepts no thinking parameter here: high not sent" in told[1]
    assert "thinking may continue" in told[2]
    assert bodies[1:4] == [{}, {}, {}]
    assert steering(shown["body"]) == {}
    assert bodies[4] == steering(again["body"]) == {"thinking": {"type": "disabled"}}


def test_the_outcome_is_that_of_the_request_that_was_answered(capsys, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    refusal = Reply.json({"error": {"message": "Unsupported parameter: 'reasoning_effort'"}}, 400)
    with ScriptedServer([refusal, GOOD]) as server:
        place = ["-m", "openai-compatible/m/high", "--base-url", server.url, "--no-save"]
        assert main(["ask", *place, "--json", "hi"]) == 0
    said = capsys.readouterr()
    told = outcome(json.loads(said.out))
    assert (told["requested"], told["effective"]) == ("high", "left to the endpoint")
    assert "sentAs" not in told
    lines = [line for line in said.err.splitlines() if "Reasoning: OFF" in line]
    assert lines
    assert "effort" not in lines[0]


def test_a_compat_row_says_it_better(ask, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text(
        '[[compat]]\nmatch = { provider = "openai-compatible" }\n'
        'set = { thinkingWriter = "enable-thinking", budgetField = "thinking_budget" }\n'
    )
    row = ("--config", str(config))
    (body,), err = ask("openai-compatible/m/high", *row)
    assert body == {"enable_thinking": True, "reasoning_effort": "high"}
    assert "most servers" not in err
    assert ask("openai-compatible/m/none", *row) == ([{"enable_thinking": False}], "")
    (body,), _ = ask("openai-compatible/m/5000", *row)
    assert body == {"enable_thinking": True, "thinking_budget": 5000}


ON, OFF = ({"enable_thinking": on, "thinking": on} for on in (True, False))
SWITCHES = [
    ("vllm/my-finetune", {"chat_template_kwargs": OFF}),
    ("sglang/my-finetune", {"chat_template_kwargs": OFF}),
    ("llama.cpp/some.gguf", {"chat_template_kwargs": OFF, "reasoning_budget_tokens": 0}),
    ("vllm/granite-9", {"chat_template_kwargs": OFF}),
    ("chutes/who/knows", {"chat_template_kwargs": OFF}),
    ("nvidia/who/knows", {"chat_template_kwargs": OFF}),
    ("alibaba/qwen-next-year", {"enable_thinking": False}),
    ("ollama/my-finetune", {"reasoning_effort": "none"}),
    ("openrouter/who/knows", {"reasoning": {"enabled": False}}),
    ("zai/glm-99", {"thinking": {"type": "disabled"}}),
    ("moonshotai/kimi-k9", {"thinking": {"type": "disabled"}}),
    ("deepseek/deepseek-v9", {"thinking": {"type": "disabled"}}),
    ("groq/who/knows", {"reasoning_effort": "none"}),
    ("anthropic/claude-next", {"thinking": {"type": "disabled"}}),
    ("google/gemini-99-flash", {"thinkingConfig": {"thinkingBudget": 0}}),
    ("openai/gpt-99", {"reasoning": {"effort": "none"}}),
]


@pytest.mark.parametrize(("model", "off"), SWITCHES)
def test_br_006_off_is_said_to_models_that_are_not_listed(encode, model, off):
    for asked in ((f"{model}/none",), (model, "--set", "reasoning.enabled=false")):
        shown = encode(*asked)
        assert steering(shown["body"]) == off
        assert outcome(shown)["effective"] == "off"
    shown = encode(model, THINKING="off")
    assert steering(shown["body"]) == off
    assert outcome(shown)["requested"] == "none"


@pytest.mark.parametrize(("model", "off"), SWITCHES)
def test_nothing_is_claimed_of_models_that_are_not_listed(encode, model, off):
    for level in ("none", "low", "high", "5000"):
        text = json.dumps(encode(f"{model}/{level}")["notes"])
        assert "always on" not in text
        assert "cannot be controlled" not in text
        assert "does not support disabling" not in text


@pytest.mark.parametrize(
    ("model", "sent", "effective"),
    [
        ("vllm/m", {"thinking_token_budget": 5000}, "5,000 tokens"),
        ("llama.cpp/m", {"reasoning_budget_tokens": 5000}, "5,000 tokens"),
        ("alibaba/m", {"thinking_budget": 5000}, "5,000 tokens"),
        ("openrouter/a/m", {"reasoning": {"max_tokens": 5000}}, "5,000 tokens"),
        (
            "anthropic/claude-next",
            {"thinking": {"type": "enabled", "budget_tokens": 5000}},
            "5,000 tokens",
        ),
        ("sglang/m", {"reasoning_effort": "low"}, "low effort"),
        ("chutes/a/m", {"reasoning_effort": "low"}, "low effort"),
        ("nvidia/a/m", {"reasoning_effort": "low"}, "low effort"),
        ("groq/a/m", {"reasoning_effort": "low"}, "low effort"),
    ],
)
def test_the_outcome_of_a_budget_is_what_the_body_holds(encode, model, sent, effective):
    shown = encode(f"{model}/5000")
    assert sent.items() <= steering(shown["body"]).items()
    assert outcome(shown)["effective"] == effective
    assert json.loads(outcome(shown)["sentAs"]).items() <= shown["body"].items()
    assert ("5000" in json.dumps(shown["body"])) == (effective == "5,000 tokens")


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("gpt-5.1", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("gpt-5.2", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("gpt-5.4-mini", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("azure/gpt-5.1", {"reasoning": {"effort": "medium", "summary": "auto"}}),
        ("openrouter/openai/gpt-5.2", {"reasoning": {"effort": "medium"}}),
        (
            "gemini-2.5-flash-lite",
            {"thinkingConfig": {"thinkingBudget": 10_000, "includeThoughts": True}},
        ),
        ("o3", {"reasoning": {"summary": "auto"}}),
        ("gemini-2.5-pro", {"thinkingConfig": {"includeThoughts": True}}),
        ("qwen-plus", {"enable_thinking": True}),
    ],
)
def test_document_002_reasoning_models_think_by_default_and_on_is_no_less(encode, model, sent):
    assert steering(encode(model)["body"]) == sent
    assert steering(encode(model, THINKING="on")["body"]) == sent
    assert "default (none)" not in json.dumps(encode(model)["notes"])


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("vllm/my-finetune", {"chat_template_kwargs": ON}),
        ("kimi-k2.5", {"thinking": {"type": "enabled"}}),
        ("claude-sonnet-4-5", {"thinking": {"type": "enabled", "budget_tokens": 10_000}}),
        ("mistral/mistral-small-latest", {"reasoning_effort": "high"}),
        ("github-copilot/gpt-5.2", {"reasoning": {"effort": "medium", "summary": "auto"}}),
    ],
)
def test_a_plain_on_is_a_wish_from_any_layer(encode, model, sent, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[settings]\nreasoning.enabled = true\n")
    for words in (("--set", "reasoning.enabled=true"), ("--config", str(config))):
        shown = encode(model, *words)
        assert steering(shown["body"]) == sent
        assert outcome(shown)["requested"] == "on"
    assert steering(encode(model, THINKING="on")["body"]) == sent


def test_the_stronger_layer_decides_between_on_and_an_effort_of_none(encode, tmp_path):
    config = tmp_path / "config.toml"
    config.write_text('[settings]\nreasoning.effort = "none"\n')
    quiet = encode("gpt-5.2", "--config", str(config))
    assert steering(quiet["body"]) == {"reasoning": {"effort": "none"}}
    louder = encode("gpt-5.2", "--config", str(config), THINKING="on")
    assert steering(louder["body"]) == {"reasoning": {"effort": "medium", "summary": "auto"}}
    assert steering(encode("gpt-5.2/none", THINKING="on")["body"]) == {
        "reasoning": {"effort": "none"}
    }


@pytest.mark.parametrize(
    ("model", "high"),
    [
        ("github-copilot/gpt-5.2", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("github-copilot/gpt-5.4", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("github-copilot/gpt-5-mini", {"reasoning": {"effort": "high", "summary": "auto"}}),
        ("github-copilot/gemini-3-flash-preview", {"reasoning_effort": "high"}),
    ],
)
def test_document_002_copilots_other_models_are_sent_a_wish_and_nothing_by_default(
    encode, model, high
):
    shown = encode(model)
    assert steering(shown["body"]) == {}
    assert outcome(shown)["effective"] == "left to the endpoint"
    assert steering(encode(f"{model}/high")["body"]) == high
    for level in ("none", "high"):
        text = json.dumps(encode(f"{model}/{level}")["notes"])
        assert "always on" not in text
        assert "cannot be controlled" not in text


CLAUDES = [
    ("anthropic/claude-sonnet-4-5", 64_000),
    ("anthropic/claude-haiku-4-5", 64_000),
    ("anthropic/claude-opus-4-1", 32_000),
    ("anthropic/claude-opus-4-7", 128_000),
    ("google-vertex-anthropic/claude-sonnet-4-5@20250929", 64_000),
    ("azure/claude-haiku-4-5", 64_000),
    ("github-copilot/claude-sonnet-4.5", 32_000),
    ("github-copilot/claude-sonnet-4", 16_000),
    ("minimax/MiniMax-M3", 128_000),
]


@pytest.mark.parametrize(("model", "limit"), CLAUDES)
def test_max_tokens_is_the_models_limit_with_thinking_as_without(encode, model, limit):
    for level in ("", "/low", "/high", "/none", "/2000"):
        body = encode(f"{model}{level}")["body"]
        assert body["max_tokens"] == limit
        assert body.get("thinking", {}).get("budget_tokens", 0) < limit
    assert encode(model, "--max-tokens", "6000")["body"]["max_tokens"] == 6000


def test_where_no_limit_is_known_max_tokens_leaves_room_beside_the_budget(encode):
    assert encode("anthropic/claude-next")["body"]["max_tokens"] == 10_000 + 8_192
    assert encode("anthropic/claude-next/none")["body"]["max_tokens"] == 8_192
    address = ("--base-url", "http://127.0.0.1:1/v1", "--dialect", "anthropic")
    body = encode("openai-compatible/m/50000", *address)["body"]
    assert body["thinking"]["budget_tokens"] == 50_000 < body["max_tokens"]
    body = encode("openai-compatible/m/high", *address)["body"]
    assert body["thinking"]["budget_tokens"] < body["max_tokens"]


@pytest.mark.parametrize(
    ("dialect", "high", "off", "budget"),
    [
        (
            "openai-chat",
            {"reasoning_effort": "high"},
            {"reasoning_effort": "none"},
            {"reasoning_effort": "low"},
        ),
        (
            "openai-responses",
            {"reasoning": {"effort": "high", "summary": "auto"}},
            {"reasoning": {"effort": "none"}},
            {"reasoning": {"effort": "low", "summary": "auto"}},
        ),
        (
            "anthropic",
            {"thinking": {"type": "enabled", "budget_tokens": 32_000}},
            {"thinking": {"type": "disabled"}},
            {"thinking": {"type": "enabled", "budget_tokens": 5000}},
        ),
        (
            "gemini",
            {"thinkingConfig": {"thinkingLevel": "HIGH", "includeThoughts": True}},
            {"thinkingConfig": {"thinkingBudget": 0}},
            {"thinkingConfig": {"thinkingBudget": 5000, "includeThoughts": True}},
        ),
    ],
)
def test_each_dialect_has_its_usual_shape(encode, dialect, high, off, budget):
    address = ("--base-url", "http://127.0.0.1:1/v1", "--dialect", dialect)
    for level, sent in (("high", high), ("none", off), ("5000", budget)):
        shown = encode(f"openai-compatible/nobody-knows/{level}", *address)
        assert steering(shown["body"]) == sent
    assert steering(encode("openai-compatible/nobody-knows", *address)["body"]) == {}


@pytest.mark.parametrize(
    "model",
    [
        "openai-compatible/nobody-knows",
        "vllm/my-finetune",
        "sglang/my-finetune",
        "openai/gpt-5.2",
        "google/gemini-2.5-flash-lite",
        "github-copilot/gpt-5.2",
        "openrouter/z-ai/glm-4.6",
        "anthropic/claude-sonnet-4-5",
    ],
)
def test_models_show_and_wire_encode_tell_the_same(encode, capsys, model):
    assert main(["models", "show", model, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["levels"]
    for row in rows:
        name = model if row["level"] == "unset" else f"{model}/{row['level']}"
        told = outcome(encode(name))
        assert (row["text"], row["sentAs"]) == (told["effective"], told.get("sentAs") or "nothing")


@pytest.mark.parametrize("model", ["openai-compatible/m", "vllm/m", "kimi-k2.5", "lmstudio/m"])
def test_document_003_the_debug_line_says_off_after_thinking_off(ask, model):
    _, err = ask(model, THINKING="off", DEBUG="1")
    assert "*** Thinking: off" in err
    assert "*** Thinking: on" not in err
    _, err = ask(model, THINKING="on", DEBUG="1")
    assert "*** Thinking: on" in err


def test_document_003_the_debug_line_stays_off_when_off_cannot_be_said(capsys, monkeypatch):
    monkeypatch.setenv("DEBUG", "1")
    monkeypatch.setenv("THINKING", "off")
    refusal = Reply.json({"error": {"message": "Unknown parameter: reasoning_effort"}}, 400)
    with ScriptedServer([refusal, GOOD, GOOD]) as server:
        for _ in range(2):
            main(["ask", "-m", "openai-compatible/m", "--base-url", server.url, "--no-save", "hi"])
            assert "*** Thinking: off" in capsys.readouterr().err
    assert steering(server.requests[-1].json) == {}


NO_NUMBERS = {
    "openai/gpt-5.2": ("reasoning", {"summary": "auto"}),
    "moonshotai/kimi-k3": ("reasoning_effort", None),
    "groq/openai/gpt-oss-120b": ("reasoning_effort", None),
    "google/gemini-3-pro-preview": ("thinkingConfig", {"includeThoughts": True}),
    "anthropic/claude-opus-5": ("output_config", {}),
    "xai/grok-4.3": ("reasoning", {"summary": "auto"}),
    "openai-compatible/nobody-knows": ("reasoning_effort", None),
    "someone/their-model": ("reasoning_effort", None),
}


@pytest.mark.parametrize("model", NO_NUMBERS)
def test_a_budget_that_cannot_be_sent_does_not_take_the_effort_along(encode, tmp_path, model):
    """One config for Claude and the others; without an effort, the level that it is worth."""
    field, beside = NO_NUMBERS[model]

    def said(*words):
        place = [] if "/their" not in model else ["--base-url", "http://127.0.0.1:9"]
        shown = encode(model, *words, *place)
        return steering(shown["body"])[field], shown

    def expected(level):
        if beside is None:
            return level
        if field == "thinkingConfig":
            return {"thinkingLevel": level.upper(), **beside}
        return {"effort": level, **beside}

    config = tmp_path / "config.toml"
    for level in ("low", "high"):
        both = f'reasoning.effort = "{level}"\nreasoning.maxTokens = 50000\n'
        config.write_text(f"[settings]\n{both}")
        sent, shown = said("--config", str(config))
        assert sent == expected(level)
        assert outcome(shown)["requested"] == f"50,000 tokens, else {level}"
        told = [note["text"] for note in shown["notes"] if note.get("warning")]
        assert any(f"50,000 tokens not sent, {level} effort is" in text for text in told)
    sent, shown = said("--thinking-budget", "50000")
    assert sent == expected("high")
    told = [note["text"] for note in shown["notes"] if note.get("warning")]
    assert any("50,000 tokens sent as high" in text for text in told)


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("anthropic/claude-sonnet-4-5", {"type": "enabled", "budget_tokens": 20_000}),
        ("anthropic/claude-opus-4-6", {"type": "enabled", "budget_tokens": 20_000}),
        ("google/gemini-2.5-pro", {"thinkingBudget": 20_000, "includeThoughts": True}),
    ],
)
def test_a_budget_goes_before_an_effort_where_it_can_be_sent(encode, model, thinking):
    for level in ("low", "high"):
        shown = encode(f"{model}/{level}", "--thinking-budget", "20000")
        assert thinking in steering(shown["body"]).values()
        assert outcome(shown)["requested"] == f"20,000 tokens, else {level}"
