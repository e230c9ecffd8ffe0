"""`mull ask` at a real terminal: shade, slant, word wrap, Markdown, and a keyboard left alone."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from mull.testing import Say, StrictServer, Think
from mull.testing.server import Gate, Reply, ScriptedServer
from mull.tui.screen.colour import Rgb, contrast, luminance
from tui.scripts import answer, call, calls, say, think
from tui.terminal import DARK, LIGHT, MULL, Terminal

pytestmark = pytest.mark.slow

WORDS = [f"thought{n}" for n in range(30)]
THOUGHT = " ".join(WORDS)
GROUNDS = {DARK: Rgb(0x1E, 0x1E, 0x2E), LIGHT: Rgb(0xFF, 0xFA, 0xF0)}
MODELS = {
    "anthropic": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-3-pro-preview",
    "kimi": "moonshotai/kimi-k2-thinking",
    "openai": "openai/gpt-5",
}
QUERY = b"\x1b]11;?"
WHOLE_ANSWER = f"\x1b]11;rgb:{DARK}\x1b\\\x1b[?62;22c"


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Starts a program at a terminal, in a folder of its own."""
    started = []
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC", "GEMINI", "MOONSHOT", "OPENAI"):
        monkeypatch.setenv(f"{name}_API_KEY", "k")

    def start(*words, **how):
        started.append(Terminal(*words, **how))
        return started[-1]

    yield start
    for terminal in started:
        terminal.close()


@pytest.fixture
def ask(start):
    """`mull ask` at a terminal; in the middle of a shell's line, if one is given."""

    def ask(server, *words, line=None, model="openai-compatible/thinker", **how):
        command = ["ask", "-m", model, "--base-url", server.url, *words, "q"]
        if line is None:
            return start(*command, columns=50, **how)
        whole = line.format(shlex.join([*MULL, *command]))
        return start(program=("/bin/sh", "-c", whole), columns=50, **how)

    return ask


def reply(*steps):
    return answer(*(steps or (think(THOUGHT),)), say("The answer."))


def rgb(hexadecimal):
    return Rgb(*bytes.fromhex(hexadecimal))


def rows_with(terminal, words):
    """The rows of the screen that hold something, and the cells behind them."""
    buffer = terminal._screen.buffer
    return [
        (line, [buffer[at][x] for x in range(terminal._screen.columns)])
        for at, line in enumerate(terminal.screen)
        if words in line
    ]


@pytest.mark.parametrize("background", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("provider", MODELS)
def test_req_think_007_1_req_think_007_2_req_think_007_3_a_thought_is_shaded_and_slanted(
    ask, provider, background
):
    with StrictServer(provider, [[Think(THOUGHT), Say("The answer.")]]) as server:
        terminal = ask(server, model=MODELS[provider], background=background)
        assert terminal.end() == 0
    own, rows = GROUNDS[background], rows_with(terminal, "thought")
    for line, cells in rows:
        (shade,) = {cell.bg for cell in cells}  # from edge to edge
        assert (luminance(rgb(shade)) > luminance(own)) is (background == DARK)
        assert contrast(rgb(shade), own) < 1.6
        word = cells[line.index("thought")]
        assert word.italics
        assert contrast(rgb(word.fg), rgb(shade)) >= 4.5
    assert " ".join(" ".join(line for line, _ in rows).split()) == THOUGHT
    cell = terminal.cell("The answer.")
    assert (cell.bg, cell.italics) == ("default", False)
    assert terminal.is_restored()


@pytest.mark.parametrize("columns", [20, 50, 132])
def test_lines_end_between_words_whatever_the_pieces_and_the_width(start, columns):
    pieces = [think(piece) for piece in re.split(r"(?<=gh)|(?<=t1)", THOUGHT)]
    with ScriptedServer([reply(*pieces, think("\n\n  中文字符也要换行，" * 9))]) as server:
        place = ["-m", "openai-compatible/thinker", "--base-url", server.url]
        terminal = start("ask", *place, "q", columns=columns, rows=64)
        assert terminal.end() == 0
    text = terminal.text
    assert all(re.search(rf"\b{word}\b", text) for word in WORDS)
    assert text.count("中文字符也要换行，") + text.count("\n") >= 9
    assert "".join(text.split()).count("中文字符也要换行，") == 9
    assert not any(row.strip().startswith("，") for row in terminal.screen)


def test_a_terminal_that_does_not_know_its_background_gets_a_bar(ask):
    with ScriptedServer([reply()]) as server:
        terminal = ask(server, background=None)
        assert terminal.end() == 0
    rows = rows_with(terminal, "thought")
    assert all(line.startswith("│ thought") for line, _ in rows)
    assert {cell.bg for _, cells in rows for cell in cells} == {"default"}
    assert terminal.cell("thought0").italics
    assert " ".join(line.removeprefix("│ ") for line, _ in rows) == THOUGHT


@pytest.mark.parametrize(("said", "dark"), [("15;0", True), ("0;default;15", False)])
def test_the_environment_speaks_for_a_silent_terminal(ask, said, dark):
    with ScriptedServer([reply()]) as server:
        terminal = ask(server, silent=True, env={"COLORFGBG": said})
        assert terminal.end() == 0
    shade = rgb(terminal.cell("thought0").bg)
    usual = Rgb(0x3F, 0x3F, 0x3F) if dark else Rgb(0xEE, 0xE8, 0xD5)
    assert (luminance(shade) > luminance(usual)) is dark
    assert (luminance(shade) < 0.5) is dark


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["no color", "dumb"])
def test_without_colours_nothing_is_asked_and_no_escape_is_written(ask, env):
    with ScriptedServer([reply()]) as server:
        terminal = ask(server, env=env)
        assert terminal.end() == 0
    assert b"\x1b" not in terminal.raw
    assert " ".join(row.removeprefix("│ ") for row in terminal.screen if "th" in row) == THOUGHT


def test_thoughts_on_the_screen_stay_out_of_a_file_and_a_pipe_in_front_changes_nothing(
    ask, tmp_path
):
    with ScriptedServer([reply()]) as server:
        line = "echo data | {} > answer"
        terminal = ask(server, "--thinking", "stderr", line=line)
        assert terminal.end() == 0
        assert "data" in server.requests[0].body.decode()
    assert (tmp_path / "answer").read_bytes() == b"The answer.\n"
    assert terminal.cell("thought0").bg != "default"
    assert "The answer." not in terminal.text


def test_nothing_is_asked_where_no_thought_comes(ask):
    with ScriptedServer([answer(say("The answer."))]) as server:
        terminal = ask(server)
        assert terminal.end() == 0
    assert QUERY not in terminal.raw


THEN_READ = "stty -echo; {}; read line; echo got:$line"


def held_reply():
    gate = Gate()
    return gate, reply(think(THOUGHT), gate)


def test_what_is_typed_while_the_terminal_is_asked_goes_to_whoever_reads_next(ask):
    gate, slow = held_reply()
    with ScriptedServer([slow]) as server:
        terminal = ask(server, line=THEN_READ, silent=True)
        terminal.wait_for(lambda terminal: QUERY in terminal.raw)
        terminal.type("for")
        terminal.type(WHOLE_ANSWER)
        terminal.type(" you\n")
        gate.open()
        terminal.wait_for("got:for you")
        assert "rgb" not in terminal.everything
        assert terminal.end() == 0


def test_what_was_typed_before_is_not_touched(ask):
    gate = Gate()
    with ScriptedServer([answer(gate, think(THOUGHT), say("The answer."))]) as server:
        terminal = ask(server, line=THEN_READ)
        assert gate.wait_reached(20)
        terminal.type("for you\n")
        gate.open()
        terminal.wait_for("got:for you")
        assert QUERY not in terminal.raw
        assert "│ thought0" in terminal.text
        assert terminal.end() == 0


def test_an_answer_that_comes_late_is_neither_seen_nor_left_behind(ask):
    gate, slow = held_reply()
    with ScriptedServer([slow]) as server:
        terminal = ask(server, line="{}; read line; echo got:$line", silent=True)
        terminal.wait_for("│ thought0")  # it has waited, and goes on with a bar
        terminal.type(WHOLE_ANSWER)
        gate.open()
        terminal.wait_for("The answer.")
        terminal.type("for you\n")
        terminal.wait_for("got:for you")
        assert "rgb" not in terminal.everything
        assert "[?62" not in terminal.everything
        assert terminal.end() == 0
        assert terminal.is_restored()


def test_a_terminal_that_never_answers_keeps_its_keys(ask):
    gate, slow = held_reply()
    with ScriptedServer([slow]) as server:
        terminal = ask(server, line=THEN_READ, silent=True)
        terminal.wait_for("│ thought0")
        terminal.type("for you\n")
        gate.open()
        terminal.wait_for("got:for you")
        assert terminal.end() == 0


def test_a_job_in_the_background_asks_nothing_and_is_not_stopped(ask):
    with ScriptedServer([reply()]) as server:
        terminal = ask(server, line="set -m; {} & wait; echo over")
        terminal.wait_for("over")
        assert QUERY not in terminal.raw
        assert "The answer." in terminal.text
        assert "│ thought0" in terminal.text


def test_a_job_that_is_sent_to_the_background_in_mid_thought_goes_on(start):
    gate, slow = held_reply()
    with ScriptedServer([slow]) as server:
        terminal = start(
            program=("/bin/bash", "--norc", "-i"), columns=70, silent=True, env={"PS1": "> "}
        )
        terminal.wait_for(">")
        place = ["-m", "openai-compatible/thinker", "--base-url", server.url]
        terminal.type(shlex.join([*MULL, "ask", *place, "q"]) + "\n")
        terminal.wait_for("│ thought0")
        terminal.press("c-z")
        terminal.wait_for("Stopped")
        terminal.type("bg\n")
        terminal.wait_for(lambda terminal: terminal.text.count("[1]+") == 2)
        gate.open()
        terminal.wait_for("The answer.")
        terminal.type("wait; jobs; echo is''over\n")
        terminal.wait_for("isover")
        assert terminal.text.count("Stopped") == 1


def test_a_stop_in_the_middle_of_a_thought_leaves_the_terminal_as_it_was(ask):
    gate, slow = held_reply()
    with ScriptedServer([slow]) as server:
        terminal = ask(server, silent=True)
        terminal.wait_for("│ thought0")
        terminal.press("c-c")
        assert terminal.end() == 130
        assert terminal.is_restored()
        assert "mull: interrupted; what arrived is stored" in terminal.text
        gate.open()


def test_a_question_about_a_tool_is_answered_by_a_number(ask):
    """The terminal has not answered yet, and its echo is back when somebody is asked."""
    replies = [calls(think(THOUGHT), call("run", command="touch a; echo ran")), reply()]
    with ScriptedServer(replies) as server:
        terminal = ask(server, "--tools", "run", silent=True)
        terminal.wait_for("reason for no:")
        terminal.type("1\n")
        terminal.wait_for("mull: run → ran")
        assert "reason for no: 1" in terminal.text
        assert terminal.end() == 0


@pytest.mark.parametrize("typed", ["y", "yes", "always", "actually no"])
def test_letters_answer_no_question_about_a_tool(ask, typed, tmp_path):
    replies = [calls(call("run", command="touch ran")), reply()]
    with ScriptedServer(replies) as server:
        terminal = ask(server, "--tools", "run", silent=True)
        terminal.wait_for("reason for no:")
        terminal.type(f"{typed}\n")
        assert terminal.end() == 0
        told = [m["content"] for m in server.requests[1].json["messages"] if m["role"] == "tool"]
    assert told == [f"not run: the user refused, and says: {typed}"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("typed", ["1", "2", "actually no"])
def test_a_rule_is_kept_when_it_is_confirmed_as_it_will_be_written(ask, typed, tmp_path):
    replies = [calls(call("run", command="touch ran")), reply()]
    kept = Path(os.environ["MULL_CONFIG_DIR"]) / "tools.toml"
    with ScriptedServer(replies) as server:
        terminal = ask(server, "--tools", "run", silent=True)
        terminal.wait_for("reason for no:")
        terminal.type("2\n")
        terminal.wait_for("2. Yes, keep the rule")
        assert any(row.startswith('  |   "run(touch ran') for row in terminal.screen)
        terminal.type(f"{typed}\n")
        assert terminal.end() == 0
    assert (tmp_path / "ran").exists() is (typed != "actually no")
    assert kept.exists() is (typed == "2")


def test_a_question_of_the_model_is_answered_with_a_line(ask):
    asking = call("ask_user", question="Which one?", options=["first", "second"])
    with ScriptedServer([calls(think(THOUGHT), asking), reply()]) as server:
        terminal = ask(server, "--tools", "read", silent=True)
        terminal.wait_for("or Enter for none:")
        assert "1. first" in terminal.text
        terminal.type("2\n")
        terminal.wait_for("mull: ask_user → second")
        assert terminal.end() == 0


def test_a_window_that_changes_in_mid_thought_is_written_for(ask):
    gate = Gate()
    steps = [think(THOUGHT + " "), gate, think(THOUGHT.replace("thought", "later"))]
    with ScriptedServer([answer(*steps, say("The answer."))]) as server:
        terminal = ask(server)
        terminal.wait_for("thought28")
        terminal.resize(30, 30)
        gate.open()
        assert terminal.end() == 0
    rows = [line for line, _ in rows_with(terminal, "later")]
    assert len(rows) >= 10
    assert sum(line.count("later") for line in rows) == 30
    for _, cells in rows_with(terminal, "later")[1:]:
        assert len({cell.bg for cell in cells}) == 1


def test_two_thoughts_one_after_the_other_are_told_apart(ask):
    with StrictServer("openai", [[Think("First thought."), Think("Second."), Say("x")]]) as server:
        terminal = ask(server, model=MODELS["openai"])
        assert terminal.end() == 0
    rows = [row.strip() for row in terminal.screen]
    assert {"First thought.", "Second."} <= set(rows)


def test_nothing_in_a_thought_is_obeyed(ask):
    evil = "a\x1b]0;owned\x07b\x1b[2Jc\r\nd\u202ee"
    with ScriptedServer([Reply.events(*[think(c) for c in evil], say("x"), "[DONE]")]) as server:
        terminal = ask(server)
        terminal.end()
    assert "␛]0;owned␇b␛[2Jc" in terminal.text
    assert b"owned\x07" not in terminal.raw


@pytest.mark.parametrize("hidden", [[], ["--thinking", "hide"]])
def test_what_mull_says_after_an_answer_has_a_line_of_its_own(ask, hidden):
    with ScriptedServer([reply()]) as server:
        terminal = ask(server, *hidden, env={"DEBUG": "1"})
        assert terminal.end() == 0
    rows = [line.rstrip() for line in terminal.screen if line.strip()]
    assert rows[-2:] == ["The answer.", "mull: Reasoning: ON"]


PAGE = """# Title

Some **bold** words that go on and on until the line has to end between two of them.

| name | n |
|---|---|
| one | 1 |

```python
print(1)
```
"""


def test_an_answer_is_drawn_as_markdown_and_wrapped_between_words(ask):
    pieces = [say(PAGE[at : at + 5]) for at in range(0, len(PAGE), 5)]
    with ScriptedServer([answer(*pieces)]) as server:
        terminal = ask(server)
        assert terminal.end() == 0
    rows = [row.rstrip() for row in terminal.screen]
    assert terminal.cell("bold").bold
    assert not any(sign in terminal.text for sign in ("**", "#", "|", "```"))
    assert "Some bold words that go on and on until the line" in rows
    assert rows.count("name  n") == rows.count("one   1") == 1
    assert terminal.everything.count("Title") == 1  # what is drawn over leaves nothing behind
    assert "Ctrl-C stops" not in terminal.text


def test_what_may_still_change_is_seen_at_once(ask):
    gate = Gate()
    with ScriptedServer([answer(say("It is **ha"), gate, say("lf** done."))]) as server:
        terminal = ask(server)
        terminal.wait_for("It is ha")
        gate.open()
        assert terminal.end() == 0
    assert [row.strip() for row in terminal.screen if row.strip()] == ["It is half done."]


@pytest.mark.parametrize(
    ("words", "steps", "sign"),
    [
        ([], [], "Waiting for the model"),
        (["--thinking", "hide"], [think("hm")], "Thinking"),
    ],
)
def test_there_is_a_sign_of_life_until_the_answer_comes(ask, words, steps, sign):
    gate = Gate()
    with ScriptedServer([answer(*steps, gate, say("The answer."))]) as server:
        terminal = ask(server, *words)
        terminal.wait_for(re.compile(rf"{sign} \d+ s · Ctrl-C interrupts"))
        gate.open()
        assert terminal.end() == 0
    assert [row.strip() for row in terminal.screen if row.strip()] == ["The answer."]


def test_a_value_is_written_for_people(ask, tmp_path):
    (tmp_path / "s.json").write_text('{"type": "object", "properties": {"a": {}}}')
    with ScriptedServer([answer(say('{"a":'), say(" [1]}"))]) as server:
        terminal = ask(server, "--schema", "s.json")
        assert terminal.end() == 0
    rows = [row.rstrip() for row in terminal.screen if row.strip()]
    assert rows == ["{", '  "a": [', "    1", "  ]", "}"]


def test_what_mull_has_to_say_in_the_middle_waits_for_the_end(ask):
    """A paragraph is not cut in two by it."""
    odd = {"choices": [{"index": 0, "delta": {"content": "one "}}], "usage": "odd"}
    with ScriptedServer([answer(say("one "), odd, say("two."))]) as server:
        terminal = ask(server)
        terminal.end()
    rows = [row.strip() for row in terminal.screen if row.strip()]
    assert rows[0] == "one one two."
