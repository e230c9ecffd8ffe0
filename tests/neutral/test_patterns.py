"""Patterns that are compiled at their first use behave as compiled ones do."""

import re

import pytest

from mull.neutral import patterns
from mull.neutral.patterns import pattern


def test_nothing_is_compiled_before_it_is_used_and_then_once(monkeypatch):
    seen, real = [], re.compile

    def compile(text, flags=0):
        seen.append(text)
        return real(text, flags)

    monkeypatch.setattr(patterns.re, "compile", compile)
    word = pattern("[a-z]+", re.IGNORECASE)
    assert seen == []
    assert word.fullmatch("Word")
    assert word.findall("a 1 B") == ["a", "B"]
    assert word.sub("x", "a 1 B") == "x 1 x"
    assert word.split("1a2") == ["1", "2"]
    assert seen == ["[a-z]+"]


def test_what_is_wrong_is_told_as_ever():
    assert pattern("a").pattern == "a"
    with pytest.raises(AttributeError):
        pattern("a").no_such_use  # noqa: B018
    with pytest.raises(re.error):
        pattern("(").search("")
