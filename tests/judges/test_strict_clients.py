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
PYTHON, READY = HOME / "bin" / "python", HOME / ".ready"
ROOT = Path(__file__).parents[2]
PACKAGES = (
    "anthropic==2.8.*",
    "langchain-anthropic==1.7.*",
    "langchain-google-genai==4.4.*",
    "langchain-openai==1.7.*",
    "litellm==1.106.*",
    "mcp",  # litellm asks for it
    "fastapi",
    "orjson",
    "msgspec",
    "pydantic-ai-slim[google,openai]==2.31.*",
)


@pytest.fixture(scope="module")
def verdicts():
    if not READY.exists():
        venv.create(HOME, with_pip=True)
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(pip, check=True, timeout=600)
        READY.touch()
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "NO_PROXY": "127.0.0.1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    script = ROOT / "tests" / "strict_clients.py"
    done = subprocess.run(
        [str(PYTHON), str(script)], env=environ, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


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
