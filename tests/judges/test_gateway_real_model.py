"""Coding agents that others wrote, on the model that comes with mull, by the gateway.

Its window is small: Claude Code's own prompt with all its tools does not fit, and it says so.
"""

from __future__ import annotations

import json
import subprocess

import pytest
from tools.agents import PATH, install

from gateway.process import MULL, home_environ
from judges.test_gateway_agents import QUIET
from mull.local import weights

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not weights.is_installed(), reason="the embedded model is not installed"),
]

SHORT = ["--system-prompt", "Answer the question."]
QUESTION = "What is 12 + 30?"


@pytest.fixture
def ask(tmp_path):
    """Gives what an agent prints that is run on the embedded model."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("The meeting is on Friday.\n")

    def ask(client, package, *words):
        install(package)
        return subprocess.run(
            [*MULL, "serve", "-m", "local/smollm2", "run", client, *words],
            cwd=project,
            env=home_environ(tmp_path, PATH=PATH, **QUIET),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )

    return ask


def test_codex_is_answered(ask):
    done = ask("codex", "@openai/codex", "exec", "--skip-git-repo-check", QUESTION)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "42" in done.stdout
    assert "Ones: 2 + 0 = 2" in done.stderr  # the thought, in the place where codex shows it


def test_claude_code_is_answered_where_its_prompt_is_short(ask):
    done = ask("claude-code", "@anthropic-ai/claude-code", "--tools", "", *SHORT, "-p", QUESTION)
    assert done.returncode == 0, done.stderr[-2000:]
    # its last words to the model describe the machine: so small a model may answer those instead
    assert done.stdout.strip()


def test_claude_code_reads_a_file_with_its_own_tool(ask):
    words = ["--tools", "Read", "--allowedTools", "Read", *SHORT, "--verbose"]
    words += ["--max-turns", "8", "--output-format", "stream-json"]
    done = ask("claude-code", "@anthropic-ai/claude-code", *words, "-p", "What is in notes.txt?")
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    # so small a model may read on until its turns are used up, but has room for all of them
    assert not any(event.get("status") == "compacting" for event in events)
    blocks = [
        block
        for event in events
        if event["type"] in ("assistant", "user")
        for block in event["message"]["content"]
    ]
    assert [block["name"] for block in blocks if block["type"] == "tool_use"][:1] == ["Read"]
    results = [json.dumps(block) for block in blocks if block["type"] == "tool_result"]
    assert any("The meeting is on Friday." in result for result in results)
    assert any(block["thinking"] for block in blocks if block["type"] == "thinking")


def test_claude_code_says_that_all_its_tools_are_too_much(ask):
    done = ask("claude-code", "@anthropic-ai/claude-code", "-p", QUESTION)
    assert done.returncode == 1
    assert "Prompt is too long" in done.stdout
