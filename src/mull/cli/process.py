"""The process of the `mull` command: how it starts and ends faster than Python by itself.

`make bench` measures it. A program that imports mull, or calls `mull.cli.main.main`, meets none of
this.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from mull.cli.main import EXIT_INTERRUPTED, main

TYPE_CHECKING = False  # without importing typing, so that `mull --version` is fast
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["entry"]

_YOUNG = 100_000
"""Objects between two garbage collections: more than a question makes, which collects nothing."""


def entry() -> NoReturn:
    """Run the command line, and exit."""
    gc.set_threshold(_YOUNG)
    status = main()
    if status == EXIT_INTERRUPTED:
        import signal  # it brings enum, which no other command needs so early

        # A second Ctrl-C must not show a traceback of the ending interpreter.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        sys.exit(status)
    # Shutting down the interpreter takes longer than an answer, and the system frees everything at
    # once. What was registered for the end still runs.
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1
    os._exit(status)
