"""`mull fidelity`: the target, the choice of cases, the report and the exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mull.cli.main import main

FAITHFUL = Path(__file__).parents[2] / "fidelity" / "adapters" / "faithful_adapter.py"


def test_one_case_is_shown_with_its_requests(capsys):
    name = "kimi/tool-round/blocking"
    assert main(["fidelity", str(FAITHFUL), "--case", name]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith(f"{name}: ")
    assert "https://github.com/" in said
    assert said.count("→ a {") == said.count("← answered") == 3
    assert said.splitlines()[-1] == "kept"


def test_what_is_not_kept_is_told_and_is_the_exit_status(capsys):
    assert main(["fidelity", str(FAITHFUL), "--kind", "empty"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("refused  kimi/empty-field/blocking: thinking is enabled but")
    assert lines[-1] == "11 kept, 2 refused"


def test_json_has_every_outcome(capsys):
    cases = ["--case", "gemini/parallel/streaming", "--case", "bedrock/resume/streaming"]
    assert main(["fidelity", str(FAITHFUL), "--json", *cases]) == 0
    outcomes = json.loads(capsys.readouterr().out)
    assert outcomes["gemini/parallel/streaming"]["mark"] == "kept"
    assert outcomes["bedrock/resume/streaming"]["mark"] == "not claimed"


def test_the_names_and_cases_are_listed(capsys):
    assert main(["fidelity", "--list"]) == 0
    said = capsys.readouterr().out
    assert "\nlitellm " in said
    assert "\nanthropic/interleaved/blocking " in said


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a client"),
        (["nobody"], "nobody is neither a file nor a known name"),
        (["mull", "--case", "x/y"], "unknown case x/y"),
    ],
)
def test_what_is_unknown_is_said(words, told, capsys):
    assert main(["fidelity", *words]) == 2
    assert told in capsys.readouterr().err
