"""Processes beside the one that measures: started once, asked line by line, and ended."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.peers import ROOT

__all__ = ["Helper", "endpoint", "peer_script"]


class Helper:
    """A process that says something once it is ready, and then answers each line with one."""

    def __init__(self, *command: str, quiet: bool = False) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
        )
        self.said = self._process.stdout.readline().strip()
        """Its first line; empty if it has ended."""

    def ask(self, line: str) -> str:
        """Its answer; empty if it has ended."""
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return ""
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        """End it: it reads no further line."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


def peer_script(python: str, script: str, *words: str) -> Helper:
    """A file of this folder, run by a peer's interpreter, which has nothing else of ours."""
    return Helper(python, "-P", str(Path(__file__).with_name(script)), *words, quiet=True)


@contextlib.contextmanager
def endpoint(module: str) -> Iterator[str]:
    """The address of a server of ours that says its port, and runs meanwhile."""
    server = Helper(sys.executable, "-m", module)
    try:
        yield f"http://127.0.0.1:{server.said}"
    finally:
        server.close()
