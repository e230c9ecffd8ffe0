"""The parts of a shell command that a pattern is matched against.

This is not a shell. For allow rules, a command is split only where every shell agrees on its parts:
it may contain no substitution, redirection into a file or background operator, and one with quotes
must be a single part. For deny rules, it is split at everything that could start another command,
and after a word that runs what follows (`sudo`, `then`, `sh`) at every word.
"""

from __future__ import annotations

from collections.abc import Iterator

from mull.neutral.patterns import pattern
from mull.policy.hazard_table import RUNNERS

__all__ = ["allow_parts", "deny_parts"]

_HARMLESS = pattern(r"(?<!\S)(?:2>&1|[12]?> ?/dev/null)(?!\S)")
_BETWEEN = pattern(r"&&|\|\||[;|\n]")
_UNSURE = pattern(r"[&;|<>()$`\\\n\r\0]")
_ANY_BREAK = pattern(r"[;&|<>(){}$`\n\r]+")
_ASSIGNMENTS = pattern(r"""(?:\w+=(?:"[^"]*"|'[^']*'|[^\s"'])* )+""")
_QUOTING = str.maketrans("", "", "'\"\\")
_MOST_STARTS = 64
"""Maximum words of one piece at which a command may start: enough for people, and bounded."""


def allow_parts(command: str) -> list[str] | None:
    """The simple commands it consists of; None if that is not certain."""
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
    """Everything in it that may be a command, also by its name without a folder."""
    found = [command.strip()]
    for piece in _ANY_BREAK.split(command):
        part = " ".join(piece.split())
        assigned = _ASSIGNMENTS.match(part)
        part = part[assigned.end() :] if assigned else part
        found.append(part)
        for bare in _commands_in(part.translate(_QUOTING)):
            found += [bare, _without_folder(bare)]
    return [part for part in dict.fromkeys(found) if part]


def _commands_in(piece: str) -> Iterator[str]:
    """The piece, and its rest from each word on if its first word runs that."""
    yield piece
    program, _, rest = _without_folder(piece).partition(" ")
    if program not in RUNNERS and program != "find":
        return
    for _ in range(_MOST_STARTS):
        if not rest:
            return
        yield rest
        _, _, rest = rest.partition(" ")


def _without_folder(command: str) -> str:
    program, space, rest = command.partition(" ")
    return f"{program.rpartition('/')[2]}{space}{rest}"
