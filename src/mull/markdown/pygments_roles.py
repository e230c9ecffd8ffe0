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

    def read(line: str) -> list[tuple[str, str]]:
        if len(line) <= _LONGEST:
            tokens = lexer.get_tokens(line + "\n")
            runs = [(text.rstrip("\n"), _role(str(kind))) for kind, text in tokens]
            if "".join(text for text, _ in runs) == line:
                return [run for run in runs if run[0]]
        return [(line, "code_block")]

    return read


@cache
def _role(token: str) -> str:
    kinds = token.removeprefix("Token.") + "."
    return next((role for kind, role in _ROLES if kinds.startswith(kind + ".")), "code_block")
