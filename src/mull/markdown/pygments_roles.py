"""Roles in code by pygments, where it is installed: an optional package behind this module alone.

Each line is read by itself. Its lexers do not say where they stand at the end of a line, and to
read what came before again for each line would cost the square of the code; so a comment over
several lines is known in its first one only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

__all__ = ["pygments_reader"]

_LONGEST = 500
"""Characters of a line that is read: its patterns promise nothing about their time."""
_ROLES = (
    ("Comment", "comment"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Keyword", "keyword"),
    ("Name.Tag", "keyword"),
    ("Generic.Inserted", "added"),
    ("Generic.Deleted", "removed"),
)


@cache
def _lexers() -> dict[str, str]:
    """The names of pygments' own lexers by what people call their languages."""
    try:
        from pygments.lexers import get_all_lexers
    except ImportError:
        return {}
    return {alias: name for name, aliases, *_ in get_all_lexers(plugins=False) for alias in aliases}


@cache
def pygments_reader(language: str) -> Callable[[str], list[tuple[str, str]]] | None:
    """What reads a line of the language as runs of text and role, or None if nothing does."""
    name = _lexers().get(language)
    if name is None:
        return None
    from pygments.lexers import find_lexer_class

    lexer = find_lexer_class(name)(stripnl=False, ensurenl=False)
    roles: dict[str, str] = {}

    def role_of(token: str) -> str:
        if token not in roles:
            kind = token.removeprefix("Token.") + "."
            found = (role for start, role in _ROLES if kind.startswith(start + "."))
            roles[token] = next(found, "code_block")
        return roles[token]

    def read(line: str) -> list[tuple[str, str]]:
        if len(line) > _LONGEST:
            return [(line, "code_block")]
        runs = [(text, role_of(str(token))) for token, text in lexer.get_tokens(line + "\n")]
        runs = [(text.removesuffix("\n"), role) for text, role in runs]
        said = "".join(text for text, _ in runs)
        return [run for run in runs if run[0]] if said == line else [(line, "code_block")]

    return read
