"""`mull models`: lists, pages and updates as a user sees them."""

from __future__ import annotations

import json
import sys

import pytest

from mull.catalog.load import shipped
from mull.cli.model_page import price, steering
from mull.neutral.target import ModelFacts, ReasoningOption

COMMAND = "models"


@pytest.fixture
def lines(call):
    """The exit status of a command and the lines that it prints and complains with."""

    def lines(*words):
        status, out, err = call(*words)
        return status, out.splitlines(), err.splitlines()

    return lines


def test_the_page_of_a_budget_model(lines, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    status, out, err = lines("show", "claude-sonnet-4-5")
    assert (status, err) == (0, [])
    assert out[:12] == [
        "Claude Sonnet 4.5 (latest) (Anthropic)",
        "  name       anthropic/claude-sonnet-4-5",
        "  window     200,000 tokens",
        "  output     64,000 tokens",
        "  price      $3.00 in, $15.00 out, $0.30 cache read, $3.75 cache write per million tokens",
        "  dialect    anthropic",
        "  endpoint   https://api.anthropic.com/v1",
        "  key        ANTHROPIC_API_KEY (set)",
        "  thinking   budget 1,024–64,000",
        "  sent back  thinking blocks with their signatures, unchanged, of all turns"
        " (reasoning.includeInContext is true by preset); required while tools are called",
        "  tokenizer  modernbert (an approximation)",
        "  source     models.dev (2026-07-02)",
    ]
    assert out[12] == ""
    assert out[13].split() == ["level", "thinking", "sent"]
    levels = [line.split()[0] for line in out[14:] if "⚠" not in line]
    assert levels == ["unset", "none", "minimal", "low", "medium", "high", "xhigh", "max"]
    medium = next(line for line in out if line.startswith("  medium"))
    assert medium.split(maxsplit=1)[1] == (
        'medium (43,008 tokens)   {"thinking":{"type":"enabled","budget_tokens":43008}}'
    )
    assert "sk-secret" not in "\n".join(out)


def test_what_goes_back_and_where(lines):
    _, out, _ = lines("show", "kimi-k2-thinking")
    by_preset = "of all turns (reasoning.includeInContext is true by preset)"
    assert f"thinking, in reasoning_content, {by_preset}; required while" in "".join(out)
    for name in (
        "zai/glm-4.7",
        "claude-opus-5-5",
        "gpt-5",
        "gemini-3-pro",
        "xai/grok-4.3",
        "xai/grok-4",
    ):
        _, out, _ = lines("show", name)
        assert by_preset in "".join(out)
    _, out, _ = lines("show", "zai/glm-4.7", "--set", "reasoning.includeInContext=false")
    told = "only while a tool chain is open (reasoning.includeInContext is false by "
    assert f"thinking, in reasoning_content, {told}" in "".join(out)
    for strip, when in (("all", "only while a tool chain is open"), ("allButLast", "last turn")):
        _, out, _ = lines("show", "claude-opus-4-8", "--set", f"reasoning.stripFromContext={strip}")
        (told,) = (line for line in out if line.startswith("  sent back"))
        assert when in told
        assert f"(reasoning.stripFromContext is {strip})" in told
    for off in ("reasoning.enabled=false", "reasoning.effort=none"):
        for name in ("claude-opus-4-8", "gpt-5.2", "zai/glm-4.7"):
            _, out, _ = lines("show", name, "--set", off)
            assert "only while a tool chain is open (thinking is off)" in "".join(out)
    _, out, _ = lines("show", "groq/openai/gpt-oss-120b")
    told = "only while a tool chain is open (reasoning.includeInContext is false by preset)"
    assert told in "".join(out)
    _, out, _ = lines("show", "kilo/qwen/qwen3.7-max")
    told = "what is signed of all turns, the rest only while a tool chain is open (reasoning."
    assert told in "".join(out)
    _, out, _ = lines("show", "openai/gpt-4o")
    assert "  sent back  nothing" in out


def test_the_page_as_json(lines):
    status, out, _ = lines("show", "gemini-3-pro/low", "--json")
    told = json.loads("\n".join(out))
    assert status == 0
    assert told["provider"] == "google"
    assert told["model"] == "gemini-3-pro-preview"
    assert told["dialect"] == "gemini"
    assert told["known"] is True
    assert {"name": "GEMINI_API_KEY", "set": False} in told["keys"]
    assert told["facts"]["limit"] == {"context": 1048576, "output": 65536}
    assert told["compat"]["thinkingWriter"] == "gemini-level"
    assert [row["level"] for row in told["levels"]][:3] == ["unset", "none", "minimal"]
    assert told["source"] == "models.dev (2026-07-02)"
    assert told["notes"] == ["'gemini-3-pro' is taken as gemini-3-pro-preview"]


def test_unknown_is_said_to_be_unknown(lines):
    status, out, _ = lines("show", "ollama/some-model")
    assert status == 0
    assert out[1:5] == [
        "  name       ollama/some-model",
        "  window     unknown",
        "  output     unknown",
        "  price      unknown",
    ]
    assert "  source     not in the catalog" in out


def test_a_model_of_the_newer_source(lines):
    name, _ = next(
        (f"{p}/{m}", None)
        for p, m in shipped().pairs()
        if shipped().entry(p, m).get("source") == "litellm 1.108.4"
    )
    _, out, _ = lines("show", name)
    assert "  source     litellm 1.108.4" in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["show", "nope"],
            "mull: there is no model 'nope'; search with `mull models WORD`, "
            "or give a base URL for a model of your own",
        ),
        (
            ["show", "claud-sonet-4-5"],
            "mull: there is no model 'claud-sonet-4-5'; "
            "did you mean claude-sonnet-4-5, claude-sonnet-5-5 or claude-sonnet-4-6?",
        ),
        (["show"], "mull: give one model: mull models show NAME"),
        (["update", "x"], "mull: `mull models update` takes no name, but got 'x'"),
        (["x", "--from", "y"], "mull: --from only works with `mull models update`"),
        (["x", "--provider", "y"], "mull: there is no provider 'y' in the catalog"),
        (["update", "--from", "no.json"], "mull: no such file: 'no.json'"),
    ],
)
def test_what_cannot_be_done_is_one_line(lines, words, line):
    assert lines(*words) == (2, [], [line])


def test_a_list(lines):
    status, out, err = lines("claude", "HAIKU", "--provider", "anthropic", "--reasoning")
    assert status == 0
    assert out[0].split() == ["model", "context", "output", "$", "per", "M", "in/out", "thinking"]
    assert [line.split()[0] for line in out[1:3]] == [
        "anthropic/claude-haiku-4-5",
        "anthropic/claude-haiku-4-5-20251001",
    ]
    assert out[1].split() == [
        "anthropic/claude-haiku-4-5",
        "200,000",
        "64,000",
        "1.00/5.00",
        "budget",
        "1,024–32,000",
    ]
    assert err == [f"{len(out) - 1} models"]


def test_the_whole_list_in_aligned_columns(lines):
    status, out, err = lines()
    count = sum(1 for _ in shipped().pairs())
    assert (status, len(out), err) == (0, count + 1, [f"{count:,} models"])
    column = out[0].index("thinking")
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in out)


def test_a_terminal_gets_lines_of_its_width(lines, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = lines("claude-haiku", "--provider", "anthropic")
    assert {len(line) for line in out} == {40}
    assert all(line.endswith("…") for line in out)


def test_a_list_as_json(lines):
    _, out, err = lines("deepseek-reasoner", "--provider", "deepseek", "--json")
    (row,) = json.loads(out[0])
    assert (row["provider"], row["model"], row["reasoning"]) == (
        "deepseek",
        "deepseek-reasoner",
        True,
    )
    assert err == ["1 model"]


def test_nothing_found(lines):
    assert lines("no-such-model-anywhere") == (1, [], ["0 models"])
    assert lines("no-such-model-anywhere", "--json") == (1, ["[]"], ["0 models"])


def whole_document() -> dict:
    """The shipped models as models.dev would give them."""
    catalog = shipped()
    document: dict = {}
    for provider, model in catalog.pairs():
        row = catalog.providers[provider]
        given = document.setdefault(
            provider,
            {"id": provider, "name": row.name, "env": row.env, "npm": row.npm, "models": {}},
        )
        entry = {"name": model, "limit": {}, **catalog.entry(provider, model)}
        given["models"][model] = {"id": model, **entry}
    document["anthropic"]["models"]["brand-new"] = {"name": "New", "limit": {"context": 5}}
    return document


def test_an_update_from_a_file(lines, tmp_path):
    path = tmp_path / "api.json"
    path.write_text(json.dumps(whole_document()))
    had = sum(1 for _ in shipped().pairs())
    status, out, err = lines("update", "--from", str(path))
    assert (status, err) == (0, [])
    assert out[0].startswith(f"{had + 1:,} models (before: {had:,}), stored in ")
    _, out, _ = lines("show", "brand-new")
    assert out[0] == "New (Anthropic)"
    path.write_text('{"anthropic": {}}')
    status, out, (line,) = lines("update", "--from", str(path))
    assert (status, out) == (2, [])
    assert line.startswith("mull: refused: the document has no providers with models (left out: ")
    assert lines("show", "brand-new")[0] == 0


def test_an_update_that_cannot_be_fetched(lines):
    status, out, (line,) = lines("update", "--from", "http://127.0.0.1:9/api.json")
    assert (status, out) == (1, [])
    assert line.startswith("mull: 127.0.0.1:9 cannot be reached: ")
    assert line.endswith("; the catalog is unchanged")


@pytest.mark.parametrize(
    ("amount", "text"),
    [(None, "?"), (0, "0.00"), (3, "3.00"), (0.075, "0.075"), (0.0125, "0.0125")],
)
def test_prices(amount, text):
    assert price(amount) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "yes, no levels known"),
        ((ReasoningOption("toggle"),), "on/off"),
        ((ReasoningOption("effort", ("high", "low")),), "low high"),
        ((ReasoningOption("budget_tokens", min=0),), "budget 0–?"),
        (
            (ReasoningOption("toggle"), ReasoningOption("budget_tokens", min=1, max=2000)),
            "on/off, budget 1–2,000",
        ),
    ],
)
def test_steering_in_a_few_words(options, text):
    assert steering(ModelFacts(reasoning=True, reasoning_options=options)) == text
    assert steering(ModelFacts(reasoning=True, can_be_off=False)) == "always on"
    assert steering(ModelFacts()) == "none"
    assert steering(ModelFacts(), known=False) == "unknown"
