"""The default run sees what `make setup` installs, whether the judges are installed or not.

A test module that imports an SDK outside `pytest.importorskip` would otherwise pass on every
machine that has run `make judges`, and end the collection on all others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from importlib.abc import MetaPathFinder

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def hide() -> None:
    """Make the packages that only the judges bring impossible to import in this process."""
    hidden = distributions("judges") - distributions("dev")
    names = {
        package
        for package, brought_by in metadata.packages_distributions().items()
        if all(canonicalize_name(name) in hidden for name in brought_by)
    }
    sys.meta_path.insert(0, _Hidden(names))


class _Hidden(MetaPathFinder):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"{fullname} is for the judges (-m slow)", name=fullname)


def distributions(extra: str) -> set[str]:
    """What an extra of mull brings, as far as it is installed."""
    waiting = [("mull-reasoning", frozenset({extra}))]
    found = set(waiting)  # with extras: those of mull need others of mull
    while waiting:
        for needed in _needs(*waiting.pop()):
            wanted = canonicalize_name(needed.name), frozenset(needed.extras)
            if wanted not in found:
                found.add(wanted)
                waiting.append(wanted)
    return {name for name, _ in found}


def _needs(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for needed in map(Requirement, lines):
        if needed.marker is None or any(
            needed.marker.evaluate({"extra": extra}) for extra in extras | {""}
        ):
            yield needed
