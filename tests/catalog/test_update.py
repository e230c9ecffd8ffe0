"""What a downloaded document must be, and what becomes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mull.catalog.load import Catalog, load, shipped
from mull.catalog.update import MAX_BYTES, check_update
from mull.neutral.errors import CatalogError, ConfigError
from mull.store.catalog import load_base, load_catalog, save_update

CURRENT = (
    b'{"format":1,"sources":[{"name":"models.dev","date":"2020-01-01","what":"x"},'
    b'{"name":"other","date":null,"what":"y"}],"providers":1}\n'
    b'{"id":"acme","name":"Acme","models":{'
    b'"a":{"name":"A","can_be_off":false,"source":"other","status":"beta"},'
    b'"b":{"name":"B"},"c":{"name":"C","source":"other"},"d":{"name":"D"}}}\n'
)


def model(name: str, **fields) -> dict:
    return {"id": name, "name": name.upper(), "limit": {"context": 10, "output": 5}, **fields}


def document(**provider) -> dict:
    given = {
        "id": "acme",
        "name": "Acme",
        "env": ["ACME_KEY"],
        "npm": "@ai-sdk/openai-compatible",
        "api": "https://acme/v1",
        "doc": "https://doc",
        "models": {"b": model("b"), "a": model("a")},
    }
    return {"acme": {**given, **provider}}


def current() -> Catalog:
    """The catalog of CURRENT alone, without the model that mull brings itself."""
    catalog = load(base=CURRENT)
    del catalog.providers["local"]
    return catalog


def checked(told: dict, date: str | None = None) -> bytes:
    return check_update(json.dumps(told).encode(), current(), date)


def test_the_canonical_form():
    told = document(
        models={
            "b": model(
                "b",
                modalities={"input": ["text", "pdf"], "output": ["text"]},
                reasoning=True,
                reasoning_options=[{"type": "toggle"}],
                interleaved={"field": "reasoning_content"},
                attachment=True,
                provider={"npm": "@ai-sdk/anthropic"},
            ),
            "a": model("a"),
        }
    )
    lines = [json.loads(line) for line in checked(told, "2026-08-01").splitlines()]
    assert lines[0] == {
        "format": 1,
        "providers": 1,
        "sources": [
            {
                "name": "models.dev",
                "date": "2026-08-01",
                "what": "every provider and model that names no other source",
            },
            {"name": "other", "date": None, "what": "y"},
        ],
    }
    limit = {"context": 10, "output": 5}
    assert lines[1:] == [
        {
            "id": "acme",
            "name": "Acme",
            "env": ["ACME_KEY"],
            "npm": "@ai-sdk/openai-compatible",
            "api": "https://acme/v1",
            "doc": "https://doc",
            "models": {
                "a": {"name": "A", "limit": limit, "can_be_off": False, "source": "other"},
                "b": {
                    "name": "B",
                    "limit": limit,
                    "input": ["text", "pdf"],
                    "reasoning": True,
                    "reasoning_options": [{"type": "toggle"}],
                    "interleaved": {"field": "reasoning_content"},
                    "provider": {"npm": "@ai-sdk/anthropic"},
                },
                "c": {"name": "C", "source": "other"},
            },
        }
    ]


def test_the_same_document_gives_the_same_bytes():
    told = document()
    shuffled = {"acme": dict(reversed(told["acme"].items()))}
    assert checked(told) == checked(shuffled)


def test_what_is_written_can_be_loaded():
    catalog = load(base=checked(document(), "2026-08-01"))
    assert catalog.facts("acme", "a").can_be_off is False
    assert catalog.header.date == "2026-08-01"


@pytest.mark.parametrize(
    ("told", "text"),
    [
        (b"<html>", "refused: not JSON: "),
        (b"\xff\xfe", "refused: not JSON: "),
        (b"[]", "refused: not a models.dev document: Expected `object`, got `array`"),
        (b"{}", "refused: the document has no providers with models"),
        ({"acme": {"id": "acme"}}, "refused: not a models.dev document: "),
        (document(models={}), "refused: the document has no providers with models"),
        (document(id="else"), "refused: the provider 'acme' calls itself 'else'"),
        (document(api="file:///etc"), "refused: acme: 'file:///etc' is not a web address"),
        (document(name="a\x1b"), "refused: 'acme': 'a\\x1b' holds control characters"),
        (
            document(models={"b": {"id": "b", "name": "B"}, "a": model("a")}),
            "refused: acme.models.b lacks its name or limit",
        ),
        (
            document(models={"b": model("b", reasoning="no"), "a": model("a")}),
            "refused: acme.models.b: reasoning: expected `bool`, got `str`",
        ),
        (
            document(models={"b": model("b")}),
            "refused: the document has 1 models and the catalog 4; less than half cannot be right",
        ),
    ],
)
def test_what_is_refused(told, text):
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    with pytest.raises(CatalogError) as caught:
        check_update(data, current())
    assert str(caught.value).startswith(text)


def test_a_huge_document_is_refused():
    with pytest.raises(CatalogError, match="is too large for a list of models"):
        check_update(b" " * (MAX_BYTES + 1), load(base=CURRENT))


def test_deep_nesting_is_refused():
    with pytest.raises(CatalogError, match=r"^refused: "):
        check_update(b'{"a":' * 100_000, load(base=CURRENT))


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "config").mkdir()
    return tmp_path / "config", tmp_path / "data"


def said(lines: list[str]):
    return lines.append


def test_without_files_it_is_the_shipped_catalog(places):
    catalog = load_catalog(*places)
    assert list(catalog.pairs()) == list(shipped().pairs())


def test_a_stored_update_stands_in(places):
    save_update(places[1], checked(document(), "2099-01-01"))
    found = [pair for pair in load_catalog(*places).pairs() if pair[0] != "local"]
    assert found == [("acme", "a"), ("acme", "b"), ("acme", "c")]


def test_a_stored_update_that_is_older_than_the_package_is_passed_over(places):
    save_update(places[1], checked(document(), "2020-01-01"))
    assert list(load_catalog(*places).pairs()) == list(shipped().pairs())


def test_a_damaged_update_falls_back_with_one_line(places):
    lines: list[str] = []
    path = save_update(places[1], checked(document(), "2099-01-01")[:-40])
    assert list(load_base(places[1], said(lines)).pairs()) == list(shipped().pairs())
    (line,) = lines
    assert line.startswith(f"{path} is not used: the catalog file is damaged: ")
    assert line.endswith("; `mull models update` writes it anew")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_update_falls_back(places):
    lines: list[str] = []
    save_update(places[1], b"").chmod(0)
    load_catalog(*places, warn=said(lines))
    assert len(lines) == 1


def test_a_users_models_go_over_the_catalog(places):
    own = {"anthropic": {"models": {"mine": {"limit": {"context": 7}}, "claude-fable-5": {}}}}
    (places[0] / "models.json").write_text(json.dumps(own))
    catalog = load_catalog(*places, overlays=[{"acme": {"models": {"x": {}}}}])
    assert catalog.facts("anthropic", "mine").limit.context == 7
    assert catalog.facts("anthropic", "mine").source == "your models.json"
    assert catalog.entry("acme", "x") == {}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not a JSON object of providers: "),
        ("[]", "not a JSON object of providers: "),
        ('{"a": 1}', "a: a provider must be an object"),
        ('{"a": {"models": {"m": {"limit": 3}}}}', "a.models.m: limit: expected `object`"),
    ],
)
def test_a_users_broken_file_is_an_error_that_names_it(places, text, told):
    path = places[0] / "models.json"
    path.write_text(text)
    with pytest.raises(CatalogError) as caught:
        load_catalog(*places)
    assert str(caught.value).startswith(f"{path}: {told}")


def test_a_models_file_that_cannot_be_read_is_an_error(places):
    (places[0] / "models.json").mkdir()
    with pytest.raises(ConfigError, match="cannot read"):
        load_catalog(*places)
