"""Commands from Markdown files, `!command`, /copy and /jobs, without a terminal."""

from __future__ import annotations

import asyncio
import os

import pytest

from mull.agent.toolbox import Toolbox
from mull.neutral.errors import LocalError
from mull.store.paths import config_dir
from mull.tui.commands.copy import clipboard_program, last_code
from mull.tui.commands.own import filled, find_own, parse_own
from mull.tui.commands.shell import run_shell
from tui.fronts import answer, at_terminal, drive

HOW = {"elsewhere": True}
TIDY = """\
---
description: Tidy up
argument-hint: [FILE]
model: x
---
Tidy $1 up, all of: $ARGUMENTS.
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_files_are_commands_and_folders_are_their_namespaces(tmp_path):
    own, project = tmp_path / "config", tmp_path / "project"
    write(own / "commands/review.md", "# Review\n\nLook hard.")
    write(own / "commands/git/tidy.md", TIDY)
    write(project / ".mull/commands/review.md", "Ours.")
    write(project / ".claude/commands/Deep.md", "Deep.")
    write(project / ".claude/commands/no name.md", "x")
    write(project / ".claude/commands/notes.txt", "x")
    found = {one.name: one for one in find_own(own, project)}
    assert list(found) == ["Deep", "git:tidy", "review"]
    assert found["review"].is_project
    assert found["review"].text == "Ours."
    tidy = found["git:tidy"]
    assert (tidy.description, tidy.hint) == ("Tidy up", "[FILE]")
    assert tidy.text == "Tidy $1 up, all of: $ARGUMENTS."
    assert parse_own("x", tmp_path, "# Review\n\nLook hard.").description == "Review"


@pytest.mark.parametrize("link", [".mull/commands/pw.md", ".mull/commands/in", ".mull", ".claude"])
def test_a_link_in_a_project_leads_to_no_command(tmp_path, link):
    own, project, secret = tmp_path / "config", tmp_path / "project", tmp_path / "secret"
    for path in ("commands/pw.md", "pw.md"):
        write(secret / path, "The neighbour's secret.")
    write(own / "commands/mine.md", "Mine.")
    (own / "commands/pw.md").symlink_to(secret / "pw.md")
    place = project / link
    place.parent.mkdir(parents=True)
    place.symlink_to(secret / "pw.md" if link.endswith(".md") else secret)
    found = {one.name: one.is_project for one in find_own(own, project)}
    assert found == {"mine": False, "pw": False}


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("Fix $1 in $2.", "'the bug' a.py", "Fix the bug in a.py."),
        ("Fix $1 in $2.", "it", "Fix it in ."),
        ("All: $ARGUMENTS", "$1 b", "All: $1 b"),
        ("No place", "a b", "No place\n\na b"),
        ("No place", "", "No place"),
        ("Costs $10 or $ARGUMENTSX", "a", "Costs  or $ARGUMENTSX"),
        ("$1", "it's", "it's"),
    ],
)
def test_arguments_go_where_they_belong(text, arguments, said):
    assert filled(text, arguments) == said


def test_the_users_own_command_is_said_to_the_model_and_offered(talk):
    write(config_dir() / "commands/tidy.md", TIDY)
    assert drive(talk, "/tidy a.py b.py") == ""
    assert talk.done == [("send", "Tidy a.py up, all of: a.py b.py.")]
    assert "Tidy up (your own)" in drive(talk, "/help")
    assert "/tidy [FILE]" in drive(talk, "/help tidy")
    talk.busy = True
    with pytest.raises(LocalError, match="cannot run while the model works"):
        drive(talk, "/tidy")


def test_a_projects_command_is_shown_and_asked_about_once_for_each_content(talk, tmp_path):
    path = tmp_path / ".claude/commands/go.md"
    answers = ["no", "once", "always"]
    asked = []

    async def ask(question):
        asked.append(question.title)
        return answers.pop(0), ""

    talk.front.ask = ask
    write(path, "Do $ARGUMENTS")
    with pytest.raises(LocalError, match="you have not approved"):
        drive(talk, "/go now")
    assert "Do $ARGUMENTS" in drive(talk, "/go now")
    drive(talk, "/go now")
    drive(talk, "/go again")
    assert talk.done == [("send", "Do now"), ("send", "Do now"), ("send", "Do again")]
    assert len(asked) == 3
    write(path, "Do something else")
    answers.append("n")
    with pytest.raises(LocalError, match="you have not approved"):
        drive(talk, "/go now")


def run(talk, command):
    async def work():
        await run_shell(talk, command)

    asyncio.run(work())
    return talk.text


def test_a_command_of_the_users_own_is_shown_and_kept_for_the_model(talk, tmp_path):
    assert run(talk, "echo one; echo two >&2; exit 3") == "  one\n  two\n  · [exit status 3]"
    (block,) = talk.ran
    assert block.text == (
        "\n\nthe user ran echo one; echo two >&2; exit 3:\n```\none\ntwo\n```\n[exit status 3]"
    )
    assert run(talk, "pwd").replace("\n", "").replace(" ", "") == os.path.realpath(tmp_path)
    assert "(no output)" in run(talk, "true")
    shown = run(talk, "seq 1 100")
    assert "The first 60 lines" in shown
    assert shown.endswith("  100")
    with pytest.raises(LocalError, match="!git status"):
        run(talk, "  ")


def test_the_last_answer_or_its_last_code_is_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    said = "Try:\n\n```py\nprint(1)\n```\n\nor\n\n~~~\nb\n  c\n~~~\n"
    with at_terminal(tmp_path, answer(said)) as talk:
        with pytest.raises(LocalError, match="no answer to copy"):
            drive(talk, "/copy")
        text = drive(talk, "hello", "/copy")
        assert talk.front.copied == said
        assert "through the terminal (OSC 52" in text
        drive(talk, "/copy code")
        assert talk.front.copied == "b\n  c"
    assert last_code("no code") == ""


def test_the_clipboards_program_is_one_that_has_something_to_talk_to(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None if name == "pbcopy" else name)
    assert clipboard_program({}) is None
    assert clipboard_program({"DISPLAY": ":0"}) == ("xclip", "-selection", "clipboard")
    assert clipboard_program({"DISPLAY": ":0", "WAYLAND_DISPLAY": "w"}) == ("wl-copy",)


def test_background_commands_are_listed_shown_and_ended(tmp_path):
    with at_terminal(tmp_path, elsewhere=True) as talk:
        toolbox = Toolbox(talk.session.engine.setup, tmp_path)
        talk.session.toolbox = toolbox
        assert drive(talk, "/jobs") == "No background commands were started."
        jobs = toolbox.workspace.jobs
        first = jobs.start(("/bin/sh", "-c", "echo hello"), "echo hello", tmp_path, os.environ)
        assert first.ended.wait(30)
        jobs.start(("/bin/sh", "-c", "sleep 600"), "sleep 600", tmp_path, os.environ)
        try:
            text = drive(talk, "/jobs")
            assert "ended, exit status 0" in text
            assert "running for" in text
            assert "hello" in drive(talk, "/jobs 1").split("\n")[1]
            with pytest.raises(LocalError, match="there is no background command 7"):
                drive(talk, "/jobs end 7")
            assert "running" not in drive(talk, "/jobs end all")
        finally:
            toolbox.close_now()
