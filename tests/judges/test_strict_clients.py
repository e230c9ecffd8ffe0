"""Libraries that others wrote, on the strict servers: who keeps reasoning is not refused.

They cannot live beside the newest SDKs, so they have an environment of their own, made beside ours
once; a judge that cannot be installed is a failure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from strict_clients import CASES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

HOME = Path(os.environ.get("MULL_CLIENTS") or Path(sys.prefix) / "clients-judge")
ROOT = Path(__file__).parents[2]
PACKAGES = {
    "langchain": (
        "langchain-anthropic",
        "langchain-google-genai==4.4.*",
        "langchain-openai==1.7.*",
    ),
    "litellm": ("litellm==1.106.*", "mcp", "fastapi", "orjson"),
    "pydantic-ai": ("pydantic-ai-slim[google,openai]==2.31.*",),
    "SDKs": ("anthropic==2.8.*", "openai==3.*"),
}
"""An environment for each: sooner or later their requirements contradict each other."""


def environment_of(name):
    return next((kind for kind in PACKAGES if name.startswith(kind)), "SDKs")


def python_in(kind):
    """The interpreter of an environment, which is installed if it is not there."""
    home = HOME / kind
    if not (home / ".ready").exists():
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "msgspec"]
        subprocess.run([*pip, *PACKAGES[kind]], check=True, timeout=600)
        (home / ".ready").touch()
    return str(home / "bin" / "python")


@pytest.fixture(scope="module")
def verdicts():
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    script, found = str(ROOT / "tests" / "strict_clients.py"), {}
    for kind in PACKAGES:
        names = [name for name in CASES if environment_of(name) == kind]
        command = [python_in(kind), script, *names]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found |= {line["name"]: line for line in lines}
    return found


LOSES = "litellm openrouter"
"""It sends `reasoning_details` back in a field that nobody reads."""


@pytest.mark.parametrize("name", sorted(set(CASES) - {LOSES}))
def test_who_keeps_reasoning_is_not_refused(name, verdicts):
    found = verdicts[name]
    assert (found["error"], found["refused"]) == (None, [])
    assert found["issued"] == found["answered"] >= 3
    assert found["returned"] == list(range(found["answered"]))


def test_who_loses_it_is(verdicts):
    ((reason, certain),) = verdicts[LOSES]["refused"]
    assert "Expected `thinking` or `redacted_thinking`" in reason
    assert certain


def test_what_is_not_known_is_a_doubt(verdicts):
    """litellm puts an empty text between a thought and its call when it reads a stream."""
    assert "not known whether" in verdicts["litellm anthropic stream"]["doubts"][0]
    assert all(not v["doubts"] for name, v in verdicts.items() if not name.endswith("stream"))
