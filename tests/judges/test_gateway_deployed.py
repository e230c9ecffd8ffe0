"""deploy/ as it is shipped, started with a token: Caddy, PostgreSQL, Valkey and two gateways, which
run as processes because a container engine may be missing. Only addresses, and the name that the
files say to replace, are changed. Claude Code is the client.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tools.agents import PATH, install
from tools.databases import postgres, valkey

from gateway.process import home_environ
from judges.test_gateway_agents import AGENTS, ASIDE, FILES, script
from judges.test_gateway_process import until
from mull.testing import StrictServer
from ports import free_port
from test_deploy import COMPOSE, DEPLOY, GATEWAYS, instruction

asyncpg = pytest.importorskip("asyncpg")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PASSWORD = "0123456789abcdef"
NAME = "localhost"
"""In the place of gateway.example: Caddy signs a certificate for it by itself."""
SERVED_PORT = "8484"


def find_caddy() -> str:
    """Caddy as this machine has it, or as Debian does: unpacked beside the virtual environment."""
    if found := shutil.which("caddy"):
        return found
    folder = Path(sys.prefix) / "caddy-judge"
    program = folder / "usr/bin/caddy"
    if not program.exists():
        folder.mkdir(exist_ok=True)
        download = ["apt-get", "download", "-qq", "caddy"]
        if subprocess.run(download, cwd=folder, check=False, capture_output=True).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
            subprocess.run(download, cwd=folder, check=True, capture_output=True)
        (package,) = folder.glob("caddy_*.deb")
        subprocess.run(["dpkg-deb", "-x", package, folder], check=True)
    return str(program)


class Deployment:
    """What compose.yaml describes, in a folder."""

    def __init__(self, folder: Path, upstream: str, store: str, cache: str) -> None:
        self.folder = folder
        self.ports = {name: free_port() for name in GATEWAYS}
        self.plain_port, self.port = free_port(), free_port()
        self.url = f"https://{NAME}:{self.port}"
        self._store, self._cache = store, cache
        text = (DEPLOY / "compose/serve.toml").read_text().replace("gateway.example", NAME)
        kimi = "[serve.models.kimi]\n"
        assert kimi in text
        self.config = folder / "serve.toml"
        self.config.write_text(text.replace(kimi, f'{kimi}base_url = "{upstream}"\n'))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def environ(self, name: str) -> dict[str, str]:
        """The variables of a gateway: those of compose.yaml, the image, and keys.env."""
        given = COMPOSE["services"][name]["environment"]
        store = re.sub(r"\$\{POSTGRES_PASSWORD:\?[^}]*\}", PASSWORD, given["MULL_STORE"])
        assert store == f"postgresql://mull:{PASSWORD}@postgres/mull"
        assert given["MULL_CACHE"] == "valkey://valkey:6379"
        data = self.folder / name
        data.mkdir(exist_ok=True)
        return home_environ(
            data,
            MULL_STORE=store.replace("@postgres/", f"@{self._store}/"),
            MULL_CACHE=self._cache,
            MULL_CONFIG_DIR=str(self.folder),
            MULL_DATA_DIR=str(data),
            MOONSHOT_API_KEY="sk-judge",
        )

    def command(self, *words: str) -> list[str]:
        """The entry point of the image, with these words behind it."""
        program, *given = json.loads(instruction("ENTRYPOINT"))
        assert program == "mull"
        given = [str(self.config) if word == "/etc/mull/serve.toml" else word for word in given]
        return [sys.executable, "-m", "mull", *given, *words]

    def add_token(self, name: str) -> str:
        """`docker compose run --rm gateway-1 token add NAME`"""
        command = self.command("token", "add", name)
        environ = self.environ("gateway-1")
        return subprocess.check_output(command, env=environ, text=True, timeout=60).strip()

    def start(self, name: str) -> None:
        """Start a gateway, and wait until its container would be healthy."""
        address = f"0.0.0.0:{self.ports[name]}"
        self._run(name, self.command("--listen", address), self.environ(name))
        until(lambda: self.is_healthy(name))

    def is_healthy(self, name: str) -> bool:
        """What the image's own check says."""
        check = json.loads(instruction("HEALTHCHECK").partition("CMD")[2])
        assert check[0] == "python"
        words = [word.replace(SERVED_PORT, str(self.ports[name])) for word in check[1:]]
        assert words != check[1:]
        done = subprocess.run([sys.executable, *words], check=False, capture_output=True)
        return done.returncode == 0

    def start_proxy(self) -> None:
        """Start Caddy, and wait until it reaches a gateway."""
        text = (DEPLOY / "compose/Caddyfile").read_text().replace("gateway.example", NAME)
        for name, port in self.ports.items():
            assert f"{name}:{SERVED_PORT}" in text
            text = text.replace(f"{name}:{SERVED_PORT}", f"127.0.0.1:{port}")
        ports = f"http_port {self.plain_port}\n https_port {self.port}"
        file = self.folder / "Caddyfile"
        file.write_text(f"{{\n {ports}\n admin off\n skip_install_trust\n}}\n{text}")
        command = [find_caddy(), "run", "--config", str(file), "--adapter", "caddyfile"]
        environ = home_environ(self.folder, XDG_DATA_HOME=str(self.folder / "caddy"))
        self._run("proxy", command, environ)
        until(self.authority.exists)
        until(lambda: self.ask(self.url, "/health")[0] == 200)

    @property
    def authority(self) -> Path:
        """The certificate of Caddy's own authority."""
        return self.folder / "caddy/caddy/pki/authorities/local/root.crt"

    def _run(self, name: str, command: list[str], environ: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def end(self, *names: str) -> None:
        """End these processes, or all."""
        for name in names or tuple(self.processes):
            process = self.processes.pop(name)
            process.kill()
            process.wait()

    def ask(self, url: str, path: str, token: str = "") -> tuple[int, dict]:
        """The status and the document at a path; 0 if nobody answers."""
        request = urllib.request.Request(url + path)
        if token:
            request.add_header("authorization", f"Bearer {token}")
        trusted = ssl.create_default_context(cafile=self.authority if "https" in url else None)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        try:
            with opener.open(request, timeout=10) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}
        except OSError:
            return 0, {}

    def to(self, name: str) -> str:
        """The address of one gateway, past the proxy."""
        return f"http://127.0.0.1:{self.ports[name]}"


@contextmanager
def deployed(folder: Path, upstream: str):
    """The deployment without its gateways; and its database, to be stopped."""

    async def make(url: str) -> None:
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE DATABASE mull")
        await connection.close()

    with postgres() as truth, valkey() as cache, ExitStack() as ends:
        asyncio.run(make(truth.url))
        made = Deployment(folder, upstream, f"127.0.0.1:{truth.port}", cache.url)
        ends.callback(made.end)
        yield made, truth


def ask_claude(made: Deployment, token: str, project: Path, words: list[str]) -> None:
    environ = home_environ(
        made.folder,
        PATH=PATH,
        NODE_EXTRA_CA_CERTS=str(made.authority),
        ANTHROPIC_BASE_URL=made.url,
        ANTHROPIC_AUTH_TOKEN=token,
        ANTHROPIC_MODEL="kimi",
        **AGENTS["claude-code"].quiet,
    )
    done = subprocess.run(
        ["claude", *words, "What is to buy?"],
        cwd=project,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert "Milk, bread and tea." in done.stdout, f"{done.stdout[-1000:]}{done.stderr[-2000:]}"


def test_claude_code_works_on_what_is_shipped_whichever_gateway_answers(tmp_path):
    agent = AGENTS["claude-code"]
    install(agent.package)
    project = tmp_path / "project"
    project.mkdir()
    for file, text in FILES.items():
        (project / file).write_text(text)
    with (
        StrictServer("kimi", script(agent, project), aside=ASIDE) as server,
        deployed(tmp_path, server.url) as (made, truth),
    ):
        token = made.add_token("ann")
        for name in GATEWAYS:
            made.start(name)
        made.start_proxy()
        assert made.ask(made.url, "/health") == (200, {"status": "ok"})
        assert made.ask(made.url, "/v1/models")[0] == 401
        ask_claude(made, token, project, agent.commands[0])
        made.end("gateway-1")
        ask_claude(made, token, project, agent.commands[1])
        assert [refused.reason for refused in server.refusals] == []
        longest = max(server.returned, key=len)
        issued = iter(server.issued)
        assert all(carrier in issued for carrier in longest)
        assert len(longest) == 5
        made.start("gateway-1")
        truth.stop()  # before either got a request for this client in its new process
        for name in GATEWAYS:
            until(lambda name=name: made.ask(made.to(name), "/health")[1]["status"] == "degraded")
            assert made.ask(made.to(name), "/health") == (200, {"status": "degraded"})
            assert made.is_healthy(name)
            assert made.ask(made.to(name), "/v1/models", token)[0] == 200
            assert made.ask(made.to(name), "/v1/models")[0] == 401
        assert made.ask(made.url, "/v1/models", token)[0] == 200
        truth.start()
        for name in GATEWAYS:
            until(lambda name=name: made.ask(made.to(name), "/health")[1] == {"status": "ok"})
