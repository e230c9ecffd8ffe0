"""The boundary: which files tools may access.

A path counts by where it really leads, with symbolic links and `..` resolved, also through folders
that do not exist yet. For tools, nothing exists outside the working folder and the folders added to
it, neither for reading nor for writing. The only exception is long output that `run` itself put
aside.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mull.agent.tools.aside import Aside
from mull.agent.tools.background import Jobs
from mull.agent.tools.shown import one_line, shown_name
from mull.agent.tools.tool import ToolFailure
from mull.neutral.errors import LocalError

if TYPE_CHECKING:
    from mull.agent.checkpoints import Keeper

__all__ = ["Located", "Workspace"]

_LONGEST_PATH = 4096
"""The limit of Linux; longer paths are not worth repeating."""


class Located(NamedTuple):
    """A path inside the boundary, free of links; `name` is how the model and the user know it."""

    root: Path
    path: Path
    name: str


class Workspace:
    """A working folder, and additional folders that tools may use."""

    def __init__(self, root: str | os.PathLike[str], extra_roots: Sequence[Path] = ()) -> None:
        self.root: Path = _folder(root)
        self.extra_roots: tuple[Path, ...] = tuple(_folder(extra) for extra in extra_roots)
        self.changing: threading.Lock = threading.Lock()
        """Held while a file is read, changed and written: calls run in parallel."""
        self.keeper: Keeper | None = None
        """Stores changes, so that they can be undone; a session provides its own."""
        self._aside = Aside()
        self.jobs: Jobs = Jobs(self._aside)
        weakref.finalize(self, self.jobs.end)

    def resolve(self, path: str) -> Path:
        """Where the path really leads.

        Raises:
            ToolFailure: it leads outside.
        """
        return self.locate(path).path

    def locate(self, path: str, *, to_read: bool = False) -> Located:
        """The path and the root that contains it; for reading, long outputs of `run` are inside
        too.

        Raises:
            ToolFailure: it leads outside, or is not a path.
        """
        if len(path) > _LONGEST_PATH:
            raise ToolFailure(f"a path of {len(path):,} characters is too long for any file")
        try:
            written = os.path.join(self.root, os.path.expanduser(path))
            real = Path(os.path.realpath(written))
        except (ValueError, OSError):
            raise ToolFailure(f"{one_line(repr(path))} is not a path") from None
        aside = (self._aside.folder,) if to_read and self._aside.folder else ()
        for root in (self.root, *self.extra_roots, *aside):
            if real.is_relative_to(root):
                return Located(root, real, self.name(real))
        raise ToolFailure(self._outside(path, real))

    def name(self, path: Path) -> str:
        """The path as shown: relative to the working folder if it is inside."""
        inside = path.is_relative_to(self.root)
        return shown_name(path.relative_to(self.root).as_posix() if inside else path)

    def put_aside(self) -> tuple[int, Path]:
        """A new file for output that is too long; deleted with the workspace."""
        return self._aside.open()

    def check(self) -> None:
        """Raises ToolFailure if the working folder no longer exists."""
        if not self.root.is_dir():
            raise ToolFailure(
                f"the working folder {shown_name(self.root)} no longer exists: nothing "
                "can be done in it; tell the user"
            )

    def _outside(self, path: str, real: Path) -> str:
        leads = "" if os.path.isabs(path) else f" (it leads to {one_line(shown_name(real))})"
        allowed = " and ".join(shown_name(root) for root in (self.root, *self.extra_roots))
        return (
            f"{one_line(path)} is outside the working folder{leads}: only files in "
            f"{allowed} can be used, with paths relative to it"
        )


def _folder(path: str | os.PathLike[str]) -> Path:
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        raise LocalError(f"{shown_name(path)} is not a folder: tools need a folder to work in")
    return real
