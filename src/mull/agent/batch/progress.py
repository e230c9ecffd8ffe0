"""Shows how far a batch has come: a line on a terminal, a bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from html import escape
from typing import Any, Protocol, TextIO

from mull.agent.batch.values import BatchProgress
from mull.client.clock import say_seconds

__all__ = ["Display", "display_for", "html_of"]

REFRESH = 0.25
_WIDE = 10_000
"""The columns of what is no terminal."""


class _Place(Protocol):
    """Where progress is drawn."""

    def draw(self, progress: BatchProgress, seconds: float) -> None:
        """Draw over what was drawn before."""

    def end(self) -> None:
        """Leave what was drawn last."""


class Display:
    """Draws the progress of a batch while it runs."""

    def __init__(self, place: _Place) -> None:
        self._place = place

    @asynccontextmanager
    async def shown(
        self, progress: BatchProgress, waiting: Callable[[], str]
    ) -> AsyncIterator[None]:
        """Draw every moment until the context ends."""
        began = time.monotonic()

        def draw() -> None:
            progress.waiting = waiting()
            self._place.draw(progress, time.monotonic() - began)

        async def repeat() -> None:
            while True:
                draw()
                await asyncio.sleep(REFRESH)

        task = asyncio.ensure_future(repeat())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            draw()
            self._place.end()


class _Terminal:
    """One line of a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def draw(self, progress: BatchProgress, seconds: float) -> None:
        told = f"{progress} · {say_seconds(round(seconds))}"
        line, most = f"{_bar(progress)}{told}", _columns(self._out) - 1
        if len(line) > most:  # a line that wraps cannot be drawn over
            line = told[:most]
        self._write(f"\r{line}\x1b[K")

    def end(self) -> None:
        self._write("\n")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a closed terminal is no reason to stop
            self._out.write(text)
            self._out.flush()


def _columns(out: TextIO) -> int:
    """How wide the terminal is, if this is one."""
    try:
        return os.get_terminal_size(out.fileno()).columns or _WIDE
    except (OSError, ValueError, AttributeError):
        return _WIDE


class _Notebook:
    """The output of a notebook's cell."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def draw(self, progress: BatchProgress, seconds: float) -> None:
        shown = {"text/html": html_of(progress, seconds), "text/plain": str(progress)}
        if self._handle is None:
            self._handle = self._display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)

    def end(self) -> None:
        pass


def display_for(wanted: bool | TextIO | None) -> Display | None:
    """The display that fits where the program runs, or on the given stream; None leaves it to
    that, and True also draws where nobody may be watching.
    """
    if wanted is False:
        return None
    if wanted is not None and wanted is not True:
        return Display(_Terminal(wanted))
    if (shell := _notebook()) is not None:
        return Display(_Notebook(shell))
    out = sys.stderr
    is_terminal = hasattr(out, "isatty") and out.isatty()  # a program without one has None there
    return Display(_Terminal(out)) if is_terminal or (wanted and out is not None) else None


def _notebook() -> Callable[..., Any] | None:
    """How to draw in the notebook that this runs in, if it does."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    show: Callable[..., Any] = ipython.display.display
    return show


def _bar(progress: BatchProgress, width: int = 20) -> str:
    if not progress.total:
        return ""
    full = min(width, progress.done * width // progress.total)
    return f"[{'#' * full}{'.' * (width - full)}] "


def html_of(progress: BatchProgress, seconds: float | None = None) -> str:
    """The progress as HTML."""
    took = "" if seconds is None else f" · {say_seconds(round(seconds))}"
    most = progress.total or max(progress.done, 1)
    bar = f'<progress value="{progress.done}" max="{most}"></progress>'
    return f"<div>{bar} {escape(str(progress) + took)}</div>"
