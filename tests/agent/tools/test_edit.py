"""`edit`: exact replacement; every other byte stays."""

import asyncio
import os
import stat

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import Preview
from mull.policy.approval import decide, parse_rule, suggest
from tool_calls import Screen, answer, call, fail, fill, preview, start, use


def edit(folder, data, old, new, **more):
    """The file's bytes after an edit, and what was said."""
    said = use(fill(folder, {"a": data}), "edit", path="a", old=old, new=new, **more)
    return (folder / "a").read_bytes(), said


def test_one_place_is_replaced(tmp_path):
    data, said = edit(tmp_path, "one\ntwo\nthree\n", "two", "2\n2.5")
    assert data == b"one\n2\n2.5\nthree\n"
    assert said == "edited a (+2 −1) at line 2"


def test_several_places_are_replaced_only_if_asked(tmp_path):
    workspace = fill(tmp_path, {"a": "x\ny\nx\nx\n"})
    assert fail(workspace, "edit", path="a", old="x", new="z") == (
        "old occurs 3 times in a, at lines 1, 3, 4: include lines around the one you mean, or set"
        " replace_all"
    )
    assert (tmp_path / "a").read_text() == "x\ny\nx\nx\n"
    said = use(workspace, "edit", path="a", old="x", new="z", replace_all=True)
    assert said == "edited a (+3 −3) at lines 1, 3, 4"
    assert (tmp_path / "a").read_text() == "z\ny\nz\nz\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nb\r\n", "x\r\ny\r\n", b"x\r\ny\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\r\nc\r\nd\r\n", "a\nb", "1\n2", b"1\n2\r\nc\r\nd\r\n"),
        (b"a\nb\nc\r\n", "c\n", "x\ny\n", b"a\nb\nx\r\ny\r\n"),
        (b"a\nb", "b", "c", b"a\nc"),
        (b"a\nb\n", "b\n", "c", b"a\nc"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("\ufeffä\r\nb".encode("utf-16-le"), "ä\nb", "ö\nx", "\ufeffö\r\nx".encode("utf-16-le")),
        (b"caf\xe9 x\n\xff\n", "x", "y", b"caf\xe9 y\n\xff\n"),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\n", "b\x0c", "B\x0c", b"a\x0bB\x0cc\xe2\x80\xa8d\n"),
        (b"a.b*c\\d\n", "a.b*c\\d", "\\1\\g<0>$&", b"\\1\\g<0>$&\n"),
    ],
)
def test_ends_of_lines_marks_and_encodings_are_kept(tmp_path, before, old, new, after):
    assert edit(tmp_path, before, old, new)[0] == after


TEXT = st.text("ab\r\n é", max_size=6)


@settings(max_examples=40)
@given(TEXT, st.text("xyé\n", min_size=1, max_size=6), TEXT, st.text("ab\n", max_size=6))
def test_all_around_the_place_stays_as_it_is(tmp_path_factory, before, old, after, new):
    assume(not before.endswith("\r") or not old.startswith("\n"))
    text = f"{before}<{old}>{after}"
    data, _ = edit(tmp_path_factory.mktemp("edit"), text, f"<{old}>", f"({new})")
    assert data.startswith(f"{before}(".encode())
    assert data.endswith(f"){after}".encode())


def test_what_is_not_there_is_answered_with_what_comes_closest(tmp_path):
    text = "def total(items):\n    result = 0\n    for item in items:\n        result += item\n"
    workspace = fill(tmp_path, {"a.py": text})
    assert fail(workspace, "edit", path="a.py", old="for itm in items:", new="x") == (
        "old is not in a.py. The closest match:\n"
        "     1\tdef total(items):\n"
        "     2\t    result = 0\n"
        "     3\t    for item in items:\n"
        "     4\t        result += item\n"
        "     5\t"
    )


def test_other_spaces_and_line_numbers_are_recognised(tmp_path):
    workspace = fill(tmp_path, {"a.py": "if a:\n\treturn  1\n"})
    assert fail(workspace, "edit", path="a.py", old="if a:\n    return 1", new="x") == (
        "old is not in a.py with exactly these spaces and tabs. In the file it is:\n"
        "     1\tif a:\n     2\t\treturn  1"
    )
    assert "leave out the line numbers" in fail(
        workspace, "edit", path="a.py", old="     1\tif a:", new="x"
    )
    assert fail(workspace, "edit", path="a.py", old="zzz qqq", new="x") == (
        "old is not in a.py, and neither is anything similar: read the file first"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"old": "", "new": "x"}, "old is empty"),
        ({"old": "a", "new": "a"}, "old and new are the same"),
        ({"old": "a\r\n", "new": "a\n"}, "old and new are the same"),
        ({"old": "a", "new": "\udc80"}, "new contains half a character"),
        ({"old": "a"}, "new is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, given, said):
    workspace = fill(tmp_path, {"f": "a\n"})
    assert said in fail(workspace, "edit", path="f", **given)
    assert (tmp_path / "f").read_text() == "a\n"


def test_files_that_cannot_be_edited_say_why(tmp_path):
    workspace = fill(tmp_path, {"bin": bytes(9), "koi8": b"\xda\xc9\xcd\n", "odd": b"\xff\xfea"})
    assert fail(workspace, "edit", path="none", old="a", new="b") == (
        "none does not exist; write creates new files"
    )
    assert fail(workspace, "edit", path="bin", old="a", new="b") == (
        "bin is binary data, 9 bytes: it cannot be edited as text"
    )
    assert fail(workspace, "edit", path="odd", old="a", new="b").startswith("odd is binary data")
    assert fail(workspace, "edit", path="koi8", old="\n", new="ü") == (
        "koi8 is not UTF-8: only ASCII text can be written into it"
    )
    with open(tmp_path / "big", "wb") as file:
        file.truncate(5 << 30)
    assert "larger than 33,554,432 bytes" in fail(workspace, "edit", path="big", old="a", new="b")


def test_the_preview_is_the_difference_and_changes_nothing(tmp_path):
    lines = [f"line {n}\n" for n in range(1, 101)]
    workspace = fill(tmp_path, {"a": "".join(lines)})
    tool = builtin_tools(workspace)["edit"]
    assert preview(tool, path="a", old="line 50\n", new="fifty\n") == Preview(
        "edit a (+1 −1)",
        "--- a/a\n+++ b/a\n@@ -47,7 +47,7 @@\n line 47\n line 48\n line 49\n-line 50\n+fifty\n"
        " line 51\n line 52\n line 53",
        "diff",
    )
    assert (tmp_path / "a").read_text() == "".join(lines)


def test_the_file_is_looked_at_once_and_what_was_shown_is_done(tmp_path):
    tool = builtin_tools(fill(tmp_path, {"a": "one\ntwo\n"}))["edit"]
    prepared = tool.prepare(call("edit", path="a", old="two", new="2"))
    late = tool.prepare(call("edit", path="a", old="one", new="1"))
    assert asyncio.run(prepared.run(Screen())).output == "edited a (+1 −1) at line 2"
    assert asyncio.run(late.run(Screen())).output == (
        "a has changed since this edit was prepared, and was left as it is: read it again"
    )
    assert (tmp_path / "a").read_text() == "one\n2\n"


def test_what_may_not_be_read_is_not_quoted_either(tmp_path):
    workspace = fill(tmp_path, {".env": "key = hidden\n"})
    given = call("edit", path=".env", old="key = hiden", new="x")
    assert "hidden" in asyncio.run(answer(builtin_tools(workspace)["edit"], given)).output
    tool = builtin_tools(workspace, rules=[parse_rule("deny", "read(.env)")])["edit"]
    assert asyncio.run(answer(tool, given)).output == "old is not in .env"


def test_several_places_are_edited_in_order_and_all_at_once(tmp_path):
    workspace = fill(tmp_path, {"a": "one\r\ntwo\r\nthree\r\n"})
    edits = [
        {"old": "one", "new": "1\n1.5"},
        {"old": "1.5", "new": "1½"},
        {"old": "t", "new": "T", "replace_all": True},
    ]
    said = use(workspace, "edit", path="a", edits=edits)
    assert said == "edited a (+4 −3) at lines 1, 2, 3, 4"
    assert (tmp_path / "a").read_bytes() == "1\r\n1½\r\nTwo\r\nThree\r\n".encode()


def test_one_place_that_cannot_be_edited_leaves_all_as_they_are(tmp_path):
    workspace = fill(tmp_path, {"a": "one\ntwo\n"})
    edits = [{"old": "one", "new": "1"}, {"old": "tow", "new": "2"}]
    said = fail(workspace, "edit", path="a", edits=edits)
    assert said.startswith("edit 2 of 2: old is not in a. The closest match:")
    assert said.endswith("None of the 2 edits was made.")
    assert (tmp_path / "a").read_text() == "one\ntwo\n"
    both = fail(workspace, "edit", path="a", old="one", new="1", edits=edits)
    assert both == "give old and new, or edits, not both"
    assert fail(workspace, "edit", path="a") == "old is missing: give old and new, or edits"


@pytest.mark.parametrize("text", ["Größe: 3\n", "créée en 3\r\n", "äöüÄÖÜß 3", "“Maßöße” – 3…\n"])
def test_letters_in_a_row_are_edited_in_their_own_encoding(tmp_path, text):
    workspace = fill(tmp_path, {"a": text.encode("cp1252")})
    use(workspace, "edit", path="a", old=f"{text.split()[0]} ", new="Übergröße ")
    kept = text.partition(" ")[2]
    assert (tmp_path / "a").read_bytes() == f"Übergröße {kept}".encode("cp1252")


def test_a_western_text_is_edited_in_its_own_encoding(tmp_path):
    workspace = fill(tmp_path, {"a": b"caf\xe9 \x93x\x94\n"})
    use(workspace, "edit", path="a", old="café", new="thé à la crème")
    assert (tmp_path / "a").read_bytes() == b"th\xe9 \xe0 la cr\xe8me \x93x\x94\n"
    assert fail(workspace, "edit", path="a", old="x", new="→") == (
        "a is cp1252 text, which cannot represent '→': use characters it can"
    )


@given(st.binary(max_size=60), st.sampled_from([b"x", b"caf\xe9 ", "é".encode(), b"\x81"]))
def test_every_other_byte_is_kept_whatever_the_encoding(tmp_path_factory, tail, head):
    folder = tmp_path_factory.mktemp("any")
    data = head + b"MARK" + bytes(byte for byte in tail if byte > 31) + b"\n"
    workspace = fill(folder, {"a": data})
    if data.count(b"MARK") == 1:
        result = asyncio.run(start(workspace, "edit", path="a", old="MARK", new="DONE"))
        assert not result.is_error, result.output
        assert (folder / "a").read_bytes() == data.replace(b"MARK", b"DONE")


def test_other_names_of_a_file_stay_its_names(tmp_path):
    workspace = fill(tmp_path, {"a": "one\n"})
    os.link(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a").chmod(0o444)
    shown = preview(builtin_tools(workspace)["edit"], path="a", old="one", new="1")
    assert shown.title == "edit a (+1 −1), read-only, 2 hard links"
    use(workspace, "edit", path="a", old="one", new="1")
    assert (tmp_path / "b").read_text() == "1\n"
    assert (tmp_path / "a").stat().st_ino == (tmp_path / "b").stat().st_ino
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o444
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_file_that_cannot_be_given_back_to_its_owner_is_written_over(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"a": "one\n"})
    inode = (tmp_path / "a").stat().st_ino

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    real = os.fstat

    def elsewhere(handle):
        found = real(handle)
        return found if found.st_ino == inode else os.stat_result((*found[:5], 12345, *found[6:]))

    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(os, "fstat", elsewhere)
    use(workspace, "edit", path="a", old="one", new="1")
    assert (tmp_path / "a").read_text() == "1\n"
    assert (tmp_path / "a").stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_written_over_holds_what_it_held_if_that_fails(tmp_path, monkeypatch):
    workspace = fill(tmp_path, {"a": "one\n"})
    os.link(tmp_path / "a", tmp_path / "b")
    tried = []

    def full(handle):
        tried.append(handle)
        if len(tried) == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert fail(workspace, "edit", path="a", old="one", new="1") == "a: no space left on device"
    assert (tmp_path / "b").read_text() == "one\n"


def test_a_read_only_file_is_asked_about_by_its_name(tmp_path):
    tool = builtin_tools(fill(tmp_path, {"a.txt": "one\n", "b.txt": "one\n"}))["edit"]
    (tmp_path / "a.txt").chmod(0o444)
    rules = [parse_rule("allow", text) for text in ("edit", "edit(**)", "edit(*.txt)")]
    locked = tool.prepare(call("edit", path="a.txt", old="one", new="1"))
    usual = tool.prepare(call("edit", path="b.txt", old="one", new="1"))
    assert locked.preview.title == "edit a.txt (+1 −1), read-only"
    assert decide(usual.asked, "ask", rules).verdict == "run"
    assert decide(locked.asked, "ask", rules).verdict == "ask"
    assert suggest(locked.asked) == ("edit(./a.txt)",)
    named = [*rules, parse_rule("allow", "edit(./a.txt)")]
    assert decide(locked.asked, "ask", named).verdict == "run"
