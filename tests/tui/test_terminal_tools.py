"""Tools at the real terminal: what they would do is shown, asked about, and answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import mcp_servers
from caged import fill_repository, make_place, need_tier
from mull.testing.server import STALL, Gate, ScriptedServer
from tui.scripts import answer, call, calls, say, think


def results(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "tool"]


def write(path, text):
    return calls(call("write", path=path, content=text))


def test_in_auto_a_command_runs_and_is_asked_about_by_what_it_tried(converse, monkeypatch):
    need_tier("namespaces")
    for place in make_place():
        fill_repository(place)
        (place / "AGENTS.md").unlink()  # instructions are asked about first
        (place / ".envrc").write_text("be good\n")
        monkeypatch.chdir(place)
        replies = [
            calls(call("run", command="echo 2 >> a.py")),
            calls(call("run", command="echo new > .envrc")),
            answer(say("Done.")),
        ]
        with ScriptedServer(replies) as server:
            terminal = converse(server, "--mode", "auto")
            terminal.wait_for(" · auto · ")
            terminal.say("go")
            terminal.wait_for("wants to write .envrc")
            assert "└ changed a.py +1 −0" in terminal.text
            assert Path(".envrc").read_text() == "be good\n"
            terminal.choose(1)
            terminal.wait_for("Done.")
            assert Path(".envrc").read_text() == "new\n"
            terminal.wait_idle()
            terminal.say("/undo")
            terminal.wait_for("a.py +0 −1")
            assert Path(".envrc").read_text() == "be good\n"
            terminal.press("c-c")


@pytest.mark.slow
def test_a_call_that_changes_something_is_shown_and_asked_about(converse):
    Path("notes.txt").write_text("old line\nkept line\n")
    replies = [
        calls(think("Hm."), call("edit", path="notes.txt", old="old line", new="NEW LINE")),
        answer(say("Edited.")),
        write("second.txt", "no"),
        answer(say("Not written.")),
        write("third.txt", "no"),
        answer(say("As you say.")),
        write("fourth.txt", "x"), write("fourth.txt", "xy"),
        answer(say("Twice.")),
        write("fifth.txt", "x"),
        answer(say("never")),
    ]  # fmt: skip
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("edit")
        terminal.wait_for("❯ 1. Yes")
        assert "1 - old line" in terminal.text
        assert "1 + NEW LINE" in terminal.text
        assert terminal.cell("NEW LINE").bg != terminal.cell("old line").bg
        assert Path("notes.txt").read_text() == "old line\nkept line\n"
        terminal.press("enter")
        terminal.wait_for("Edited.")
        assert Path("notes.txt").read_text() == "NEW LINE\nkept line\n"
        terminal.wait_idle()

        terminal.say("write")
        terminal.choose(4)
        terminal.wait_for("Not written.")
        assert not Path("second.txt").exists()
        assert "the user refused" in results(server.requests[3])[-1]
        assert "└ you refused" in terminal.text
        assert "failed: " not in terminal.text
        terminal.wait_idle()

        terminal.say("write again")
        terminal.wait_for("❯ 1. Yes")
        terminal.type("use another name")
        terminal.wait_for("❯ 4. No: use another name")
        terminal.press("enter")
        terminal.wait_for("As you say.")
        assert results(server.requests[5])[-1].endswith("and says: use another name")
        assert "└ you refused: use another name" in terminal.text
        terminal.wait_idle()

        terminal.say("write twice")
        terminal.choose(3)
        terminal.wait_for("Twice.")
        assert Path("fourth.txt").read_text() == "xy"
        terminal.wait_idle()

        terminal.say("one more")
        terminal.wait_for("❯ 1. Yes")
        terminal.press("c-c")
        terminal.wait_for("Interrupted")
        assert "Make this change?" not in terminal.text
        assert not Path("fifth.txt").exists()
        assert len(server.requests) == 10


@pytest.mark.slow
def test_the_model_can_be_switched_in_the_middle_of_a_chain_of_tools(converse):
    Path("a.txt").write_text("content of a")
    replies = [write("b.txt", "b"), answer(say("Switched and done."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for("❯ 1. Yes")
        terminal.press("c-c")
        terminal.wait_for("Interrupted")
        terminal.say("/model openai-compatible/other")
        terminal.wait_for("✓ Switched to OpenAI-compatible server other")
        terminal.say("go on")
        terminal.wait_for("Switched and done.")
        assert [request.json["model"] for request in server.requests] == ["thinker", "other"]
        assert len(results(server.requests[1])) == 1


@pytest.mark.slow
def test_a_command_while_a_tool_runs_does_not_wait(converse):
    go = Path("go")
    replies = [
        calls(call("run", command="while [ ! -e go ]; do sleep 0.05; done; echo over")),
        answer(say("Ran it.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server, "--yes")
        terminal.say("go")
        terminal.wait_for("Running tools")
        terminal.say("/model openai-compatible/other")
        terminal.wait_for("✓ Switched to OpenAI-compatible server other")
        assert "Running tools" in terminal.text
        terminal.say("/undo")
        terminal.wait_for("/undo cannot run while the model works")
        go.touch()
        terminal.wait_for("Ran it.")
        assert server.requests[1].json["model"] == "other"
        assert (
            results(server.requests[1])[0].rstrip().endswith("over")
            or "over" in results(server.requests[1])[0]
        )


@pytest.mark.slow
def test_a_server_of_tools_that_is_down_is_told_and_the_talk_goes_on(converse):
    config = Path(os.environ["MULL_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[mcp.broken]\ncommand = "/nowhere/at-all"\n')
    with ScriptedServer([answer(say("Without it."))]) as server:
        terminal = converse(server)
        terminal.wait_for("the MCP server broken did not start")
        terminal.say("q")
        terminal.wait_for("Without it.")


@pytest.mark.slow
def test_prompts_and_resources_of_a_server_are_said_as_they_are(converse, tmp_path):
    config = Path(os.environ["MULL_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    served = mcp_servers.plain("--extra")
    table = f"[mcp.a]\ncommand = {served.command!r}\nargs = {list(served.args)!r}\n"
    (config / "config.toml").write_text(table)
    (tmp_path / "project" / "secret.txt").write_text("hidden")
    with ScriptedServer([answer(say("Fine.")), answer(say("Seen."))]) as server:
        terminal = converse(server)
        terminal.say("/a:visit Rome")
        terminal.wait_for("Fine.")
        terminal.say("what is @a:memo://1?")
        terminal.wait_for("Seen.")
        first, second = (one.json["messages"][-1]["content"] for one in server.requests)
        assert first == "Visit {'place': 'Rome'}, see @secret.txt"
        assert second == "what is @a:memo://1?\n\nmemo://1:\ninside memo://1"


def test_something_said_in_the_middle_of_an_answer_does_not_cut_it_in_two(converse):
    gate = Gate()
    reply = answer(say("```python\nprint(1)\n"), gate, say("print(2)\n```\n\nDone."), STALL)
    with ScriptedServer([reply]) as server:
        terminal = converse(server)
        terminal.say("code")
        terminal.wait_for("print(1)")
        terminal.say("/mcp")
        terminal.wait_for("No MCP servers configured")
        gate.open()
        terminal.wait_for("Done.")
        assert "```" not in terminal.text
        assert terminal.cell("print(2)").fg == terminal.cell("print(1)").fg
        one, two = terminal.text.index("print(1)"), terminal.text.index("print(2)")
        assert "No MCP servers" not in terminal.text[one:two]


@pytest.mark.slow
def test_a_question_of_the_model_is_answered_by_a_number_or_in_words(converse):
    ask = calls(call("ask_user", question="Tabs or spaces?", options=["tabs", "spaces"]))
    plain = calls(call("ask_user", question="How many?"))
    replies = [ask, answer(say("One.")), ask, answer(say("Two.")), plain, answer(say("Three."))]
    replies += [plain, answer(say("Four."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.choose(2)
        terminal.wait_for("One.")
        assert results(server.requests[1])[-1] == "spaces"
        terminal.wait_idle()

        terminal.say("again")
        terminal.wait_for("❯ 1. tabs")
        terminal.type("neither")
        terminal.wait_for("❯ 3. Your own answer: neither")
        terminal.press("enter")
        terminal.wait_for("Two.")
        assert results(server.requests[3])[-1] == "neither"
        terminal.wait_idle()

        terminal.say("once more")  # where nothing is to be chosen, a number is an answer
        terminal.wait_for("No answer")
        terminal.press("enter")  # which needs words
        terminal.type("2")
        terminal.wait_for("❯ 2")
        terminal.press("enter")
        terminal.wait_for("Three.")
        assert results(server.requests[5])[-1] == "2"
        terminal.wait_idle()

        terminal.say("and again")
        terminal.wait_for("Esc answers nothing")
        terminal.press("esc")
        terminal.wait_for("Four.")
        assert results(server.requests[7])[-1].startswith("There is nobody to answer.")


def test_all_of_a_long_command_can_be_seen_before_the_answer(converse):
    command = "\n".join(f"touch line{n}" for n in range(1, 121))
    replies = [calls(call("run", command=command)), answer(say("Done."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("run it")
        terminal.wait_for("3. Look at the whole (80 more lines)")
        assert "touch line120" not in terminal.text
        before, written = terminal.screen, len(terminal.history)
        terminal.choose(3)
        terminal.wait_for("Full text")
        terminal.type("G")
        terminal.wait_for("touch line120")
        terminal.type("q")
        terminal.wait_for("❯ 3. Look")
        terminal.press("up", "up")
        terminal.wait_for("❯ 1. Yes")
        assert terminal.screen == before
        assert len(terminal.history) == written
        terminal.press("esc")
        terminal.wait_for("Done.")


@pytest.mark.slow
def test_instructions_of_a_folder_are_shown_and_asked_about_once(start):
    Path("AGENTS.md").write_text("Speak of \x1b[31mtabs.\n" * 60)
    with ScriptedServer([answer(say("Hello.")), answer(say("Again."))]) as server:
        how = ("-m", "openai-compatible/thinker", "--base-url", server.url, "--yes")
        terminal = start(*how)
        terminal.wait_for("Give these instructions to the model?")
        terminal.wait_for("4. Look at the whole (22 more lines)")
        assert "tabs." in terminal.text
        terminal.choose(4)
        terminal.wait_for("Full text")
        terminal.press("esc")
        terminal.wait_for("❯ 4. Look at")
        terminal.type("certainly not")  # no letter of it trusts anybody
        terminal.wait_for("❯ 3. No")
        terminal.choose(1)
        terminal.wait_for("/help lists commands")
        terminal.say("hi")
        terminal.wait_for("Hello.")
        assert "tabs." in server.requests[0].json["messages"][0]["content"]
        terminal = start(*how)
        terminal.wait_for("/help lists commands")
        assert "Give these instructions" not in terminal.text
