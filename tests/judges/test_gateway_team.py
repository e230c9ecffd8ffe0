"""Two real gateways on one store: they share tokens and limits, and lose no count when one dies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from mull.testing import Say, StrictServer, Think
from ports import free_port

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SCRIPT = [[Think("Let me see. " * 3), Say("Milk.")]] * 500
LIMIT, CLIENTS = 40, 8
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]}).encode()


def mull(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mull", "serve", *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@contextmanager
def served(url: str, tmp_path: Path):
    """A gateway of its own process, and its address."""
    port = free_port()
    config = tmp_path / f"{port}.toml"
    config.write_text(
        f'[serve]\nlisten = "127.0.0.1:{port}"\n'
        f'[serve.models.m]\nmodel = "moonshotai/kimi-k2.5"\nbase_url = "{url}"\n'
    )
    command = [sys.executable, "-m", "mull", "serve", "--config", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"mull serves at")
            address = f"http://127.0.0.1:{port}"
            while status(address, "/health", "", b"") == 0:
                time.sleep(0.05)
            yield address, process
        finally:
            process.kill()


def status(address: str, path: str, token: str, body: bytes = BODY) -> int:
    """The status of one request; 0 where nobody answers."""
    request = urllib.request.Request(address + path, data=body or None)
    request.add_header("authorization", f"Bearer {token}")
    request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except urllib.error.URLError:
        return 0


@pytest.fixture
def home(tmp_path, monkeypatch):
    for name in ("MULL_DATA_DIR", "MULL_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


def test_two_gateways_share_a_limit_and_a_killed_one_loses_no_count(home):
    with StrictServer("kimi", SCRIPT) as server:
        token = mull("token", "add", "ann", "--rpm", str(LIMIT))
        with served(server.url, home) as (one, first), served(server.url, home) as (other, _):
            path = "/v1/chat/completions"

            def ask(number: int) -> int:
                return status((one, other)[number % 2], path, token)

            told, began = Counter[int](), time.monotonic()
            with ThreadPoolExecutor(CLIENTS) as pool:
                while not told[429]:  # on a slow machine the allowance grows while they are asked
                    told.update(pool.map(ask, range(2 * LIMIT)))
            minutes = (time.monotonic() - began) / 60
            assert set(told) == {200, 429}
            assert LIMIT <= told[200] < LIMIT * (2 + minutes)  # two that do not share admit twice
            while (row := json.loads(mull("usage", "--json"))[0])["requests"] != told[200]:
                time.sleep(0.1)  # what a busy gateway counted is written a moment later
            first.kill()
            first.wait()
            mull("token", "set", "ann", "--rpm", "none")
            while status(other, path, token) != 200:
                time.sleep(0.1)
            while (after := json.loads(mull("usage", "--json"))[0])["requests"] == row["requests"]:
                time.sleep(0.1)
        assert after["requests"] == len(server.requests)


def test_the_official_clients_understand_what_is_refused(home):
    message = [{"role": "user", "content": "q"}]
    with StrictServer("kimi", SCRIPT) as server, ExitStack() as open_:
        token = mull("token", "add", "ann", "--rpm", "1", "--models", "m")
        address, _ = open_.enter_context(served(server.url, home))
        base = f"{address}/v1"
        chat = open_.enter_context(openai.OpenAI(base_url=base, api_key=token, max_retries=0))
        wrong = open_.enter_context(openai.OpenAI(base_url=base, api_key="mull-wrong"))
        claude = open_.enter_context(
            anthropic.Anthropic(base_url=address, api_key=token, max_retries=0)
        )
        assert status(address, "/v1/chat/completions", token) == 200
        with pytest.raises(openai.RateLimitError, match="1 request a minute"):
            chat.chat.completions.create(model="m", messages=message)
        with pytest.raises(anthropic.RateLimitError) as limited:
            claude.messages.create(model="m", max_tokens=9, messages=message)
        assert 0 < int(limited.value.response.headers["retry-after"]) <= 60
        mull("token", "set", "ann", "--rpm", "none", "--budget-tokens", "20/day")
        code = 429
        while code == 429:
            with pytest.raises(anthropic.APIStatusError) as refused:
                claude.messages.create(model="m", max_tokens=9, messages=message)
            code = refused.value.status_code
        assert code == 402
        with pytest.raises(openai.RateLimitError) as spent:
            chat.responses.create(model="m", input="q")
        assert spent.value.code == "insufficient_quota"
        with pytest.raises(openai.AuthenticationError):
            wrong.models.list()
        assert len(server.requests) == 1
