"""The boundary, and that nothing gets past it between looking and opening."""

import os

import pytest

from mull.agent.tools.files import open_to_read, read_whole, replace_file
from mull.agent.tools.tool import ToolFailure
from mull.agent.tools.workspace import Workspace
from mull.neutral.errors import LocalError
from tool_calls import fail, fill, use


@pytest.fixture
def folder(tmp_path):
    """A working folder with a secret beside it, and links that lead to the secret."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "private").mkdir()
    (tmp_path / "private/key").write_text("secret")
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("mine\n")
    (root / "link.txt").symlink_to("../secret.txt")
    (root / "away").symlink_to(tmp_path / "private")
    (root / "sub/up").symlink_to("../..")
    (root / "inner").symlink_to("sub")
    (root / "dangling").symlink_to("../not-there/yet")
    (root / "loop").symlink_to("loop")
    return root


OUTSIDE = [
    "../secret.txt",
    "sub/../../secret.txt",
    "new/../../secret.txt",
    "new/deeper/../../../secret.txt",
    "link.txt",
    "away/key",
    "away/new/file",
    "sub/up/secret.txt",
    "inner/up/secret.txt",
    "dangling",
    "dangling/file",
    "/etc/passwd",
    "~/notes.txt",
    "~",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_leads_outside_is_refused_for_reading_and_for_writing(folder, path):
    workspace = Workspace(folder)
    before = sorted(path for path in folder.parent.rglob("*"))
    for tool, more in (
        ("read", {}),
        ("list", {}),
        ("search", {"pattern": "secret"}),
        ("write", {"content": "x"}),
        ("edit", {"old": "secret", "new": "x"}),
    ):
        said = fail(workspace, tool, path=path, **more)
        assert f"{path} is outside the working folder" in said
        assert f"only files in {folder} can be used" in said
    assert (folder.parent / "secret.txt").read_text() == "secret"
    assert sorted(path for path in folder.parent.rglob("*")) == before


@pytest.mark.parametrize("path", ["a.txt", "./a.txt", "sub/../a.txt", "inner/../a.txt", "//a.txt"])
def test_what_stays_inside_is_found_however_it_is_written(folder, path):
    path = path.replace("//", f"{folder}/")
    assert Workspace(folder).resolve(path) == folder / "a.txt"


def test_a_link_inside_is_followed_and_named_by_where_it_leads(folder):
    workspace = Workspace(folder)
    (folder / "sub/b.txt").write_text("b\n")
    assert workspace.locate("inner/b.txt").name == "sub/b.txt"
    assert use(workspace, "read", path="inner/b.txt") == "     1\tb"
    use(workspace, "write", path="inner/new/c.txt", content="c")
    assert (folder / "sub/new/c.txt").read_text() == "c"


def test_a_root_that_is_itself_a_link_is_resolved_once(folder, tmp_path):
    (tmp_path / "door").symlink_to(folder)
    workspace = Workspace(tmp_path / "door")
    assert workspace.root == folder
    assert workspace.resolve("a.txt") == folder / "a.txt"
    assert workspace.resolve(str(tmp_path / "door/a.txt")) == folder / "a.txt"


def test_more_folders_can_be_let_in(folder, tmp_path):
    workspace = Workspace(folder, extra_roots=[tmp_path / "private"])
    assert use(workspace, "read", path=str(tmp_path / "private/key")) == "     1\tsecret"
    assert workspace.locate("away/key").name == str(tmp_path / "private/key")
    assert str(tmp_path / "private") in fail(workspace, "read", path="../secret.txt")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "x" * 5000, "loop", "loop/x", "a.txt/b"])
def test_odd_paths_are_errors_in_words(folder, path):
    said = fail(Workspace(folder), "read", path=path)
    assert said
    assert "Traceback" not in said
    assert "Error" not in said


def test_a_working_folder_must_be_a_folder(folder):
    with pytest.raises(LocalError, match="is not a folder"):
        Workspace(folder / "a.txt")
    with pytest.raises(LocalError, match="is not a folder"):
        Workspace(folder / "not-there")


def swap(place, target):
    """Put a link where a file or folder was."""
    os.rename(place, f"{place}.old")
    place.symlink_to(target)


def test_a_file_swapped_for_a_link_after_looking_is_not_read(folder):
    place = Workspace(folder).locate("a.txt")
    swap(folder / "a.txt", "../secret.txt")
    with pytest.raises(ToolFailure, match=r"a\.txt is a symbolic link, not a file"):
        open_to_read(place)


def test_a_file_swapped_between_its_two_looks_is_not_read(folder, monkeypatch):
    place = Workspace(folder).locate("a.txt")
    looked = os.stat

    def look_then_swap(*arguments, **more):
        found = looked(*arguments, **more)
        if arguments[0] == "a.txt":
            monkeypatch.setattr(os, "stat", looked)
            swap(folder / "a.txt", "../secret.txt")
        return found

    monkeypatch.setattr(os, "stat", look_then_swap)
    with pytest.raises(ToolFailure, match="symbolic link that loops, or has"):
        open_to_read(place)


def test_a_folder_swapped_for_a_link_after_looking_is_not_entered(folder):
    workspace = Workspace(folder)
    (folder / "sub/key").write_text("mine")
    to_read, to_write = workspace.locate("sub/key"), workspace.locate("sub/new")
    swap(folder / "sub", folder.parent / "private")
    for attempt in (
        lambda: open_to_read(to_read),
        lambda: replace_file(to_write, b"x"),
        lambda: read_whole(to_read, 100),
    ):
        with pytest.raises(ToolFailure, match="not a directory"):
            attempt()
    assert [path.name for path in (folder.parent / "private").iterdir()] == ["key"]


def test_a_file_swapped_for_a_link_before_writing_is_not_written_through(folder):
    place = Workspace(folder).locate("a.txt")
    swap(folder / "a.txt", "../secret.txt")
    with pytest.raises(ToolFailure, match="is a symbolic link, not a file"):
        replace_file(place, b"x")
    assert (folder.parent / "secret.txt").read_text() == "secret"


def test_a_working_folder_that_is_gone_is_said(tmp_path):
    root = tmp_path / "gone"
    root.mkdir()
    workspace = fill(root, {})
    root.rmdir()
    for tool, given in (
        ("read", {"path": "a"}),
        ("list", {}),
        ("search", {"pattern": "a"}),
        ("write", {"path": "a", "content": "a"}),
        ("run", {"command": "echo hi"}),
    ):
        assert f"the working folder {root} no longer exists" in fail(workspace, tool, **given)
