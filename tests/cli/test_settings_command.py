"""`mull settings` as a person runs it: layers from files, environment and options, and refusals."""

import json
import os
from pathlib import Path

import pytest

from mull.cli.main import main
from mull.settings.registry import REGISTRY

KIMI = "moonshotai/kimi-k2-thinking"


@pytest.fixture
def config():
    directory = Path(os.environ["MULL_CONFIG_DIR"])
    directory.mkdir(parents=True)
    return directory


def lines(capsys, *words):
    assert main(["settings", *words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return {line.split()[0]: line.split()[1:3] for line in out.splitlines() if line}


def refusal(capsys, *words):
    assert main(["settings", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_every_setting_is_shown_with_its_layer_and_help(capsys):
    assert main(["settings"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out] == ["model", *REGISTRY]
    for line, setting in zip(out[1:], REGISTRY.values(), strict=True):
        assert line.endswith(f"  {setting.help}")
        assert " default " in line
    assert len({line.index("default ") for line in out}) == 1


def test_err_001_a_bad_value_is_one_line_and_status_2(capsys):
    assert refusal(capsys, "--set", "reasoning.format=xml") == (
        'mull: reasoning.format cannot be "xml": use field or native\n'
    )
    assert refusal(capsys, "--set", "reasoning.effort") == (
        'mull: --set "reasoning.effort" has no value: use --set KEY=VALUE\n'
    )


def test_each_layer_is_named_and_the_later_wins(capsys, config, monkeypatch):
    (config / "config.toml").write_text(
        '[settings]\nreasoning.effort = "low"\nreasoning.format = "native"\n'
        'context.limit = 9000\nreasoning.summary = "concise"\n'
    )
    (config / "profiles").mkdir()
    (config / "profiles" / "p.json").write_text(
        '{"version": 1, "settings": {"reasoning.effort": "medium", "context.limit": 8000, '
        '"reasoning.summary": "detailed"}}'
    )
    monkeypatch.setenv("MULL_REASONING_EFFORT", "high")
    monkeypatch.setenv("MULL_CONTEXT_LIMIT", "7000")
    shown = lines(capsys, "--profile", "p", "--set", "reasoning.effort=max")
    assert shown["reasoning.format"] == ["native", "config"]
    assert shown["reasoning.summary"] == ["detailed", "profile"]
    assert shown["context.limit"] == ["7000", "environment"]
    assert shown["reasoning.effort"] == ["max", "session"]
    assert shown["reasoning.enabled"] == ["true", "default"]


def test_the_default_profile_is_used_unless_another_or_none_is_named(capsys, config):
    main(["profile", "save", "p", "--set", "reasoning.effort=low"])
    main(["profile", "set-default", "p"])
    capsys.readouterr()
    assert lines(capsys)["reasoning.effort"] == ["low", "profile"]
    assert lines(capsys, "--profile", "none")["reasoning.effort"] == ["unset", "default"]


def test_a_missing_default_profile_says_how_to_go_on(capsys, config):
    main(["profile", "save", "p"])
    main(["profile", "set-default", "p"])
    capsys.readouterr()
    (config / "profiles" / "p.json").unlink()
    assert refusal(capsys) == (
        'mull: there is no profile "p": none is saved yet\n'
        "It is the default profile; `mull profile set-default none` removes the default\n"
    )
    assert main(["profile", "set-default", "none"]) == 0


def test_clearing_words_bring_the_default_back(capsys, monkeypatch):
    monkeypatch.setenv("REASONING_EFFORT", "high")
    shown = lines(capsys, "--set", "reasoning.effort=unset", "--set", "reasoning.format=default")
    assert shown["reasoning.effort"] == ["unset", "session"]
    assert shown["reasoning.format"] == ["field", "session"]


def test_the_environment_warns_of_what_others_may_mean_and_refuses_what_is_ours(
    capsys, monkeypatch
):
    monkeypatch.setenv("THINKING", "hard")
    assert main(["settings"]) == 0
    assert capsys.readouterr().err == (
        'mull: THINKING is ignored: "hard" is not a valid value, use on or off\n'
    )
    monkeypatch.delenv("THINKING")
    monkeypatch.setenv("MULL_REASONING_ENABLED", "hard")
    assert refusal(capsys) == (
        'mull: MULL_REASONING_ENABLED: reasoning.enabled cannot be "hard": use true or false\n'
    )


def test_a_broken_config_file_is_one_line_and_stays_as_it_is(capsys, config):
    path = config / "config.toml"
    path.write_bytes(b'[settings]\nreasoning.ef\tfort = "high"\n')
    before = path.read_bytes()
    assert refusal(capsys) == (
        "mull: config.toml, line 2, column 14: expected '=' after a key in a key/value pair\n"
    )
    assert path.read_bytes() == before


def test_a_config_file_can_be_named(capsys, tmp_path):
    path = tmp_path / "other.toml"
    assert refusal(capsys, "--config", str(path)).startswith("mull: no such file: ")
    path.write_text("[settings]\nreasoning.enabled = false\n")
    assert lines(capsys, "--config", str(path))["reasoning.enabled"] == ["false", "config"]


def test_json_says_the_same(capsys):
    assert main(["settings", "--json", "--set", "reasoning.maxTokens=50,000"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["model"] == {"value": None, "layer": None}
    assert list(shown["settings"]) == list(REGISTRY)
    row = shown["settings"]["reasoning.maxTokens"]
    assert (row["value"], row["layer"], row["default"]) == (50_000, "session", None)
    assert row["environment"] == "MULL_REASONING_MAX_TOKENS"


def test_br_001_a_models_preset_is_shown_and_can_be_overruled(capsys):
    assert main(["settings", "-m", KIMI]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("reasoning.includeInContext"))
    assert row.split()[1:3] == ["true", "preset"]
    assert out.endswith(
        f"\n\n{KIMI} requires its thinking back, in reasoning_content; a preset sends it.\n"
    )
    for option in ("reasoning.includeInContext=false", "model.presets=off"):
        shown = lines(capsys, "-m", KIMI, "--set", option)
        assert shown["reasoning.includeInContext"][0] == "false"


def test_a_level_behind_the_model_is_its_effort_and_an_option_overrules_it(capsys):
    shown = lines(capsys, "-m", "anthropic/claude-sonnet-4-5/med")
    assert shown["model"] == ["anthropic/claude-sonnet-4-5", "session"]
    assert shown["reasoning.effort"] == ["medium", "session"]
    shown = lines(
        capsys, "-m", "anthropic/claude-sonnet-4-5/med", "--set", "reasoning.maxTokens=50000"
    )
    assert shown["reasoning.maxTokens"] == ["50000", "session"]


def test_an_unknown_model_is_told(capsys):
    assert refusal(capsys, "-m", "no-such-model-at-all").startswith("mull: there is no model ")


def test_a_provider_of_the_users_own(capsys, config, monkeypatch):
    (config / "config.toml").write_text(
        '[providers.acme]\nbase_url = "http://localhost:8080/v1"\ndialect = "anthropic"\n'
        '[models."acme/big"]\ninterleaved = { field = "reasoning" }\n'
    )
    shown = lines_with_note(capsys, "-m", "acme/big")
    assert shown[0]["reasoning.includeInContext"] == ["true", "preset"]
    assert shown[1] == "acme/big requires its thinking back, in reasoning; a preset sends it."


def lines_with_note(capsys, *words):
    assert main(["settings", *words]) == 0
    table, _, note = capsys.readouterr().out.partition("\n\n")
    rows = {line.split()[0]: line.split()[1:3] for line in table.splitlines()}
    return rows, note.strip()
