"""Reloads the configuration when its file changes, without a restart.

Requests in progress keep the configuration they started with. An invalid file changes nothing: the
log and `/health` report the error until the file is fixed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from mull.logs import log_warning
from mull.neutral.errors import ConfigError
from mull.store.serve import ServeConfig

if TYPE_CHECKING:
    from mull.agent.engine import Engine

__all__ = ["Files", "Reloader", "needs_restart"]

LOOK_EVERY = 1.0
"""Seconds between checks of the files."""
_RENEWED = frozenset({"models", "default", "hosts", "origins"})
_Stamp: TypeAlias = tuple[int, int, int] | None


def needs_restart(before: ServeConfig, after: ServeConfig) -> list[str]:
    """The settings that differ and take effect only at the next start."""
    return [
        name
        for name in ServeConfig.__struct_fields__
        if name not in _RENEWED and getattr(before, name) != getattr(after, name)
    ]


class Files:
    """Files watched for changes. Create it before reading the files, so that a change in between is
    noticed."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._seen = tuple(map(_stamp, paths))
        self._first = self._seen[0]

    def change(self) -> bool:
        """Whether any of the files has changed since the last call."""
        before, self._seen = self._seen, tuple(map(_stamp, self._paths))
        return before != self._seen

    def lost(self) -> Path | None:
        """The first file, if it existed before and no longer does."""
        return self._paths[0] if self._first is not None and self._seen[0] is None else None

    def odd(self) -> Path | None:
        """The first path that is not a regular file: reading a pipe might never end."""
        return next((path for path in self._paths if path.exists() and not path.is_file()), None)


class Reloader:
    """Watches files and reloads them when one of them changes.

    `load` reads the files, in a separate thread, and `apply` puts the result into effect.
    """

    def __init__(
        self,
        files: Files,
        started: ServeConfig,
        load: Callable[[], tuple[Engine, ServeConfig]],
        apply: Callable[[Engine, ServeConfig], Awaitable[None]],
    ) -> None:
        self._files = files
        self._started = started
        self._load, self._apply = load, apply
        self._asked = asyncio.Event()
        self.problem: str | None = None
        """Why the current files cannot be used."""
        self.pending: tuple[str, ...] = ()
        """Changed settings that need a restart."""

    async def run(self) -> None:
        """Check for changes until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_EVERY)
            if self._files.change() or self._asked.is_set():
                self._asked.clear()
                await self.reload()

    def ask(self) -> None:
        """Request a reload, whether or not the files have changed."""
        self._asked.set()

    async def reload(self) -> None:
        """Reload the files, or log why they cannot be used."""
        try:
            if lost := self._files.lost():
                raise ConfigError(f"{lost} no longer exists")
            if odd := self._files.odd():
                raise ConfigError(f"{odd} is not a regular file")
            engine, config = await asyncio.to_thread(self._load)
            await self._apply(engine, config)
        except Exception as error:  # whatever the files contain, later changes are still noticed
            self.problem = str(error) or repr(error)
            text = "configuration not reloaded, the previous one stays in effect"
            log_warning(f"{text}: {self.problem}")
            return
        self.problem = None
        self.pending = tuple(needs_restart(self._started, config))
        log_warning("configuration reloaded")
        if self.pending:
            log_warning(f"restart the gateway to apply changes to {', '.join(self.pending)}")


def _stamp(path: Path) -> _Stamp:
    """A value that changes when the file is modified or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
