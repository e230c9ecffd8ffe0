"""Keys at the real terminal: stopping, waiting, quitting, editing, and having the answer now."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from mull.agent.hurry_plan import STOPPED
from mull.policy.view.repair import INTERRUPTED
from mull.testing.server import CUT, STALL, Gate, Reply, ScriptedServer
from tui.scripts import answer, call, calls, say, think
from tui.terminal import MULL


def said_by_user(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "user"]


def test_esc_stops_and_keeps_and_ctrl_c_stops_clears_and_quits(converse):
    replies = [
        answer(think("weighing"), say("Half an ans"), STALL),
        answer(think("pondering it"), STALL),
        answer(say("Whole.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("first")
        terminal.wait_for("Half an ans")
        terminal.press("esc")
        terminal.wait_for("Interrupted; what arrived is kept.")
        assert server.requests[0].wait_left()
        assert "Half an ans" in terminal.text
        terminal.say("second")
        terminal.wait_for("pondering it")
        terminal.press("c-c")
        terminal.wait_for(lambda t: t.text.count("Interrupted; what arrived is kept.") == 2)
        terminal.type("not sent")
        terminal.wait_for("❯ not sent")
        terminal.press("c-c")
        terminal.wait_gone("not sent")
        terminal.say("third")
        terminal.wait_for("Whole.")
        sent = server.requests[2].json["messages"]
        assert [(m["role"], m["content"]) for m in sent if m["role"] != "system"] == [
            ("user", "first"),
            ("assistant", f"Half an ans\n\n{INTERRUPTED}"),
            ("user", "second"),
            ("assistant", INTERRUPTED),
            ("user", "third"),
        ]
        terminal.wait_idle()
        terminal.press("c-c")
        terminal.wait_for("Press Ctrl-C again to quit.")
        terminal.press("c-c")
        assert terminal.end() == 0
        assert terminal.is_restored()
        rows = [row for row in terminal.screen if row]
        assert rows[-2] == "Whole."
        assert re.fullmatch(r"Continue with: mull --session \S+", rows[-1])
        assert len(server.requests) == 3


def test_what_is_typed_while_the_model_works_waits_and_a_stop_gives_it_back(converse):
    first = Gate()
    replies = [
        answer(say("One "), first, say("done.")),
        answer(say("Two done.")),
        answer(say("Stuck"), STALL),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("one")
        terminal.wait_for("One")
        terminal.say("two")
        terminal.wait_for("next: two")
        terminal.type("three\\\r")
        terminal.wait_for(lambda t: "three\\" not in t.text)
        terminal.type("and mor")
        terminal.press("c-q")
        terminal.wait_for("queued: three and mor")
        terminal.press("up")
        terminal.wait_gone("queued:")
        terminal.type("e")
        terminal.press("c-q")
        terminal.wait_for("queued: three and more")
        assert len(server.requests) == 1
        first.open()
        terminal.wait_for("Stuck")
        assert said_by_user(server.requests[-1]) == ["one", "two", "three\nand more"]
        assert terminal.text.index("Two done.") < terminal.text.index("❯ three")
        terminal.say("four")
        terminal.wait_for("next: four")
        terminal.press("esc")
        terminal.wait_for("Interrupted")
        terminal.wait_for("❯ four")
        assert "next:" not in terminal.text
        terminal.press("c-c")
        terminal.wait_gone("❯ four")


def test_what_is_typed_while_the_model_works_goes_along_with_the_next_result(converse):
    Path("notes.txt").write_text("a note\n")
    first = Gate()
    replies = [
        calls(say("Looking "), first, call("read", path="notes.txt")),
        answer(say("All done.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("look")
        terminal.wait_for("Looking")
        terminal.say("please hurry")
        terminal.wait_for("next: please hurry")
        first.open()
        terminal.wait_for("All done.")
        assert "next:" not in terminal.text
        text = terminal.text
        assert text.index("1 line") < text.index("❯ please hurry") < text.index("All done.")
        sent = server.requests[1].json["messages"]
        assert [m["role"] for m in sent[-3:]] == ["assistant", "tool", "user"]
        assert sent[-1]["content"] == "please hurry"


def test_what_goes_back_into_the_line_stands_before_what_is_being_typed(converse):
    with ScriptedServer([answer(say("Working"), STALL)]) as server:
        terminal = converse(server)
        terminal.say("one")
        terminal.wait_for("Working")
        terminal.say("two")
        terminal.wait_for("next: two")
        terminal.type("three")
        terminal.press("c-q")
        terminal.wait_for("queued: three")
        terminal.type("fou")
        terminal.wait_for("❯ fou")
        terminal.press("esc")
        terminal.wait_for("Interrupted")
        terminal.type("r")
        terminal.wait_for(re.compile(r"❯ two\n +three\n +four"))


def test_a_key_pressed_before_the_question_counts_is_not_left_in_the_line(converse):
    with ScriptedServer([calls(call("run", command="true > x")), answer(say("Ran."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for("Run this command? …")
        terminal.type("1")
        terminal.wait_for("❯ 1")
        terminal.choose(1)
        terminal.wait_for("Ran.")
        terminal.wait_gone("❯ 1")


def test_a_failed_question_is_in_the_line_again_and_is_sent_once(converse):
    down = Reply.json({"error": {"message": "out of order"}}, 500, {"x-should-retry": "false"})
    with ScriptedServer([down, down, answer(say("Back again."))]) as server:
        terminal = converse(server)
        terminal.say("a question")
        terminal.wait_for("could not answer the request")
        terminal.wait_for(lambda t: t.text.count("❯ a question") == 2)
        terminal.press("enter")
        terminal.wait_for(lambda t: t.text.count("❯ a question") == 3)
        terminal.wait_idle()
        terminal.say(", please")
        terminal.wait_for("Back again.")
        assert [said_by_user(request) for request in server.requests] == [
            ["a question"], ["a question"], ["a question, please"],
        ]  # fmt: skip


def test_a_server_that_is_down_is_asked_again_until_esc(converse):
    down = Reply.json({"error": {"message": "overloaded"}}, 503, {"retry-after": "90"})
    with ScriptedServer([down]) as server:
        terminal = converse(server)
        terminal.say("a question")
        terminal.wait_for(re.compile(r"Retrying in \d+ s \(attempt 2/10\) · Esc cancels"))
        terminal.press("esc")
        terminal.wait_for(lambda t: t.text.count("❯ a question") == 2)
        terminal.wait_gone("Retrying in")
        terminal.wait_for("Interrupted; nothing had arrived.")
        assert len(server.requests) == 1


def test_a_connection_that_breaks_is_not_called_a_stop(converse):
    with ScriptedServer([answer(say("Half an ans"), CUT), answer(say("Whole."))]) as server:
        terminal = converse(server)
        terminal.say("first")
        terminal.wait_for("/retry asks again.")
        assert "The answer broke off; what arrived is kept." in terminal.text
        assert "Interrupted" not in terminal.text
        terminal.wait_idle()
        terminal.say("/retry")
        terminal.wait_for("Whole.")
        assert said_by_user(server.requests[1]) == ["first"]


def test_answer_now_stops_and_asks_again_where_the_server_has_no_call_for_it(converse):
    replies = [answer(think("on and on"), STALL), answer(say("Then: seven."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("q")
        terminal.wait_for("on and on")
        terminal.press("c-g")
        terminal.wait_for("Then: seven.")
        terminal.wait_for(STOPPED)
        terminal.wait_idle()
        assert server.requests[0].wait_left()
        assert "on and on" in server.requests[1].json["messages"][-1]["content"]


def test_answer_now_asks_a_model_that_cannot_stop_thinking_once_and_says_so(converse):
    going = Gate()
    replies = [
        answer(think("on and on"), STALL),
        answer(think("still"), going, think(" at it"), say("Seven.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server, model="moonshotai/kimi-k2-thinking")
        terminal.say("q")
        terminal.wait_for("on and on")
        terminal.press("c-g")
        terminal.wait_for("with an instruction only")
        terminal.wait_for("still")
        terminal.press("c-g")
        terminal.type("next")
        terminal.wait_for("❯ next")  # keys are taken in their order
        going.open()
        terminal.wait_for("Seven.")
        terminal.wait_for("the model has already been told to answer")
        terminal.wait_idle()
        assert len(server.requests) == 2
        assert "with thinking off" not in terminal.text
        assert "disabling" not in terminal.text


def test_answer_now_uses_the_call_of_a_server_that_has_one(converse):
    ended = Gate()

    def play(recorded):
        if recorded.path.endswith("/control"):
            ended.open()
            return Reply.json({"success": True})
        if "completions" not in recorded.path:
            return Reply.json({}, 404)
        head = {"id": "c1", "choices": []}
        return answer(head, think("on and on"), ended, say("Seven."))

    with ScriptedServer(play) as server:
        terminal = converse(server, model="llama.cpp/any")
        terminal.say("q")
        terminal.wait_for("on and on")
        terminal.press("c-g")
        terminal.wait_for("Seven.")
        terminal.wait_for("the server ended the thinking")
        terminal.wait_idle()
        assert [one.path for one in server.requests if one.method == "POST"] == [
            "/chat/completions",
            "/chat/completions/control",
        ]


def test_lines_are_edited_pasted_searched_and_written_in_an_editor(converse, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s from the editor" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    replies = [answer(say(f"Answer {n}.")) for n in range(4)]
    with ScriptedServer(replies) as server:
        terminal = converse(server, env={"EDITOR": str(editor)})
        terminal.paste("first line\r\nsecond line\r\n/third")
        terminal.wait_for("/third")
        assert not server.requests
        terminal.press("enter")
        terminal.wait_for("Answer 0.")
        assert said_by_user(server.requests[0]) == ["first line\nsecond line\n/third"]
        terminal.wait_idle()
        terminal.type("a")
        terminal.press("alt-enter")
        terminal.type("b")
        terminal.press("c-j")
        terminal.say("c")
        terminal.wait_for("Answer 1.")
        assert said_by_user(server.requests[1])[-1] == "a\nb\nc"
        terminal.wait_idle()
        terminal.press("c-r")
        terminal.type("second")
        terminal.wait_for("search: second")
        terminal.wait_for("❯ first line")
        terminal.press("enter")
        terminal.wait_gone("search: ")
        terminal.press("enter")
        terminal.wait_for("Answer 2.")
        assert said_by_user(server.requests[2])[-1] == "first line\nsecond line\n/third"
        terminal.wait_idle()
        terminal.type("words")
        terminal.press("c-x", "c-e")
        terminal.wait_for("❯ words from the editor")
        terminal.press("enter")
        terminal.wait_for("Answer 3.")
        assert said_by_user(server.requests[3])[-1] == "words from the editor"


def test_alt_t_goes_through_the_levels_that_the_model_has(converse):
    with ScriptedServer([answer(say("Yes."))]) as server:
        env = {"OPENAI_API_KEY": "sk-not-real"}
        terminal = converse(server, model="openai/gpt-5", env=env)
        seen = []
        for _ in range(4):
            before = terminal.text.count("Thinking: ")
            terminal.type("\x1bt")
            terminal.wait_for(lambda t, n=before: t.text.count("Thinking: ") > n)
            seen.append(re.findall(r"Thinking: (\w+)", terminal.text)[-1])
        assert sorted(seen) == ["high", "low", "medium", "minimal"]
        level = seen[-1]
        terminal.wait_for(f"openai/gpt-5/{level}")
        assert "sk-not-real" not in terminal.raw.decode()


def test_ctrl_d_deletes_in_a_line_and_quits_on_an_empty_one(converse):
    with ScriptedServer([]) as server:
        terminal = converse(server)
        terminal.type("xy")
        terminal.wait_for("❯ xy")
        terminal.type("\x01")
        terminal.press("c-d")
        terminal.wait_for(lambda t: "❯ y" in t.screen)
        terminal.press("c-d")
        terminal.wait_for(lambda t: "❯" in t.screen)
        terminal.press("c-d")
        assert terminal.end() == 0
        assert "Continue with" not in terminal.text
        assert terminal.is_restored()
        assert "❯" not in terminal.text


def test_nothing_is_drawn_into_an_editor_and_nothing_is_lost_by_it(converse, tmp_path):
    editor, leave = tmp_path / "editor", tmp_path / "leave"
    gate, sent = Gate(), Gate()
    editor.write_text(
        f"#!/bin/sh\necho EDITING; while [ ! -e {leave} ]; do sleep 0.05; done; echo LEFT\n"
    )
    editor.chmod(0o755)
    reply = answer(say("Before.\n\n"), gate, say("Meanwhile.\n\n"), sent, say("After."))
    with ScriptedServer([reply]) as server:
        terminal = converse(server, env={"EDITOR": str(editor)})
        terminal.say("q")
        terminal.wait_for("Before.")
        terminal.press("c-x", "c-e")
        terminal.wait_for("EDITING")
        gate.open()
        assert sent.wait_reached()
        leave.touch()
        sent.open()
        terminal.wait_for("After.")
        raw = terminal.raw
        assert raw.index(b"LEFT") < raw.index(b"Meanwhile.")


def test_esc_stops_at_once_and_what_is_typed_after_it_stays_whole(converse):
    replies = [
        answer(say("Half an ans"), STALL),
        answer(think("weighing"), STALL),
        answer(say("Yes.")),
    ]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("first")
        terminal.wait_for("Half an ans")
        terminal.press("esc")
        terminal.wait_for("Interrupted")
        terminal.type("but wait")
        terminal.wait_for("❯ but wait")
        terminal.press("enter")
        terminal.wait_for("weighing")
        terminal.type("\x1b[27u3 of\x1b[13;2uthem\x1b[27;2;13~")  # Esc, and Shift-Enter twice
        terminal.wait_for(lambda t: t.text.count("Interrupted") == 2)
        terminal.say("fit")
        terminal.wait_for("Yes.")
        assert said_by_user(server.requests[2])[-1] == "3 of\nthem\nfit"


def test_the_kitty_protocol_is_asked_for_and_given_back(converse, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho EDITING\n")
    editor.chmod(0o755)
    with ScriptedServer([]) as server:
        terminal = converse(server, env={"EDITOR": str(editor), "TMUX": "/tmp/x,1,0"})
        assert terminal.raw.count(b"\x1b[?u") == 1
        assert b"\x1b[>5u" not in terminal.raw
        terminal.type("\x1b[?0u")
        terminal.wait_for(lambda t: b"\x1b[>5u" in t.raw)
        terminal.type("\x1b[120;5u\x1b[101;5u")  # Ctrl-X Ctrl-E
        terminal.wait_for("EDITING")
        terminal.wait_for(lambda t: t.raw.count(b"\x1b[>5u") == 2)
        before, _, after = terminal.raw.partition(b"EDITING")
        assert before.count(b"\x1b[<u") == 1
        assert b"\x1b[<u" not in after
        terminal.process.terminate()
        terminal.end()
        assert terminal.raw.count(b"\x1b[<u") == 2
        assert terminal.raw.count(b"\x1b[?u") == 1
        # tmux has its own way to tell keys apart
        assert terminal.raw.count(b"\x1b[>4;1m") == terminal.raw.count(b"\x1b[>4m") == 2
        assert terminal.is_restored()
        assert "[?0u" not in terminal.everything


def test_esc_leaves_a_picker_and_a_search_and_what_follows_is_typed(converse):
    with ScriptedServer([]) as server:
        terminal = converse(server)
        terminal.say("/theme")
        terminal.wait_for("❯ auto")
        terminal.press("esc")
        terminal.wait_gone("❯ auto")
        terminal.say("/theme")
        terminal.wait_for("❯ auto")
        terminal.type("\x1b[27u/set")  # in one step, as a slow line would bring it
        terminal.wait_for("❯ /set")
        terminal.press("c-c")
        terminal.wait_gone("❯ /set")
        terminal.press("c-r")
        terminal.wait_for("search:")
        terminal.type("theme")
        terminal.wait_for("search: theme")
        terminal.press("esc")
        terminal.wait_gone("search: ")
        terminal.type("3b")
        terminal.wait_for("❯ /3btheme")


def test_ctrl_z_goes_back_to_the_shell_and_comes_back(start):
    with ScriptedServer([answer(say("Yes."))]) as server:
        mull = shlex.join((*MULL, "-m", "openai-compatible/thinker", "--base-url", server.url))
        terminal = start(program=("/bin/bash", "--norc", "-i"), env={"PS1": "shell> "})
        terminal.wait_for("shell>")
        terminal.type(f"{mull}\r")
        terminal.wait_for("/help lists commands")
        terminal.type("half a li")
        terminal.wait_for("❯ half a li")
        terminal.press("c-z")
        terminal.wait_for("Stopped")
        terminal.say("echo $((40+2))")
        terminal.wait_for("42")
        terminal.say("fg")
        terminal.wait_for("❯ half a li")
        terminal.say("ne")
        terminal.wait_for("Yes.")
        assert said_by_user(server.requests[0]) == ["half a line"]
        terminal.wait_idle()
        terminal.press("c-d")
        terminal.wait_for(re.compile(r"Continue with.*\s+shell>"))
