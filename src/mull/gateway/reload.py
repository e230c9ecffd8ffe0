"""Reads the configuration anew when its file changes, without a restart.

Requests that are under way keep what they began with. A file that cannot be used changes nothing:
what is wrong with it is told in the log and by `/health`, until it is mended.
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
"""Seconds between two looks at the files."""
_RENEWED = frozenset({"models", "default", "hosts", "origins"})
_Stamp: TypeAlias = tuple[int, int, int] | None


def needs_restart(before: ServeConfig, after: ServeConfig) -> list[str]:
    """What differs and only counts when the gateway starts."""
    return [
        name
        for name in ServeConfig.__struct_fields__
        if name not in _RENEWED and getattr(before, name) != getattr(after, name)
    ]


class Files:
    """Files that may change. Made before they are read: what changes meanwhile is noticed."""

    def __init__(self, *paths: Path) -> None:
        self._paths = paths
        self._seen = tuple(map(_stamp, paths))
        self._first = self._seen[0]

    def change(self) -> bool:
        """Whether one of them is another one than at the last call."""
        before, self._seen = self._seen, tuple(map(_stamp, self._paths))
        return before != self._seen

    def lost(self) -> Path | None:
        """The first, where it was there and is not any more."""
        return self._paths[0] if self._first is not None and self._seen[0] is None else None

    def odd(self) -> Path | None:
        """The first that is something else than a file: reading a pipe might never end."""
        return next((path for path in self._paths if path.exists() and not path.is_file()), None)


class Reloader:
    """Watches files and reads them when one of them changes.

    `load` reads them, in a thread of its own, and `apply` makes what was read hold.
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
        """What is wrong with the files as they are now."""
        self.pending: tuple[str, ...] = ()
        """What they say that needs a restart."""

    async def run(self) -> None:
        """Look for changes until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), LOOK_EVERY)
            if self._files.change() or self._asked.is_set():
                self._asked.clear()
                await self.reload()

    def ask(self) -> None:
        """Have the files read, changed or not."""
        self._asked.set()

    async def reload(self) -> None:
        """Read the files and use them, or say why not."""
        try:
            if lost := self._files.lost():
                raise ConfigError(f"{lost} is gone")
            if odd := self._files.odd():
                raise ConfigError(f"{odd} is not a regular file")
            engine, config = await asyncio.to_thread(self._load)
            await self._apply(engine, config)
        except Exception as error:  # whatever a file holds, the next one is looked for
            self.problem = str(error) or repr(error)
            log_warning(f"the configuration was not taken, the old one holds: {self.problem}")
            return
        self.problem = None
        self.pending = tuple(needs_restart(self._started, config))
        log_warning("the configuration was read anew")
        if self.pending:
            log_warning(f"restart the gateway for what changed of {', '.join(self.pending)}")


def _stamp(path: Path) -> _Stamp:
    """What changes with a file's content, also where it is replaced by another."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
