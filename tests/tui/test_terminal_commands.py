"""Every command once, and completion, at the real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mull.testing.server import ScriptedServer
from mull.tui.commands.table import COMMANDS
from tui.scripts import answer, say, think

pytestmark = pytest.mark.slow

USAGE = {"prompt_tokens": 2000, "completion_tokens": 50, "total_tokens": 2050}
STEPS = (
    ("/help", "@path in a message attaches a file"),
    ("/help thinking", "how much the model thinks"),
    ("/thinking", "asked for  unset"),
    ("/thinking off", "  Thinking: "),
    ("/set reasoning.effort high", "reasoning.effort = high"),
    ("/unset reasoning.effort", "reasoning.effort = unset"),
    ("/set", "/set KEY describes a setting"),
    ("/profile", "No profiles saved yet"),
    ("/context", "system prompt"),
    ("/tools read-only", "Approval: read-only"),
    ("/tools ask", "Approval: ask"),
    ("/jobs", "No background commands were started"),
    ("/keys", "/keys set PROVIDER stores one"),
    ("/login", "/login PROVIDER logs in"),
    ("/copy", "Copied 13 characters"),
    ("/mcp", "No MCP servers configured"),
    ("/image", "No picture is attached"),
    ("/stats", "1 turn, cost unknown"),
    ("/why", "The last request"),
    ("/view full", "Thinking is shown in full."),
    ("/theme dark", "Theme: dark."),
    ("/export out.md", "out.md ("),
    ("/rename trial", "This session is now called trial."),
    ("/sessions", "This session:"),
    ("/compress", "there is nothing to compress yet"),
    ("/retry", "Second answer."),
    ("/fork", "Resumed session"),
    ("/undo", "Undid the last turn"),
    ("/redo", "Restored what /undo removed."),
    ("/new", "New session with"),
    ("/resume trial", "Resumed session trial"),
    ("/model openai-compatible/other", "✓ Switched to OpenAI-compatible server other"),
)


def test_the_steps_use_every_command():
    used = {step.split()[0].lstrip("/") for step, _ in STEPS} | {"quit"}
    assert used == {command.name for command in COMMANDS}


@pytest.mark.timeout(120)
def test_every_command_does_something_that_is_seen(converse):
    replies = [
        answer(think("Hm."), say("First answer."), usage=USAGE),
        answer(say("Second answer."), usage=USAGE),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server, rows=100)
        terminal.say("a question")
        terminal.wait_for("First answer.")
        terminal.wait_idle()
        for step, seen in STEPS:
            terminal.type(step)
            terminal.wait_for(lambda t, step=step: any(row.endswith(step) for row in t.screen))
            before = terminal.everything.count(seen)
            terminal.press("enter")
            terminal.wait_for(
                lambda t, seen=seen, before=before: (
                    t.everything.count(seen) > before or (seen in t.text and not before)
                )
            )
            terminal.wait_idle()
            if step == "/undo":  # what was said is in the line again
                terminal.wait_for("❯ a question")
                terminal.press("c-c")
            terminal.wait_for(lambda t: "❯" in t.screen)
            assert "bug in mull" not in terminal.text, terminal.text
        assert "First answer." in Path("out.md").read_text()
        terminal.type("/nonsense")
        terminal.press("enter")
        terminal.wait_for('unknown command "/nonsense"')
        terminal.type("/quit")
        terminal.press("enter")
        assert terminal.end() == 0


def test_tab_completes_commands_settings_values_models_and_sessions(converse):
    with ScriptedServer([]) as server:
        terminal = converse(server)
        terminal.type("/mod")
        terminal.wait_for("switch to another model")
        terminal.press("tab")
        terminal.wait_for("❯ /model")
        terminal.type(" claude-sonnet-4-5")
        terminal.wait_for("anthropic/claude-sonnet-4-5")
        terminal.press("esc")
        terminal.wait_for(lambda t: "anthropic/claude-sonnet-4-5" not in t.text)
        terminal.press("c-c")
        terminal.wait_gone("❯ /model")
        terminal.type("/set reasoning.eff")
        terminal.wait_for("reasoning.effort")
        terminal.press("tab")
        terminal.wait_for("❯ /set reasoning.effort")
        terminal.type(" hi")
        terminal.press("tab")
        terminal.wait_for("❯ /set reasoning.effort high")
        terminal.press("enter")
        terminal.wait_for(lambda t: "❯" in t.screen)
        assert "high" in terminal.text


def test_settings_belong_to_their_session_and_a_new_one_begins_with_them(converse):
    with ScriptedServer([answer(say("One.")), answer(say("Two."))]) as server:
        terminal = converse(server, "--name", "first", "--set", "reasoning.maxSeconds=99")
        terminal.say("a")
        terminal.wait_for("One.")
        terminal.wait_idle()
        terminal.say("/new")
        terminal.wait_for("New session with")
        terminal.say("/set reasoning.effort low")
        terminal.wait_for("reasoning.effort = low (session)")
        terminal.say("/new")
        terminal.wait_for(lambda t: "New session with" in t.text and "effort = low" not in t.text)
        terminal.say("/set reasoning.effort")
        terminal.wait_for("value    low (session)")
        terminal.say("/resume first")
        terminal.wait_for("Resumed session first")
        terminal.say("/set reasoning.effort")
        terminal.wait_for("value    unset (default)")
        terminal.say("/set reasoning.maxSeconds")
        terminal.wait_for("value    99")


def test_a_bare_model_command_asks_with_a_search(converse):
    with ScriptedServer([]) as server:
        terminal = converse(server)
        terminal.type("half a message")
        terminal.wait_for("half a message")
        terminal.press("c-c")
        terminal.say("/model")
        terminal.wait_for("Which model?")
        terminal.type("gpt5mini")
        terminal.wait_for(
            lambda t: any(r.startswith("❯ ") and "gpt-5" in r and "mini" in r for r in t.screen)
        )
        terminal.press("down", "up", "esc")
        terminal.wait_gone("Which model?")
        terminal.wait_for(lambda t: "❯" in t.screen)
        assert "openai-compatible/thinker" in terminal.text.splitlines()[-1]
