"""`mull local`: the embedded model, on this machine and without a key.

Its help says plainly how limited the model is.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from mull.neutral.errors import ConfigError

if TYPE_CHECKING:
    from mull.local.manage import Embedded, Status

__all__ = ["arguments", "run"]

_HONEST = (
    "It is a very small model (135 million parameters) for trying out how thinking is "
    "handled;\nits answers are often wrong."
)
_FORMS = """\
  mull local install     download the server, weights and adapter (about 140 MB), once
  mull local start       start the server; it stops after it has been idle for a while
  mull local status      show whether it runs, where, and what it uses
  mull local stop        stop it

Asking local/smollm2 also starts it; it then stops with the last process that uses it.
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = _FORMS
    parser.add_argument(
        "act",
        nargs="?",
        default="status",
        choices=list(_ACTS),
        metavar="ACT",
        help="one of the actions below (default: status)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="start: number of CPU threads (default 1)"
    )
    parser.add_argument(
        "--idle", type=float, metavar="MINUTES", help="start: stop after being idle this long"
    )


def run(options: Namespace) -> int:
    """Run the action."""
    if options.act != "start" and (options.threads is not None or options.idle is not None):
        raise ConfigError("--threads and --idle only work with `mull local start`")
    act = _ACTS[options.act]
    return act(options)


def _install(options: Namespace) -> int:
    from mull.local import weights
    from mull.local.install import install

    fetched = install()
    weights.require()
    _tell(options, {"installed": True, "fetched": fetched}, [_HONEST] if fetched else [])
    return 0


def _start(options: Namespace) -> int:
    from mull.local.manage import IDLE_SECONDS

    threads = 1 if options.threads is None else options.threads
    idle = IDLE_SECONDS if options.idle is None else options.idle * 60
    if threads < 1 or idle <= 0:
        raise ConfigError("--threads and --idle must be greater than 0")
    embedded = _embedded()
    running, started = embedded.start(threads, idle)
    lines = [f"{running.model} {'runs' if started else 'ran already'} at {running.base_url}"]
    found = {"started": started, "pid": running.pid, "baseUrl": running.base_url}
    _tell(options, {**found, "model": running.model}, [*lines, _HONEST])
    return 0


def _stop(options: Namespace) -> int:
    stopped = _embedded().stop()
    _tell(options, {"stopped": stopped}, ["stopped" if stopped else "it is not running"])
    return 0


def _status(options: Namespace) -> int:
    from mull.local import weights

    status = _embedded().status()
    installed = weights.is_installed()
    if status is None:
        line = "not running" if installed else "not installed; `mull local install` downloads it"
        _tell(options, {"running": False, "installed": installed}, [line])
    else:
        _tell(options, {"running": True, "installed": installed, **_json(status)}, _page(status))
    return 0


def _page(status: Status) -> list[str]:
    rows = {
        "model": status.model,
        "address": status.base_url,
        "process": f"{status.pid}, up {_span(status.uptime)}",
        "memory": f"{status.memory / 1e6:,.0f} MB" if status.memory else "unknown",
        "work": "unknown",
        "ends": f"after {_span(status.idle)} idle"
        + ("" if status.kept else ", or with the last process that uses it"),
    }
    if status.tokens_read is not None and status.tokens_written is not None:
        now = ", answering now" if status.busy else ""
        rows["work"] = f"{status.tokens_read:,} tokens read, {status.tokens_written:,} written{now}"
    return [f"{name:<8} {value}" for name, value in rows.items()]


def _json(status: Status) -> dict[str, object]:
    return {
        "pid": status.pid,
        "port": status.port,
        "baseUrl": status.base_url,
        "model": status.model,
        "memory": status.memory,
        "uptime": round(status.uptime, 1),
        "idle": status.idle,
        "kept": status.kept,
        "tokensRead": status.tokens_read,
        "tokensWritten": status.tokens_written,
        "busy": status.busy,
    }


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return (
        f"{minutes} min {rest} s"
        if minutes and rest
        else f"{minutes} min"
        if minutes
        else f"{rest} s"
    )


def _tell(options: Namespace, found: dict[str, object], lines: list[str]) -> None:
    if options.json:
        import msgspec

        print(msgspec.json.encode(found).decode())
    else:
        for line in lines:
            print(line, file=sys.stderr if line is _HONEST else sys.stdout)


def _embedded() -> Embedded:
    from mull.local.manage import embedded
    from mull.store.paths import data_dir

    return embedded(data_dir() / "local")


_ACTS = {"install": _install, "start": _start, "status": _status, "stop": _stop}
