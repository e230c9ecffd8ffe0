"""Coding agents that others wrote, from npm, each on the strict server that it should satisfy.

A judge that cannot be installed is a failure. Each is asked twice in one session and makes three
tool calls a turn: what they send is right in life, so nothing of it may be refused.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import NamedTuple

import pytest
from tools.agents import PATH, install

from mull.testing import Call, Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CODEX = """model_provider = "played"
model_reasoning_effort = "high"
model_reasoning_summary = "auto"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.played]
name = "Played"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
}


class Agent(NamedTuple):
    """How an agent is asked first and then again, and what its tool for commands is called."""

    package: str
    provider: str
    commands: tuple[str, ...]
    tool: str
    argument: str = "command"
    files: dict[str, str] = {}
    more: dict[str, str] = {}


def claude(model: str, provider: str = "anthropic") -> Agent:
    command = f"claude --model {model} --allowedTools Bash"
    quiet = {"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1"}
    asked = (f"{command} -p one", f"{command} -c -p two")
    described = {"description": "Lists files"}
    return Agent("@anthropic-ai/claude-code", provider, asked, "Bash", more={**quiet, **described})


def pi(provider: str, api: str, model: str, path: str = "") -> Agent:
    about = {"id": model, "name": model, "reasoning": True, "input": ["text"]}
    limits = {"contextWindow": 200000, "maxTokens": 32000}
    free = {"cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)}
    row = {"baseUrl": "{url}" + path, "api": api, "apiKey": "none"}
    models = {"providers": {"played": {**row, "models": [{**about, **limits, **free}]}}}
    command = f"pi --offline --provider played --model {model} --thinking high"
    return Agent(
        "@mariozechner/pi-coding-agent",
        provider,
        (f"{command} -p one", f"{command} -c -p two"),
        "bash",
        files={".pi/agent/models.json": json.dumps(models)},
    )


EXEC = "codex exec --skip-git-repo-check -s danger-full-access -m gpt-5.5"
GO = "gemini --skip-trust -y -m gemini-3-pro-preview"
AGENTS = {
    "claude-code": claude("claude-opus-4-6"),
    "claude-code, budget": claude("claude-sonnet-4-5"),
    "claude-code, bound": claude("claude-opus-4-6", "anthropic-bound"),
    "codex": Agent(
        "@openai/codex",
        "openai",
        (f"{EXEC} one", f"{EXEC} resume --last two"),
        "exec_command",
        "cmd",
        {".codex/config.toml": CODEX},
    ),
    "gemini-cli": Agent(
        "@google/gemini-cli",
        "gemini",
        (f"{GO} -p one",),  # 0.61 sends each result of a resumed session twice, and is refused
        "run_shell_command",
        files={".gemini/settings.json": json.dumps(GEMINI)},
    ),
    "pi on anthropic": pi("anthropic", "anthropic-messages", "claude-sonnet-4-5"),
    "pi on gemini": pi("gemini", "google-generative-ai", "gemini-3-pro-preview", "/v1beta"),
    "pi on kimi": pi("kimi", "openai-completions", "kimi-k2.5", "/v1"),
    "pi on openai": pi("openai", "openai-responses", "gpt-5.5", "/v1"),
}


def script(agent: Agent) -> list:
    def call(text: str) -> Call:
        described = {"description": text} if "description" in agent.more else {}
        return Call(agent.tool, {agent.argument: f"echo {text}", **described})

    turn = [
        [Think("I have to look."), call("one")],
        [Think("Twice."), Say("Let me see."), call("two"), call("three")],
        [Think("That is all."), Say("Milk, bread and tea.")],
    ]
    return turn * 2


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_not_refused(name, tmp_path):
    agent = AGENTS[name]
    install(agent.package)
    aside = [Say('{"title": "Notes", "reasoning": "", "model_choice": "pro"}')]
    with StrictServer(agent.provider, script(agent), aside=aside) as server:
        for file, text in agent.files.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text.replace("{url}", server.url))
        project = tmp_path / "project"
        project.mkdir()
        quiet = {name: value for name, value in agent.more.items() if name.isupper()}
        environ = {"HOME": str(tmp_path), "PATH": PATH, "LANG": "C.UTF-8", **quiet}
        environ |= {"CODEX_HOME": str(tmp_path / ".codex"), "NO_PROXY": "127.0.0.1"}
        for command in agent.commands:
            done = subprocess.run(
                shlex.split(command),
                cwd=project,
                env={**environ, **server.variables},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
            assert "Milk, bread and tea." in done.stdout, done.stderr[-2000:]
    assert [refused.reason for refused in server.refusals] == []
    assert server.called == 3 * len(agent.commands)
    assert max(map(len, server.returned)) > len(agent.commands)
