"""Commands that go between sessions and back, and those for tools, files and looks."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import pytest

from mull.agent.attachments import expand_mentions
from mull.agent.sandbox.cage import Cage
from mull.agent.setup import load_setup
from mull.agent.toolbox import Toolbox
from mull.history.log import Entry
from mull.neutral.errors import LocalError, SessionError
from mull.transcripts.reading import read_transcript
from mull.tui.commands.look import _SHOWN
from mull.tui.commands.tools import MODES, cycle_mode
from mull.tui.conversation.thought import MODES as VIEWS
from mull.tui.screen.theme import THEMES
from tui.fronts import FakeFront, answer, at_terminal, drive

PNG = b"\x89PNG\r\n\x1a\n" + bytes(50)


REPLIES = (answer("one"), answer("two"), answer("three"))


def other(talk, title="an older talk", name=None, kind="conversation"):
    """Another session of the same folder."""
    from mull.neutral.messages import user

    store = talk.session.store
    info = store.create(folder=talk.session.info.folder, model="zai/glm-4.7", name=name, kind=kind)
    store.append(info.id, 0, Entry(user(title), 1.0))
    return store.info(info.id)


def test_sessions_are_listed_and_searched(talk):
    info = other(talk, "how do whales sleep?")
    text = drive(talk, "what is a whale?", "/sessions")
    assert text.split("\n")[0].endswith(f"{talk.session.info.id}  what is a whale?")
    row = next(line for line in text.split("\n") if info.id in line)
    assert row.split("  ")[1:] == [info.id, "how do whales sleep?", "1 turn, just now"]
    found = drive(talk, "/sessions whales")
    assert found == f"{info.id}  turn 1  question  how do whales sleep?\n    how do whales sleep?"
    assert "No session in this folder" in drive(talk, "/sessions giraffe")


def test_a_session_that_another_process_has_open_is_marked(talk):
    info = other(talk)
    with talk.session.store.hold(info.id):
        assert "just now, running" in " ".join(drive(talk, "/sessions").split())


def test_resume_takes_a_reference_or_offers_the_sessions(talk):
    info = other(talk, name="whales")
    drive(talk, "/resume whales")
    talk.front.picks = [f"whales · {info.id}", None]
    drive(talk, "/resume", "/resume")
    opened = [("open", "whales", False, None), ("open", info.id, False, None)]
    assert talk.done == opened
    title, items = talk.front.offered[0]
    assert title == "Which session?"
    assert [(item.name, item.about) for item in items] == [
        (f"whales · {info.id}", "1 turn, just now")
    ]


def test_resume_without_another_session_says_so(talk):
    with pytest.raises(SessionError, match="no other conversation"):
        drive(talk, "/resume")


def test_single_questions_are_not_offered_and_are_found_by_words(talk):
    asked = other(talk, "how do whales sleep?", kind="ask")
    with pytest.raises(SessionError, match="/resume WORDS also searches single questions"):
        drive(talk, "/resume")
    talked = other(talk, "whales again")
    talk.front.picks = [None, f"how do whales sleep? · {asked.id}"]
    drive(talk, "/resume", "/resume whales")
    offered = [[item.name for item in items] for _, items in talk.front.offered]
    assert offered[0] == [f"whales again · {talked.id}"]
    assert sorted(offered[1]) == sorted(
        [f"how do whales sleep? · {asked.id}", f"whales again · {talked.id}"]
    )
    assert talk.done == [("open", asked.id, False, None)]


def test_new_and_fork(talk):
    drive(talk, "a", "b", "/new", "/clear", "/fork", "/fork 1")
    this = talk.session.info.id
    assert talk.done == [
        ("open", None, True, None),
        ("open", None, True, None),
        ("open", this, False, 4),
        ("open", this, False, 2),
    ]
    for word in ("0", "3", "x", "²"):
        with pytest.raises(LocalError, match="it has 2"):
            drive(talk, f"/fork {word}")


def test_a_fork_ends_with_the_last_message_of_the_turn_not_with_what_was_said_of_it_later(talk):
    drive(talk, "a", "b")
    talk.session.undo()
    drive(talk, "/fork 2")
    assert talk.done == [("open", talk.session.info.id, False, 4)]


def test_rename(talk):
    assert drive(talk, "/rename my whales") == "This session is now called my whales."
    assert talk.session.store.find("my whales").id == talk.session.info.id
    drive(talk, "/rename")
    assert talk.session.store.info(talk.session.info.id).name is None


def test_undo_puts_the_words_back_into_the_line(talk):
    text = drive(talk, "a", "b", "/undo")
    assert talk.front.typed == ["b"]
    assert talk.done == ["redraw"]
    assert "Undid the last turn" in text
    assert [m.text for m in talk.session.log.messages] == ["a", "one"]


def test_undo_does_not_put_a_mentioned_file_into_the_line(talk, tmp_path):
    (tmp_path / "a.py").write_text("print(1)\n")
    said, _ = expand_mentions("see @a.py", tmp_path)
    drive(talk, "a")
    talk.session._keep(Entry(said))
    drive(talk, "/undo")
    assert talk.front.typed == ["see @a.py"]


def test_undo_of_nothing_is_refused(talk):
    with pytest.raises(LocalError, match="no turns yet"):
        drive(talk, "/undo")


# /export


def test_export_goes_to_a_page_in_the_folder_and_never_over_a_file(talk, tmp_path):
    drive(talk, "a & b", "/export", "/export")
    first, second = sorted(tmp_path.glob("mull-*.html"))
    assert first.read_bytes() == second.read_bytes()
    assert "a &amp; b" in first.read_text()
    with pytest.raises(LocalError, match="already exists"):
        drive(talk, f"/export {first.name}")
    drive(talk, f"/export {first.name} --no-thinking --force")
    assert first.read_bytes() != second.read_bytes()


def test_export_by_ending_and_back(talk, tmp_path):
    assert drive(talk, "a", "/export talk.jsonl", "/export talk.md") == "Wrote talk.md (0 kB)."
    again = read_transcript((tmp_path / "talk.jsonl").read_bytes())
    assert again.records == tuple(talk.session.log)
    assert again.title == "a"
    assert (tmp_path / "talk.md").read_text().startswith("# a\n")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/export talk.doc", "use .md, .json, .jsonl or .html"),
        ("/export a.md b.md", "too many arguments"),
        ("/export a.md --hard", "unknown option"),
        ("/export a.json --no-thinking", "json always holds the whole session"),
    ],
)
def test_an_export_that_cannot_be_made_writes_nothing(talk, tmp_path, typed, words):
    before = set(tmp_path.iterdir())
    with pytest.raises(LocalError, match=words):
        drive(talk, typed)
    assert set(tmp_path.iterdir()) == before


# /tools, /mcp


@pytest.fixture
def tooled(tmp_path):
    with at_terminal(tmp_path, toolbox=Toolbox(load_setup(), tmp_path)) as one:
        yield one


def test_tools_show_what_is_offered_and_what_is_asked_about(tooled):
    text = drive(tooled, "/tools")
    assert text.startswith("Approval: ask, mull asks before a tool changes anything.")
    assert "✓  read      read-only          built in" in text
    assert "✓  run       changes something  built in" in text


def test_tools_are_chosen_by_group_and_name(tooled):
    text = drive(tooled, "/tools read")
    assert "Offered: 5 of 9 tools (read)." in text
    assert "  –  run" in text
    drive(tooled, "/tools edit run")
    assert set(tooled.session.tools) == {"edit", "jobs", "run"}
    with pytest.raises(LocalError, match="unknown tool"):
        drive(tooled, "/tools teleport")
    assert set(tooled.session.tools) == {"edit", "jobs", "run"}


@pytest.mark.parametrize("why", ["", "there is none"])
def test_a_key_goes_through_the_modes_that_are_possible(tooled, monkeypatch, why):
    monkeypatch.setattr(Cage, "why_not", lambda self, **_: why)
    seen = []
    for _ in range(8):
        cycle_mode(tooled)
        seen.append(tooled.session.toolbox.gate.mode)
    possible = ["accept-edits", "read-only", *([] if why else ["auto"]), "ask"]
    assert seen == (possible * 3)[:8]
    if why:
        with pytest.raises(LocalError, match="the mode auto needs the sandbox"):
            drive(tooled, "/tools auto")
        assert tooled.session.toolbox.gate.mode != "auto"


@pytest.mark.parametrize("mode", MODES)
def test_the_approval_mode_is_set(tooled, mode, monkeypatch):
    monkeypatch.setattr(Cage, "why_not", lambda self, **_: "")
    assert drive(tooled, f"/tools {mode}").startswith(f"Approval: {mode}, {MODES[mode]}"[:40])
    assert tooled.session.toolbox.gate.mode == mode


def test_read_only_offers_nothing_that_changes_things(tooled):
    drive(tooled, "/tools read-only")
    assert not any(tool.changes for tool in tooled.session.tools.values())


def test_every_mode_and_every_view_has_its_words():
    from typing import get_args

    from mull.policy.approval import Mode

    assert set(MODES) == set(get_args(Mode))
    assert set(_SHOWN) == set(VIEWS)


def test_without_tools_the_commands_say_so(talk):
    with pytest.raises(LocalError, match="no tools"):
        drive(talk, "/tools")
    assert "mull mcp add" in drive(talk, "/mcp")


class Servers:
    """Servers as the session has them."""

    def __init__(self):
        from mull.agent.mcp.servers import ServerStatus

        self.restarted = []
        self.tools = {}
        self.statuses = (
            ServerStatus("time", "ready", ("mcp__time__now",), seconds=0.25, notes=("is slow",)),
            ServerStatus("git", "failed", reason="it did not answer"),
            ServerStatus("web", "off"),
        )

    async def restart(self, name):
        self.restarted.append(name)


def test_mcp_shows_the_servers_and_starts_one_afresh(tooled):
    servers = tooled.session.toolbox.mcp = Servers()
    assert (
        drive(tooled, "/mcp")
        == """\
✓ time: 1 tool in 0.2 s
    mcp__time__now
    ⚠ is slow
✗ git is failed: it did not answer
– web is off"""
    )
    drive(tooled, "/mcp restart git")
    assert servers.restarted == ["git"]
    with pytest.raises(LocalError, match="restart NAME"):
        drive(tooled, "/mcp stop git")


# /view, /theme


def test_view_is_named_or_the_next_one(talk):
    assert drive(talk, "/view PREVIEW") == "Thinking is shown as a preview."
    assert drive(talk, "/view") == "Thinking is hidden, but stored and sent as before."
    assert talk.done == [("view", "preview"), "cycle"]
    with pytest.raises(LocalError, match="did you mean hidden"):
        drive(talk, "/view hiden")


def test_themes_of_ones_own_are_offered_first(tmp_path, monkeypatch):
    monkeypatch.setenv("MULL_CONFIG_DIR", str(tmp_path))
    (tmp_path / "config.toml").write_text('[themes.mine]\nbase = "dark"\n[themes.ansi]\n')
    with at_terminal(tmp_path) as talk:
        talk.front.picks = [None]
        drive(talk, "/theme")
    names = [item.name for item in talk.front.offered[0][1]]
    assert names == ["mine", "ansi", *(name for name in THEMES if name != "ansi")]


def test_theme_is_named_or_picked(talk):
    talk.front.picks = ["ansi", None]
    drive(talk, "/theme light", "/theme", "/theme")
    assert talk.done == [("theme", "light"), ("theme", "ansi")]
    assert [item.name for item in talk.front.offered[0][1]] == list(THEMES)
    with pytest.raises(LocalError, match="unknown theme"):
        drive(talk, "/theme pink")


class Previewing(FakeFront):
    """Moves to a theme, and then picks nothing or is interrupted."""

    def __init__(self, ends_with):
        super().__init__()
        self.ends_with = ends_with

    async def pick(self, title, items, found="", mark=None, preview=None):
        self.current = [item.name for item in items if item.current]
        preview("light")
        preview("no such theme")
        self.previewed = self.theme.name
        if self.ends_with is not None:
            raise self.ends_with


@pytest.mark.parametrize("ends_with", [None, asyncio.CancelledError()])
def test_a_theme_is_shown_while_the_choice_is_on_it_and_then_the_one_before(tmp_path, ends_with):
    front = Previewing(ends_with)
    with at_terminal(tmp_path, front=front) as talk:
        with nullcontext() if ends_with is None else pytest.raises(asyncio.CancelledError):
            drive(talk, "/theme")
        assert front.current == ["plain"]
        assert front.previewed == "light"
        assert front.theme.name == "plain"
        assert talk.text == ""


# /image


def test_a_picture_goes_with_the_next_message(tmp_path):
    (tmp_path / "a shot.png").write_bytes(PNG)
    with at_terminal(tmp_path, model="openai/gpt-5.1") as talk:
        text = drive(talk, '/image "a shot.png"')
        assert (
            " ".join(text.split())
            == "Attached to your next message: image/png, 60 bytes, a shot.png"
        )
        (block,) = talk.attached
        assert block.media_type == "image/png"
        drive(talk, "/image clear")
        assert talk.attached == []


def test_a_model_that_takes_no_pictures_refuses_them(talk, tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    with pytest.raises(LocalError, match="does not accept images"):
        drive(talk, "/image a.png")
    assert talk.attached == []


def test_what_is_no_picture_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "big.png").write_bytes(PNG + bytes(5 << 20))
    with at_terminal(tmp_path, model="openai/gpt-5.1") as talk:
        for name, words in (
            ("a.txt", "not a picture"),
            ("none.png", "no such file"),
            (".", "it is a folder"),
            ("big.png", "larger than 4 MB"),
        ):
            with pytest.raises(LocalError, match=words):
                drive(talk, f"/image {name}")
