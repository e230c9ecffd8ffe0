"""Differences as people read them. patch and difflib are the judges."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.agent.tools.compare import Diff, diff

LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=30)


@given(LINES, LINES)
def test_a_diff_is_the_one_of_the_whole_files(old, new):
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    found = diff(before, after, "f")
    rows = list(difflib.unified_diff(old, new, "a/f", "b/f", lineterm=""))[2:]
    assert found.added - found.removed == len(new) - len(old)
    assert apply(found.text, old) == new
    assert bool(found.text) == bool(rows)


def apply(text, old):
    """What the diff makes of the old lines; fails if they are not as it says."""
    new, at = [], 0
    for row in text.split("\n")[2:] if text else ():
        if row.startswith("@@"):
            start = int(row.split("-")[1].split(",")[0].split(" ")[0])
            size = row.split("-")[1].split(" ")[0].partition(",")[2] or "1"
            start = start - 1 if int(size) else start
            new += old[at:start]
            at = start
        elif row.startswith("+"):
            new.append(row[1:])
        else:
            assert old[at] == row[1:]
            at += 1
            new += [row[1:]] if row.startswith(" ") else []
    return new + old[at:]


def test_a_missing_last_newline_is_shown_and_not_counted():
    assert diff("a\n", "a", "f") == Diff(
        "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n a\n+\\ No newline at end of file", 0, 0
    )


def test_ends_of_lines_are_shown_unless_both_texts_have_the_same():
    assert diff("a\r\nb\r\n", "a\r\nc\r\n", "f").text.endswith("\n a\n-b\n+c")
    assert diff("a\r\n", "a\n", "f").text.endswith("-a\\r\n+a")
    assert diff("a\r\nb\r\n", "a\nc\r\n", "f").text.endswith("-a\\r\n-b\\r\n+a\n+c\\r")
    assert diff("", "a\r\n", "f").text.endswith("+a\\r")


@pytest.mark.parametrize("count", [5000, 200_000])
def test_a_large_change_is_shown_whole(count):
    found = diff("a\n" * count, "b\n" * (count + 1), "f")
    assert (found.added, found.removed) == (count + 1, count)
    assert (found.text.count("\n-a"), found.text.count("\n+b")) == (count, count + 1)


def test_changes_far_apart_are_shown_each_with_its_true_count():
    lines = [f"{n}\n" for n in range(100_000)]
    changed = [*lines]
    for at in (3, 50_000, 99_990):
        changed[at] = "x\n"
    found = diff("".join(lines), "".join(changed), "f")
    assert found.counts == "(+3 −3)"
    heads = [row for row in found.text.split("\n") if row.startswith("@@")]
    assert heads == ["@@ -1,7 +1,7 @@", "@@ -49998,7 +49998,7 @@", "@@ -99988,7 +99988,7 @@"]


def test_a_change_among_lines_that_are_all_alike_is_found():
    lines = ["same\n"] * 5000
    found = diff("".join(lines), "".join([*lines[:2500], "x\n", *lines[2501:]]), "f")
    assert found.counts == "(+1 −1)"
    found = diff("".join(lines), "".join(["x\n", *lines[2:], "y\n"]), "f")
    assert found.counts == "(+2 −2)"


MANY = st.lists(st.sampled_from("abcdefgh"), max_size=60)


@given(MANY, MANY)
def test_a_diff_is_no_longer_than_that_of_difflib(old, new):
    found = diff("".join(f"{c}\n" for c in old), "".join(f"{c}\n" for c in new), "f")
    assert apply(found.text, old) == new
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    assert found.added + found.removed <= len(old) + len(new)
    assert bool(found.text) == (same < max(len(old), len(new)))


def test_a_small_change_to_a_large_file_is_found():
    lines = [f"{n}\n" for n in range(200_000)]
    found = diff("".join(lines), "".join([*lines[:150_000], "x\n", *lines[150_000:]]), "f")
    assert found.counts == "(+1 −0)"
    assert "@@ -149998,6 +149998,7 @@" in found.text
