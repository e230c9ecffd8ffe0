"""The plugin in llm: its command and its Python API, on the strict servers of five providers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from adapter_talk import ANSWER, MODELS, TURN, check_returned, price, strict
from mull.agent import shared
from mull.agent.engine import Engine

llm = pytest.importorskip("llm")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

KEYS = {
    "moonshotai": "MOONSHOT_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
}
FUNCTIONS = """
def price(item: str) -> str:
    "The price of an item."
    return {"milk": "1", "bread": "2", "tea": "3"}[item]
"""


@pytest.fixture
def reach(tmp_path, monkeypatch):
    """Points mull at a server, as a user's configuration does; returns the name of the model."""

    def point(server):
        model = MODELS[server.name]
        provider = model.partition("/")[0]
        folder = tmp_path / "config"
        folder.mkdir()
        (folder / "config.toml").write_text(f'[providers.{provider}]\nbase_url = "{server.url}"\n')
        monkeypatch.setenv("MULL_CONFIG_DIR", str(folder))
        monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path / "data"))
        monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
        monkeypatch.setenv(KEYS[provider], "secret-key")
        return f"mull/{model}"

    return point


def run(*words):
    done = subprocess.run(
        [sys.executable, "-m", "llm", *words],
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done


@pytest.mark.parametrize("provider", MODELS)
def test_the_command_continues_from_its_database(provider, reach):
    with strict(provider, TURN, TURN) as server:
        name = reach(server)
        tools = ("--functions", FUNCTIONS)
        assert run("prompt", "What do they cost?", "-m", name, *tools).stdout.endswith(
            f"{ANSWER}\n"
        )
        assert run("prompt", "And today?", "-c", *tools).stdout.endswith(f"{ANSWER}\n")
    check_returned(server)


@pytest.mark.parametrize("provider", MODELS)
def test_the_asynchronous_api(provider, reach, monkeypatch):
    async def talk(model):
        conversation = model.conversation(tools=[price])
        return [await conversation.chain(said).text() for said in ("What?", "And today?")]

    with strict(provider, TURN, TURN) as server:
        name = reach(server).removeprefix("mull/")
        engine = Engine()
        monkeypatch.setattr(shared, "engine", lambda: engine)
        from mull.adapters.llm import AsyncMullModel

        said = asyncio.run(talk(AsyncMullModel(name)))
    assert all(text.endswith(ANSWER) for text in said)
    check_returned(server)
