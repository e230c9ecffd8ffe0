"""Runs a case through an adapter: a process that reads a case per line and reports a line."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import msgspec

from mull.testing.fidelity.case import TOOL, Case, find_suite
from mull.testing.fidelity.judge import Judge
from mull.testing.fidelity.verdict import Heard, Outcome, judge, seen_in

__all__ = ["AdapterFailed", "AdapterProcess", "run_case", "run_cases"]

PATIENCE = 60.0
SLOW_START = 240.0
"""Seconds for the first report of what is known to start slowly: large libraries and gateways."""
MOST_FAILURES = 5
"""Cases in a row without a report, after which the others are not tried."""
_REPORT = 'a report is {"answers": [...]}, {"notClaimed": "why"} or {"notMeasured": "why"}'
_REPORTS = ("answers", "notClaimed", "notMeasured")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_TAIL = 400


class AdapterFailed(Exception):
    """The adapter did not start, ended, gave no report in time, or printed something else."""


class AdapterHung(AdapterFailed):
    """The adapter gave no report in time."""


class AdapterProcess:
    """A running adapter. If it ends or hangs, the next case starts it again. Use it with `with`.

    It gets the environment of this process without proxies, because the endpoints are on loopback;
    `environ` adds to it. `patience` and `start` are the seconds that a report and the first one may
    take. `on_line` is told each line that is not JSON.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        start: float = PATIENCE,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        self._command = [*command]
        direct = {key: value for key, value in os.environ.items() if key.upper() not in _PROXIES}
        self._environ = {**direct, **(environ or {})}
        self._patience, self._start_patience = patience, max(start, patience)
        self._on_line = on_line
        self.report: Mapping[str, Any] = {}
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
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            process.wait()
            for reader in self._readers:
                reader.join()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    with suppress(OSError):  # a case that was not read is still to be written
                        pipe.close()

    def play(self, line: Mapping[str, Any]) -> Mapping[str, Any]:
        """Have a case played; returns the report.

        Raises:
            AdapterFailed: there is none.
        """
        self.report = {}
        patience = self._patience if self._process else self._start_patience
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(msgspec.json.encode(line) + b"\n")
            process.stdin.flush()
        except OSError:
            raise self._failed("ended") from None
        self.report = self._await_report(patience)
        return self.report

    def _await_report(self, patience: float) -> Mapping[str, Any]:
        end = time.monotonic() + patience
        while (left := end - time.monotonic()) > 0:
            try:
                said = self._lines.get(timeout=left)
            except queue.Empty:
                break
            if not said:
                raise self._failed("ended")
            found = _decoded(said)
            if isinstance(found, dict) and any(key in found for key in _REPORTS):
                return found
            told = said[:_TAIL].decode(errors="replace").strip()
            if isinstance(found, dict | list):
                raise self._failed(f"printed {told}, which is no report ({_REPORT})")
            if self._on_line is not None and told:
                self._on_line(told)
        failed = self._failed(f"gave no report for {patience:.0f} s")
        raise AdapterHung(str(failed))

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                self._command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=self._environ,
                start_new_session=True,
            )
        except OSError as error:
            why = f"cannot start {self._command[0]}: {error.strerror or error}"
            raise AdapterFailed(why) from None
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


def _decoded(line: bytes) -> Any:
    """The value in a line; libraries print other lines too."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def command_of(file: Path) -> tuple[Sequence[str], Mapping[str, str]]:
    """How an adapter in a file is started, and its environment: it can import `line.py`."""
    starts = {".py": [sys.executable], ".mjs": ["node"], ".js": ["node"]}
    command = [*starts.get(file.suffix, []), str(file.resolve())]
    paths = (os.environ.get("PYTHONPATH"), str(find_suite() / "adapters"))
    return command, {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run_cases(
    cases: Sequence[Case], judging: Judge, adapter: AdapterProcess
) -> Iterator[tuple[Case, Outcome]]:
    """Play cases one after the other. After five in a row without a report, the others are not
    tried.

    Raises:
        AdapterFailed: the first case could not be measured, so the adapter does not work here.
    """
    failures = 0
    for number, case in enumerate(cases):
        if failures == MOST_FAILURES:
            yield case, Outcome("not measured", f"not tried after {failures} failures in a row")
            continue
        outcome = run_case(case, judging, adapter)
        if outcome.mark == "not measured" and not number:
            raise AdapterFailed(outcome.reason)
        has_report = outcome.mark != "not measured" and bool(adapter.report)
        failures = 0 if has_report else failures + 1
        yield case, outcome


def run_case(case: Case, judging: Judge, adapter: AdapterProcess) -> Outcome:
    """Play a case with a client and judge what it did."""
    judging.begin(case)
    try:
        report = adapter.play(line_of(case, judging))
        if "notClaimed" in report:
            return Outcome("not claimed", str(report["notClaimed"]))
        if "notMeasured" in report:
            return Outcome("not measured", str(report["notMeasured"]))
        seen = seen_in(report["answers"])
    except AdapterHung as error:
        return _hung(judging.heard) or Outcome("not measured", str(error))
    except AdapterFailed as error:
        return Outcome("not measured", str(error))
    except msgspec.ValidationError as error:
        return Outcome("not measured", f"the adapter's report cannot be read: {error}")
    return judge(case, judging.heard, seen)


def _hung(heard: Sequence[Heard]) -> Outcome | None:
    """The verdict on a client that never came back from an answer, which it had at once and whole.
    Before its first request it may only have been slow to start.
    """
    if not heard:
        return None
    if heard[-1].refusal is not None:
        return Outcome("refused", f"{heard[-1].refusal}; then the client hung")
    return Outcome("lost", f"the client hung after request {len(heard)} was answered")


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
        **({"client": msgspec.to_builtins(case.client)} if case.client else {}),
    }
