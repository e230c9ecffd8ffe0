"""Keys are planted wherever keys can be, every command is run, and all it wrote is searched.

RUNS has at least one row for every command there is: a new command needs its rows here.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from mull.auth.variables import key_variables
from mull.catalog.load import shipped
from mull.cli.main import COMMANDS, main
from mull.store.vault import SystemVault

# no piece of these has the shape of a real key: hiding what looks like one is not enough
ENVIRONMENT, STORED, HEADER, OWN, GITHUB = (
    f"plover-{word}-quill" for word in ("env", "stored", "header", "own", "github")
)
CANARIES = (ENVIRONMENT, STORED, HEADER, OWN, GITHUB)

CONFIG = f"""
model = "anthropic/claude-sonnet-4-5"
[providers.mine]
base_url = "https://mine.example/v1"
key_env = "MINE_VARIABLE"
headers = {{ "X-Gate" = "{HEADER}", "X-Filled" = "${{MINE_VARIABLE}}" }}
[providers.openai]
headers = {{ "X-Gate" = "{HEADER}" }}
"""
TALK = {"messages": [{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}]}
MODELS = (
    "openai/gpt-5",
    "openai/gpt-4o",
    "anthropic/claude-sonnet-4-5/high",
    "google/gemini-2.5-pro",
    "github-copilot/gpt-4.1",
    "moonshotai/kimi-k2-thinking",
    "mine/model",
)
RUNS = [
    "ask -m nonsense-model hello",
    "ask -m mine/model -f missing.txt hello",
    "ask -m mine/model --continue --json hello",
    "batch -m mine/model missing.jsonl",
    "fidelity no-such-adapter",
    "sweep -m mine/model missing.jsonl",
    "sweep -m mine/model talk.json",
    "batch -m nonsense-model talk.json",
    "batch -m openai/gpt-5 --provider-batch --no-wait talk.json",
    "chat -m mine/model",
    "mcp list",
    "mcp remove missing",
    "doctor mine/model",
    "local status",
    "doctor nonsense-model",
    "models",
    "models gpt --provider openai --json",
    "models show gpt-5",
    "models show mine/model --json",
    "models show nonsense-model",
    "models update --from talk.json",
    "models update --from missing.json",
    "trust",
    "strict openai --script missing.json",
    "strict kimi --run true",
    "serve --check -m openai/gpt-5",
    "serve --check -m nonsense-model",
    "serve --listen 0.0.0.0:1",
    "serve token add ann --rpm 5",
    "serve token list --json",
    "serve token revoke bob",
    "serve usage --json",
    "settings",
    "settings --json -m openai/gpt-5",
    "settings --set reasoning.effort=nonsense",
    "settings --config missing.toml",
    "profile list",
    "profile save work -m openai/gpt-5/high",
    "profile save mine -m mine/model",
    "profile save work",
    "profile show work --json",
    "profile load mine",
    "profile set-default work",
    "profile show missing",
    "profile delete work",
    "sessions list --all --json",
    "sessions show missing",
    "sessions search canary --all",
    "sessions tail",
    "sessions delete missing --yes",
    "sessions import messages.json --name kept",
    "sessions context kept -m openai/gpt-5",
    "sessions context kept --json -m mine/model",
    "sessions compress kept --strategy truncate",
    "sessions compress kept --undo",
    "sessions rename missing --auto",
    "sessions path",
    *(f"wire encode -m {model} talk.json" for model in MODELS),
    "wire encode -m openai/gpt-5 --dialect nonsense talk.json",
    "wire encode -m openai/gpt-5 answer.sse",
    "wire encode talk.json --compat {",
    "wire encode missing.json",
    *(f"wire decode -m {model} --chunk 3 answer.sse" for model in MODELS),
    "wire decode --chunk 0 answer.sse",
    "keys list",
    "keys list --json",
    "keys path",
    "keys set openai",
    "keys set openai --stdin --file",
    f"keys set openai {STORED}",
    "keys set opnai",
    "keys login openai",
    "keys delete cohere",
    "keys delete openai",
    "keys delete nonsense",
    "keys nonsense",
]


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """A home with keys in the environment, in the key file and in the config file."""
    monkeypatch.setitem(COMMANDS, "keys", ("mull.cli.keys", "keys"))
    monkeypatch.setattr(SystemVault, "keep", lambda *words: False)
    for provider in shipped().providers.values():
        for name in key_variables(provider.env):
            monkeypatch.setenv(name, GITHUB if name == "GITHUB_TOKEN" else ENVIRONMENT)
    monkeypatch.setenv("MINE_VARIABLE", OWN)
    write("MULL_CONFIG_DIR", "config.toml", CONFIG)
    stored = {"version": 1, "keys": dict.fromkeys(("openai", "anthropic", "mine"), STORED)}
    write("MULL_DATA_DIR", "keys.json", json.dumps(stored))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "talk.json").write_text(json.dumps(TALK))
    (tmp_path / "messages.json").write_text(json.dumps([{"role": "user", "content": "hi"}]))
    (tmp_path / "answer.sse").write_text('data: {"choices":[{"delta":{"content":"hi"}}]}\n\n')


def write(directory, name, text):
    path = Path(os.environ[directory]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)


def printed(words, capsys):
    """All that one command says, a traceback included."""
    sys.stdin = io.StringIO(STORED)
    try:
        main(words)
    except SystemExit:
        pass
    except Exception as error:
        print("".join(traceback.format_exception(error)), file=sys.stderr)
    out, err = capsys.readouterr()
    return out + err


def leaks(text):
    return [canary for canary in CANARIES if canary in text]


def leaks_in_files(*directories):
    """The canaries in any file but the two that they were planted in."""
    found = []
    for directory in directories:
        for path in Path(directory).rglob("*"):
            if path.is_file() and path.name not in ("keys.json", "config.toml"):
                found += [(str(path), canary) for canary in leaks(path.read_text(errors="replace"))]
    return found


def test_every_command_has_its_runs(planted):
    assert {line.split()[0] for line in RUNS} >= set(COMMANDS), "add rows to RUNS"


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
def test_no_command_shows_or_writes_a_key(planted, monkeypatch, capsys, tmp_path, debug):
    monkeypatch.setenv("DEBUG", debug)
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    said = {line: printed(line.split(), capsys) for line in RUNS}
    assert {line: leaks(text) for line, text in said.items() if leaks(text)} == {}
    assert leaks_in_files(os.environ["HOME"], tmp_path) == []
    # the commands did run, and did meet the keys
    assert "environment  OPENAI_API_KEY" in said["keys list"]
    assert "Stored the key for openai" in said["keys set openai"]
    assert '"authorization": "Bearer ***"' in said["wire encode -m openai/gpt-5 talk.json"]
    assert ("Traceback" in said["profile show missing"]) == bool(debug)


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
@pytest.mark.parametrize("place", ["keys.json", "X_KEY"])
def test_damaged_places_are_told_of_without_what_they_hold(
    planted, capsys, monkeypatch, place, debug
):
    monkeypatch.setenv("DEBUG", debug)
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    if place == "keys.json":
        write("MULL_DATA_DIR", "keys.json", f'{{"version":1,"keys":{{"openai":"{STORED}"')
    else:
        monkeypatch.setenv("OPENAI_API_KEY", f"{ENVIRONMENT}\n{ENVIRONMENT}")
    for line in ("keys list", "keys set openai", "keys delete openai", "models show gpt-5"):
        assert leaks(printed(line.split(), capsys)) == []


@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "debug"])
@pytest.mark.parametrize(
    "config",
    [
        f'[providers.mine]\napi_key = "{HEADER}"\n',
        f'[providers.mine]\nheaders = {{ "X-Gate" = "{HEADER}"\n',
        f'[providers.mine.headers]\nX-Gate = ["{HEADER}"]\n',
    ],
)
def test_a_damaged_config_file_is_told_of_without_the_keys_in_it(
    planted, capsys, monkeypatch, config, debug
):
    monkeypatch.setenv("DEBUG", debug)
    monkeypatch.setattr(sys, "stdin", sys.stdin)
    write("MULL_CONFIG_DIR", "config.toml", config)
    for line in ("settings", "keys list", "wire encode -m mine/model talk.json"):
        said = printed(line.split(), capsys)
        assert "config.toml" in said
        assert leaks(said) == []


@pytest.mark.parametrize(
    "config",
    [
        f'base_url = "https://mine.example"\nheaders = {{ "X-Gate" = "{HEADER}\\u0007" }}\n',
        f'base_url = "https://me:{HEADER}@mine.example"\n',
    ],
    ids=["header", "address"],
)
def test_a_key_in_a_config_value_is_not_shown(planted, capsys, config):
    write("MULL_CONFIG_DIR", "config.toml", f"[providers.mine]\n{config}")
    assert leaks(printed(["wire", "encode", "-m", "mine/model", "talk.json"], capsys)) == []


def test_a_real_process_that_fails_shows_no_key(planted):
    code = "import sys; from mull.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "wire", "encode", "-m", "mine/model", "missing.json"]
    run = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "DEBUG": "1"}, check=False
    )
    assert "Traceback" in run.stderr
    assert leaks(run.stdout + run.stderr) == []


def test_the_search_finds_what_is_there(planted, tmp_path, capsys):
    (tmp_path / "log.txt").write_text(f"key={STORED}")
    assert leaks_in_files(tmp_path) == [(str(tmp_path / "log.txt"), STORED)]
    assert leaks(f"Bearer {ENVIRONMENT}") == [ENVIRONMENT]
