"""What a model is told about a path that does not exist: the files with the most similar names."""

from __future__ import annotations

import os
from itertools import islice

from mull.agent.tools.files import kind_of
from mull.agent.tools.shown import shown_name
from mull.agent.tools.tool import ToolFailure
from mull.agent.tools.walk import entries, walk
from mull.agent.tools.workspace import Located

__all__ = ["check_file", "check_folder", "missing"]

_MOST_LOOKED_AT = 20_000
_MOST_NAMED = 3
_ALIKE = 0.6


def check_file(place: Located) -> None:
    """Raises ToolFailure, with a suggestion, if nothing is there or it is a folder."""
    kind = kind_of(place)
    if kind is None:
        raise ToolFailure(missing(place))
    if kind == "a folder":
        raise ToolFailure(f"{place.name} is a folder, not a file: list shows what is in it")


def check_folder(place: Located) -> None:
    """Raises ToolFailure, with a suggestion, if nothing is there or it is not a folder."""
    kind = kind_of(place)
    if kind is None:
        raise ToolFailure(missing(place))
    if kind != "a folder":
        hint = ": read shows it" if kind == "a file" else ""
        raise ToolFailure(f"{place.name} is {kind}, not a folder{hint}")


def missing(place: Located) -> str:
    """`src/mian.py does not exist; closest matches: src/main.py`."""
    if not place.root.is_dir():
        return f"the working folder {shown_name(place.root)} no longer exists"
    said = f"{place.name} does not exist"
    near = _nearest(place)
    return f"{said}; closest matches: {', '.join(near)}" if near else said


def _nearest(place: Located) -> list[str]:
    """Files of the same name elsewhere, then those in the same folder with a similar one."""
    from difflib import get_close_matches

    wanted = place.path.name.lower()
    folder = str(place.path.parent)
    beside = {entry.path.lower(): os.path.join(folder, entry.path) for entry in entries(folder)}
    alike = get_close_matches(wanted, beside, n=_MOST_NAMED, cutoff=_ALIKE)
    everywhere = islice(walk(str(place.root)), _MOST_LOOKED_AT)
    same = (
        os.path.join(place.root, entry.path)
        for entry in everywhere
        if entry.path.rpartition("/")[2].lower() == wanted
    )
    found = [*islice(same, _MOST_NAMED), *(beside[name] for name in alike)]
    inside = (os.path.relpath(path, place.root) for path in dict.fromkeys(found))
    return [shown_name(path) for path in islice(inside, _MOST_NAMED)]
