"""The catalog as it is read: what is shipped, what overlays do, what damage does."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from mull.catalog import compat, families
from mull.catalog import load as load_module
from mull.catalog.load import Catalog, Header, Provider, Source, load, shipped, shipped_date
from mull.catalog.match import Match, glob
from mull.neutral.errors import CatalogError, UnknownModel
from mull.neutral.target import Interleaved, Limit, ModelFacts, ReasoningOption

HEADER = (
    b'{"format":1,"sources":[{"name":"here","date":"2026-01-02","what":"all"}],"providers":1}\n'
)
LINE = (
    b'{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/anthropic","api":"https://a.cme",'
    b'"doc":"https://doc","models":{"m-1":{"name":"M One","reasoning":true,'
    b'"reasoning_options":[{"type":"budget_tokens","min":100}],'
    b'"limit":{"context":1000,"output":500},"cost":{"input":1,"output":2}},'
    b'"m-2":{"name":"M Two","reasoning":false,"limit":{"context":9,"output":0},'
    b'"provider":{"shape":"responses"}}}}\n'
)
BASE = HEADER + LINE


def small(**rows) -> Catalog:
    """A catalog of one provider with family rows of one's own."""
    read = load(base=BASE)
    found = tuple(msgspec.convert(row, families.Family) for row in rows.get("families", ()))
    spoken = {"@ai-sdk/anthropic": "anthropic", "": "openai-chat", "responses": "openai-responses"}
    return Catalog(read.header, read.providers, spoken, found, ())


def family(**row) -> dict:
    return {"match": {"model": "*"}, "source": "here", "seen": "2026-01-02", **row}


def test_importing_reads_nothing():
    code = (
        "import builtins, io, pathlib\n"
        "def no(*a, **k): raise SystemExit('a file was read')\n"
        "import mull.catalog.load as module\n"
        "assert not module.shipped.cache_info().currsize\n"
        "pathlib.Path.read_bytes = no\n"
        "import mull.catalog.resolve, mull.catalog.update\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shipped_catalog():
    catalog = shipped()
    assert catalog.header == Header(
        1,
        (
            Source(
                "models.dev", "every provider and model that names no other source", "2026-07-02"
            ),
            Source(
                "litellm 1.108.4",
                "model_prices_and_context_window.json: later models, and facts missing above",
            ),
        ),
        147,
    )
    assert shipped_date() == "2026-07-02"
    assert sum(1 for _ in catalog.pairs()) >= 5276
    assert catalog.providers["deepseek"].api == "https://api.deepseek.com"
    assert catalog.providers["deepseek"].env == ("DEEPSEEK_API_KEY",)
    assert catalog.entry("moonshotai", "kimi-k2-thinking")["interleaved"] == {
        "field": "reasoning_content"
    }


def test_the_shipped_file_reads_the_same_without_a_look_at_its_models():
    lines = (load_module._DATA / "models.jsonl").read_bytes().partition(b"\n")[2]
    whole = load_module._read_whole(lines, 0)
    heads = load_module._read_heads(lines, 0)
    assert heads == whole
    assert [bytes(row.raw) for row in heads] == [bytes(row.raw) for row in whole]


def test_one_lookup_decodes_one_model():
    provider = shipped().providers["anthropic"]
    assert isinstance(provider, Provider)
    assert {type(raw) for raw in provider.models.values()} == {msgspec.Raw}


def test_every_shipped_entry_becomes_facts():
    catalog = shipped()
    reasoning = 0
    for provider, model in catalog.pairs():
        facts = catalog.facts(provider, model)
        reasoning += facts.reasoning
        budget, output = facts.budget, facts.limit.output
        if budget is not None and budget.max is not None and output:
            assert budget.max <= output, (provider, model)
    assert reasoning >= 3186


def test_entry_and_facts_of_a_model_nobody_has():
    for call in (shipped().entry, shipped().facts, shipped().reached):
        with pytest.raises(UnknownModel, match=r"^acme/m is not in the catalog$"):
            call("acme", "m")
    with pytest.raises(UnknownModel):
        shipped().entry("anthropic", "nope")


def test_facts_of_an_entry():
    assert small().facts("acme", "m-1") == ModelFacts(
        name="M One",
        reasoning=True,
        reasoning_options=(ReasoningOption("budget_tokens", min=100),),
        limit=Limit(1000, 500),
        cost={"input": 1, "output": 2},
    )


def test_dialect_of_npm_and_of_a_models_own_way():
    catalog = small()
    assert catalog.dialect("acme", "m-1") == "anthropic"
    assert catalog.dialect("acme", "m-2") == "openai-responses"


def test_families_later_rows_win_key_by_key():
    catalog = small(
        families=[
            family(maker="first", facts={"family": "a", "status": "beta"}),
            family(facts={"family": "b"}, defaults={"tokenizer": "t", "name": "never"}),
            family(match={"model": "other*"}, facts={"family": "c"}),
            family(match={"dialect": "anthropic"}, defaults={"limit": {"input": 7}}),
            family(match={"model": "m-*", "provider": "else"}, facts={"family": "d"}),
        ]
    )
    facts = catalog.facts("acme", "m-1")
    assert (facts.family, facts.status, facts.tokenizer, facts.name) == ("b", "beta", "t", "M One")
    assert facts.limit == Limit(1000, 500, 7)
    assert families.maker_of(catalog.families, "x/M-1") == "first"


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        ({"min": 1, "max": 400}, (100, 400)),
        ({"min": 1, "max": 64000}, (100, 500)),
        ({}, (100, None)),
    ],
)
def test_a_family_completes_a_budget_within_the_output_limit(budget, expected):
    option = small(families=[family(budget=budget)]).facts("acme", "m-1").budget
    assert option is not None
    assert (option.min, option.max) == expected


def test_a_family_gives_no_budget_where_there_is_none():
    facts = small(families=[family(budget={"min": 1, "max": 2})]).facts("acme", "m-2")
    assert facts.budget is None


def test_overlays_merge_field_by_field_and_the_later_wins():
    catalog = load(
        [
            {"acme": {"models": {"m-1": {"limit": {"context": 5}, "cost": None}}}},
            {"Acme": {"api": "http://b", "models": {"m-1": {"limit": {"context": 6}}}}},
            {"own": {"models": {"x": {"reasoning": True, "interleaved": {"field": "r"}}}}},
        ],
        BASE,
    )
    assert catalog.entry("acme", "m-1") == {
        "name": "M One",
        "reasoning": True,
        "reasoning_options": [{"type": "budget_tokens", "min": 100}],
        "limit": {"context": 6, "output": 500},
    }
    assert catalog.providers["acme"].api == "http://b"
    assert catalog.providers["acme"].name == "Acme"
    assert catalog.providers["acme"].env == ("ACME_KEY",)
    assert catalog.providers["own"].name == "own"
    assert catalog.facts("own", "x").interleaved == Interleaved("r")
    assert catalog.dialect("own", "x") == "openai-chat"


def test_an_overlay_may_be_a_piece_of_models_dev():
    entry = {"id": "x", "modalities": {"input": ["text"], "output": ["text"]}, "knowledge": "2026"}
    catalog = load([{"own": {"id": "own", "models": {"x": entry}}}], BASE)
    assert catalog.entry("own", "x") == {"input": ["text"]}


def test_an_overlay_may_name_its_dialect():
    catalog = load([{"own": {"dialect": "gemini", "models": {"x": {}}}}], BASE)
    assert catalog.dialect("own", "x") == "gemini"


@pytest.mark.parametrize(
    ("overlay", "text"),
    [
        ({"own": 3}, "own: a provider must be an object"),
        ({"own": {"models": []}}, "own.models: must be an object of models"),
        ({"own": {"models": {"x": 1}}}, "own.models.x: a model must be an object"),
        (
            {"own": {"models": {"x": {"limit": {"context": "1"}}}}},
            "own.models.x: limit.context: expected `int | null`, got `str`",
        ),
        (
            {"own": {"models": {"x": {"reasoning": "yes"}}}},
            "own.models.x: reasoning: expected `bool`, got `str`",
        ),
        (
            {"own": {"models": {"x": {"name": "a\x1b[2J"}}}},
            "own.models.x: its name holds control characters",
        ),
        ({"own": {"env": "KEY"}}, "own: Expected `array`, got `str` - at `$.env`"),
    ],
)
def test_a_malformed_overlay_names_the_place(overlay, text):
    with pytest.raises(CatalogError) as caught:
        load([overlay], BASE)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "the catalog file is damaged: "),
        (HEADER, "the catalog file is damaged: it holds 0 of 1 providers"),
        (BASE[:-20], "the catalog file is damaged: "),
        (BASE.replace(b'"format":1', b'"format":2'), "the catalog file has format 2, not 1"),
        (b"\xff" + BASE, "the catalog file is damaged: "),
    ],
)
def test_a_damaged_base_is_refused(data, text):
    with pytest.raises(CatalogError) as caught:
        load(base=data)
    assert str(caught.value).startswith(text)


def test_a_damaged_entry_is_named_when_it_is_looked_up():
    catalog = load(base=HEADER + LINE.replace(b'"name":"M One"', b'"name":1'))
    with pytest.raises(CatalogError, match=r"^acme/m-1: damaged facts: .*name"):
        catalog.facts("acme", "m-1")


def test_search():
    catalog = load(base=BASE)
    del catalog.providers["local"]  # the model that mull brings itself
    assert catalog.search("m") == [("acme", "m-1"), ("acme", "m-2")]
    assert catalog.search("TWO acme") == [("acme", "m-2")]
    assert catalog.search("", reasoning=True) == [("acme", "m-1")]
    assert catalog.search("", reasoning=False) == [("acme", "m-2")]
    assert catalog.search("m-1", provider="ACME") == [("acme", "m-1")]
    assert catalog.search("three") == []
    with pytest.raises(CatalogError, match=r"^there is no provider 'x' in the catalog$"):
        catalog.search("m", provider="x")


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "", True),
        ("a*", "abc", True),
        ("*c", "abc", True),
        ("a*c", "abc", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c", False),
        ("ab*ba", "aba", False),
        ("a*a", "a", False),
        ("k?", "k2", True),
        ("k[12]*", "k1-x", True),
        ("k[12]*", "k3-x", False),
    ],
)
def test_glob(pattern, text, fits):
    assert glob(pattern, text) is fits


def test_a_model_pattern_fits_the_id_or_its_last_segment():
    match = Match(model=("Kimi-*", "x"))
    assert match.fits_model("moonshotai/KIMI-K2")
    assert match.fits_model("kimi-k2")
    assert not match.fits_model("kimi")
    assert not Match(provider="x").fits_model("kimi")


def test_every_shipped_row_is_well_formed():
    catalog = shipped()
    assert catalog.families
    assert all(row.source and row.seen for row in catalog.families)
    assert {row.maker for row in catalog.families if row.maker} <= set(catalog.providers)
    rows = [{"match": {}, "set": row.values} for row in catalog.compat_rows]
    assert len(compat.read_rows(rows)) == len(rows)
    assert all(row.source and row.seen for row in catalog.compat_rows)
