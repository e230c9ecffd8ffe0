"""The hand-written data files: every row can be read, is sourced, and says something of its own.

Wrong keys, unknown providers and mistyped globs fail here, not in a user's request. The last
tests hold the few numbers and switches that a request gets wrong most expensively.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import splintr

import mull.catalog
from every_model import every_target
from mull.catalog.families import maker_of
from mull.catalog.load import shipped
from mull.catalog.resolve import resolve
from mull.neutral.messages import Dialect
from mull.neutral.target import Compat, ModelFacts
from mull.neutral.thinking import WRITERS, as_level
from mull.store.keys import Keys

DATA = Path(mull.catalog.__file__).with_name("data")
DIALECTS = set(get_args(Dialect))
OPTIONS = "reasoning_options"
NOT_FACTS = {"cost", "limit", "release_date", "status", "source"}  # the catalog's own business


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text("utf-8"))


FAMILIES: list[dict[str, Any]] = _read("families.json")
COMPAT: list[dict[str, Any]] = _read("compat.json")
PROVIDERS: dict[str, Any] = _read("providers.json")


@cache
def _catalog() -> dict[str, dict[str, Any]]:
    lines = (DATA / "models.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines if line]
    return {record["id"]: record for record in records if "id" in record}


def _provider_ids() -> set[str]:
    return set(_catalog()) | set(PROVIDERS["providers"])


def _list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _name(row: dict[str, Any]) -> str:
    return " ".join(str(value) for value in row["match"].values())[:60]


def _options(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        option for part in ("facts", "defaults") for option in row.get(part, {}).get(OPTIONS, [])
    ]


every_row = pytest.mark.parametrize("row", FAMILIES + COMPAT, ids=_name)
every_family = pytest.mark.parametrize("row", FAMILIES, ids=_name)
every_compat = pytest.mark.parametrize("row", COMPAT, ids=_name)


@every_row
def test_a_row_says_where_and_when_it_was_read(row):
    assert len(row["source"].strip()) > 5
    assert date.fromisoformat(row["seen"]) >= date(2025, 1, 1)


@every_row
def test_a_row_matches_something(row):
    match = row["match"]
    assert match, "a row for everything belongs in the defaults of Compat"
    assert set(match) <= {"provider", "model", "dialect", "endpoint"}
    assert all(pattern for value in match.values() for pattern in _list(value))
    assert set(_list(match.get("dialect", []))) <= DIALECTS


@every_row
def test_a_provider_pattern_fits_a_provider(row):
    for pattern in _list(row["match"].get("provider", [])):
        assert any(fnmatchcase(one, pattern) for one in _provider_ids()), pattern


@pytest.mark.parametrize("rows", [FAMILIES, COMPAT], ids=["families", "compat"])
def test_no_two_rows_match_the_same(rows):
    matches = [json.dumps(row["match"], sort_keys=True) for row in rows]
    twice = {match for match in matches if matches.count(match) > 1}
    assert not twice


@every_family
def test_a_family_row_holds_facts(row):
    assert set(row) <= {"match", "maker", "facts", "defaults", "budget", "source", "seen"}
    assert {"maker", "facts", "defaults", "budget"} & set(row), "the row says nothing"
    for part in ("facts", "defaults"):
        values = row.get(part, {})
        assert set(values) <= set(ModelFacts.__struct_fields__) - NOT_FACTS
        msgspec.convert({k: v for k, v in values.items() if v is not None}, ModelFacts)
    assert set(row.get("budget", {})) <= {"min", "max"}


@every_family
def test_a_family_row_steers_in_known_words(row):
    efforts = {part: row.get(part, {}).get("default_effort") for part in ("facts", "defaults")}
    assert all(as_level(word) == word for word in efforts.values() if word)
    for option in _options(row):
        assert option["type"] in {"toggle", "effort", "budget_tokens"}
        values = option.get("values", [])
        assert [as_level(word) for word in values] == values
        assert (option["type"] == "effort") == bool(values)
    for budget in [row.get("budget", {}), *_options(row)]:
        assert budget.get("min", 0) < budget.get("max", 1 << 30)


@every_family
def test_a_vocabulary_says_whether_it_is_exact(row):
    defaults = row.get("defaults", {})
    assert ("tokenizer" in defaults) == ("tokenizer_exact" in defaults)


def test_every_vocabulary_can_be_loaded():
    names = {
        row[part]["tokenizer"]
        for row in FAMILIES
        for part in ("facts", "defaults")
        if "tokenizer" in row.get(part, {})
    }
    assert len(names) > 5
    for name in names:
        assert splintr.Tokenizer.from_pretrained(name).encode("mull keeps a model's thinking")


def test_every_maker_is_a_provider_with_models():
    makers = {row["maker"] for row in FAMILIES if "maker" in row}
    assert makers <= set(_catalog())
    assert {"anthropic", "openai", "google", "moonshotai", "deepseek", "zai"} <= makers


def test_presets_are_settings():
    for row in FAMILIES:
        presets = row.get("defaults", {}).get("presets", {})
        assert set(presets) <= {"reasoning.includeInContext"}
        assert set(presets.values()) <= {True, False}


@pytest.mark.sweep
def test_by_default_no_model_forgets_unless_its_maker_says_so():
    forgetting = Counter()
    for (_, model), target in every_target().items():
        if not target.facts.reasoning:
            continue
        advised = target.facts.presets.get("reasoning.includeInContext")
        maker = maker_of(shipped().families, model)
        if target.facts.interleaved or maker in ("anthropic", "xai", "mistral", "xiaomi"):
            assert advised is True, target.name
        elif target.dialect in ("openai-responses", "gemini", "anthropic"):
            assert advised in (True, False), target.name
        elif re.search("claude|gemini|(opus|sonnet|haiku)-4|(glm|minimax|kimi)-latest", model):
            assert advised is True, target.name
        if advised is False:
            forgetting[maker] += 1
    assert set(forgetting) == {"alibaba", "deepseek", "google", "nvidia", "zai", None}


@every_compat
def test_a_compat_row_is_read_strictly(row):
    assert set(row) <= {"match", "dialect", "set", "source", "seen"}
    assert row["set"] or "dialect" in row, "the row says nothing"
    assert row.get("dialect", "anthropic") in DIALECTS
    msgspec.convert(row["set"], Compat)
    assert row["set"].get("thinkingWriter", "none") in WRITERS


def test_a_misspelt_compat_key_would_be_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"reasoning_out": "same"}, Compat)


@pytest.mark.parametrize("row", [r for r in COMPAT if "provider" not in r["match"]], ids=_name)
def test_a_row_for_any_server_leaves_unknown_ones_alone(row):
    narrowed = {"model", "endpoint"} & set(row["match"])
    assert narrowed or row["match"]["dialect"] != "openai-chat"


def test_dialects_are_named_for_packages_of_the_catalog():
    packages = {record.get("npm") for record in _catalog().values()}
    for package, dialect in PROVIDERS["dialects"].items():
        assert package in packages
        assert dialect in DIALECTS
    spoken = [PROVIDERS["dialects"].get(p.get("npm"), "openai-chat") for p in _catalog().values()]
    assert set(spoken) == DIALECTS


def test_every_base_url_is_for_a_provider_that_lacks_one_and_every_key_variable_is_another_one():
    for name, entry in PROVIDERS["providers"].items():
        assert entry["source"]
        if name in _catalog():
            known = _catalog()[name]
            assert ("api" in entry) != ("api" in known), name
            assert {"source"} < set(entry) <= {"env", "api", "source"}
            assert "env" not in entry or {*known["env"]} < {*entry["env"]}
        else:
            assert {"name", "env", "npm", "doc", "models"} <= set(entry)
        url = entry.get("api")
        assert url is None or url.startswith(("https://", "http://127.0.0.1:"))
        assert url is None or not url.endswith("/")
    assert PROVIDERS["providers"]["openai-compatible"].get("api") is None


@pytest.mark.parametrize(
    "aliases",
    [
        "zai: ZAI_API_KEY ZHIPU_API_KEY Z_AI_API_KEY",
        "zai-coding-plan: ZAI_API_KEY ZHIPU_API_KEY",
        "zhipuai: ZHIPUAI_API_KEY ZHIPU_API_KEY ZAI_API_KEY",
        "google: GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY GEMINI_API_KEY",
        "moonshotai: MOONSHOT_API_KEY KIMI_API_KEY",
        "huggingface: HF_TOKEN HUGGING_FACE_HUB_TOKEN HUGGINGFACEHUB_API_TOKEN",
        "togetherai: TOGETHER_API_KEY TOGETHER_AI_API_KEY TOGETHERAI_API_KEY",
        "alibaba: DASHSCOPE_API_KEY",
        "azure: AZURE_API_KEY AZURE_OPENAI_API_KEY",
        "cohere: COHERE_API_KEY CO_API_KEY",
        "deepinfra: DEEPINFRA_API_KEY DEEPINFRA_TOKEN",
        "xiaomi: XIAOMI_API_KEY MIMO_API_KEY",
        "cloudflare-workers-ai: CLOUDFLARE_API_KEY CLOUDFLARE_API_TOKEN",
    ],
)
def test_a_key_is_found_under_every_name_that_the_providers_own_tools_use(aliases, tmp_path):
    provider, names = aliases.split(": ")
    entry = shipped().providers[provider]
    for name in names.split():
        found = Keys(tmp_path, {name: "sk-own"}).find(provider, entry.env)
        assert found is not None, name
        assert (found.key.reveal(), found.place.variable) == ("sk-own", name)


def test_models_without_an_address_are_those_that_need_a_login_of_their_own():
    found = Counter(provider for (provider, _), to in every_target().items() if to.endpoint is None)
    assert found.keys() == {"sap-ai-core", "gitlab", "local"}


def test_an_unknown_server_gets_the_cautious_defaults():
    target = resolve("nobody/knows-this", base_url="https://llm.example.org/v1")
    assert target.compat == Compat()
    assert not target.facts.reasoning


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("anthropic/claude-sonnet-4-5", 1024, 64000),
        ("anthropic/claude-opus-4-5", 1024, 64000),
        ("anthropic/claude-haiku-4-5", 1024, 32000),
        ("anthropic/claude-3-7-sonnet-20250219", 1024, 32000),
        ("anthropic/claude-opus-4-1", 1024, 32000),
        ("anthropic/claude-nobody-knows-9", 1024, 64000),
        ("google/gemini-2.5-pro", 128, 32768),
        ("google/gemini-2.5-flash", 0, 24576),
        ("google/gemini-2.5-flash-lite", 512, 24576),
    ],
)
def test_budget_ranges(name, low, high):
    budget = resolve(name).facts.budget
    assert budget is not None
    assert (budget.min, budget.max) == (low, high)


@pytest.mark.parametrize(
    ("name", "writer", "can_be_off"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic-budget", True),
        ("anthropic/claude-opus-4-7", "anthropic-adaptive", True),
        ("anthropic/claude-sonnet-5-5", "anthropic-adaptive", True),
        ("anthropic/claude-opus-5-5", "anthropic-adaptive", False),
        ("anthropic/claude-fable-5", "anthropic-adaptive", False),
        ("github-copilot/claude-sonnet-4.5", "anthropic-budget", True),
        ("github-copilot/claude-opus-4.8", "anthropic-adaptive", True),
        ("github-copilot/gpt-5.4", "usual", True),
        ("google/gemini-2.5-flash-lite", "gemini-budget", True),
        ("google/gemini-3.5-flash", "gemini-level", False),
        ("openai/gpt-5", "responses", False),
        ("openai/gpt-5.6-sol", "responses", True),
        ("moonshotai/kimi-k2.6", "thinking-type", True),
        ("moonshotai/kimi-k3", "openai-effort", False),
        ("moonshotai/kimi-k2-thinking", "none", False),
        ("deepseek/deepseek-v4-flash", "thinking-type", True),
        ("zai/glm-5.2", "thinking-type", True),
        ("zai/glm-5.3", "thinking-type", False),
        ("minimax/MiniMax-M2.5", "none", False),
        ("minimax/MiniMax-M3", "anthropic-adaptive", True),
        ("alibaba/qwen3-8b", "enable-thinking", True),
        ("mistral/mistral-large-4", "openai-effort", False),
        ("xai/grok-4.3", "responses", True),
        ("xai/grok-4.20-0309-reasoning", "none", False),
        ("openrouter/anthropic/claude-sonnet-4.5", "openrouter", True),
        ("vllm/Qwen/Qwen3-8B", "template-kwargs", True),
        ("ollama/gpt-oss:20b", "openai-effort", False),
    ],
)
def test_how_thinking_is_switched(name, writer, can_be_off):
    target = resolve(name)
    assert target.compat.thinking_writer == writer
    assert target.facts.can_stop_thinking is can_be_off


def test_claude_sonnet_5_5_is_off_between_tools():
    assert resolve("anthropic/claude-sonnet-5-5").facts.off_type == "between_tools"
    assert resolve("anthropic/claude-opus-4-8").facts.off_type == "disabled"


@pytest.mark.parametrize(
    "name", ["claude-opus-4-7", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5"]
)
def test_a_claude_that_refuses_budgets_lists_none(name):
    facts = resolve(f"anthropic/{name}").facts
    assert facts.budget is None
    assert facts.efforts == ("low", "medium", "high", "xhigh", "max")


@pytest.mark.parametrize(
    ("name", "requires", "filler"),
    [
        ("moonshotai/kimi-k2-thinking", "tool_calls", ""),
        ("moonshotai/kimi-k2.6", "all", " "),
        ("moonshotai/kimi-k3", "all", " "),
        ("deepseek/deepseek-v4-pro", "all", ""),
        ("openrouter/deepseek/deepseek-v4-pro", "all", ""),
        ("fireworks-ai/accounts/fireworks/models/deepseek-v4-pro", "all", ""),
        ("deepseek/deepseek-r1", "no", None),
        ("mistral/magistral-medium-latest", "no", None),
        ("openrouter/moonshotai/kimi-k2-thinking", "tool_calls", None),
    ],
)
def test_what_must_be_sent_back(name, requires, filler):
    compat = resolve(name).compat
    assert (compat.requires_reasoning, compat.missing_reasoning) == (requires, filler)


def test_strict_servers_get_their_own_field():
    assert resolve("groq/openai/gpt-oss-120b").compat.reasoning_out == "reasoning"
    assert resolve("cerebras/gpt-oss-120b").compat.reasoning_out == "reasoning"
    assert resolve("deepseek/deepseek-r1").compat.reasoning_out == "never"


def test_a_route_of_the_same_vendor_has_its_own_row():
    target = resolve("minimax/MiniMax-M2.5", base_url="https://api.minimax.io/v1")
    assert target.dialect == "openai-chat"
    assert target.compat.extra_body == {"reasoning_split": True}
    assert resolve("minimax/MiniMax-M2.5").dialect == "anthropic"


def test_dated_ids_do_not_fall_into_the_next_version():
    assert resolve("openai/gpt-5-2025-08-07").facts.efforts[0] == "minimal"
    assert resolve("anthropic/claude-sonnet-4-20250514").facts.reasoning
    assert resolve("alibaba/qwen3-8b").facts.tokenizer_exact
    assert not resolve("alibaba/qwen3.7-max").facts.tokenizer_exact


@pytest.mark.parametrize("provider", ["togetherai", "huggingface", "ollama-cloud", "openrouter"])
def test_copies_of_models_that_need_their_history_keep_it(provider):
    kept = ("kimi-k2.6", "kimi-k2-thinking", "deepseek-v4-", "minimax-m2.", "minimax-m3")
    seen = 0
    for model in _catalog()[provider]["models"]:
        if model.rpartition("/")[2].lower().startswith(kept):
            seen += 1
            assert resolve(f"{provider}/{model}").facts.presets["reasoning.includeInContext"]
    assert seen


@pytest.mark.parametrize(
    ("name", "steered"),
    [
        ("github-copilot/gpt-5.2", {"effort"}),
        ("github-copilot/claude-sonnet-4", {"budget_tokens"}),
        ("openrouter/z-ai/glm-4.6", {"toggle"}),
        ("chutes/Qwen/Qwen3-32B-TEE", {"toggle"}),
        ("orcarouter/openai/gpt-5.1", {"effort"}),
    ],
)
def test_an_empty_list_of_options_says_nothing_and_the_family_is_asked(name, steered):
    provider, _, model = name.partition("/")
    assert _catalog()[provider]["models"][model][OPTIONS] == []
    assert {option.type for option in resolve(name).facts.reasoning_options} == steered


def test_only_what_a_row_says_makes_a_model_that_always_thinks():
    claimed = 0
    for provider, record in _catalog().items():
        for model, entry in record["models"].items():
            if entry.get("reasoning") and not entry.get(OPTIONS):
                facts = every_target()[provider, model].facts
                claimed += facts.always_thinks
                assert facts.always_thinks == (
                    not facts.reasoning_options and facts.can_be_off is False
                )
    assert claimed > 100
    assert not resolve("github-models/meta/llama-3.3-70b-instruct").facts.always_thinks
    assert resolve("moonshotai/kimi-k2-thinking").facts.always_thinks


def test_ids_that_end_in_thinking_think_by_themselves():
    assert resolve("302ai/claude-opus-4-1-20250805-thinking").facts.thinks_by_default
    assert resolve("anthropic/claude-opus-4-1").facts.thinks_by_default is False
    assert resolve("ollama/deepseek-v3.1").facts.thinks_by_default
