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


def test_ends_of_lines_are_shown_only_where_nothing_else_differs():
    assert diff("a\r\nb\r\n", "a\r\nc\r\n", "f").text.endswith("\n a\n-b\n+c")
    assert diff("a\r\n", "a\n", "f").text.endswith("-a\\r\n+a\n ")


@pytest.mark.parametrize("count", [5000, 200_000])
def test_a_change_too_large_to_compare_is_counted(count):
    found = diff("a\n" * count, "b\n" * (count + 1), "f")
    assert (found.added, found.removed) == (count + 1, count)
    assert found.text.endswith("too many to compare")


def test_a_small_change_to_a_large_file_is_found():
    lines = [f"{n}\n" for n in range(200_000)]
    found = diff("".join(lines), "".join([*lines[:150_000], "x\n", *lines[150_000:]]), "f")
    assert found.counts == "(+1 −0)"
    assert "@@ -149998,6 +149998,7 @@" in found.text
