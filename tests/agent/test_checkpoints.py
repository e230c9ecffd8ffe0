"""Undoing what tools did to files: edits, commands under git, and what somebody else changed."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.agent.checkpoints import (
    A_FOLDER,
    CHANGED_SINCE,
    NOT_KEPT,
    NOT_READ,
    UNOBSERVED,
    Keeper,
    plan_restoring,
)
from mull.agent.tools import snapshot
from mull.agent.tools.snapshot import take_snapshot
from mull.agent.tools.states import look_at, put_at
from mull.store import checkpoints as stored
from mull.store.checkpoints import Checkpoints, checkpoints_of, forget_checkpoints
from mull.store.sessions.sqlite import SqliteSessions


class Turns:
    """A keeper and the turn that its changes belong to."""

    def __init__(self, folder):
        self.now = 0
        self.warnings = []
        self.kept = Checkpoints(folder)
        self.keeper = Keeper(self.kept, lambda: self.now, self.warnings.append)

    def change(self, path, write):
        before = look_at(path)
        write(Path(path))
        self.keeper.keep([(str(path), before, look_at(path))])

    def undo(self, *turns, again=False):
        restoring = plan_restoring(self.kept, turns or [self.now], again=again)
        return restoring.run() if restoring else []


@pytest.fixture
def turns(tmp_path):
    return Turns(tmp_path / "kept")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def text(content):
    return lambda path: path.write_bytes(content)


CHANGES = {
    "changed": (b"one\ntwo\n", text(b"one\nTWO\nthree\n")),
    "new": (None, text(b"new\n")),
    "deleted": (b"old\n", Path.unlink),
    "binary": (b"\0\1\2", text(b"\0\3")),
    "emptied": (b"full", text(b"")),
    "mode": (b"#!/bin/sh\n", lambda path: path.chmod(0o755)),
    "linked": (b"a file", lambda path: (path.unlink(), path.symlink_to("elsewhere"))),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_goes_back_and_forth(turns, folder, kind):
    before, write = CHANGES[kind]
    path = folder / "some file"
    if before is not None:
        path.write_bytes(before)
        path.chmod(0o640)
    was = look_at(path)
    turns.change(path, write)
    now = look_at(path)
    (restored,) = turns.undo()
    assert (restored.path, restored.problem) == (str(path), "")
    assert look_at(path) == was
    (again,) = turns.undo(again=True)
    assert (again.added, again.removed) == (restored.removed, restored.added)
    assert look_at(path) == now


def test_lines_are_counted_as_they_come_and_go(turns, folder):
    path = folder / "retry.py"
    path.write_text("LIMIT = 3\nWAIT = 1\n")
    turns.change(path, lambda p: p.write_text("LIMIT = 5\nWAIT = 1\n"))
    assert [(r.added, r.removed) for r in turns.undo()] == [(1, 1)]


def test_what_somebody_else_changed_since_stays_and_is_named(turns, folder):
    path, other = folder / "a", folder / "b"
    for one in (path, other):
        turns.change(one, text(b"by a tool"))
    path.write_bytes(b"by a person")
    found = {Path(r.path).name: r.problem for r in turns.undo()}
    assert found == {"a": CHANGED_SINCE, "b": ""}
    assert path.read_bytes() == b"by a person"
    assert not other.exists()


def test_what_somebody_else_changed_in_between_stays_too(turns, folder):
    path = folder / "a"
    turns.change(path, text(b"1"))
    path.write_bytes(b"by a person")
    turns.change(path, text(b"2"))
    assert [r.problem for r in turns.undo()] == [CHANGED_SINCE]
    assert path.read_bytes() == b"2"


@pytest.mark.parametrize("write", [text(b"x"), Path.unlink])
def test_a_folder_that_became_a_link_is_not_followed(turns, folder, tmp_path, write):
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_bytes(b"before")
    turns.change(folder / "sub" / "a", write)
    (tmp_path / "elsewhere").mkdir()
    (folder / "sub").rename(tmp_path / "elsewhere" / "sub")
    (folder / "sub").symlink_to(tmp_path / "elsewhere" / "sub")
    there = [path.read_bytes() for path in (folder / "sub").iterdir()]
    assert [r.problem for r in turns.undo()] == [CHANGED_SINCE]
    assert [path.read_bytes() for path in (folder / "sub").iterdir()] == there


def test_what_is_too_large_is_named(turns, folder, monkeypatch):
    monkeypatch.setattr(stored, "LARGEST", 4)
    path = folder / "a"
    path.write_bytes(b"large content")
    turns.change(path, text(b"x"))
    assert [r.problem for r in turns.undo()] == [NOT_KEPT]
    assert path.read_bytes() == b"x"


def test_the_oldest_turns_go_where_it_becomes_too_much(turns, folder, monkeypatch):
    monkeypatch.setattr(stored, "MOST", 3000)
    for turn in range(4):
        turns.now = turn
        turns.change(folder / "a", text(bytes([turn]) * 1000))
    assert {change.turn for change in turns.kept.changes()} < {0, 1, 2, 3}
    assert [r.problem for r in turns.undo(3)] == [""]
    assert (folder / "a").read_bytes() == bytes([2]) * 1000


def test_they_are_for_the_user_only_and_go_with_the_session(folder):
    kept = checkpoints_of("some-session")
    keeper = Keeper(kept, lambda: 0, lambda _: None)
    (folder / "a").write_bytes(b"secret")
    keeper.keep([(str(folder / "a"), look_at(folder / "a"), None)])
    place = stored._folder("some-session")
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(one.stat().st_mode) for one in place.iterdir()} == {0o600}
    forget_checkpoints("some-session")
    forget_checkpoints("some-session")
    assert not place.exists()


def test_a_damaged_index_costs_only_what_is_damaged(turns, folder):
    turns.change(folder / "a", text(b"x"))
    index = turns.kept._folder / "index.jsonl"
    index.write_bytes(b"{half\n" + index.read_bytes() + b'{"turn":')
    assert [r.problem for r in turns.undo()] == [""]


contents = st.none() | st.binary(max_size=8)


@tried(0.5)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from("abc"), contents, st.booleans()), max_size=8
    )
)
def test_undo_gives_what_was_there_before_unless_others_were_at_it(tmp_path_factory, steps):
    """Turns change files in order, and somebody else in between; undone last turn first."""
    place = tmp_path_factory.mktemp("undo")
    turns, touched = Turns(place / "kept"), set()
    states = []
    for turn in range(3):
        states.append({name: look_at(place / name) for name in "abc"})
        turns.now = turn
        for at, name, content, foreign in steps:
            if at != turn:
                continue
            if foreign:
                put(place / name, content)
                touched.add(name)
            else:
                turns.change(place / name, lambda path, c=content: put(path, c))
    for turn in reversed(range(3)):
        turns.undo(turn)
        for name in set("abc") - touched:
            assert look_at(place / name) == states[turn][name]


def put(path, content):
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.write_bytes(content)


# Commands in a folder under git


@pytest.fixture
def repository(folder):
    def git(*arguments):
        who = ("-c", "user.name=x", "-c", "user.email=x@example.invalid")
        subprocess.run(("git", *who, *arguments), cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    (folder / ".gitignore").write_text("ignored\n")
    (folder / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (folder / "clean").write_text("clean\n")
    (folder / "dos.txt").write_bytes(b"one\r\ntwo\r\n")
    (folder / "with space ü").write_text("odd\n")
    (folder / "link").symlink_to("clean")
    (folder / "tool").write_text("#!/bin/sh\n")
    (folder / "tool").chmod(0o755)
    git("add", "-A")
    git("commit", "-qm", "first")
    (folder / "dirty").write_text("not added\n")
    (folder / "ignored").write_text("secret\n")
    return git


def ran(turns, folder, command):
    before = take_snapshot(folder)
    subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    turns.keeper.keep_changed(before)


def whole(folder):
    return {p.name: look_at(p) for p in folder.iterdir() if p.name != ".git"}


@pytest.mark.parametrize(
    "command",
    [
        "echo more >> clean; echo more >> dirty; echo new > new",
        "rm clean dirty link 'with space ü'",
        "chmod 644 tool; ln -sf dirty link",
        "printf x >> dos.txt; mv clean moved",
        "mkdir -p deep/er; echo x > deep/er/file; git add -A",
        "echo x >> clean; git -c user.name=x -c user.email=x@x commit -qam second",
        "touch clean",
        "rm clean && mkdir -p clean/deep && echo y > clean/y",
        "rm link; mkdir link; echo y > link/y",
        "printf x > \"$(printf '\\377')\"; rm clean",
        "git config core.autocrlf true; rm clean",
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_a_command_changed_under_git_goes_back(turns, folder, command):
    was = whole(folder)
    ran(turns, folder, command)
    now = whole(folder)
    assert all(restored.problem in ("", A_FOLDER) for restored in turns.undo())
    assert {n: f for n, f in whole(folder).items() if n != "deep"} == was
    turns.undo(again=True)
    assert whole(folder) == now


def test_a_folder_that_a_command_moved_behind_a_link_comes_back(turns, folder, repository):
    (folder / "sub/deep").mkdir(parents=True)
    for name in ("sub/a", "sub/deep/b"):
        (folder / name).write_text(name)
    repository("add", "sub/a")
    ran(turns, folder, "mv sub moved; ln -s moved sub")
    assert all(restored.problem in ("", A_FOLDER) for restored in turns.undo())
    assert not (folder / "sub").is_symlink()
    assert not (folder / "moved/a").exists()
    for name in ("sub/a", "sub/deep/b"):
        assert (folder / name).read_text() == name
    turns.undo(again=True)
    assert os.readlink(folder / "sub") == "moved"
    assert (folder / "sub/deep/b").read_text() == "sub/deep/b"


@pytest.mark.parametrize(
    "command", ["rm .gitignore", "rm -r .git", "rm -r inner/.git", "rm -r .git; git init"]
)
@pytest.mark.usefixtures("repository")
def test_what_a_command_only_makes_visible_stays(turns, folder, command):
    for name in ("build", "inner", "node_modules"):
        (folder / name).mkdir()
        (folder / name / "mine").write_text("mine\n")
    subprocess.run(("git", "init", "-q"), cwd=folder / "inner", check=True)
    (folder / ".gitignore").write_text("build/\nnode_modules/\n")
    ran(turns, folder, f"{command}; echo new > new")
    turns.undo()
    assert not (folder / "new").exists()
    for name in ("build", "inner", "node_modules"):
        assert (folder / name / "mine").exists()


def test_nor_does_what_was_passed_over_go_because_a_command_sets_up_git(turns, folder):
    (folder / "node_modules").mkdir()
    (folder / "node_modules/mine").write_text("mine\n")
    ran(turns, folder, "git init; echo new > new")
    turns.undo()
    assert not (folder / "new").exists()
    assert (folder / "node_modules/mine").exists()


@pytest.mark.parametrize("how", ["--assume-unchanged", "--skip-worktree"])
def test_what_git_was_told_not_to_look_at_goes_back_as_it_was(turns, folder, repository, how):
    repository("update-index", how, "clean")
    (folder / "clean").write_text("mine\n")
    ran(turns, folder, "echo theirs > clean")
    turns.undo()
    assert (folder / "clean").read_text() == "mine\n"


@pytest.mark.usefixtures("repository")
def test_a_folder_that_is_ignored_as_a_whole_is_watched_like_one_without_git(turns, folder):
    (folder / "ignored").unlink()
    (folder / "ignored/sub").mkdir(parents=True)
    (folder / "ignored/sub/a").write_text("a\n")
    ran(turns, folder / "ignored/sub", "rm a; echo new > new")
    turns.undo()
    assert os.listdir(folder / "ignored/sub") == ["a"]


@pytest.mark.usefixtures("repository")
def test_small_ignored_files_go_back_and_large_ones_and_folders_stay(turns, folder, monkeypatch):
    monkeypatch.setattr(snapshot, "LARGEST_IGNORED", 100)
    (folder / ".gitignore").write_text("ignored\nlarge\nbuild/\n")
    (folder / "large").write_bytes(bytes(101))
    (folder / "build").mkdir()
    ran(turns, folder, "echo more >> ignored; echo x > large; echo x > build/x")
    assert [Path(restored.path).name for restored in turns.undo()] == ["ignored"]
    assert (folder / "ignored").read_text() == "secret\n"
    assert (folder / "build/x").exists()


def test_in_a_folder_without_git_files_go_back_too(turns, folder):
    for name in ("a", "sub/b", "node_modules/c"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    ran(turns, folder, "echo x > a; rm -r sub; echo new > new; echo x > node_modules/c")
    turns.undo()
    assert (folder / "a").read_text() == "a"
    assert (folder / "sub/b").read_text() == "sub/b"
    assert not (folder / "new").exists()
    assert (folder / "node_modules/c").read_text() == "x\n"


@pytest.mark.usefixtures("repository")
def test_what_git_no_longer_knows_is_not_called_too_large(turns, folder):
    ran(turns, folder, "rm -r .git; rm clean")
    assert [(Path(r.path).name, r.problem) for r in turns.undo()] == [("clean", NOT_READ)]


@pytest.mark.parametrize("in_git", [True, False])
def test_folders_that_undo_leaves_as_they_are_are_named(turns, folder, in_git, request):
    if in_git:
        request.getfixturevalue("repository")
    for name in ("gone/empty", "open", "moved", "node_modules"):
        (folder / name).mkdir(parents=True)
    (folder / "moved/a").write_text("a\n")
    ran(turns, folder, "mkdir -p new/er node_modules/x; rm -r gone moved; chmod 700 open")
    found = [(r.path, r.problem) for r in turns.undo()]
    names = [f"{folder}/{name}/" for name in ("gone", "gone/empty", "new", "open")]
    assert found == [(f"{folder}/moved/a", ""), *((name, A_FOLDER) for name in names)]
    assert [r.path for r in turns.undo(again=True)] == [f"{folder}/moved/a", f"{folder}/moved/"]


@pytest.mark.parametrize("limit", ["MOST_LOOSE", "MOST_PLAIN_BYTES"])
def test_a_folder_without_git_that_is_too_large_is_not_watched(folder, monkeypatch, limit):
    for name in ("a", "b"):
        (folder / name).write_text("content")
    monkeypatch.setattr(snapshot, limit, 1)
    assert take_snapshot(folder) is None


def test_the_diff_names_what_it_cannot_show(turns, folder):
    (folder / "a.txt").write_text("one\n")
    (folder / "b.bin").write_bytes(b"\0")
    before = take_snapshot(folder)
    (folder / "a.txt").write_text("two\n")
    (folder / "b.bin").write_bytes(b"\0\1")
    (folder / "a.txt").chmod(0o600)
    assert turns.keeper.keep_changed(before) == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\nb.bin changed: not text"
    )


def test_a_command_that_nothing_observed_is_told_when_it_is_undone(turns, folder, monkeypatch):
    monkeypatch.setattr(snapshot, "MOST_LOOSE", 0)
    turns.change(folder / "a", text(b"a\n"))
    ran(turns, folder, "echo b >> a; echo c > c")
    ran(turns, folder, "echo d > d")
    assert [(r.path, r.problem) for r in turns.undo()] == [
        (str(folder / "a"), CHANGED_SINCE),
        ("", UNOBSERVED),
    ]
    assert (folder / "a").read_text() == "a\nb\n"
    assert [r.path for r in turns.undo(again=True)] == [str(folder / "a")]
    turns.now = 5
    assert turns.undo() == []


@pytest.mark.usefixtures("repository")
def test_a_command_in_a_folder_below_the_top(turns, folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_text("a\n")
    ran(turns, folder / "sub", "echo b >> a; echo c > c")
    turns.undo()
    assert os.listdir(folder / "sub") == ["a"]
    assert (folder / "sub" / "a").read_text() == "a\n"


def test_put_at_makes_missing_folders(tmp_path):
    found = look_at(__file__)
    put_at(tmp_path / "a" / "b", found.state, found.content)
    assert look_at(tmp_path / "a" / "b") == found


@pytest.mark.parametrize("goes", [True, False])
def test_put_at_follows_no_link(tmp_path, goes):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_bytes(b"of others")
    (tmp_path / "link").symlink_to("real")
    found = look_at(__file__)
    with pytest.raises(OSError, match="link"):
        put_at(tmp_path / "link" / "a", None if goes else found.state, found.content)
    assert (tmp_path / "real" / "a").read_bytes() == b"of others"


def test_deleting_a_session_deletes_its_checkpoints(folder, tmp_path):
    store = SqliteSessions(tmp_path / "sessions.db")
    info = store.create(folder=str(folder))
    keeper = Keeper(checkpoints_of(info.id), lambda: 0, lambda _: None)
    (folder / "a").write_bytes(b"x")
    keeper.keep([(str(folder / "a"), None, look_at(folder / "a"))])
    store.delete(info.id)
    assert not stored._folder(info.id).exists()


def test_changes_of_commands_that_end_at_once_are_all_kept(tmp_path):
    kept = Checkpoints(tmp_path / "kept")
    together = threading.Barrier(4)

    def add(command):
        together.wait()
        for number in range(10):
            content = f"{command} {number}".encode()
            kept.add([stored.Change(0, content.decode())], [content])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert sorted(change.path for change in kept.changes()) == sorted(
        f"{command} {number}" for command in range(4) for number in range(10)
    )
