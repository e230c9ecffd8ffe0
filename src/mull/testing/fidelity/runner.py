"""Runs a case through an adapter: a process that reads a case per line and reports a line."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Self

import msgspec

from mull.testing.fidelity.case import TOOL, Case
from mull.testing.fidelity.judge import Judge
from mull.testing.fidelity.verdict import Outcome, judge, seen_in

__all__ = ["AdapterProcess", "run_case"]

PATIENCE = 60.0
START = 240.0
"""Seconds for the first report: large libraries and gateways start slowly."""
_TAIL = 400


class AdapterFailed(Exception):
    """The adapter ended, was silent for too long, or said something else."""


class AdapterProcess:
    """A running adapter. If it ends or hangs, the next case starts it again. Use it with `with`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._command = [*command]
        self._environ = {**os.environ, **(environ or {})}
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._said = bytearray()
        self._readers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process, and what it started."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            process.wait()
            for reader in self._readers:
                reader.join()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()

    def play(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have a case played; returns the report.

        Raises:
            AdapterFailed: there is none.
        """
        patience = self._patience if self._process else max(START, self._patience)
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(line) + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._failed("ended") from None
        while True:
            try:
                said = self._lines.get(timeout=patience)
            except queue.Empty:
                raise self._failed(f"said nothing for {patience:.0f} s") from None
            if not said:
                raise self._failed("ended")
            report = _report(said)
            if report is not None:
                return report

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            self._command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=self._environ,
            start_new_session=True,
        )
        self._process, self._lines, self._said = process, queue.Queue(), bytearray()
        self._readers = [
            threading.Thread(target=_pass_on, args=(process.stdout, self._lines), daemon=True),
            threading.Thread(target=_remember, args=(process.stderr, self._said), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        return process

    def _failed(self, what: str) -> AdapterFailed:
        self.stop()
        said = bytes(self._said[-_TAIL:]).decode(errors="replace").strip()
        return AdapterFailed(f"the adapter {what}" + (f": {said}" if said else ""))


def _pass_on(pipe: IO[bytes], lines: queue.Queue[bytes]) -> None:
    for line in pipe:
        lines.put(line)
    lines.put(b"")


def _remember(pipe: IO[bytes], said: bytearray) -> None:
    for line in pipe:
        said += line


def _report(line: bytes) -> Mapping[str, Any] | None:
    """The report in a line; libraries print other lines too."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    is_report = isinstance(found, dict) and ("answers" in found or "notClaimed" in found)
    return found if is_report else None


def run_case(case: Case, judging: Judge, adapter: AdapterProcess) -> Outcome:
    """Play a case with a client and judge what it did."""
    judging.begin(case)
    try:
        report = adapter.play(line_of(case, judging))
        if "notClaimed" in report:
            return Outcome("not claimed", str(report["notClaimed"]))
        seen = seen_in(report["answers"])
    except (AdapterFailed, msgspec.ValidationError) as error:
        return Outcome("lost", str(error))
    return judge(case, judging.heard, seen)


def line_of(case: Case, judging: Judge) -> dict[str, Any]:
    """What an adapter is told of a case."""
    return {
        "id": case.id,
        "kind": case.kind,
        "call": case.call,
        "tool": TOOL,
        "endpoints": {
            name: {
                "provider": endpoint.provider,
                "dialect": endpoint.dialect,
                "model": endpoint.model,
                "url": judging.address(name),
            }
            for name, endpoint in case.endpoints.items()
        },
        "steps": [msgspec.to_builtins(step) for step in case.steps],
    }
