"""The gate before every terminal: nothing that a model, a file or a server says is obeyed there."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.processes import members
from mull.history.log import Entry
from mull.neutral.blocks import MediaBlock, OpaqueBlock
from mull.neutral.messages import assistant, user
from mull.store.sessions.sqlite import SqliteSessions, sessions_path
from mull.testing.server import ScriptedServer
from mull.tui.text.lines import PLAIN, Span
from mull.tui.text.safe import draw_on, guarded, neutralise, one_line, unguarded
from mull.tui.text.sgr import encode
from tui.scripts import answer, call, calls, say
from tui.terminal import PATIENCE

FORGED = """touch PWNED
#\x1bc> list the files please

run: ls
  ls
Run this command?
1. Yes
Number, or a reason for no: """
OBEYED = [
    "\x1bc",
    "\x1b]52;c;eA==\x07",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x1b[2J",
    "\u202e",
    "\b",
    "\r",
]


class Tty(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("text", OBEYED)
def test_a_terminal_that_is_guarded_obeys_nothing(text):
    under = Tty()
    stream = guarded(under)
    print(f"a{text}b", file=stream)
    stream.writelines([text])
    assert not set(text) & set("\x1b\x9b\u202e\b\r\x07") & set(under.getvalue())
    assert guarded(stream) is stream
    assert unguarded(stream) is under


def test_a_pipe_is_left_alone():
    pipe = io.StringIO()
    assert guarded(pipe) is pipe


@given(st.text())
def test_what_is_drawn_goes_through_and_what_is_in_it_does_not(text):
    under = Tty()
    draw_on(guarded(under), encode([(Span(text, PLAIN._replace(bold=True)),)], "16"))
    shown = under.getvalue()
    assert shown.count("\x1b") in (0, 2)
    assert neutralise(text).replace("\n", " ").replace("\t", " ") in shown.replace("\n", "")


@given(st.text())
def test_one_line_is_one(text):
    assert len(one_line(text, 50)) <= 50
    assert one_line(text, 50).isprintable() or "\n" not in one_line(text, 50)
    assert "\n" not in one_line(text)


def test_hidden_letters_are_not_shown():
    assert neutralise("a\U000e0041\U000e007fb") == "ab"


def test_a_forged_question_is_seen_for_what_it_is(start):
    with ScriptedServer([calls(call("run", command=FORGED)), answer(say("Done."))]) as server:
        terminal = start("--plain", "-m", "openai-compatible/m", "--base-url", server.url)
        terminal.wait_for("/help lists commands")
        terminal.say("list the files please")
        terminal.wait_for("touch PWNED")
        terminal.wait_for(lambda t: t.text.count("Number, or a reason for no:") == 2)
        assert b"\x1bc" not in terminal.raw
        assert [row for row in terminal.screen if row.startswith("Number")] == [
            "Number, or a reason for no:"
        ]
        terminal.say("no")
        terminal.wait_for("Done.")
    assert not Path("PWNED").exists()


@pytest.mark.parametrize("front", [(), ("--plain",)], ids=["screen", "plain"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_whatever_ends_mull_ends_its_commands(start, front, number):
    command = "echo $$ > pid; sleep 600 | sleep 600"
    with ScriptedServer([calls(call("run", command=command))]) as server:
        place = ("-m", "openai-compatible/m", "--base-url", server.url)
        terminal = start(*front, *place, "--yes")
        terminal.wait_for("/help lists commands")
        terminal.say("go")
        terminal.wait_for(lambda _: Path("pid").exists() and Path("pid").read_text().strip())
        begun = int(Path("pid").read_text())
        assert members(begun)
        terminal.process.send_signal(number)
        terminal.process.wait(PATIENCE)
    terminal.wait_for(lambda _: not members(begun))
    assert terminal.process.returncode in (130, 129, 143, 0)


def test_closing_the_window_ends_commands(start):
    with ScriptedServer([calls(call("run", command="echo $$ > pid; sleep 600"))]) as server:
        terminal = start("-m", "openai-compatible/m", "--base-url", server.url, "--yes")
        terminal.wait_for("/help lists commands")
        terminal.say("go")
        terminal.wait_for(lambda _: Path("pid").exists() and Path("pid").read_text().strip())
        begun = int(Path("pid").read_text())
        os.close(terminal._master)
        os.close(terminal._slave)
        terminal._master, terminal._slave = os.pipe()
        terminal.process.wait(PATIENCE)
    assert not members(begun)


HOSTILE = "\x1b]52;c;cHduZWQ=\x07\x1bc\x9b2J"


def test_no_command_lets_anything_through(start, tmp_path):
    """What is stored, imported or in the way holds escapes; no command lets a terminal see one."""
    block = {"type": HOSTILE, "x": 1}
    media = {"type": "media", "mediaType": HOSTILE, "name": HOSTILE, "data": "eA=="}
    message = {"role": "assistant", "blocks": [{"type": "opaque", "data": block}, media]}
    entries = [{"type": "message", "message": {"role": "user", "blocks": []}}]
    good = {"type": "session", "version": 1, "name": "odd", "model": f"m{HOSTILE}"}
    lines = [
        {**good, "records": [{"type": "message", "message": message}, *entries]},
        {"type": HOSTILE},
    ]
    for number, line in enumerate(lines):
        Path(f"t{number}.json").write_text(msgspec.json.encode(line).decode())
    odd = tmp_path / "project" / HOSTILE
    odd.mkdir()
    models = {"acme": {"name": HOSTILE, "api": "https://a/v1", "models": {"m": {"name": HOSTILE}}}}
    config = Path(os.environ["MULL_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "models.json").write_text(msgspec.json.encode(models).decode())
    store = SqliteSessions(sessions_path())
    info = store.create(folder=f"/{HOSTILE}", model=f"x/{HOSTILE}", base_url=f"http://{HOSTILE}")
    said = [OpaqueBlock(block), MediaBlock(data="eA==", media_type=HOSTILE, name=HOSTILE)]
    store.append(info.id, 0, Entry(user("q")), Entry(assistant(*said)))
    store.close()
    for words in (
        ("sessions", "import", "t0.json"),
        ("sessions", "import", "t1.json"),
        ("sessions", "show", info.id, "--thinking"),
        ("sessions", "list", "--all"),
        ("sessions", "show", HOSTILE),
        ("sessions", "export", info.id, "--format", "md"),
        ("sessions", "export", info.id, "--format", "json"),
        ("models", "show", "acme/m"),
        ("models", HOSTILE),
        ("ask", "-m", HOSTILE, "q"),
        ("ask", "--config", HOSTILE, "q"),
        ("settings", "--set", HOSTILE),
        (HOSTILE,),
    ):
        terminal = start(*words, silent=True)
        terminal.end()
        for sequence in (b"\x1b]52", b"\x1bc", b"\xc2\x9b"):
            assert sequence not in terminal.raw, words
