"""What is optional: each feature names its package, and the command that brings it."""

import shlex
import sys
import tomllib
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from mull.neutral import extras
from mull.neutral.extras import (
    ADAPTERS,
    DISTRIBUTION,
    EXTRAS,
    install_command,
    is_installed,
    missing,
)

pytestmark = pytest.mark.core
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
DECLARED = {
    name: [Requirement(line) for line in lines]
    for name, lines in PROJECT["optional-dependencies"].items()
}
FOR_CONTRIBUTORS = {"dev", "fuzz", "judges"}


def test_the_library_itself_needs_one_package():
    assert [Requirement(line).name for line in PROJECT["dependencies"]] == ["msgspec"]


def test_every_extra_is_declared_and_brings_the_package_it_names():
    known = {**EXTRAS, **ADAPTERS}
    assert known.keys() == DECLARED.keys() - FOR_CONTRIBUTORS - {"all"}
    for name, extra in known.items():
        assert extra.package in {needed.name for needed in DECLARED[name]}


def test_all_means_all_but_the_embedded_model_and_the_adapters():
    (everything,) = DECLARED["all"]
    assert (everything.name, everything.extras) == (DISTRIBUTION, EXTRAS.keys() - {"local"})


def absent(name):
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("extra", "error", "problem"),
    [
        ("mcp", None, "mcp, which is not installed"),
        ("mcp", absent("mcp"), "mcp, which is not installed"),
        ("mcp", absent("mcp.client"), "mcp, which cannot be imported (No module named"),
        ("mcp", absent("httpx2"), "mcp, which cannot be imported (No module named 'httpx2')"),
        ("mcp", ImportError("cannot import name 'Client'", name="mcp"), "(cannot import name"),
        ("otel", absent("opentelemetry"), "otlp-proto-http, which is not installed"),
        ("otel", absent("opentelemetry.exporter"), "otlp-proto-http, which is not installed"),
        ("otel", absent("opentelemetry.exporters"), "which cannot be imported (No module named"),
    ],
)
def test_what_is_missing_is_one_line_that_ends_in_the_command(extra, error, problem):
    told = missing(extra, error)
    assert told.startswith(f"{EXTRAS[extra].feature} needs ")
    assert problem in told
    assert told.endswith(f": run {install_command(extra)}")
    assert "\n" not in told


@pytest.mark.parametrize(
    ("prefix", "has_pip", "command"),
    [
        ("/venv", True, "/venv/bin/python -m pip install 'mull-reasoning[tokens]'"),
        ("/my venv", True, "'/my venv/bin/python' -m pip install 'mull-reasoning[tokens]'"),
        ("/uv/tools/mull", False, "uv pip install --python /uv/tools/mull/bin/python"),
        ("/home/a/.local/pipx/venvs/mull-reasoning", True, "pipx runpip mull-reasoning install '"),
        (
            "/home/a/.local/pipx/venvs/mull-2",
            True,
            "pipx runpip mull-2 install 'mull-reasoning[tokens]'",
        ),
        ("/home/pipxer/venv", True, "/home/pipxer/venv/bin/python -m pip install"),
    ],
)
def test_the_command_installs_into_this_environment(monkeypatch, prefix, has_pip, command):
    monkeypatch.setattr(sys, "prefix", prefix)
    monkeypatch.setattr(sys, "executable", f"{prefix}/bin/python")
    monkeypatch.setattr(
        extras, "find_spec", lambda name: ModuleSpec(name, None) if has_pip else None
    )
    assert install_command("tokens").startswith(command)
    assert shlex.split(install_command("tokens"))[-1] == "mull-reasoning[tokens]"


def test_what_is_installed_is_found_without_importing_it(monkeypatch):
    monkeypatch.delitem(sys.modules, "splintr", raising=False)
    assert is_installed("tokens")
    assert "splintr" not in sys.modules
    monkeypatch.setitem(sys.modules, "splintr", None)
    assert not is_installed("tokens")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert not is_installed("otel")
