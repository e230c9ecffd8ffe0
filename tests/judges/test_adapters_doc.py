"""docs/adapters.md: every example runs on a strict server and prints what stands below it, and the
libraries without an adapter are refused in the words of the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from adapter_talk import TURN
from mull.testing import Call, Say, StrictServer, Think

for needed in ("agents", "langchain", "langchain_openai", "llm", "openai", "pydantic_ai"):
    pytest.importorskip(needed)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

TESTS = Path(__file__).parents[1]
PEERS = str(TESTS / "peers.py")
PAGE = (TESTS.parent / "docs/adapters.md").read_text()
TOOL, *EXAMPLES = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", PAGE, re.M | re.S)
(REFUSED,) = re.findall(r"^Error code: 400 - (.*)$", PAGE, re.M)
CONSOLE = re.findall(r"^\$ llm (.*)\n((?:[^$].*\n)+)", PAGE, re.M)[0]
SCRIPT = [
    [Think("I have to look it up."), Call("price", {"item": "milk"})],
    [Think("1.20, then."), Say("Milk costs 1.20.")],
]


@pytest.fixture
def kimi(tmp_path, monkeypatch):
    """A strict server that mull's configuration points to."""
    with StrictServer("kimi", SCRIPT) as server:
        (tmp_path / "config.toml").write_text(
            f'[providers.moonshotai]\nbase_url = "{server.url}"\n'
        )
        monkeypatch.setenv("MULL_CONFIG_DIR", str(tmp_path))
        monkeypatch.setenv("MULL_DATA_DIR", str(tmp_path / "data"))
        monkeypatch.setenv("MOONSHOT_API_KEY", "k")
        yield server
    assert not server.refusals
    assert server.answered == len(SCRIPT)


def run(*words, cwd):
    """Run Python as a user would; not in this process, because libraries leave loops open."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={**os.environ, "LLM_USER_PATH": str(cwd / "llm"), "PYTHONPATH": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(("code", "shown"), EXAMPLES)
def test_an_example_prints_what_is_shown(code, shown, kimi, tmp_path):
    done = run("-c", TOOL[0] + code, cwd=tmp_path)
    assert (done.stdout, done.stderr) == (shown, "")


def test_the_command_of_llm_prints_what_is_shown(kimi, tmp_path):
    (tmp_path / "shop.py").write_text(TOOL[0])
    done = run("-m", "llm", *shlex.split(CONSOLE[0]), cwd=tmp_path)
    assert (done.stdout, done.stderr) == (CONSOLE[1], "")


@pytest.mark.parametrize("name", ["langchain-openai", "openai-agents", "openai", "llm"])
def test_without_an_adapter_the_first_tool_call_ends_the_run(name, tmp_path):
    (tmp_path / "llm").mkdir()
    with StrictServer("kimi", TURN) as server:
        done = run(PEERS, name, server.url, cwd=tmp_path)
    assert f"Error code: 400 - {REFUSED}" in done.stderr
    assert server.answered == 1
    assert server.refusals[0].certain
    assert f"`{name}` {version(name).removesuffix('.0')}" in PAGE.replace("\n", " ")


def test_pydantic_ai_itself_shows_the_thoughts_of_one_provider_to_the_next(tmp_path):
    with StrictServer("kimi", TURN) as one, StrictServer("anthropic", [[Say("Yes.")]]) as other:
        done = run(PEERS, "pydantic-ai", one.url, other.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    users = [said for said in other.requests[0].json["messages"] if said["role"] == "user"]
    assert "<assistant_thinking>" in str(users)
    assert "<assistant_thinking>" in PAGE
