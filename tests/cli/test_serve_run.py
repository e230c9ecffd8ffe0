"""`mull serve --print-setup` and `mull serve run`, with a client that tells what it was given."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.conftest import serving
from gateway.process import LIMIT_S, MULL, write_config
from mull.agent.engine import LOCAL_PROVIDERS
from mull.agent.usable import EMBEDDED_MODEL
from mull.cli import serve_run
from mull.gateway.setups import HOME, Wiring
from mull.store.serve import ServedModel
from mull.testing.server import Reply, ScriptedServer
from ports import closed_port, free_port

COMMAND = "serve"
MODEL = "moonshotai/kimi-k2.5"
UPSTREAM = {"model": MODEL, "base_url": "http://127.0.0.1:9"}
CLIENT = """#!{python}
import json, os, sys, urllib.request
if sys.argv[1:] == ["debug", "models", "--bundled"]:
    print(json.dumps(dict(models=[dict(slug="gpt", base_instructions="You are Codex.")])))
    sys.exit(0)
config = dict(word.split("=", 1) for word in sys.argv if "=" in word)
url = json.loads(config["model_providers.mull"].split("base_url = ")[1].split(",")[0])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
key = os.environ.get("MULL_TOKEN", "none")
asked = urllib.request.Request(url + "/models", headers={{"authorization": "Bearer " + key}})
listed = json.load(opener.open(asked))
told = dict(argv=sys.argv[1:], url=url, listed=listed, proxy=os.environ["NO_PROXY"])
print(json.dumps(dict(told, environ=dict(os.environ))))
sys.exit(7)
"""
PAUSING = "import signal; signal.pause()"
WAITING = """#!{python}
import signal, sys
if sys.argv[1] == "debug":  # asked about its models: it has none to tell
    sys.exit(1)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("up", flush=True)
signal.pause()
"""


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Installs a program as codex."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("MULL_TOKEN", raising=False)

    def client(text):
        (folder / "codex").write_text(text.format(python=sys.executable))
        (folder / "codex").chmod(0o755)

    client(CLIENT)
    return client


@pytest.fixture
def config(tmp_path):
    """A configuration with one model, at this port or any."""
    return lambda port=None: str(
        write_config(tmp_path / "serve.toml", port or free_port(), {"kimi": UPSTREAM})
    )


def test_run_starts_a_gateway_and_the_client_and_passes_arguments_and_status(
    client, config, tmp_path
):
    command = [*MULL, "serve", "--config", config(), "run", "codex", "exec", "-m", "x", "--", "-y"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stderr) == (7, "")
    told = json.loads(done.stdout)
    assert told["argv"][-5:] == ["exec", "-m", "x", "--", "-y"]
    assert [model["id"] for model in told["listed"]["data"]] == ["kimi"]
    assert "127.0.0.1" in told["proxy"]
    assert not (tmp_path / ".codex").exists()


def told_by(config, *options):
    """What the client was given by `mull serve run codex`."""
    command = [*MULL, "serve", "--config", config, *options, "run", "codex"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 7, done.stderr
    return json.loads(done.stdout)


def test_run_uses_a_gateway_that_answers(client, config):
    with serving({"kimi": ServedModel(**UPSTREAM)}) as url:
        assert told_by(config(int(url.rpartition(":")[2])))["url"] == f"{url}/v1"


def test_run_serves_beside_whatever_else_has_the_port(client, config):
    with ScriptedServer(lambda _: Reply.json({"status": "ok"})) as other:
        told = told_by(config(int(other.url.rpartition(":")[2])))
    assert not told["url"].startswith(other.url)
    assert [model["id"] for model in told["listed"]["data"]] == ["kimi"]


def test_run_says_that_a_token_is_missing(client, config, run):
    def reply(request):
        if request.path == "/health":
            return Reply.json({"status": "ok"}, headers={"x-mull": "gateway"})
        return Reply.json({}, 401)

    with ScriptedServer(reply) as other:
        port = int(other.url.rpartition(":")[2])
        said = run("--config", config(port), "run", "codex", status=2)
    assert said == (
        f"mull: the gateway at {other.url} needs a token: set MULL_TOKEN to yours; "
        "`mull serve token add NAME` creates one\n"
    )


def test_where_there_are_tokens_the_client_shows_the_users(client, config, call, run, monkeypatch):
    file = config()
    assert 'api_key="none"' in run("--config", file, "--print-setup", "openai")
    *_, token = call("--config", file, "token", "add", "ann")[1].split()
    assert "MULL_TOKEN" in run("--config", file, "--print-setup", "openai")
    assert "needs a token" in run("--config", file, "run", "codex", status=2)
    monkeypatch.setenv("MULL_TOKEN", token)
    told = told_by(file)
    assert [model["id"] for model in told["listed"]["data"]] == ["kimi"]
    assert token not in " ".join(told["argv"])


def test_run_says_how_to_install_a_client(config, run, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert run("--config", config(), "run", "codex", status=2) == (
        "mull: codex is not on the PATH: install codex with `npm install -g @openai/codex`\n"
    )


def test_a_signal_that_comes_while_the_client_starts_is_not_lost(monkeypatch):
    start = asyncio.create_subprocess_exec

    async def starting(*words, **options):
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.sleep(0)
        return await start(*words, **options)

    async def run():
        async with asyncio.timeout(LIMIT_S):
            return await serve_run._client([sys.executable, "-c", PAUSING], os.environ)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", starting)
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        assert asyncio.run(run()) == 128 + signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 9), (signal.SIGHUP, 129)])
def test_signals_go_to_the_client(client, config, number, status):
    client(WAITING)
    command = [*MULL, "serve", "--config", config(), "run", "codex"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(number)
        assert process.wait(LIMIT_S) == status


def test_print_setup_has_the_configured_address_and_model(config, run):
    lines = run("--config", config(8123), "--print-setup", "claude-code").splitlines()
    assert "export ANTHROPIC_BASE_URL=http://127.0.0.1:8123" in lines
    assert "export ANTHROPIC_MODEL=kimi" in lines
    assert lines[-1] == "claude"


def test_print_setup_names_no_model_where_none_is_chosen(run):
    assert "# the model is" in run("--print-setup", "openai")
    assert f'# the model is "{MODEL}"' in run("-m", MODEL, "--print-setup", "openai")


def test_print_setup_knows_the_window(run):
    assert "MAX_CONTEXT_SIZE=262144" in run("-m", MODEL, "--print-setup", "kimi-code")


SECRETS = {
    "ACME_API_KEY": "canary",
    "DB_PASSWORD": "canary",
    "PGPASSWORD": "canary",
    "TEAM": "canary",
    "CACHE": "canary",
    "MOONSHOT_API_KEY": "canary",
    "GH_TOKEN": "allowed",
    "EDITOR": "vi",
}


def test_the_client_gets_no_keys_but_those_that_the_user_lets_through(
    client, config, tmp_path, monkeypatch
):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    tools = Path(os.environ["MULL_CONFIG_DIR"]) / "tools.toml"
    tools.parent.mkdir(parents=True, exist_ok=True)
    tools.write_text('[tools]\nenvironment = ["GH_TOKEN"]\n')
    file = Path(config())
    more = 'key_env = "TEAM"\n[providers.acme]\nbase_url = "https://x/${CACHE}/v1"\n'
    file.write_text(file.read_text() + more)
    told = told_by(str(file))
    assert "canary" not in json.dumps(told)
    assert (told["environ"]["GH_TOKEN"], told["environ"]["EDITOR"]) == ("allowed", "vi")


def test_the_client_tells_about_itself_without_keys_too(client, config, tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "canary")
    told = tmp_path / "told.json"
    text = CLIENT.replace(
        "    sys.exit(0)", f"    open({str(told)!r}, 'w').write(str(os.environ))\n    sys.exit(0)"
    )
    client(text.replace("{{}}", "{{}}"))
    argv = told_by(config())["argv"]
    assert "canary" not in told.read_text()
    (catalog,) = [word for word in argv if word.startswith("model_catalog_json=")]
    written = json.loads(Path(json.loads(catalog.partition("=")[2])).read_text())
    assert written["models"][0]["slug"] == "kimi"


WINDOW = 40_960


def local_server(request):
    row = {"id": "qwen", "object": "model", "owned_by": "vllm", "max_model_len": WINDOW}
    return Reply.json({"object": "list", "data": [row]})


@pytest.fixture
def local(tmp_path):
    """A configuration without models, and a vLLM server at the usual place of such servers."""
    with ScriptedServer(local_server) as server:
        lines = ["[serve]", f'listen = "127.0.0.1:{free_port()}"']
        for name in LOCAL_PROVIDERS:
            url = f"{server.url}/v1" if name == "vllm" else f"http://127.0.0.1:{closed_port()}/v1"
            lines += [f'[providers."{name}"]', f'base_url = "{url}"']
        file = tmp_path / "local.toml"
        file.write_text("\n".join(lines) + "\n")
        yield str(file)


@pytest.mark.usefixtures("inspected_servers")
def test_setups_have_the_window_that_a_local_server_reports(local, run):
    given = ("--config", local, "-m", "vllm/qwen", "--print-setup")
    assert f"CLAUDE_CODE_MAX_CONTEXT_TOKENS={WINDOW}" in run(*given, "claude-code")
    assert f"KIMI_MODEL_MAX_CONTEXT_SIZE={WINDOW}" in run(*given, "kimi-code")
    assert f"GOOSE_CONTEXT_LIMIT={WINDOW}" in run(*given, "goose")
    assert f'"context": {WINDOW}' in run(*given, "opencode")


@pytest.mark.usefixtures("inspected_servers")
def test_a_configured_name_has_the_window_of_its_server(run, tmp_path):
    with ScriptedServer(local_server) as server:
        model = {"model": "acme/qwen", "base_url": f"{server.url}/v1"}
        file = write_config(tmp_path / "named.toml", free_port(), {"mine": model})
        assert f"={WINDOW}" in run("--config", str(file), "--print-setup", "kimi-code")


def test_plain_serve_offers_the_models_of_local_servers(client, local):
    told = told_by(local)
    (listed,) = (one for one in told["listed"]["data"] if one["id"] != EMBEDDED_MODEL)
    assert (listed["id"], listed["context_length"]) == ("vllm/qwen", WINDOW)
    assert 'model="vllm/qwen"' in told["argv"]  # the only one beside the embedded model
    assert f"model_context_window={WINDOW}" in told["argv"]


@pytest.mark.usefixtures("inspected_servers")
def test_check_names_the_models_of_local_servers(local, run):
    assert "✓ vllm/qwen" in run("--config", local, "--check")


def test_files_of_mull_are_renewed_and_those_of_the_client_are_not(tmp_path):
    wiring = Wiring({"AT": HOME}, files={"ours": "1"}, first={"a/theirs": "1"})
    assert serve_run._wired(wiring, tmp_path, {})["AT"] == str(tmp_path)
    for name in ("ours", "a/theirs"):
        (tmp_path / name).write_text("2")
    serve_run._wired(wiring, tmp_path, {})
    assert (tmp_path / "ours").read_text() == "1"
    assert (tmp_path / "a" / "theirs").read_text() == "2"


def test_a_client_that_does_not_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(serve_run, "_ANSWER_SECONDS", 0.05)
    assert asyncio.run(serve_run._told([sys.executable, "-c", PAUSING], os.environ)) == ""
    assert asyncio.run(serve_run._told(["/nowhere"], os.environ)) == ""
