"""`list`, and what is passed over. git itself is asked what .gitignore means."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import ends
from mull.agent.tools.walk import Ignores, walk
from tool_calls import fail, fill, use


def test_a_folder_is_listed_with_one_name_a_line(tmp_path):
    workspace = fill(tmp_path, {"b/c": "", "a.txt": "", ".env": "", "Z": ""})
    (tmp_path / "link").symlink_to("a.txt")
    assert use(workspace, "list") == ".env\nZ\na.txt\nb/\nlink -> a.txt"
    assert use(workspace, "list", path="b") == "b/c"


def test_caches_are_not_listed_but_named(tmp_path):
    workspace = fill(tmp_path, {".git/x": "", "node_modules/a": "", "src/a": ""})
    assert use(workspace, "list") == "src/\n[not listed: .git, node_modules]"
    assert use(workspace, "list", path="node_modules") == "node_modules/a"


def test_a_pattern_finds_files_below(tmp_path):
    workspace = fill(
        tmp_path,
        {"a.py": "", "src/b.py": "", "src/deep/c.py": "", "src/d.ts": "", ".venv/e.py": ""},
    )
    assert use(workspace, "list", pattern="*.py") == "a.py\nsrc/b.py\nsrc/deep/c.py"
    assert use(workspace, "list", pattern="src/*.py") == "src/b.py"
    assert use(workspace, "list", pattern="./src/**") == "src/b.py\nsrc/d.ts\nsrc/deep/c.py"
    assert use(workspace, "list", pattern="**/*.{ts,js}", path="src") == "src/d.ts"
    assert use(workspace, "list", pattern="*.rs") == "nothing in . fits"
    assert "more than 64" in fail(workspace, "list", pattern="{a,b}" * 9)


def test_a_long_list_ends_with_the_number_of_what_is_missing(tmp_path):
    workspace = fill(tmp_path, {f"{n:03}.txt": "" for n in range(12)})
    shown = use(workspace, "list", limit=2)
    assert shown == (
        "000.txt\n001.txt\n[10 more, 12 in all: list a subfolder, or use a narrower pattern]"
    )


def test_what_is_no_folder_says_what_it_is(tmp_path):
    workspace = fill(tmp_path, {"a": ""})
    assert fail(workspace, "list", path="a") == "a is a file, not a folder: read shows it"
    assert fail(workspace, "list", path="b") == "b does not exist"
    (tmp_path / "empty").mkdir()
    assert use(workspace, "list", path="empty") == "nothing in empty"


def test_links_to_folders_are_not_walked_through(tmp_path):
    workspace = fill(tmp_path, {"a/b.py": ""})
    (tmp_path / "a/again").symlink_to("..")
    assert use(workspace, "list", pattern="*.py") == "a/b.py"


def git(folder, *arguments, **more):
    return subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", *arguments],
        cwd=folder, check=False, capture_output=True, text=True, **more,
    )  # fmt: skip


def ignored_by_git(folder):
    """All files that git would not track."""
    listed = git(folder, "ls-files", "-z", "--others", "--exclude-standard").stdout
    tracked = set(filter(None, listed.split("\0")))
    everything = {
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        if f"{os.sep}.git" not in place
        for name in names
    }
    return everything - tracked


def ignored_by_us(folder):
    found = {entry.path for entry in walk(str(folder)) if not entry.is_folder}
    return {
        os.path.relpath(os.path.join(place, name), folder)
        for place, _, names in os.walk(folder)
        if f"{os.sep}.git" not in place
        for name in names
    } - found


FILES = ["a.log", "b.txt", "sub/a.log", "sub/b.txt", "sub/deep/a.log", "build/x", "sub/build/x",
         "#hash", "!bang", "sp ace ", "deep/x"]  # fmt: skip

LINES = ["*.log", "/a.log", "a.log", "sub/a.log", "sub/", "/sub", "build/", "build", "**/build",
         "sub/**", "!a.log", "!sub/deep/a.log", "# comment", "\\#hash", "\\!bang", "", "sp ace\\ ",
         "*.txt  ", "deep/", "sub/*/a.log", "**/deep/**", "[ab].*", "!*/", "*", "!*.txt",
         "/", "?.txt"]  # fmt: skip


@settings(max_examples=15)
@given(st.lists(st.sampled_from(LINES), max_size=4), st.lists(st.sampled_from(LINES), max_size=2))
def test_gitignore_means_what_git_says(tmp_path_factory, top, sub):
    folder = tmp_path_factory.mktemp("ignore")
    fill(folder, dict.fromkeys(FILES, ""))
    git(folder, "init", "-q")
    (folder / ".gitignore").write_text("\n".join(top) + "\n")
    (folder / "sub/.gitignore").write_text("\n".join(sub))
    assert ignored_by_us(folder) == ignored_by_git(folder)


def test_gitignore_holds_in_a_repository_only_and_from_its_top(tmp_path):
    fill(tmp_path, {".gitignore": "*.log\n", "sub/a.log": "", "sub/a.py": ""})
    assert not Ignores.of(str(tmp_path / "sub")).ignores("a.log", False)
    (tmp_path / ".git").mkdir()
    assert Ignores.of(str(tmp_path / "sub")).ignores("a.log", False)
    assert use(fill(tmp_path / "sub", {}), "list", pattern="*") == "a.py"


@pytest.mark.parametrize("odd", ["fifo", "huge", "folder"])
def test_an_odd_gitignore_is_none(tmp_path, odd):
    workspace = fill(tmp_path, {"a.py": ""})
    (tmp_path / ".git").mkdir()
    path = tmp_path / ".gitignore"
    if odd == "fifo":
        os.mkfifo(path)
    elif odd == "folder":
        path.mkdir()
    else:
        with open(path, "wb") as file:
            file.truncate(5 << 30)
    assert use(workspace, "list", pattern="*.py") == "a.py"


@pytest.mark.parametrize("pattern", ["**/" * 2000 + "x", "**/a/" * 2000 + "*"])
def test_a_pattern_costs_little_however_it_is_written(tmp_path, pattern):
    files = {f"{'a/' * 30}{n}": "" for n in range(200)}
    workspace = fill(tmp_path, {".git/x": "", ".gitignore": f"{pattern}\n", **files})
    with ends():
        use(workspace, "list", pattern=pattern)


def test_a_list_that_takes_too_long_says_what_it_did_not_look_at(tmp_path, monkeypatch):
    monkeypatch.setattr("mull.agent.tools.list.LOOKING", -1)
    workspace = fill(tmp_path, {"a/b": "", "c": ""})
    assert use(workspace, "list", pattern="*").endswith(
        "[stopped after -1 seconds; the listing is incomplete: list a subfolder]"
    )
