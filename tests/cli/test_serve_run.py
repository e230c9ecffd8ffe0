"""`mull serve --print-setup` and `mull serve run`, with a client that tells what it was given."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from gateway.conftest import free_port, serving
from gateway.process import LIMIT_S, MULL, write_config
from mull.cli import serve_run
from mull.store.serve import ServedModel
from mull.testing.server import Reply, ScriptedServer

COMMAND = "serve"
MODEL = "moonshotai/kimi-k2.5"
UPSTREAM = {"model": MODEL, "base_url": "http://127.0.0.1:9"}
CLIENT = """#!{python}
import json, os, sys, urllib.request
config = dict(word.split("=", 1) for word in sys.argv if "=" in word)
url = json.loads(config["model_providers.mull"].split("base_url = ")[1].split(",")[0])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
key = os.environ.get("MULL_TOKEN", "none")
asked = urllib.request.Request(url + "/models", headers={{"authorization": "Bearer " + key}})
listed = json.load(opener.open(asked))
print(json.dumps(dict(argv=sys.argv[1:], url=url, listed=listed, proxy=os.environ["NO_PROXY"])))
sys.exit(7)
"""
PAUSING = "import signal; signal.pause()"
WAITING = """#!{python}
import signal, sys
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


def told_by(config):
    """What the client was given by `mull serve run codex`."""
    command = [*MULL, "serve", "--config", config, "run", "codex"]
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
