"""`write`: whole files, whole or not at all."""

import asyncio
import os
import stat
import threading

import pytest

from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Preview, ToolFailure
from tool_calls import Screen, call, fail, fill, preview, start, use


def test_a_new_file_is_made_with_its_folders(tmp_path):
    workspace = fill(tmp_path, {})
    said = use(workspace, "write", path="a/b/c.txt", content="ü\nx")
    assert said == "created a/b/c.txt: 2 lines, 4 bytes"
    assert (tmp_path / "a/b/c.txt").read_bytes() == "ü\nx".encode()


def test_an_old_file_is_replaced_and_keeps_its_mode(tmp_path):
    workspace = fill(tmp_path, {"run.sh": "old"})
    (tmp_path / "run.sh").chmod(0o751)
    assert use(workspace, "write", path="run.sh", content="new\n").startswith("replaced run.sh")
    assert (tmp_path / "run.sh").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "run.sh").stat().st_mode) == 0o751


def test_a_new_file_has_the_usual_mode(tmp_path):
    old = os.umask(0o027)
    try:
        use(fill(tmp_path, {}), "write", path="a", content="")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_what_is_there_already_is_not_written_again(tmp_path):
    workspace = fill(tmp_path, {"a": "same"})
    before = (tmp_path / "a").stat()
    assert use(workspace, "write", path="a", content="same") == "a already has exactly this content"
    assert (tmp_path / "a").stat() == before


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"a": "old"})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert fail(workspace, "write", path="a", content="new") == "a: no space left on device"
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_folder_or_a_name_below_a_file_cannot_be_written(tmp_path):
    workspace = fill(tmp_path, {"a": "x", "sub/b": ""})
    assert fail(workspace, "write", path="sub/", content="x") == (
        "sub/ is a folder: give a file in it"
    )
    assert fail(workspace, "write", path="a/b", content="x") == "a/b: a is not a folder"
    assert fail(workspace, "write", path="c", content="\ud800") == (
        "the content contains half a character (a lone surrogate)"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "sub"]


def test_the_preview_shows_the_difference_and_changes_nothing(tmp_path):
    tool = builtin_tools(fill(tmp_path, {"a": "1\n2\n3\n"}))["write"]
    assert preview(tool, path="a", content="1\nzwei\n3\n") == Preview(
        "write a (+1 −1)", "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3", "diff"
    )
    assert preview(tool, path="n/b", content="x\n") == Preview(
        "write n/b (+1 −0), new", "--- a/n/b\n+++ b/n/b\n@@ -0,0 +1 @@\n+x", "diff"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "1\n2\n3\n"


def test_the_preview_of_a_binary_file_says_what_is_lost(tmp_path):
    shown = preview(builtin_tools(fill(tmp_path, {"a": bytes(20)}))["write"], path="a", content="x")
    assert shown.detail == (
        "replaces binary data, 20 bytes\n--- a/a\n+++ b/a\n@@ -0,0 +1,2 @@\n+x"
        "\n+\\ No newline at end of file"
    )


def test_nothing_hides_in_a_preview(tmp_path):
    shown = preview(
        builtin_tools(fill(tmp_path, {}))["write"], path="a", content="ok\x1b[2K\rbad \u202e\n"
    )
    assert shown.detail.endswith("+ok\\x1b[2K\\rbad \\u202e")


def test_what_is_written_is_what_was_shown_or_nothing(tmp_path):
    tool = builtin_tools(fill(tmp_path, {"a": "old\n"}))["write"]
    prepared = tool.prepare(call("write", path="a", content="new\n"))
    (tmp_path / "a").write_text("somebody else's\n")
    result = asyncio.run(prepared.run(Screen()))
    assert (result.output, result.is_error) == (
        "a has changed since this write was prepared, and was left as it is: read it again",
        True,
    )
    assert (tmp_path / "a").read_text() == "somebody else's\n"


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    tool = builtin_tools(fill(tmp_path, {}))["write"]
    prepared = tool.prepare(call("write", path="a", content="new\n"))
    (tmp_path / "a").write_text("first\n")
    assert asyncio.run(prepared.run(Screen())).is_error
    assert (tmp_path / "a").read_text() == "first\n"


def test_a_link_that_came_meanwhile_leads_nowhere(tmp_path):
    """The path is located once: where it leads later does not count."""
    tool = builtin_tools(fill(tmp_path, {"a/x": "1", "b/x": "1"}))["write"]
    prepared = tool.prepare(call("write", path="a/x", content="2"))
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "a").symlink_to("b")
    assert asyncio.run(prepared.run(Screen())).is_error
    assert [(tmp_path / name / "x").read_text() for name in "bc"] == ["1", "1"]


class WatchedLock:
    """A lock that says when someone comes to it."""

    def __init__(self, came):
        self._lock = threading.Lock()
        self._came = came

    def __enter__(self):
        self._came()
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


def test_a_call_that_is_cancelled_while_it_waits_writes_nothing(tmp_path):
    workspace = fill(tmp_path, {"a": "old"})

    async def cancel_while_waiting():
        came = asyncio.Event()
        loop = asyncio.get_running_loop()
        workspace.changing = WatchedLock(lambda: loop.call_soon_threadsafe(came.set))
        with workspace.changing:
            waiting = asyncio.ensure_future(start(workspace, "write", path="a", content="new"))
            await came.wait()
            came.clear()
            await came.wait()
            waiting.cancel()
            await asyncio.wait((waiting,))
        return waiting.cancelled()

    assert asyncio.run(cancel_while_waiting())
    assert (tmp_path / "a").read_text() == "old"


def test_ends_of_lines_and_encoding_survive(tmp_path):
    files = {"dos": "a\r\nb\r\n", "west": b"caf\xe9\n", "mark": "\ufeffa\n", "wide": b"\xff\xfea\0"}
    workspace = fill(tmp_path, files)
    assert use(workspace, "write", path="dos", content="1\n2\n") == (
        "replaced dos: 2 lines, 6 bytes; its CRLF line ends are kept"
    )
    assert use(workspace, "write", path="west", content="thé\n") == (
        "replaced west: 1 line, 4 bytes; its encoding cp1252 is kept"
    )
    use(workspace, "write", path="mark", content="b\n")
    use(workspace, "write", path="wide", content="é")
    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert found == {
        "dos": b"1\r\n2\r\n", "west": b"th\xe9\n", "mark": b"\xef\xbb\xbfb\n",
        "wide": b"\xff\xfe\xe9\0",
    }  # fmt: skip


def test_what_the_encoding_lacks_makes_it_utf8_and_that_is_told(tmp_path):
    workspace = fill(tmp_path, {"west": b"caf\xe9\n"})
    assert use(workspace, "write", path="west", content="→\n") == (
        "replaced west: 1 line, 4 bytes; now UTF-8 instead of cp1252"
    )
    assert (tmp_path / "west").read_bytes() == "→\n".encode()


def test_line_ends_that_the_model_writes_itself_are_its_own(tmp_path):
    workspace = fill(tmp_path, {"dos": "a\r\n"})
    use(workspace, "write", path="dos", content="1\r\n2\n")
    assert (tmp_path / "dos").read_bytes() == b"1\r\n2\n"


@pytest.mark.parametrize("path", ["a/b", "fifo", "locked/x"])
def test_nobody_is_asked_about_what_cannot_be_written(tmp_path, monkeypatch, path):
    tool = builtin_tools(fill(tmp_path, {"a": "", "locked/y": ""}))["write"]
    os.mkfifo(tmp_path / "fifo")
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda place, *more: "locked" not in str(place) and may(place, *more)
    )
    with pytest.raises(ToolFailure):
        tool.prepare(call("write", path=path, content="x"))
