"""`mull --plain`: plain lines for screen readers, old terminals and pipes."""

from __future__ import annotations

import os
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


def test_it_ends_quietly_when_nobody_reads_it():
    reading, writing = os.pipe()
    os.close(reading)
    with ScriptedServer([answer(say("Never read."))]) as server:
        command = [*MULL, "--plain", "-m", "openai-compatible/thinker", "--base-url", server.url]
        done = subprocess.run(
            command,
            input=b"/help\na question\n",
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=PATIENCE,
            check=False,
        )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


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


@pytest.fixture
def plain(start):
    """A conversation in plain lines at a terminal, which tools are asked about."""

    def begin(server):
        terminal = start("--plain", "-m", "openai-compatible/thinker", "--base-url", server.url)
        terminal.wait_for(lambda t: ">" in t.screen)
        return terminal

    return begin


def told(request):
    """What the model was told of its calls."""
    return [m["content"] for m in request.json["messages"] if m["role"] == "tool"]


def test_an_approval_is_a_number_at_a_terminal_and_a_sentence_is_a_reason_for_no(plain):
    asked = [calls(call("write", path="a.txt", content=text)) for text in "abc"]
    replies = [asked[0], answer(say("One.")), asked[1], answer(say("Two.")), asked[2],
               answer(say("Three."))]  # fmt: skip
    written = Path("project/a.txt") if Path("project").is_dir() else Path("a.txt")
    with ScriptedServer(replies) as server:
        terminal = plain(server)
        terminal.say("write a")
        terminal.wait_for("Number, or a reason for no:")
        assert "2. Yes, and do not ask again in this folder for: write ./a.txt" in terminal.text
        terminal.press("enter")
        terminal.say("actually no")
        terminal.wait_for("One.")
        assert told(server.requests[1]) == ["not run: the user refused, and says: actually no"]
        assert not written.exists()
        terminal.say("again")
        terminal.wait_for(lambda t: t.everything.count("a reason for no:") == 3)
        terminal.say("4")
        terminal.wait_for("Reason for no, or Enter for none:")
        terminal.press("enter")
        terminal.wait_for("Two.")
        assert told(server.requests[3])[-1].startswith("not run: the user refused; ask")
        terminal.say("once more")
        terminal.wait_for(lambda t: t.everything.count("a reason for no:") == 4)
        terminal.say("1")
        terminal.wait_for("Three.")
    assert written.read_text() == "c"


def test_a_rule_for_ever_is_shown_as_it_will_be_written_and_asked_about_again(plain):
    asked = [calls(call("run", command="touch made")) for _ in range(3)]
    replies = [asked[0], answer(say("One.")), asked[1], answer(say("Two.")), asked[2],
               answer(say("Three."))]  # fmt: skip
    kept = Path(os.environ["MULL_CONFIG_DIR"]) / "tools.toml"
    with ScriptedServer(replies) as server:
        terminal = plain(server)
        terminal.say("go")
        terminal.wait_for("Number, or a reason for no:")
        terminal.say("2")
        terminal.wait_for("Keep this rule for ever?")
        terminal.wait_for("tools.toml, line 1:")
        terminal.wait_for("3. Back")
        assert any(row.startswith('  "run(touch made') for row in terminal.screen)
        terminal.say("1")
        terminal.wait_for("One.")
        assert not kept.exists()
        terminal.say("again")
        terminal.wait_for(lambda t: t.everything.count("a reason for no:") == 2)
        terminal.say("2")
        terminal.wait_for(lambda t: t.text.count("3. Back") == 2)
        shown = terminal.screen
        terminal.say("2")
        terminal.wait_for("Two.")
        terminal.say("no question any more")
        terminal.wait_for("Three.")
    written = "".join(kept.read_text().split())  # a long line is broken on the screen
    assert written in "".join("".join(shown).split())


def test_a_line_typed_before_the_question_is_no_answer_to_it(plain):
    gate = Gate()
    asked = calls(gate, call("write", path="a.txt", content="a"))
    replies = [asked, answer(say("Refused.")), answer(say("Heard."))]
    with ScriptedServer(replies) as server:
        terminal = plain(server)
        terminal.say("write a")
        assert gate.wait_reached(PATIENCE)
        terminal.type("1\r1")
        terminal.wait_for("1\n1")
        gate.open()
        terminal.wait_for("Number, or a reason for no:")
        terminal.press("enter")  # the second line was not finished, and is gone
        terminal.wait_for(lambda t: t.everything.count("a reason for no:") == 2)
        terminal.say("4")
        terminal.wait_for("Reason for no")
        terminal.press("enter")
        terminal.wait_for("Heard.")  # the first one is a message of its own
        said = [m["content"] for m in server.requests[2].json["messages"] if m["role"] == "user"]
    assert said == ["write a", "1"]
    assert not list(Path().rglob("a.txt"))


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
        done = piped(server, "/theme\n²\n\n/theme\n2\n/model\nzzzz-nothing\n\n")
    assert re.search(r"^1\. \w+", done.stdout, re.MULTILINE)
    assert "plain mode has no colours" in done.stdout
    assert "bug" not in done.stdout
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
