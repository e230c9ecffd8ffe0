"""Patterns with stars."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.policy.globs import escape, expand_braces, has_wildcard, path_matches, text_matches


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("*.py", ["a.py", ".py"], ["a.pyc", "src/a.py"]),
        ("src/*", ["src/a"], ["src", "src/a/b"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]),
        ("**/test_*.py", ["test_a.py", "a/b/test_c.py"], ["a/tests.py"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/bb", "b"]),
        ("**", ["a", "a/b"], []),
        ("a/**/**", ["a/b", "a/b/c"], ["a"]),
        ("?.[ch]", ["a.c", "b.h"], ["a.o", "ab.c", "/.c"]),
        ("[!ab]", ["c"], ["a", "b"]),
        ("[]]x", ["]x"], ["[x"]),
        ("[z-a]", [], ["a", "z"]),
        ("a[b", ["a[b"], ["ab"]),
        (r"\*\[\\", ["*[\\"], ["a[\\"]),
    ],
)
def test_paths_are_compared_name_by_name(pattern, fitting, other):
    assert [path for path in (*fitting, *other) if path_matches(pattern, path)] == fitting


def test_a_star_over_text_takes_anything():
    assert text_matches("git *", "git log\n-1/2")
    assert not text_matches("git *", "Git log")
    assert text_matches("git *", "GIT LOG", ignore_case=True)


@given(st.text("ab*?/", max_size=8), st.text("ab/", max_size=8))
def test_stars_mean_what_they_mean_in_the_standard_library(pattern, text):
    wanted = re.fullmatch(fnmatch.translate(pattern), text) is not None
    assert text_matches(pattern, text) == wanted


@given(st.text(max_size=20), st.text(max_size=20))
def test_an_escaped_text_fits_itself_alone(text, other):
    assert text_matches(escape(text), text)
    assert not has_wildcard(escape(text))
    assert text_matches(escape(text), other) == (text == other)


def test_a_pattern_that_would_be_slow_elsewhere_is_not():
    assert not text_matches("*a" * 200 + "b", "a" * 100_000)
    assert not path_matches("**/a/" * 50 + "b", "a/" * 500)


def test_braces_are_alternatives():
    assert expand_braces("*.{ts,tsx}") == ["*.ts", "*.tsx"]
    assert sorted(expand_braces("{a,b}{c,{d,e}}")) == sorted(["ac", "ad", "ae", "bc", "bd", "be"])
    assert expand_braces("a{b}") == ["a{b}"]
    with pytest.raises(ValueError, match="more than 64 patterns"):
        expand_braces("{a,b}" * 10)
