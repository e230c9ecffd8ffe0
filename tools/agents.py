"""The coding agents of others that mull is tried with: which versions, and where they are.

They are installed with npm beside the virtual environment, once, or taken from the folder in
MULL_AGENTS.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["FOLDER", "PACKAGES", "PATH", "install"]

FOLDER = Path(os.environ.get("MULL_AGENTS") or Path(sys.prefix) / "agents-judge")
PACKAGES = {
    "@anthropic-ai/claude-code": "2.1.325",
    "@continuedev/cli": "1.5.47",
    "@google/gemini-cli": "0.61.0",
    "@mariozechner/pi-coding-agent": "0.73.1",
    "@moonshot-ai/kimi-code": "2.1.0",
    "@openai/codex": "0.166.0",
    "@qwen-code/qwen-code": "0.24.4",
    "opencode-ai": "1.18.33",
}
_PYTHON_BIN = Path(sys.executable).parent  # Node.js may come as a Python package
PATH = os.pathsep.join((str(FOLDER / "node_modules/.bin"), str(_PYTHON_BIN), os.environ["PATH"]))
"""Where the agents are found, and a Node.js that all of them run on."""
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
NODE_TRUSTS = {"NODE_EXTRA_CA_CERTS": str(_CERTIFICATES)} if _CERTIFICATES.exists() else {}
"""Node.js brings certificates of its own, and leaves out those that a machine was given."""
_INSTALL_SCRIPTS = ("install.cjs", "postinstall.mjs")
"""npm may leave these out."""


def install(package: str) -> None:
    """Install an agent in its pinned version, unless it is there.

    Raises:
        CalledProcessError: npm cannot install it.
    """
    folder, version = FOLDER / "node_modules" / package, PACKAGES[package]
    if _installed(folder) == version:
        return
    npm = str(shutil.which("npm", path=PATH))
    command = [npm, "install", "--silent", "--prefix", str(FOLDER), f"{package}@{version}"]
    environ = {**NODE_TRUSTS, **os.environ, "PATH": PATH}
    subprocess.run(command, env=environ, check=True, timeout=400)
    for script in _INSTALL_SCRIPTS:
        if (folder / script).exists():
            subprocess.run(["node", script], cwd=folder, env=environ, check=True, timeout=200)


def _installed(folder: Path) -> str | None:
    try:
        version = json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"]
    except (OSError, ValueError, KeyError):
        return None
    return str(version)
