"""Coding agents that others wrote, each on models that its maker never heard of, by the gateway."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from gateway.conftest import serving
from gateway.test_square import UPSTREAMS
from judges.test_strict_agents import AGENTS, PATH, installed, script
from mull.store.serve import ServedModel
from mull.testing import Say, StrictServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ASIDE = [Say('{"title": "Notes", "reasoning": "", "model_choice": "pro"}')]
ADDRESSES = {
    "ANTHROPIC_BASE_URL": "{url}",
    "ANTHROPIC_API_KEY": "none",
    "OPENAI_API_KEY": "none",
    "GOOGLE_GEMINI_BASE_URL": "{url}",
    "GEMINI_API_KEY": "none",
}
PAIRS = [
    ("claude-code", "kimi"),
    ("claude-code", "gemini"),
    ("codex", "kimi"),
    ("codex", "anthropic"),
    ("gemini-cli", "kimi"),
    ("gemini-cli", "anthropic"),
    ("pi on openai", "anthropic"),
    ("pi on kimi", "openai"),
]


@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_an_agent_works_on_a_foreign_model_and_no_thought_is_lost(name, upstream, tmp_path):
    agent = AGENTS[name]
    installed(agent.package)
    with StrictServer(upstream, script(agent), aside=ASIDE) as server:
        model = ServedModel(UPSTREAMS[upstream], base_url=server.url)
        with serving({"any": model}, default="any") as url:
            for file, text in agent.files.items():
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / file).write_text(text.replace("{url}", url))
            project = tmp_path / "project"
            project.mkdir()
            quiet = {name: value for name, value in agent.more.items() if name.isupper()}
            environ = {"HOME": str(tmp_path), "PATH": PATH, "LANG": "C.UTF-8", **quiet}
            environ |= {"CODEX_HOME": str(tmp_path / ".codex"), "NO_PROXY": "127.0.0.1"}
            environ |= {key: value.replace("{url}", url) for key, value in ADDRESSES.items()}
            for command in agent.commands:
                done = subprocess.run(
                    shlex.split(command),
                    cwd=project,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=200,
                    check=False,
                )
                assert "Milk, bread and tea." in done.stdout, done.stderr[-2000:]
    assert [refused.reason for refused in server.refusals] == []
    assert server.called == 3 * len(agent.commands)
    assert max(map(len, server.returned)) >= len(agent.commands)
