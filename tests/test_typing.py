"""Strict type checkers see the library as it is: a misspelt keyword is an error, events narrow."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mull
from mull import testing

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


def homes() -> set[str]:
    """Every public name, by `mull` or `mull.testing` and by the module that defines it."""
    return {
        place
        for module in (mull, testing)
        for name in module.__all__
        for place in (
            f"{module.__name__}.{name}",
            f"{getattr(getattr(module, name), '__module__', module.__name__)}.{name}",
        )
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_pyright_knows_the_type_of_every_public_name(tmp_path):
    """And of every member and parameter: a type that is partly unknown makes its users unknown."""
    pytest.importorskip("pyright")
    place = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it asks `python`
    command = [sys.executable, "-m", "pyright", "--verifytypes", "mull", "--ignoreexternal"]
    said = subprocess.run(
        [*command, "--outputjson"],
        cwd=tmp_path,
        env=os.environ | {"PATH": place},
        capture_output=True,
        text=True,
        check=False,
    )
    public = homes()
    unknown, seen = [], 0
    for symbol in json.loads(said.stdout)["typeCompleteness"]["symbols"]:
        name = symbol["name"]
        if name in public or any(name.startswith(f"{one}.") for one in public):
            seen += 1
            if symbol["isTypeAmbiguous"] or not symbol["isTypeKnown"]:
                unknown.append((name, [one["message"] for one in symbol["diagnostics"]]))
    assert unknown == []
    assert seen > len(mull.__all__) + len(testing.__all__)


def test_checkers_are_told_that_the_package_is_typed():
    package = Path(mull.__file__).parent
    assert (package / "py.typed").is_file()
    assert (package / "__init__.pyi").is_file()
