"""The Pythons of this machine: on the path, from pyenv, and from uv, which downloads none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_python"]


def find_python(*versions: str) -> str | None:
    """An interpreter of the first of these versions that there is, and that starts."""
    found = (path for one in versions for path in _candidates(one) if _is(path, one))
    return next(found, None)


def _candidates(version: str) -> Iterator[str]:
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        yield sys.executable
    found = shutil.which(f"python{version}")
    if found:
        yield found
    for root in _pyenv_roots(found):
        kept = sorted((root / "versions").glob(f"{version}.*/bin/python{version}"), reverse=True)
        yield from map(str, kept)
    if uv := shutil.which("uv"):
        asked = [uv, "python", "find", "--no-python-downloads", version]
        yield subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _pyenv_roots(found: str | None) -> Iterator[Path]:
    yield Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    if found is not None and Path(found).parent.name == "shims":
        yield Path(found).parent.parent


def _is(path: str, version: str) -> bool:
    told = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        asked = subprocess.run([path, "-c", told], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return asked.stdout.strip() == version
