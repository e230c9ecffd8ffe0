"""What a daily user does around an answer, at the real terminal."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from mull.store.keys import Keys
from mull.store.paths import config_dir, data_dir
from mull.testing.server import Gate, ScriptedServer
from tui.scripts import answer, call, calls, say

pytestmark = pytest.mark.slow

LONG = "\n".join(f"line {n}" for n in range(300))


def said_by_user(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "user"]


def text_of(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_what_is_offered_is_taken_by_enter(converse):
    Path("src").mkdir()
    Path("src/alpha.py").write_text("print(1)\n")
    with ScriptedServer([answer(say("Seen."))]) as server:
        terminal = converse(server)
        terminal.say("/job")
        terminal.wait_for("No background commands were started")
        terminal.type("@")
        terminal.wait_for("src/alpha.py")
        terminal.type("alph")
        terminal.press("enter")
        terminal.wait_for("❯ @src/alpha.py")
        assert not server.requests
        terminal.say(" and @src, @../project")
        terminal.wait_for("Seen.")
        assert "print(1)" in text_of(said_by_user(server.requests[0])[0])
        assert "src is not attached: it is a folder" in terminal.text


def test_a_long_paste_is_a_label_and_a_command_goes_along_with_what_is_said(converse):
    (config_dir() / "commands").mkdir(parents=True)
    (config_dir() / "commands/wonder.md").write_text("Why $ARGUMENTS?")
    with ScriptedServer([answer(say("One.")), answer(say("Two."))]) as server:
        terminal = converse(server)
        terminal.type("see ")
        terminal.paste(LONG)
        terminal.wait_for("❯ see [Pasted text #1 +300 lines]")
        terminal.press("backspace")
        terminal.wait_gone("Pasted")
        terminal.paste(LONG)
        terminal.wait_for("❯ see [Pasted text #2 +300 lines]")
        terminal.say(" please")
        terminal.wait_for("One.")
        assert said_by_user(server.requests[0]) == [f"see {LONG} please"]
        assert "more lines …]" in terminal.text
        terminal.wait_idle()
        terminal.say("!echo from; echo the shell; exit 3")
        terminal.wait_for("[exit status 3]")
        terminal.say("/wonder the shell")
        terminal.wait_for("Two.")
        asked = text_of(said_by_user(server.requests[1])[-1])
        assert asked.startswith("Why the shell?")
        assert "from\nthe shell\n```\n[exit status 3]" in asked
        terminal.wait_idle()
        terminal.say("/copy")
        terminal.wait_for("Copied 4 characters")
        assert base64.b64encode(b"Two.") in terminal.raw


def test_modes_go_round_by_one_key_and_edits_are_accepted(converse):
    replies = [
        calls(call("write", path="a.txt", content="x")), answer(say("Written.")),
        calls(call("run", command="touch b.txt")), answer(say("No.")),
        calls(call("run", command="touch c; sleep 600", background=True)), answer(say("Serving.")),
    ]  # fmt: skip
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.wait_for(" · ask · ")
        terminal.press("s-tab")
        terminal.wait_for(" · accept-edits · ")
        terminal.say("write")
        terminal.wait_for("Written.")
        assert Path("a.txt").read_text() == "x"
        terminal.wait_idle()
        terminal.say("run")
        terminal.wait_for("❯ 1. Yes")
        terminal.press("esc")
        terminal.wait_for("No.")
        terminal.wait_idle()
        terminal.say("serve")
        terminal.choose(1)
        terminal.wait_for("Serving.")
        terminal.wait_idle()
        terminal.say("/jobs")
        terminal.wait_for(re.compile(r"1 +running for \d+ s +touch c; sleep 600"))
        terminal.say("/jobs end 1")
        terminal.wait_for("ended, exit status")
        terminal.press("s-tab")
        terminal.wait_for(" · read-only · ")
        terminal.press("s-tab")
        terminal.wait_for(re.compile(" · (auto|ask) · "))  # auto only where there is a sandbox


def test_a_key_is_typed_unseen_and_stored_and_the_keys_are_the_users_own(start):
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text('[keys]\nnewline = "f6"\n')
    with ScriptedServer([]) as server:
        terminal = start("-m", "openai-compatible/x", "--base-url", server.url)
        terminal.wait_for("/help lists commands")
        terminal.type("half")
        terminal.type("\x1b[17~")
        terminal.type("line")
        terminal.wait_for("  line")
        terminal.press("c-c")
        terminal.wait_gone("half")
        terminal.say("/keys set anthropic")
        terminal.wait_for("Key for anthropic")
        terminal.type("sk-ant-secret")
        terminal.wait_for("❯ *************")
        terminal.press("enter")
        terminal.wait_for("Stored the key for anthropic")
        terminal.type("\x1f")  # undo brings nothing of it back
        terminal.press("c-y")
        terminal.say("/login")
        terminal.wait_for("github-copilot")
        terminal.say("/mo")
        terminal.wait_for("Anthropic, key found")
        terminal.type("kimi")
        terminal.wait_for("❯ moonshotai/kimi-k3")
        terminal.press("c-f")
        terminal.wait_for("★ no key")
        terminal.press("enter")
        terminal.wait_for("Key for moonshotai")
        terminal.press("esc")
        terminal.wait_for("No key entered")
        terminal.say("hello")  # asked for once more, as soon as it is needed
        terminal.wait_for("Key for moonshotai")
        terminal.press("esc")
        terminal.wait_for("no API key for Moonshot AI")
        terminal.wait_for(lambda t: t.text.count("❯ hello") == 2)
        assert "sk-ant" not in terminal.raw.decode()
        assert "sk-ant" not in (data_dir() / "typed").read_text()
        assert Keys(data_dir(), {}).stored() == {"anthropic": "file"}


def test_a_long_turn_rings_and_the_window_has_a_title(converse):
    gate = Gate()
    how = ("--set", "terminal.notifyAfter=0.001", "--set", "terminal.notify=notification")
    with ScriptedServer([answer(say("Half, "), gate, say("whole."))]) as server:
        terminal = converse(server, *how)
        terminal.wait_for(lambda t: b"\x1b]2;mull \xc2\xb7 project\x07" in t.raw)
        assert terminal.raw.count(b"\x1b[22;2t") == 1
        terminal.say("why so")
        terminal.wait_for("Half")
        titled = "\x1b]2;… mull · project · why so\x07"
        terminal.wait_for(lambda t: titled in t.raw.decode(errors="replace"))
        assert b"\x1b]9;" not in terminal.raw
        gate.open()
        terminal.wait_for(lambda t: b"\x1b]9;mull: the turn is over\x07" in t.raw)
        terminal.wait_idle()
        terminal.press("c-d")
        assert terminal.end() == 0
        assert terminal.raw.count(b"\x1b[23;2t") == 1


def test_a_wrong_key_map_is_told_before_anything_is_drawn(start):
    config_dir().mkdir(parents=True)
    (config_dir() / "config.toml").write_text('[keys]\nview = "ctrl-l"\n')
    terminal = start("-m", "openai-compatible/x", "--base-url", "http://127.0.0.1:9")
    assert terminal.end() == 2
    assert re.search(r"Ctrl-L is assigned to both\s+view and\s+redraw", terminal.text)
