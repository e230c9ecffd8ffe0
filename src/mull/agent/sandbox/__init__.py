"""The sandbox for commands: what they may see and do is enforced by the kernel.

Here is only what has to be known at the start; the rest is loaded with the first command.
"""

from __future__ import annotations

import os
import shutil
import sys
from functools import lru_cache
from pathlib import Path

__all__ = ["is_likely", "is_versioned", "own_code"]

_VERSIONED = (".git", ".hg", ".jj", ".svn")
_SWITCHES = (
    ("/proc/sys/user/max_user_namespaces", "0"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
)
"""What forbids namespaces, at least to users other than root."""


def is_likely() -> bool:
    """Whether a sandbox that covers everything probably works here, without trying it."""
    if not sys.platform.startswith("linux") or os.uname().machine not in ("x86_64", "aarch64"):
        return False
    forbidden = any(_says(path, value) for path, value in _SWITCHES)
    return not forbidden or shutil.which("bwrap") is not None


def is_versioned(folder: Path) -> bool:
    """Whether the folder is under version control."""
    return any(
        (above / name).exists() for above in (folder, *folder.parents) for name in _VERSIONED
    )


@lru_cache(8)
def own_code(root: Path) -> tuple[str, ...]:
    """What this process executes and is in the working folder, as when mull is installed in a
    project's virtual environment: much of it is loaded late, so a change would run here, without
    any sandbox.
    """
    import mull

    places = (*sys.path, sys.base_prefix, os.path.dirname(mull.__file__ or ""))
    real = sorted({os.path.realpath(place) for place in places if place})
    inside = [place for place in real if place.startswith(f"{root}/")]
    return tuple(p for p in inside if not any(p.startswith(f"{other}/") for other in inside))


def _says(path: str, value: str) -> bool:
    try:
        with open(path) as file:
            return file.read().strip() == value
    except OSError:
        return False
