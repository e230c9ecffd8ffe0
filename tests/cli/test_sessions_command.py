"""`mull sessions` as a person runs it."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from mull.cli.main import main, parse
from mull.cli.session_page import end_of_turn
from mull.cli.session_tail import follow
from mull.history.log import Condensed, Entry, Summary, Undone
from mull.neutral.blocks import (
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from mull.neutral.events import Healed, TextDelta, ThinkingDelta
from mull.neutral.messages import Message, assistant, user
from mull.store.sessions.sqlite import SqliteSessions, sessions_path
from session_samples import Clock, Process, turn

NOW = time.mktime((2026, 7, 31, 14, 3, 0, 0, 0, -1))
COMMAND = "sessions"


@pytest.fixture
def clock():
    return Clock(NOW)


@pytest.fixture
def here(tmp_path):
    return os.path.realpath(tmp_path)


def talk(store, folder, *records, **more):
    made = store.create(folder=folder, **more)
    store.append(made.id, 0, *records)
    return made.id


def test_nothing_is_stored_yet(run):
    assert run("list") == (
        "No session stored yet in this folder; `mull sessions list --all` shows all folders.\n"
    )
    assert run("list", "--all") == "No session stored yet.\n"
    assert json.loads(run("list", "--json")) == []


def test_a_line_for_each_session_of_this_folder(run, store, here):
    one = talk(store, here, *turn("Why is the sky blue?", "t", "a"), model="openai/gpt-5")
    two = store.create(folder=here).id
    three = talk(
        store, "/else", *turn("a " * 50, "t", "a"), *turn("q", "t", "a"), name="\u202dok"[1:]
    )
    with store.hold(one):
        assert run("list") == (
            f"  {two}  (empty)                             2026-07-31 14:03    0 turns\n"
            f"* {one}  Why is the sky blue?  openai/gpt-5  2026-07-31 14:03     1 turn\n"
        )
        assert run("list", "--all").splitlines()[0].split() == (
            f"{three} ok 2026-07-31 14:03 2 turns /else".split()
        )
        listed = json.loads(run("list", "--all", "--json"))
    assert [each["id"] for each in listed] == [three, two, one]
    assert [each["runningIn"] for each in listed] == [None, None, os.getpid()]
    assert listed[2]["model"] == "openai/gpt-5"
    assert listed[0]["turns"] == 2


WHOLE = [
    Entry(
        Message(
            role="user",
            blocks=(TextBlock("look\x1b[2J here"), MediaBlock("image/png", "A", name="a.png")),
        )
    ),
    Entry(
        assistant(
            ThinkingBlock("first line\n\nthird line"),
            ThinkingBlock("", redacted="R"),
            ThinkingBlock(" "),
            OpaqueBlock({"type": "web_search"}),
            TextBlock("I look."),
            ToolCallBlock("c", "read_file", {"path": "x" * 200}),
            ToolCallBlock("d", "look", {}),
        ),
        thought_seconds=1.25,
    ),
    Entry(
        Message(
            role="tool",
            blocks=(ToolResultBlock("c", "one\ntwo\nthree"), ToolResultBlock("d", "no", True)),
        )
    ),
    Entry(assistant(TextBlock("It is\na pond."), status="truncated")),
    Entry(user("taken back")),
    Entry(assistant(TextBlock("gone"))),
    Undone(4, 6),
    *turn("and now?", "hm", "yes"),
    Summary(1, 4, "they looked"),
    Condensed(8, 0, "h"),
]
SHOWN = """\
{id}  look [2J here
openai/gpt-5, 3 turns, begun 2026-07-31 14:03, last changed 2026-07-31 14:03
{here}

── 1 ────────────────────────────────────────

look␛[2J here

[image/png: a.png]

[thinking for 1.2 s: 22 characters]

[thinking that only its model can read]

[web_search]

I look.

→ read_file {{"path":"{path}…

→ look {{}}

← one (and 2 more lines)

✗ no

It is
a pond.
[cut off at its token limit]

── 3 ────────────────────────────────────────

and now?

[thinking: 2 characters]

yes

[in requests this summary replaces the messages before it:]
they looked
"""


def test_a_session_is_shown_with_its_turns_tools_and_ends(run, store, here):
    made = talk(store, here, *WHOLE, model="openai/gpt-5")
    shown = SHOWN.format(id=made, here=here, path="x" * 78)
    assert run("show", made) == shown
    thought = "[thought for 1.2 s]\n│ first line\n│\n│ third line\n"
    with_thoughts = run("show", made, "--thinking")
    assert thought in with_thoughts
    assert "[thought]\n│ hm\n" in with_thoughts


def test_json_holds_everything_that_was_taken_back_too(run, store, here):
    made = talk(store, here, *WHOLE)
    shown = json.loads(run("show", made, "--json"))
    assert shown["session"]["id"] == made
    assert [record["type"] for record in shown["records"]] == [
        *["message"] * 6, "undone", *["message"] * 2, "summary", "condensed",
    ]  # fmt: skip
    hidden = {"type": "thinking", "thought": "", "redacted": "R"}
    assert shown["records"][1]["message"]["blocks"][1] == hidden
    assert (shown["coming"], shown["runningIn"]) == ([], None)


def test_an_answer_that_is_still_coming_or_was_cut_off_is_shown(run, store, here):
    made = talk(store, here, Entry(user("hello")))
    with store.hold(made):
        store.journal(made, [ThinkingDelta("I was about")])
        assert f"│ I was about\n[still arriving, in process {os.getpid()}]" in run(
            "show", made, "--thinking"
        )
    assert run("show", made).endswith(
        "[thinking: 11 characters]\n"
        "[its process has ended; this is stored when the session continues]\n"
    )
    assert (
        json.loads(run("show", made, "--json"))["coming"][0]["message"]["status"] == "interrupted"
    )
    store.recover(made)
    assert run("show", made).endswith("[thinking: 11 characters]\n[interrupted]\n")


def test_rename(run, store, here):
    made = talk(store, here, *turn("q", "t", "a"))
    assert run("rename", made, "the lock") == f"Session {made} is now called the lock.\n"
    assert run("show", "The Lock").startswith(f"{made}  the lock\n")
    other = store.create(folder=here).id
    assert run("rename", other, "THE LOCK", status=2) == (
        f'mull: session {made} in this folder is already called "THE LOCK"\n'
    )
    assert "cannot be called" in run("rename", other, "", status=2)


def test_a_fork_ends_with_a_turn_that_people_can_see(run, store, here):
    made = talk(store, here, *WHOLE, name="one")
    said = run("fork", "one", "--at", "1", "--name", "two")
    fork = store.find("two")
    assert said == f"Session {fork.id} is a copy of {made} with 1 turn.\n"
    assert store.load(fork.id)[1] == WHOLE[:4]
    run("fork", "one", "--at", "2", "--name", "before it was taken back")
    assert store.load(store.find("before it was taken back").id)[1] == WHOLE[:6]
    run("fork", "one", "--at", "3", "--name", "three")
    assert store.load(store.find("three").id)[1] == WHOLE[:9]
    run("fork", "one", "--name", "all")
    assert store.load(store.find("all").id)[1] == WHOLE
    for turn_number in ("0", "4", "-1"):
        assert run("fork", "one", f"--at={turn_number}", status=2) == (
            f"mull: session {made} has 3 turns and no turn {turn_number}\n"
        )
    assert run("show", "two").splitlines()[3] == f"a copy of the first 4 records of {made}"
    assert end_of_turn([], 1) == 0


def test_delete_asks_on_a_terminal(run, store, here, monkeypatch):
    made = talk(store, here, *turn("q", "t", "a"), name="one")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", terminal)
    for answer in ("", "n", "yes please"):
        terminal.write(answer + "\n")
    terminal.seek(0)
    for _ in range(4):  # the last time there is no answer at all
        out = run("delete", "one", status=1)
        assert re.match(rf"  {made}  one .*\nDelete this session permanently\? \[y/N\] ", out)
        assert out.endswith("Nothing was deleted.\n")
    assert store.info(made).id == made
    terminal.write("Y\n")
    terminal.seek(terminal.tell() - 2)
    assert run("delete", "one").endswith(f"Deleted session {made}.\n")
    assert store.list() == []


def test_delete_needs_yes_where_nobody_can_be_asked(run, store, here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    one, two, three = (talk(store, here, *turn(f"q{n}", "t", "a")) for n in range(3))
    assert run("delete", one, status=2) == (
        "mull: sessions are deleted permanently: add --yes when there is no terminal to ask at\n"
    )
    assert "there is no session" in run("delete", one, "missing", "--yes", status=2)
    assert len(store.list()) == 3
    assert run("delete", one, two, one, "--yes") == (
        f"Deleted session {one}.\nDeleted session {two}.\n"
    )
    with store.hold(three):
        assert "is open in this process" in run("delete", three, "--yes", status=2)
    assert [info.id for info in store.list()] == [three]


def test_search_prints_where_and_what(run, store, here, capsys):
    made = talk(
        store, here, *turn("q", "the Heron\nstands \x1b[2J still", "no heron"), name="birds"
    )
    talk(store, "/else", *turn("q", "heron", "a"))
    assert run("search", "heron", "--in", "thinking") == (
        f"{made}  turn 1  thinking  birds\n    the Heron stands ␛[2J still\n"
    )
    assert run("search", "heron").count("turn 1") == 2
    assert run("search", "heron", "--all").count("turn 1") == 3
    assert run("search", "heron", "--all", "--limit", "1").count("turn 1") == 1
    hits = json.loads(run("search", "heron", "--in=thinking", "--json"))
    assert hits == [
        {
            "session": made,
            "name": "birds",
            "title": "q",
            "folder": here,
            "position": 1,
            "turn": 1,
            "kind": "thinking",
            "parts": ["the ", "Heron", "\nstands \x1b[2J still"],
        }
    ]
    assert main(["sessions", "search", "ostrich"]) == 1
    assert capsys.readouterr() == (
        "", "mull: no matches in this folder; --all searches all folders\n",
    )  # fmt: skip
    assert "--limit must be" in run("search", "x", "--limit", "0", status=2)


def test_the_match_is_bold_on_a_terminal(run, store, here, monkeypatch):
    talk(store, here, *turn("q", "the heron", "a"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "    the \x1b[1mheron\x1b[m\n" in run("search", "heron")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "    the heron\n" in run("search", "heron")


@pytest.fixture
def followed(store, monkeypatch):
    """What each step adds to what is printed, and whether the session was running at first."""

    def followed(session, *steps, answers=False):
        out, seen, waiting = io.StringIO(), [""], [*steps]

        def sleep(seconds):
            assert 0.1 <= seconds <= 0.3
            seen.append(out.getvalue())
            waiting.pop(0)()

        with monkeypatch.context() as patch:
            patch.setattr(time, "sleep", sleep)
            was_running = follow(store, session, out, answers=answers)
        seen.append(out.getvalue())
        assert waiting == []
        return [after[len(before) :] for before, after in pairwise(seen)], was_running

    return followed


def test_a_running_thought_is_followed_as_it_comes(followed, store, here):
    made = talk(store, here, Entry(user("q")), *turn("old", "old thought", "old answer"))
    hold = store.hold(made)

    def think(*texts):
        return lambda: store.journal(made, [ThinkingDelta(text, 0) for text in texts])

    store.journal(made, [ThinkingDelta("I am ", 0), ThinkingDelta("al", 0)])
    printed, was_running = followed(
        made,
        think("ready ", "here"),
        lambda: None,
        think(" and"),
        lambda: store.append(
            made, 3, Entry(assistant(ThinkingBlock("I am already here and done"), TextBlock("yes")))
        ),
        think("Another "),
        think("one"),
        lambda: (
            store.append(made, 4, Entry(assistant(ThinkingBlock("Another one"), TextBlock("no")))),
            hold.release(),
        ),
    )
    assert was_running
    assert printed == [
        "I am al", "ready here", "", " and", " done", "\n\nAnother ", "one", "\n",
    ]  # fmt: skip


def test_answers_are_followed_too_if_asked_for(followed, store, here):
    made = talk(store, here, Entry(user("q")))
    hold = store.hold(made)
    printed, _ = followed(
        made,
        lambda: store.journal(made, [ThinkingDelta("hm", 0), TextDelta("It ", 1)]),
        lambda: store.journal(made, [TextDelta("is.\x1b[2J", 1)]),
        hold.release,
        answers=True,
    )
    assert printed == ["", "hm\n\nIt ", "is.␛[2J", "\n"]


def test_a_thought_that_begins_anew_is_printed_anew(followed, store, here):
    made = talk(store, here, Entry(user("q")))
    hold = store.hold(made)
    printed, _ = followed(
        made,
        lambda: store.journal(made, [ThinkingDelta("one", 0)]),
        lambda: store.journal(made, [Healed("r", "c"), ThinkingDelta("two", 0)]),
        hold.release,
    )
    assert printed == ["", "one", "\n\ntwo", "\n"]


def test_the_tail_ends_when_the_other_process_does(followed, store, here):
    made = talk(store, here, Entry(user("q")))
    waits, goes = os.pipe()

    def work(say):
        own = SqliteSessions(sessions_path())
        with own.hold(made):
            own.journal(made, [ThinkingDelta("thinking ", 0)])
            say("ready")
            os.read(waits, 1)
            own.journal(made, [ThinkingDelta("of", 0)])
            own.append(made, 1, turn("", "thinking of locks", "a")[1])

    process = Process(work)
    assert process.line() == "ready"

    def finish():
        os.write(goes, b"!")
        assert process.rest() == []

    assert followed(made, finish) == (["thinking ", "of locks\n"], True)
    os.close(waits)
    os.close(goes)


def test_tail_of_what_does_not_run(run, store, here, capsys):
    assert run("tail", status=2) == (
        "mull: no session is stored for this folder: see `mull sessions list --all`\n"
    )
    made = talk(store, here, Entry(user("q")))
    store.journal(made, [ThinkingDelta("left behind")])
    assert main(["sessions", "tail"]) == 0
    assert capsys.readouterr() == (
        "left behind\n", f"mull: session {made} is not running\n",
    )  # fmt: skip


def test_tail_finds_the_session_that_runs_here(run, store, here, monkeypatch):
    running, last = (talk(store, here, Entry(user("q"))) for _ in range(2))
    assert store.last(here).id == last
    hold = store.hold(running)
    store.journal(running, [ThinkingDelta("found")])
    monkeypatch.setattr(time, "sleep", lambda seconds: hold.release())
    assert run("tail") == "found\n"


def test_path(run):
    assert run("path") == f"{os.environ['MULL_DATA_DIR']}/sessions.db\n"


def test_an_unknown_session_is_one_line(run, store, here):
    for words in (["show"], ["rename", "x", "y"], ["fork"], ["delete", "--yes"], ["tail"]):
        line = [*words, "nope"] if words[0] != "rename" else words
        err = run(*line, status=2)
        assert err.startswith("mull: there is no session ")
        assert len(err.splitlines()) == 1


def test_a_damaged_store_is_told_of_and_the_command_goes_on(store, capsys):
    sessions_path().parent.mkdir(parents=True)
    sessions_path().write_bytes(b"garbage" * 999)
    assert main(["sessions", "list"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("No session stored yet")
    assert err.startswith(
        f"mull: {sessions_path()} is damaged (file is not a database). It is kept"
    )


PAGE = (Path(__file__).resolve().parents[2] / "docs/sessions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ],
)
def test_every_command_on_the_page_is_one(line):
    words = shlex.split(line, comments=True)
    assert words.pop(0) == "mull"
    assert parse(words).run


def test_the_python_on_the_page_runs(store, here, capsys):
    made = talk(store, here, *turn("q", "a lock", "a"))
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/sessions.md", "exec"), {})
    assert capsys.readouterr().out == f"{made} q 1\n{made} 1 a lock\n2 messages\n"


def test_a_folder_cannot_take_the_terminal_over(run, store, here):
    made = talk(store, "/a\x1b[2J\nb", *turn("q", "t", "a"))
    (line,) = run("list", "--all").splitlines()
    assert line.endswith("/a␛[2J b")
    assert "/a␛[2J b" in run("show", made).splitlines()
