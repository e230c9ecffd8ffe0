"""What a downloaded document must be, and what becomes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import mull.catalog
from mull.catalog.load import Catalog, load, shipped
from mull.catalog.update import MAX_BYTES, check_update, pin
from mull.neutral.errors import CatalogError, ConfigError
from mull.store.catalog import load_base, load_catalog, save_update

CURRENT = (
    b'{"format":1,"sources":[{"name":"models.dev","date":"2020-01-01","what":"x"},'
    b'{"name":"other","date":null,"what":"y"}],"providers":1}\n'
    b'{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/openai-compatible",'
    b'"api":"https://acme/v1","models":{'
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
    return check_update(json.dumps(told).encode(), current(), date).data


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
            ),
            "a": model("a"),
        }
    )
    lines = [json.loads(line) for line in checked(told, "2026-08-01").splitlines()]
    assert lines[0] == {
        "format": 1,
        "pinned": True,
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
        ({"acme": {"id": "acme"}}, "refused: the document has no providers with models (left"),
        (document(models={}), "refused: the document has no providers with models"),
        (
            document(models={"b": model("b")}),
            "refused: the document has 1 models that can be used and the catalog 4; less than half"
            " cannot be right",
        ),
    ],
)
def test_what_is_refused(told, text):
    data = told if isinstance(told, bytes) else json.dumps(told).encode()
    with pytest.raises(CatalogError) as caught:
        check_update(data, current())
    assert str(caught.value).startswith(text)


def taken(told: dict):
    """The update of a document, with its lines by provider."""
    update = check_update(json.dumps(told).encode(), current())
    lines = [json.loads(line) for line in update.data.splitlines()[1:]]
    return update, {line["id"]: line for line in lines}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"id": "else"}, "'other': it calls itself 'else'"),
        ({"name": 3}, "'other': not a provider: Expected `str`, got `int` - at `$.name`"),
        ({"name": "a\x1b"}, "'other': 'a\\x1b' holds control characters"),
        ({"env": ["A\x9b"]}, "'other': 'A\\x9b' holds control characters"),
        ({"api": "file:///etc"}, "'other': 'file:///etc' is not a web address"),
        ({"api": "https://[x"}, "'other': 'https://[x' is not a web address"),
        ({"api": "http://1.2.3.4/v1"}, "'other': 'http://1.2.3.4/v1' is not encrypted"),
        ({"api": "http://127.0.0.1.evil.net"}, "'other': 'http://127.0.0.1.evil.net' is not enc"),
        ({"api": "https://a:b@h/v1"}, "'other': its address contains a user name or password"),
        ({"api": "${HOST}/v1"}, "'other': its address '${HOST}/v1' holds a variable: "),
        ({"api": "https://h/${OPENAI_API_KEY}"}, "'other': its address 'https://h/${OPENAI_API_"),
    ],
)
def test_a_provider_that_cannot_be_used_is_left_out_and_named(entry, text):
    other = {"id": "other", "name": "Other", "api": "https://o/v1", "models": {"m": model("m")}}
    update, lines = taken({**document(), "other": {**other, **entry}})
    assert list(lines) == ["acme"]
    (told,) = update.left_out
    assert told.startswith(text)


@pytest.mark.parametrize("name", ["OpenAI", "../x", "a b", "", "ü"])
def test_a_new_provider_has_a_plain_name(name):
    other = {"id": name, "name": "Other", "models": {"m": model("m")}}
    update, lines = taken({**document(), name: other})
    assert list(lines) == ["acme"]
    assert "its name is no lower-case word" in update.left_out[0]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (3, "acme/'x': not a model"),
        ({"id": "x", "name": "X"}, "acme/'x': it lacks its name or limit"),
        (model("x", reasoning="no"), "acme/'x': x: reasoning: expected `bool`, got `str`"),
        (model("x", provider={"api": "https://evil/v1"}), "acme/'x': its own address 'https://ev"),
    ],
)
def test_a_model_that_cannot_be_used_is_left_out_and_named(entry, text):
    update, lines = taken(document(models={"a": model("a"), "b": model("b"), "x": entry}))
    assert sorted(lines["acme"]["models"]) == ["a", "b", "c"]
    (told,) = update.left_out
    assert told.startswith(text)


@pytest.mark.parametrize(
    "reached",
    [
        {"api": "https://evil.net/v1"},
        {"api": "http://acme/v1"},
        {"env": ["GITHUB_TOKEN", "ACME_KEY"]},
        {"npm": "@ai-sdk/anthropic"},
        {"api": None, "env": [], "npm": None},
    ],
)
def test_where_keys_go_does_not_change(reached):
    update, lines = taken(document(**reached))
    acme = lines["acme"]
    assert (acme["api"], acme["env"]) == ("https://acme/v1", ["ACME_KEY"])
    assert acme["npm"] == "@ai-sdk/openai-compatible"
    assert bool(update.pinned) is bool(reached.get("api") or reached.get("env"))


def test_variables_that_only_mull_knows_are_no_change_of_where_keys_go():
    offered = {
        p.id: {"id": p.id, "name": p.name, "models": {}} for p in shipped().providers.values()
    }
    lines = (Path(mull.catalog.__file__).parent / "data" / "models.jsonl").read_bytes().splitlines()
    for line in lines[1:]:
        told = json.loads(line)
        offered[told["id"]] |= {"env": told["env"], "models": told["models"]}
    data = json.dumps({key: one for key, one in offered.items() if one["models"]}).encode()
    assert check_update(data, shipped()).pinned == ()


def test_a_known_model_is_reached_as_before():
    elsewhere = {"api": "https://evil.net", "npm": "@ai-sdk/anthropic", "shape": "responses"}
    _, lines = taken(document(models={"a": model("a", provider=elsewhere), "b": model("b")}))
    assert "provider" not in lines["acme"]["models"]["a"]


def test_a_new_provider_gets_no_key_by_itself():
    other = {"id": "other", "name": "Other", "env": ["OPENAI_API_KEY"], "api": "https://o/v1"}
    update, lines = taken({**document(), "other": {**other, "models": {"m": model("m")}}})
    assert update.added == ("other",)
    assert lines["other"]["env"] == []
    assert lines["other"]["api"] == "https://o/v1"
    again = load(base=update.data)
    moved = {**other, "api": "https://evil.net", "models": {"m": model("m")}}
    later = check_update(json.dumps({**document(), "other": moved}).encode(), again)
    assert load(base=later.data).providers["other"].api == "https://o/v1"


def test_a_provider_that_goes_and_comes_again_is_the_same():
    other = {"id": "other", "name": "Other", "api": "https://o/v1", "models": {"m": model("m")}}
    first = check_update(json.dumps({**document(), "other": other}).encode(), current())
    without = document(models={name: model(name) for name in "abcd"})
    gone = check_update(json.dumps(without).encode(), load(base=first.data), None, current())
    back = {**other, "api": "https://evil.net/v1"}
    last = check_update(
        json.dumps({**without, "other": back}).encode(), load(base=gone.data), None, current()
    )
    assert load(base=last.data).providers["other"].api == "https://o/v1"


def test_no_shipped_provider_can_be_moved():
    """The document says of every provider and model that they are elsewhere."""
    told = {}
    for one in shipped().providers.values():
        models = {
            name: {**model("m"), "provider": {"api": "https://evil.net"}} for name in one.models
        }
        told[one.id] = {
            "id": one.id,
            "name": one.name,
            "env": ["GITHUB_TOKEN"],
            "api": "https://evil.net/v1",
            "npm": "@ai-sdk/anthropic",
            "models": models,
        }
    update = check_update(json.dumps(told).encode(), shipped())
    assert b"evil.net" not in update.data
    assert b"GITHUB_TOKEN" not in update.data or any(
        "GITHUB_TOKEN" in one.env for one in shipped().providers.values()
    )
    found = load(base=update.data)
    for provider, name in shipped().pairs():
        assert found.reached(provider, name) == shipped().reached(provider, name)
        assert found.dialect(provider, name) == shipped().dialect(provider, name)


def test_an_update_that_was_stored_unpinned_is_pinned_when_it_is_read(places):
    moved = document(id="openai", name="OpenAI", env=["GITHUB_TOKEN"], api="https://evil.net")
    line = {**moved["acme"], "models": {"gpt-5": {**model("gpt-5"), "status": "beta"}}}
    new = {"id": "new", "name": "New", "env": ["GITHUB_TOKEN"], "api": "https://n/v1", "models": {}}
    header = {"format": 1, "sources": [{"name": "m", "what": "w", "date": "2099-01-01"}]}
    lines = [{**header, "providers": 2}, line, new]
    save_update(places[1], b"".join(json.dumps(one).encode() + b"\n" for one in lines))
    catalog = load_catalog(*places)
    assert catalog.providers["openai"].api == shipped().providers["openai"].api
    assert catalog.providers["openai"].env == shipped().providers["openai"].env
    assert catalog.entry("openai", "gpt-5")["status"] == "beta"
    assert catalog.providers["new"].env == ()
    assert load(base=pin(catalog, shipped())).header.pinned


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
    assert line.endswith("; `mull models update` rebuilds it")


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
