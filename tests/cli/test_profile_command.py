"""`mull profile` as a person runs it, and that a refusal leaves the disk as it was."""

import json
import os
from pathlib import Path

import pytest

from mull.settings.registry import REGISTRY, format_value

CLAUDE = "anthropic/claude-sonnet-4-5"


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
