"""Strict type checkers see the library as it is: a misspelt keyword is an error, events narrow."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mull

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "tests/typed_user.py"
_WRONG = re.compile(r"# wrong: ([\w-]+)$")


WRONG = [
    (number, found[1])
    for number, line in enumerate(SAMPLE.read_text().splitlines(), 1)
    if (found := _WRONG.search(line))
]


@pytest.mark.timeout(300)  # a few seconds; where mypy has not read the package yet, many more
def test_mypy_finds_what_is_wrong_and_nothing_else():
    command = [sys.executable, "-m", "mypy", "--strict", "--hide-error-context", str(SAMPLE)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"typed_user\.py:(\d+): error: .*\[([\w-]+)\]$", said.stdout, re.MULTILINE)
    assert [(int(number), code) for number, code in found] == WRONG, said.stdout + said.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path):
    pytest.importorskip("pyright")
    (tmp_path / SAMPLE.name).write_text(SAMPLE.read_text())
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    command = [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    told = json.loads(said.stdout)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] + 1 for one in told if one["severity"] == "error"}
    assert sorted(lines) == [number for number, _ in WRONG], said.stdout


def test_checkers_are_told_that_the_package_is_typed():
    package = Path(mull.__file__).parent
    assert (package / "py.typed").is_file()
    assert (package / "__init__.pyi").is_file()
