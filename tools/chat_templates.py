"""The chat templates that model families ship, from the source package of llama-cpp-python."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path

__all__ = ["PACKAGE", "templates"]

PACKAGE = "llama-cpp-python==0.3.36"
HOME = Path(sys.prefix) / "template-judge"
LIMIT = 900.0


def templates() -> Path:
    """The folder of templates, fetched if it is not there.

    Raises:
        subprocess.SubprocessError: the package cannot be fetched; pip has said why.
    """
    HOME.mkdir(exist_ok=True)
    if not any(HOME.iterdir()):
        fetch = [*_pip(), "download", "--quiet", "--no-deps"]
        fetch += ["--no-binary", PACKAGE.partition("==")[0], "-d", str(HOME), PACKAGE]
        subprocess.run(fetch, check=True, timeout=LIMIT)
    for archive in HOME.glob("*.tar.gz"):
        with tarfile.open(archive) as files:
            for one in files:
                if one.name.endswith(".jinja"):
                    one.name = Path(one.name).name
                    files.extract(one, HOME, filter="data")
        archive.unlink()
    return HOME


def _pip() -> list[str]:
    """This environment's pip, or one that uv brings: environments that uv makes have none."""
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return ["uv", "tool", "run", "--python", sys.executable, "pip"]
