"""Roles in code: by our own patterns, else by pygments, else none; no character is ever lost."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.markdown import pygments_roles
from mull.markdown.highlight import Highlighter
from mull.transcripts.markdown_html import markdown_html


@pytest.fixture
def without_pygments(monkeypatch):
    def forget():
        pygments_roles.pygments_reader.cache_clear()
        pygments_roles._lexers.cache_clear()

    forget()
    for name in [name for name in sys.modules if name.split(".")[0] == "pygments"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pygments", None)
    yield
    forget()


@pytest.mark.parametrize(
    ("language", "line", "run"),
    [
        ("tex", "a % b", ("% b", "comment")),
        ("clojure", '(def a "b")', ('"b"', "string")),
        ("julia", "x = 12", ("12", "number")),
        ("ocaml", "let x = 1", ("let", "keyword")),
        ("html", "<p>a</p>", ("p", "keyword")),
    ],
)
def test_pygments_knows_languages_that_we_do_not(language, line, run):
    assert run in Highlighter(language).line(line)
    text, role = run
    assert f'<span class="{role}">{text}</span>' in markdown_html(f"```{language}\n{line}\n```")


def test_without_it_they_are_plain_and_ours_are_coloured(without_pygments):
    assert Highlighter("tex").line("a % b") == [("a % b", "code_block")]
    assert Highlighter("python").line("if a") == [("if", "keyword"), (" a", "code_block")]


def test_our_own_patterns_come_first_and_need_no_pygments(monkeypatch):
    monkeypatch.setattr("mull.markdown.highlight.pygments_reader", None)
    assert Highlighter("python").line("if a")[0] == ("if", "keyword")
    assert Highlighter("").line("if a") == [("if a", "code_block")]


def test_a_line_too_long_for_its_patterns_is_plain():
    line = "% " + "x" * 600
    assert Highlighter("tex").line(line) == [(line, "code_block")]


@given(
    st.sampled_from(["python", "sql", "diff", "html", "tex", "console", "pytb", "nolanguage", ""]),
    st.lists(st.text("ab 1\"'`/*#<>%\\{}$\t-+é", max_size=20), max_size=4),
)
def test_runs_together_are_the_line(language, lines):
    highlighter = Highlighter(language)
    for line in lines:
        assert "".join(text for text, _ in highlighter.line(line)) == line
