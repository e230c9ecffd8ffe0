"""`mull --plain`: plain lines for screen readers, old terminals and pipes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mull.testing.server import STALL, Gate, ScriptedServer
from tui.scripts import answer, call, calls, say, think
from tui.terminal import MULL, PATIENCE


def piped(server, typed, *words):
    return subprocess.run(
        [*MULL, "--plain", "-m", "openai-compatible/thinker", "--base-url", server.url, *words],
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_conversation_through_a_pipe_has_no_escape_at_all():
    replies = [
        answer(think("Hm, let me see."), say("# Head\n\n**Bold** answer.")),
        answer(say("\x1b[31mBye.")),
    ]
    with ScriptedServer(replies) as server:
        done = piped(server, "first\n\n/view full\n/tools\nsecond\n/quit\n")
        assert [len(request.json["messages"]) for request in server.requests][1] > 2
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert not re.search("[✓✗⚠●│└❯]", done.stdout)  # a screen reader would spell them out
    assert "  - Rules you choose to keep are stored in" in done.stdout
    lines = done.stdout.splitlines()
    assert lines.index("You: first") < lines.index("You: second")
    assert re.search(r"Thought for [\d.]+ s, about 4 tokens: Hm, let me see\.", done.stdout)
    assert "answer." in done.stdout
    assert lines.index("You: second") < lines.index("␛[31mBye.")


def test_the_end_of_the_input_is_the_end_of_the_talk():
    with ScriptedServer([answer(say("Only one."))]) as server:
        done = piped(server, "a question without a newline")
        assert server.requests[0].json["messages"][-1]["content"] == "a question without a newline"
    assert done.returncode == 0
    assert "Only one." in done.stdout


def test_a_pipe_approves_nothing():
    """What comes out of a pipe is data: a line `y`, `a` or `s` in it is no answer of anybody."""
    asked = calls(call("write", path="a.txt", content="a"))
    replies = [asked, answer(say("Refused.")), *[answer(say("Heard."))] * 2]
    with ScriptedServer(replies) as server:
        done = piped(server, "write a\ny\na\n")
        said = [m["content"] for m in server.requests[3].json["messages"] if m["role"] == "user"]
    assert said == ["write a", "y", "a"]
    assert "Make this change? There is nobody to ask: no." in done.stdout
    assert not Path("a.txt").exists()


def test_an_approval_is_a_line_at_a_terminal(start):
    replies = [calls(call("write", path="a.txt", content="a")), answer(say("Written."))]
    with ScriptedServer(replies) as server:
        place = ("-m", "openai-compatible/thinker", "--base-url", server.url)
        terminal = start("--plain", *place)
        terminal.wait_for(lambda t: ">" in t.screen)
        terminal.say("write a")
        terminal.wait_for("(y = yes")
        terminal.say("perhaps")
        terminal.wait_for(lambda t: t.everything.count("Make this change?") == 2)
        terminal.say("y")
        terminal.wait_for("Written.")
    assert (Path("project") / "a.txt").exists() or Path("a.txt").read_text() == "a"


def test_a_terminal_gets_plain_lines_and_ctrl_c_stops_then_leaves(start):
    replies = [answer(say("Half an\n\nans"), STALL), answer(say("Whole."))]
    with ScriptedServer(replies) as server:
        terminal = start("-m", "openai-compatible/thinker", "--base-url", server.url,
                         env={"TERM": "dumb"})  # fmt: skip
        terminal.wait_for(lambda t: ">" in t.screen)
        terminal.say("one")
        terminal.wait_for("Half an")
        terminal.press("c-c")
        terminal.wait_for("Interrupted; what arrived is kept.")
        terminal.wait_for(lambda t: ">" in t.screen)
        terminal.say("two")
        terminal.wait_for("Whole.")
        terminal.wait_for(lambda t: t.screen.count(">") == 1)
        terminal.press("c-c")
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.raw
        assert "❯" not in terminal.text
        assert "Continue with: mull --session" in terminal.text


def test_a_line_now_and_then_says_that_the_model_thinks(start):
    program = (
        "import sys; from mull.tui.screen import plain; plain.SILENCE = 0.3;"
        " from mull.cli.main import main; sys.exit(main())"
    )
    gate = Gate()
    reply = answer(think("A long thought."), gate, say("* one\n* two\n\n---\n\n> quoted"))
    with ScriptedServer([reply]) as server:
        terminal = start("--plain", "-m", "openai-compatible/thinker", "--base-url", server.url,
                         program=(sys.executable, "-c", program))  # fmt: skip
        terminal.wait_for(lambda t: ">" in t.screen)
        terminal.say("go")
        terminal.wait_for(re.compile(r"^Thinking, \d+ s, about 4 tokens$", re.MULTILINE))
        gate.open()
        terminal.wait_for("quoted")
        assert "- one\n- two" in terminal.text
        assert not set("│●└─☐❯·•▎…") & set(terminal.text.partition("go\n")[2])


def test_a_list_to_pick_from_is_numbered():
    with ScriptedServer([]) as server:
        done = piped(server, "/theme\n2\n/model\nzzzz-nothing\n\n")
    assert re.search(r"^1\. \w+", done.stdout, re.MULTILINE)
    assert "plain mode has no colours" in done.stdout
    assert "Number, words to search for, or Enter to cancel:" in done.stdout


def test_without_a_terminal_and_without_plain_it_says_what_to_do():
    done = subprocess.run(
        [*MULL, "-m", "x/y"],
        input="",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode != 0
    assert "mull --plain" in done.stderr


def test_a_signal_while_the_model_works_is_a_stop():
    with ScriptedServer([answer(say("Going\n\non"), STALL)]) as server:
        going = subprocess.Popen(
            [*MULL, "--plain", "-m", "openai-compatible/thinker", "--base-url", server.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            going.stdin.write("go\n")
            going.stdin.flush()
            while "Going" not in going.stdout.readline():
                pass
            going.send_signal(signal.SIGINT)
            out, _ = going.communicate(timeout=PATIENCE)
        finally:
            going.kill()
            going.wait()
    assert "Interrupted; what arrived is kept." in out
    assert going.returncode == 0
