"""The boundary: which files tools may touch.

A path counts by where it really leads, symbolic links and `..` resolved, also through folders
that do not exist yet. What lies outside the working folder and the folders added to it does not
exist for tools, neither for reading nor for writing. The one exception is what `run` itself put
aside because it was too long.
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
"""What Linux takes; longer ones are not worth repeating."""


class Located(NamedTuple):
    """A path inside the boundary, free of links; `name` is how the model and people know it."""

    root: Path
    path: Path
    name: str


class Workspace:
    """A working folder, and more folders that tools may use as well."""

    def __init__(self, root: str | os.PathLike[str], extra_roots: Sequence[Path] = ()) -> None:
        self.root = _folder(root)
        self.extra_roots = tuple(_folder(extra) for extra in extra_roots)
        self.changing = threading.Lock()
        """Held while a file is read, changed and written: calls run side by side."""
        self.keeper: Keeper | None = None
        """Keeps what is changed, so that it can be undone; a session gives its own."""
        self._aside = Aside()
        self.jobs = Jobs(self._aside)
        weakref.finalize(self, self.jobs.end)

    def resolve(self, path: str) -> Path:
        """Where the path really leads.

        Raises:
            ToolFailure: outside.
        """
        return self.locate(path).path

    def locate(self, path: str, *, to_read: bool = False) -> Located:
        """The path and the root that it lies in; to read, `run`'s long outputs are inside too.

        Raises:
            ToolFailure: it leads outside, or is no path at all.
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
        """How the path is shown: relative to the working folder where it lies in it."""
        inside = path.is_relative_to(self.root)
        return shown_name(path.relative_to(self.root).as_posix() if inside else path)

    def put_aside(self) -> tuple[int, Path]:
        """A new file for an output that is too long; gone when the workspace is."""
        return self._aside.open()

    def check(self) -> None:
        """Raises ToolFailure if the working folder is gone."""
        if not self.root.is_dir():
            raise ToolFailure(
                f"the working folder {shown_name(self.root)} does not exist any more:"
                " nothing can be done in it; tell the user"
            )

    def _outside(self, path: str, real: Path) -> str:
        leads = "" if os.path.isabs(path) else f" (it leads to {one_line(shown_name(real))})"
        allowed = " and ".join(shown_name(root) for root in (self.root, *self.extra_roots))
        return (
            f"{one_line(path)} is outside the working folder{leads}: only files in {allowed} can"
            " be used, with paths relative to it"
        )


def _folder(path: str | os.PathLike[str]) -> Path:
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        raise LocalError(f"{shown_name(path)} is not a folder: tools need one to work in")
    return real
