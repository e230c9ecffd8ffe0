"""What users install: the wheel and the source archive, built and tried in fresh environments."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from mull import __version__

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
WHEEL = f"mull-{__version__}-py3-none-any.whl"


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """The output of a command that must succeed, without what this process inherited."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, cwd=cwd, env=clean
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """An environment with what builds and checks packages."""
    home = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", home)
    run(home / "bin/python", "-m", "pip", "install", "-q", "build", "twine")
    return home / "bin"


@pytest.fixture(scope="module")
def dist(tools, tmp_path_factory):
    """The folder with both archives; the wheel is built from the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    run(tools / "python", "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """A fresh environment that has the wheel and its dependencies, and nothing else."""
    home = tmp_path_factory.mktemp("user")
    run(sys.executable, "-m", "venv", home)
    run(home / "bin/python", "-m", "pip", "install", "-q", dist / WHEEL)
    return home / "bin"


def metadata(dist: Path) -> Message:
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        return email.message_from_bytes(wheel.read(f"mull-{__version__}.dist-info/METADATA"))


def test_the_command_runs_in_a_fresh_environment(installed, tmp_path):
    assert run(installed / "mull", "--version", cwd=tmp_path).split() == ["mull", __version__]
    shown = run(installed / "mull", "--help", cwd=tmp_path)
    assert shown.startswith("usage: mull")
    assert re.search(r"^\s+ask\b", shown, re.MULTILINE)
    assert "claude-sonnet-4-5" in run(installed / "mull", "models", "sonnet", cwd=tmp_path)


def test_the_library_can_be_imported_and_is_typed(installed, tmp_path):
    code = "import mull, pathlib; print(pathlib.Path(mull.__file__).with_name('py.typed').exists())"
    assert run(installed / "python", "-W", "error", "-c", code, cwd=tmp_path) == "True\n"


def test_the_wheel_holds_the_package_and_nothing_else(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        places = {name.split("/")[0] for name in wheel.namelist()}
    assert places == {"mull", f"mull-{__version__}.dist-info"}


def test_the_metadata_says_what_it_is(dist):
    said = metadata(dist)
    assert (said["Name"], said["Version"]) == ("mull", __version__)
    assert (said["License-Expression"], said["License-File"]) == ("MIT", "LICENSE")
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in said.get_all("Classifier", [])


def test_the_readme_renders_on_a_package_index(tools, dist):
    shown = run(tools / "python", "-m", "twine", "check", "--strict", *sorted(dist.iterdir()))
    assert shown.count("PASSED") == 2


def test_the_source_archive_holds_what_its_tests_and_docs_need(dist):
    with tarfile.open(dist / f"mull-{__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "Makefile", "tests/conftest.py", "tools/docs_site.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "site/"))]
