"""Coding agents that others wrote, each on models that its maker never heard of, by the gateway.

Each is started by `mull serve run` and finds a real `mull serve` process. It is asked twice in one
session and reads two files with its own tool, one a round. What the strict server received is
looked at: every carrier of reasoning that it gave came back, byte for byte.
"""

from __future__ import annotations

import json
import subprocess
from typing import NamedTuple

import pytest
from tools.agents import PATH, install

from gateway.process import MULL, home_environ, served
from gateway.test_square import UPSTREAMS
from mull.testing import Call, Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ASIDE = [Say('{"title": "Notes", "reasoning": "", "model_choice": "pro"}')]
FILES = {"one.txt": "Milk and bread.\n", "two.txt": "Tea.\n"}


class Agent(NamedTuple):
    """How an agent is asked, first and again, and what its tool for reading files is called."""

    package: str
    commands: tuple[list[str], ...]
    tool: str
    argument: str
    quiet: dict[str, str] = {}
    command: bool = False
    """It reads files by a command."""


QUIET = {"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1"}
EXEC = ["exec", "--skip-git-repo-check", "-s", "danger-full-access"]
AGENTS = {
    "claude-code": Agent(
        "@anthropic-ai/claude-code",
        (["--allowedTools", "Read", "-p"], ["--allowedTools", "Read", "-c", "-p"]),
        "Read",
        "file_path",
        QUIET,
    ),
    "codex": Agent(
        "@openai/codex",
        (EXEC, [*EXEC, "resume", "--last"]),
        "exec_command",
        "cmd",
        command=True,
    ),
    "gemini-cli": Agent(
        "@google/gemini-cli",
        (["--skip-trust", "-y", "-p"],),  # 0.61 sends each result of a resumed session twice
        "read_file",
        "file_path",
    ),
    "qwen-code": Agent(
        "@qwen-code/qwen-code", (["-y", "-p"], ["-y", "-c", "-p"]), "read_file", "file_path"
    ),
    "opencode": Agent(
        "opencode-ai",
        (["run", "--auto"], ["run", "--auto", "-c"]),
        "read",
        "filePath",
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    "continue": Agent(
        "@continuedev/cli", (["--auto", "-p"], ["--auto", "--resume", "-p"]), "Read", "filepath"
    ),
    "pi": Agent(
        "@mariozechner/pi-coding-agent", (["-p"], ["-c", "-p"]), "read", "path", {"PI_OFFLINE": "1"}
    ),
    "kimi-code": Agent(
        "@moonshot-ai/kimi-code",
        (["-p"], ["-c", "-p"]),
        "Read",
        "path",
        {"KIMI_CODE_NO_AUTO_UPDATE": "1"},
    ),
}
FOREIGN = {
    "claude-code": ("kimi", "gemini", "openai"),
    "codex": ("kimi", "anthropic", "gemini"),
    "gemini-cli": ("kimi", "anthropic", "openai"),
    "qwen-code": ("anthropic", "gemini", "openai"),
    "opencode": ("anthropic", "gemini", "openai"),
    "kimi-code": ("anthropic", "gemini", "openai"),
    "continue": ("kimi", "anthropic"),
    "pi": ("kimi", "anthropic", "gemini", "openai"),
}
PAIRS = [(name, upstream) for name, upstreams in FOREIGN.items() for upstream in upstreams]


def script(agent: Agent, project) -> list:
    def read(name: str) -> Call:
        path = f"cat {name}" if agent.command else str(project / name)
        return Call(agent.tool, {agent.argument: path})

    turn = [
        [Think("There may be two lists.  "), read("one.txt")],
        [Think("Now the other one.\n"), Say("Let me see."), read("two.txt")],
        [Think("That is all."), Say("Milk, bread and tea.")],
    ]
    return turn * len(agent.commands)


@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_an_agent_works_on_a_foreign_model_and_no_thought_is_lost(name, upstream, tmp_path):
    agent = AGENTS[name]
    install(agent.package)
    project = tmp_path / "project"
    project.mkdir()
    for file, text in FILES.items():
        (project / file).write_text(text)
    with StrictServer(upstream, script(agent, project), aside=ASIDE) as server:
        model = {"model": UPSTREAMS[upstream], "base_url": server.url}
        with served(tmp_path, {"thinker": model}, default="thinker") as (_, config):
            environ = home_environ(tmp_path, PATH=PATH, **agent.quiet)
            for words in agent.commands:
                done = subprocess.run(
                    [*MULL, "serve", "--config", config, "run", name, *words, "What is to buy?"],
                    cwd=project,
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=200,
                    check=False,
                )
                told = f"{done.stdout[-1000:]}{done.stderr[-2000:]}"
                assert "Milk, bread and tea." in done.stdout, told
                assert "metadata" not in told  # codex warns if it knows no model of this name
                assert done.returncode == 0
    assert [refused.reason for refused in server.refusals] == []
    turns = len(agent.commands)
    assert server.called == 2 * turns
    read = [json.dumps(request.json) for request in server.requests if request.method == "POST"]
    assert any(all(text.strip() in body for text in FILES.values()) for body in read)
    longest = max(server.returned, key=len)
    issued = iter(server.issued)
    assert all(carrier in issued for carrier in longest)  # in this order, some went to asides
    assert len(longest) == 3 * turns - 1
