"""`mull profile` as a person runs it, and that a refusal leaves the disk as it was."""

import io
import json
import os
from pathlib import Path

import pytest

from mull.settings.registry import REGISTRY, format_value
from mull.testing.server import Reply, ScriptedServer

CLAUDE = "anthropic/claude-sonnet-4-5"
TALK = b'{"messages": [{"role": "user", "blocks": [{"type": "text", "text": "Hi"}]}]}'


@pytest.fixture
def directory():
    return Path(os.environ["MULL_CONFIG_DIR"]) / "profiles"


def disk(directory):
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def put(directory, name, data):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.json").write_bytes(data)


def test_req_think_006_6_what_was_chosen_is_saved_and_comes_back(run, directory):
    out = run(
        "profile", "save", "work", "--set", "reasoning.effort=HIGH", "--set",
        "reasoning.stripFromContext=allbutlast", "--set", "reasoning.format=field",
        "--temperature", "0.5", "--max-tokens", "8000",
    )  # fmt: skip
    assert out == "Saved profile work.\n"
    assert json.loads((directory / "work.json").read_bytes()) == {
        "version": 1,
        "parameters": {"temperature": 0.5, "maxTokens": 8000},
        "settings": {
            "reasoning.effort": "high",
            "reasoning.format": "field",
            "reasoning.stripFromContext": "allButLast",
        },
    }
    assert run("profile", "show", "work") == (
        "temperature                 0.5\n"
        "maxTokens                   8000\n"
        "reasoning.effort            high\n"
        "reasoning.format            field\n"
        "reasoning.stripFromContext  allButLast\n"
    )
    shown = json.loads(run("settings", "--profile", "work", "--json"))["settings"]
    assert shown["reasoning.effort"]["value"] == "high"
    assert shown["reasoning.stripFromContext"]["layer"] == "profile"


OTHER = {
    "boolean": lambda s: not s.default,
    "choice": lambda s: next(one for one in reversed(s.choices) if one != s.default),
    "count": lambda s: 1234,
    "seconds": lambda s: 1.5,
    "share": lambda s: 0.5,
    "field": lambda s: "reasoning_text",
    "model": lambda s: "a/b",
}


@pytest.mark.parametrize("key", REGISTRY)
def test_req_think_006_6_a_chosen_default_holds_over_a_config_file(run, tmp_path, key):
    setting = REGISTRY[key]
    config = tmp_path / "c.toml"
    config.write_text(f"[settings]\n{key} = {json.dumps(OTHER[setting.kind](setting))}\n")
    over = "--config", str(config)
    run("profile", "save", "p", *over, "--set", f"{key}={format_value(setting.default)}")
    assert json.loads(run("profile", "show", "p", "--json"))["settings"] == {key: setting.default}
    assert run("profile", "show", "p").split() == [key, format_value(setting.default)]
    row = json.loads(run("settings", *over, "--profile", "p", "--json"))["settings"][key]
    assert (row["value"], row["layer"]) == (setting.default, "profile")
    row = json.loads(run("settings", *over, "--json"))["settings"][key]
    assert row["value"] == OTHER[setting.kind](setting)


def test_a_level_saved_over_a_budget_in_the_config_file_is_still_the_level(run, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("[settings]\nreasoning.maxTokens = 4000\n")
    run("profile", "save", "p", "--config", str(config), "-m", f"{CLAUDE}/high")
    found = json.loads(run("settings", "--config", str(config), "--profile", "p", "--json"))
    assert found["settings"]["reasoning.effort"]["value"] == "high"
    assert found["settings"]["reasoning.maxTokens"]["value"] is None


def test_a_model_is_saved_with_its_provider_and_its_level_as_a_setting(run, directory):
    run("profile", "save", "work", "-m", f"{CLAUDE}/high")
    saved = json.loads((directory / "work.json").read_bytes())
    assert saved == {
        "version": 1,
        "provider": "anthropic",
        "model": "claude-sonnet-4-5",
        "settings": {"reasoning.effort": "high"},
    }
    assert run("settings", "--profile", "work").splitlines()[0].split()[:3] == [
        "model", CLAUDE, "profile",
    ]  # fmt: skip


def test_a_preset_is_not_frozen_into_a_profile_but_overruling_it_is(run, directory):
    kimi = "moonshotai/kimi-k2-thinking"
    run("profile", "save", "a", "-m", kimi)
    run("profile", "save", "b", "-m", kimi, "--set", "reasoning.includeInContext=false")
    assert "settings" not in json.loads((directory / "a.json").read_bytes())
    assert json.loads((directory / "b.json").read_bytes())["settings"] == {
        "reasoning.includeInContext": False
    }


def test_a_model_that_only_a_url_knows_can_be_saved_and_loaded(run):
    run("profile", "save", "local", "-m", "openai-compatible/qwen3")
    assert "openai-compatible/qwen3" in run("profile", "load", "local")


def test_load_none_is_no_profile(run):
    assert run("profile", "load", "none").startswith("No profile: ")


def test_profiles_are_listed_with_the_default_marked(run, directory):
    assert run("profile", "list").startswith("No profiles saved yet")
    run("profile", "save", "work", "-m", CLAUDE)
    run("profile", "save", "a")
    run("profile", "set-default", "work")
    put(directory, "bad", b"{")
    assert run("profile", "list") == (
        f"  a\n  bad   damaged; `mull profile show bad` tells why\n* work  {CLAUDE}\n"
    )


def test_load_checks_and_shows_but_changes_nothing(run, directory, monkeypatch):
    run("profile", "save", "work", "--set", "reasoning.effort=high")
    monkeypatch.setenv("MULL_REASONING_EFFORT", "low")
    before = disk(directory)
    assert run("profile", "load", "work") == (
        "reasoning.effort  high\n"
        "reasoning.effort is overridden by the environment: low\n"
        "\nNothing was changed. To use it: --profile work, or always: "
        "`mull profile set-default work`.\n"
    )
    assert disk(directory) == before


def test_deleting_the_default_says_so(run, directory):
    run("profile", "save", "work")
    assert run("profile", "set-default", "work") == "The default profile is now work.\n"
    assert run("profile", "delete", "work") == (
        "Deleted profile work. It was the default; there is no default profile now.\n"
    )
    assert disk(directory) == {}
    run("profile", "save", "work")
    assert run("profile", "delete", "work") == "Deleted profile work.\n"
    assert run("profile", "set-default", "none") == "There is no default profile now.\n"


def test_saving_again_needs_overwrite_and_keeps_the_rest(run, directory):
    run("profile", "save", "work", "--temperature", "0.5", "--set", "reasoning.effort=low")
    before = disk(directory)
    assert run("profile", "save", "work", status=2) == (
        'mull: profile "work" already exists: --overwrite replaces it\n'
    )
    assert disk(directory) == before
    run(
        "profile", "save", "work", "--overwrite", "--profile", "work",
        "--set", "reasoning.summary=none", "--max-tokens", "5",
    )  # fmt: skip
    assert json.loads((directory / "work.json").read_bytes()) == {
        "version": 1,
        "parameters": {"temperature": 0.5, "maxTokens": 5},
        "settings": {"reasoning.effort": "low", "reasoning.summary": "none"},
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b'{"version": 1, "settings": {"reasoning.eff',
            'mull: profile "bad" is damaged (input data was truncated): '
            "fix its file or save it again\n",
        ),
        (
            b'{"version": 7}',
            'mull: profile "bad" has version 7 and this mull reads up to 1: '
            "upgrade mull, or save the profile again\n",
        ),
        (
            b'{"version": 1, "provider": "antropic", "model": "claude-sonnet-4-5"}',
            'mull: profile "bad" names an unknown provider, "antropic": '
            "did you mean anthropic? [providers.antropic] in config.toml adds one\n",
        ),
        (
            b'{"version": 1, "settings": {"reasoning.efort": "high"}}',
            'mull: profile "bad": there is no setting "reasoning.efort": '
            "did you mean reasoning.effort? `mull settings` lists all\n",
        ),
    ],
)
def test_err_001_and_ec_005_a_bad_profile_is_told_and_changes_nothing(
    run, directory, data, message
):
    run("profile", "save", "good", "--set", "reasoning.effort=low")
    run("profile", "set-default", "good")
    put(directory, "bad", data)
    before = disk(directory)
    assert run("profile", "load", "bad", status=2) == message
    assert run("settings", "--profile", "bad", status=2) == message
    assert disk(directory) == before
    assert "reasoning.effort             low" in run("settings")


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (("save", "x", "--set", "compression.model=sk-" + "a1B2" * 8), 'profile "x" was not saved'),
        (("save", "x", "--temperature", "9"), 'profile "x": temperature cannot be 9.0'),
        (("save", "x", "--max-tokens", "0"), 'profile "x": maxTokens cannot be 0'),
        (("save", "x", "--set", "reasoning.format=xml"), "reasoning.format cannot be"),
        (("save", "../x"), 'a profile cannot be called "../x"'),
        (("show", "y"), 'there is no profile "y"'),
        (("delete", "y"), 'there is no profile "y"'),
        (("set-default", "y"), 'there is no profile "y"'),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(run, directory, words, start):
    message = run("profile", *words, status=2)
    assert message.startswith(f"mull: {start}")
    assert "a1B2" not in message
    assert not directory.exists()


def test_show_json_is_the_file(run, directory):
    run("profile", "save", "work", "--set", "reasoning.effort=high")
    assert run("profile", "show", "work", "--json").encode() == disk(directory)["work.json"]


def test_a_profile_that_says_nothing(run):
    run("profile", "save", "plain")
    assert run("profile", "show", "plain") == "All defaults.\n"


REFUSED = Reply.json({"error": {"message": "no"}}, 403)


@pytest.mark.parametrize(
    "model",
    [
        "openai-compatible/zed",
        "anthropic/claude-sonnet-4-5",
        "google/gemini-2.5-pro",
        "openai/gpt-5.2",
        "someone/their-model",
    ],
)
def test_a_profile_goes_to_the_address_it_was_saved_with(call, directory, monkeypatch, model):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "k")
    with ScriptedServer([REFUSED] * 4) as server, ScriptedServer([REFUSED]) as other:
        place = ("-m", model, "--base-url", server.url)
        status, _, err = call("profile", "save", "loc", *place)
        assert (status, err) == (0, "")
        assert f"baseUrl  {server.url}\n" in call("profile", "show", "loc")[1]
        call("ask", "--profile", "loc", "1")
        call("ask", "--continue", "2")  # the session keeps it
        call("profile", "set-default", "loc")
        call("ask", "3")
        call("ask", "--profile", "loc", "--base-url", other.url, "4")
        call("profile", "save", "copy", "--profile", "loc")
        call("ask", "--profile", "copy", "5")
    assert [request.path for request in server.requests] == [server.requests[0].path] * 4
    assert len(other.requests) == 1


def test_a_profile_keeps_the_address_that_config_gives_its_provider(call, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    config = tmp_path / "own.toml"
    with ScriptedServer([REFUSED]) as server:
        config.write_text(f'[providers.anthropic]\nbase_url = "{server.url}"\n')
        assert call("profile", "save", "loc", "-m", CLAUDE, "--config", str(config))[0] == 0
        call("ask", "--profile", "loc", "1")
    assert len(server.requests) == 1


def test_no_other_provider_is_reached_at_a_profiles_address(call, run, monkeypatch):
    """Nor is a key of another one sent there."""
    monkeypatch.setattr("sys.stdin", io.StringIO('{"messages": []}'))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    run("profile", "save", "loc", "-m", CLAUDE, "--base-url", "http://127.0.0.1:9/own")
    for model, url in (
        ("openai/gpt-5.2", "https://api.openai.com/v1/responses"),
        ("anthropic/claude-opus-4-5", "http://127.0.0.1:9/own/messages"),
    ):
        encoded = call("wire", "encode", "--profile", "loc", "-m", model, "-", stdin=TALK)[1]
        assert json.loads(encoded)["url"].replace("/own/v1/", "/own/") == url


def test_a_profile_holds_no_key_of_its_address(call, directory):
    key = "sk-ant-api03-abcdefghij1234567890"
    url = f"https://gate.example/{key}/v1"
    status, out, err = call("profile", "save", "loc", "-m", CLAUDE, "--base-url", url)
    assert (status, out) == (0, "Saved profile loc.\n")
    assert "https://gate.example/${BASE_URL_KEY}/v1: give it again, or set BASE_URL_KEY" in err
    assert key.encode() not in (directory / "loc.json").read_bytes()
    for bad in ("https://me:pass@host/v1", "ftp://host"):
        status, _, err = call("profile", "save", "bad", "-m", CLAUDE, "--base-url", bad)
        assert status == 2
        assert "pass@" not in err
    assert not (directory / "bad.json").exists()
    assert "name one with -m" in run_error(call, "profile", "save", "x", "--base-url", "http://h")


def run_error(call, *words):
    status, out, err = call(*words)
    assert (status, out) == (2, "")
    return err


def test_a_profile_of_an_older_version_has_no_address_and_is_read(run, directory):
    put(directory, "old", b'{"version": 1, "provider": "anthropic", "model": "claude-sonnet-4-5"}')
    assert run("profile", "show", "old") == f"model  {CLAUDE}\n"


def test_an_address_that_cannot_be_one_is_refused_when_a_profile_is_read(run, directory):
    for url, why in ((5, "baseUrl cannot be that"), ("http://u:p@h", "baseUrl cannot be that")):
        data = {"version": 1, "provider": "anthropic", "model": "m", "baseUrl": url}
        put(directory, "bad", json.dumps(data).encode())
        assert why in run("profile", "show", "bad", status=2)
    put(directory, "bad", b'{"version": 1, "baseUrl": "http://h/v1"}')
    assert "name the provider" in run("profile", "show", "bad", status=2)


@pytest.mark.parametrize("model", ["openai-compatible/m/low", "anthropic/claude-sonnet-4-5/low"])
def test_a_profile_named_now_goes_before_what_the_session_has_stored(call, monkeypatch, model):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with ScriptedServer([REFUSED] * 4) as server:
        place = ("-m", model, "--base-url", server.url)
        call("profile", "save", "deep", "-m", model.removesuffix("/low"), "--base-url", server.url,
             "--set", "reasoning.effort=high")  # fmt: skip
        call("ask", *place, "--name", "talk", "1")
        call("ask", "--session", "talk", "--profile", "deep", "2")
        call("ask", "--session", "talk", "3")  # it goes on with it
        monkeypatch.setenv("REASONING_EFFORT", "low")
        call("ask", "--session", "talk", "--profile", "deep", "4")
    sent = [
        body.get("reasoning_effort") or body["thinking"]["budget_tokens"]
        for body in (request.json for request in server.requests)
    ]
    low, high = ("low", "high") if "compatible" in model else (22_016, 62_976)
    assert sent == [low, high, high, low]
