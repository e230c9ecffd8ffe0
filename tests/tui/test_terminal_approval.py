"""The question before a tool runs, at the real terminal: only Enter on a row allows anything."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from mull.store.approvals import rules_file
from mull.testing.server import Gate, ScriptedServer
from tui.scripts import answer, call, calls, chunk, say, think

RAN = Path("ran")
VIEWER = re.compile("q closes|press q to close")
LIST = re.compile(r"^❯ \d\. ", re.MULTILINE)


def slow(*values):
    """More of the same, for those who have the time."""
    rows = (one if isinstance(one, tuple) else (one,) for one in values)
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]


def kept():
    return Path(os.environ["MULL_CONFIG_DIR"]) / "tools.toml"


def touch(name="ran"):
    return calls(call("run", command=f"touch {name}"))


def told(request):
    return [m["content"] for m in request.json["messages"] if m["role"] == "tool"][-1]


def question(terminal):
    """The rows of the list, from its title to the status line."""
    rows = terminal.screen
    first = next(at for at, row in enumerate(rows) if row.endswith("command?"))
    last = next(at for at, row in enumerate(rows) if " · ask" in row)
    return rows[first:last]


@pytest.mark.parametrize("typed", ["actually no", *slow("yes", "always", "a", "s", "1. No")])
def test_a_sentence_is_the_reason_for_no(converse, typed):
    with ScriptedServer([touch(), answer(say("I see."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        terminal.type(typed)
        terminal.wait_for(f"❯ 4. No: {typed}")
        terminal.press("enter")
        terminal.wait_for("I see.")
        assert told(server.requests[1]) == f"not run: the user refused, and says: {typed}"
        assert f"└ you refused: {typed}" in terminal.text
    assert not RAN.exists()
    assert not kept().exists()


def test_esc_refuses_and_the_turn_goes_on(converse):
    with ScriptedServer([touch(), answer(say("I see."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        before, mark = terminal.screen, len(terminal.raw)
        terminal.press("c-l")
        terminal.wait_for(lambda t: len(t.raw) > mark and t.screen == before)
        assert b"\x1b[2J" not in terminal.raw[mark:]
        terminal.press("esc")
        terminal.wait_for("I see.")
        assert told(server.requests[1]).startswith("not run: the user refused; ask")
    assert not RAN.exists()


def unwrapped(rows):
    """What the rows say, wherever a long one was broken."""
    return "".join("".join(rows).split())


def test_a_rule_for_ever_is_confirmed_as_it_will_be_written(converse):
    replies = [touch(), answer(say("One.")), touch(), answer(say("Two.")), touch(),
               answer(say("Three."))]  # fmt: skip
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.choose(2)
        terminal.wait_for("Keep this rule for ever?")
        terminal.press("esc")
        terminal.wait_for("❯ 2. Yes, and do not ask again in this folder for: touch ran")
        terminal.press("enter")
        terminal.wait_for("❯ 1. No, allow it only this time")
        terminal.press("enter")  # a key that is held down keeps nothing
        terminal.wait_for("One.")
        assert RAN.exists()
        assert not kept().exists()
        terminal.wait_idle()

        terminal.say("again")
        terminal.choose(2)
        terminal.wait_for("Keep this rule for ever?")
        terminal.type("rather not")
        terminal.wait_for("❯ 3. Back")
        shown = [row.removeprefix("    ") for row in terminal.screen]
        where = next(row for row in shown if "will be written to" in row)
        terminal.choose(2)
        terminal.wait_for("Two.")
        written = kept().read_text().splitlines()
        assert where.strip() == f"It will be written to {rules_file()}, line 1:"
        assert unwrapped(written) in unwrapped(shown)
        assert any(line.startswith('  "run(touch ran') for line in written)
        terminal.wait_idle()

        terminal.say("once more")  # nobody is asked
        terminal.wait_for("Three.")


def test_an_answer_right_after_looking_counts(converse):
    with ScriptedServer([touch(), answer(say("Done."))]) as server:
        terminal = converse(server)
        terminal.say("run it")
        terminal.wait_for(LIST)
        terminal.type("5\rq1\r")  # all of it at once
        terminal.wait_for("Done.")
    assert RAN.exists()


@pytest.mark.parametrize("keys", ["\r\x1b[B\x1b[Bq", *slow("\rq", "\rv")])
def test_no_row_is_garbled_by_keys_that_come_while_the_viewer_opens(converse, keys):
    """A terminal in its own mode would echo them."""
    with ScriptedServer([touch(), answer(say("Done."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        terminal.type("5")
        terminal.wait_for("❯ 5. Look")
        before = terminal.screen
        for _ in range(4):
            mark = len(terminal.raw)
            for key in re.findall(r"\x1b\[.|.", keys, re.DOTALL):
                terminal.type(key)
            terminal.wait_for(lambda t, mark=mark: b"\x1b[?1049l" in t.raw[mark:])
            terminal.wait_for("❯ 5. Look")
            assert terminal.screen == before
        terminal.press("esc")
        terminal.wait_for("Done.")
        assert "q" not in terminal.screen[terminal.cursor[0]]


def test_what_is_in_the_line_survives_a_question_and_its_reason(converse):
    gate = Gate()
    replies = [calls(gate, call("run", command="touch ran")), answer(say("I see."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        assert gate.wait_reached(20)
        terminal.type("my next mess")
        terminal.wait_for("❯ my next mess")
        gate.open()
        terminal.wait_for("Run this command? …")
        terminal.type("age")
        terminal.wait_for(LIST)
        assert "my next" not in terminal.text
        terminal.press("backspace")
        terminal.type("not nice")
        terminal.wait_for("❯ 4. No: not nice")
        terminal.press("enter")
        terminal.wait_for("I see.")
        terminal.wait_for("❯ my next message")
        assert told(server.requests[1]).endswith("says: not nice")


@pytest.mark.parametrize("text", ["1\r", *slow("yes\r", "\r\r2\r", "è 日本語\r")])
def test_what_is_pasted_approves_nothing(converse, text):
    with ScriptedServer([touch(), answer(say("I see."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        terminal.paste(text)
        terminal.wait_for(lambda t: "❯ 4. No:" in t.text)
        terminal.press("enter")
        terminal.wait_for("I see.")
        reason = text.replace("\r", "\n").strip()
        assert told(server.requests[1]).endswith(f"says: {reason}" if reason else "without it")
    assert not RAN.exists()


@pytest.mark.parametrize("text", ["\rls -la", *slow("1\rand more", "\r\x1b[200~x\x1b[201~")])
def test_an_enter_with_more_behind_it_was_not_pressed(converse, text):
    """A terminal that does not mark pasted text gives it like keys, but all at once."""
    with ScriptedServer([touch(), answer(say("I see."))]) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        terminal.type(text)
        terminal.wait_for(lambda t: "❯ 4. No:" in t.text)
        terminal.press("esc")
        terminal.wait_for("I see.")
    assert not RAN.exists()


def test_one_enter_answers_one_of_several_questions(converse):
    one, two = (
        {"index": n, "id": f"c{n}", "function": {"name": "run", "arguments": arguments}}
        for n, arguments in enumerate(('{"command": "touch one"}', '{"command": "touch two"}'))
    )
    replies = [calls(chunk(tool_calls=[one, two])), answer(say("Both."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for(LIST)
        assert "  run: touch one" in question(terminal)
        for _ in range(5):  # a key that is held down
            terminal.press("enter")
        terminal.wait_for(lambda t: Path("one").exists() and LIST.search(t.text))
        terminal.wait_for("  run: touch two")
        assert not Path("two").exists()
        terminal.press("enter")
        terminal.wait_for("Both.")
    assert Path("two").exists()


def test_a_question_that_came_behind_the_viewer_is_seen_before_it_is_answered(converse):
    gate = Gate()
    replies = [calls(think("Hm."), gate, call("run", command="touch ran")), answer(say("I see."))]
    with ScriptedServer(replies) as server:
        terminal = converse(server)
        terminal.say("go")
        terminal.wait_for("Hm.")
        terminal.press("c-t")
        terminal.wait_for("q closes")
        gate.open()
        terminal.wait_for("mull has a question")
        terminal.type("q\r1\r")
        terminal.wait_for(LIST)
        assert not RAN.exists()
        terminal.press("esc")
        terminal.wait_for("I see.")
    assert not RAN.exists()


@pytest.mark.parametrize(
    ("columns", "rows"), [(60, 6), *slow((60, 24), (40, 12), (20, 8), (100, 30))]
)
def test_the_list_fits_every_window(converse, columns, rows):
    with ScriptedServer([touch("a-rather-long-name-of-a-file"), answer(say("I see."))]) as server:
        terminal = converse(server, columns=90, rows=30)
        terminal.say("go")
        terminal.wait_for(LIST)
        terminal.resize(columns, rows)
        terminal.wait_for(lambda t: LIST.search(t.text) and "command?" in t.text)
        for number in range(1, 6):
            terminal.type(str(number))
            terminal.wait_for(re.compile(rf"^❯ {number}\.", re.MULTILINE))
        terminal.type("4")
        terminal.type("too long for one line of a small window")
        terminal.wait_for(lambda t: "window" in "".join(t.screen).replace(" ", ""))
        assert "Window too small" not in terminal.text
        terminal.resize(90, 30)
        terminal.wait_for("❯ 4. No: too long for one line of a small window")
        numbers = ["1.", "2.", "3.", "4.", "5."]
        terminal.wait_for(lambda t: [row[2:4] for row in question(t)[1:6]] == numbers)
        terminal.press("enter")
        terminal.wait_for("I see.")
        assert told(server.requests[1]).endswith("says: too long for one line of a small window")


KEYS = [
    *"abcdefghijklmnopqrstuvwxyzYANS0123456789 .,;/!@#-é日",
    *("\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[5~", "\x1b[6~", "\x1b[3~"),
    *(
        "\x1bOP",
        "\x1b[27u",
        "\x1b[27u",
        "\x1b[97u",
        "\x1b[200~y\r1\r\x1b[201~",
        "\x1by",
        "\x1b1",
        "\x1b",
    ),
    *("\x01", "\x02", "\x05", "\x06", "\x07", "\t", "\n", "\x0b", "\x0c", "\x0e", "\x10", "\x12"),
    *("\x13", "\x14", "\x15", "\x16", "\x17", "\x18", "\x19", "\x1f", "\x7f", "\x11", "\x0f"),
]
"""Keys but Enter, and those that leave mull, suspend it or change its mode."""


def closed_viewer(terminal):
    """Whether a viewer was open, which is closed by this."""
    if is_open := VIEWER.search(terminal.text):
        terminal.type("q")
    return is_open


def is_asked(terminal):
    closed_viewer(terminal)
    return LIST.search(terminal.text) or "Interrupted" in terminal.text


@pytest.mark.parametrize("seed", [1, *slow(2, 3, 4)])
def test_random_keys_without_enter_run_nothing(converse, seed):
    """Whatever is refused by them is asked about again."""
    keys = random.Random(seed)
    with ScriptedServer(lambda _: touch()) as server:
        terminal = converse(server, columns=70, rows=20)
        terminal.say("go")
        terminal.wait_for(LIST)
        for number in range(60):
            for _ in range(keys.randrange(1, 12)):
                terminal.type(keys.choice(KEYS))
            mark = f"z{number}z"  # where it is seen, all before it has had its effect
            terminal.type(f"aaa{mark}")
            terminal.wait_for(lambda t, mark=mark: mark in t.text or closed_viewer(t))
            terminal.type("\x15")
            terminal.wait_for(lambda t, mark=mark: is_asked(t) and mark not in t.text)
            if "Interrupted" in terminal.text:  # by Esc, before a question counted keys
                break
        assert not RAN.exists()
        assert not kept().exists()
        assert not list(Path().iterdir())
        assert len(server.requests) > 2  # some of them were Esc
