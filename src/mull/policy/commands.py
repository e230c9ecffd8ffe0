"""The parts of a shell command that a pattern is compared with.

This is no shell. To allow, a command is taken apart only where every shell agrees on its parts:
nothing in it may be substituted, redirected into a file or put in the background, and one with
quotes has to be one part. To deny, it is cut at everything that could begin another command.
"""

from __future__ import annotations

import re

__all__ = ["allow_parts", "deny_parts"]

_HARMLESS = re.compile(r"(?<!\S)(?:2>&1|[12]?> ?/dev/null)(?!\S)")
_BETWEEN = re.compile(r"&&|\|\||[;|\n]")
_UNSURE = re.compile(r"[&;|<>()$`\\\n\r\0]")
_ANY_BREAK = re.compile(r"[;&|<>(){}$`\n\r]+")
_ASSIGNMENT = re.compile(r"(?:\w+=\S* )+")
_QUOTING = str.maketrans("", "", "'\"\\")


def allow_parts(command: str) -> list[str] | None:
    """The simple commands that it consists of; None where that cannot be said for sure."""
    command = command.strip()
    if _UNSURE.search(command) is None:
        return [command]
    if "'" in command or '"' in command:
        return None
    parts = [part.strip() for part in _BETWEEN.split(_HARMLESS.sub("", command))]
    if not all(parts) or any(_UNSURE.search(part) for part in parts):
        return None
    return parts


def deny_parts(command: str) -> list[str]:
    """All that may be a command in it, also under its name without a folder."""
    found = [command.strip()]
    for piece in _ANY_BREAK.split(command):
        part = _ASSIGNMENT.sub("", " ".join(piece.split()), count=1)
        bare = part.translate(_QUOTING)
        program, space, rest = bare.partition(" ")
        found += [part, bare, f"{program.rpartition('/')[2]}{space}{rest}"]
    return [part for part in dict.fromkeys(found) if part]
