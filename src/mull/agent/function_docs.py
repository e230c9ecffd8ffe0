"""What a docstring says about a function and its parameters, in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

__all__ = ["docstring", "read_docstring"]

_SECTION = re.compile(r"^(\w+)(:|\n-{3,})[ \t]*$", re.MULTILINE)
_OF_ARGUMENTS = ("Args", "Arguments", "Parameters")
_NOT_FOR_MODELS = (*_OF_ARGUMENTS, "Returns", "Yields", "Raises")
_FIELD = re.compile(
    r"^:(?:param (?:[^:\n]* )?(\w+)|\w[^:\n]*):((?:.*\n?)(?:[ \t]+.*\n?)*)", re.MULTILINE
)
_ROWS = {
    ":": re.compile(r"\*{0,2}(\w+)(?: \([^)]*\))?:(.*)", re.DOTALL),
    "-": re.compile(r"(\w+)(?: *:[^\n]*)?\n(.*)", re.DOTALL),
}


def docstring(plain: Callable[..., Any]) -> str:
    """The docstring of a function; of a callable object, its own or that of its class."""
    if inspect.ismethod(plain) and plain.__name__ == "__call__":
        # Without this, Python's own text about calling would be inherited.
        own = getattr(plain.__self__, "__dict__", {}).get("__doc__")
        return inspect.cleandoc(own or plain.__doc__ or type(plain.__self__).__doc__ or "")
    return inspect.getdoc(plain) or ""


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of the function and of each parameter."""
    texts = {found[1]: found[2] for found in _FIELD.finditer(text) if found[1]}
    ends = [found.start() for found in _FIELD.finditer(text)]
    sections = list(_SECTION.finditer(text))
    for found, following in zip_longest(sections, sections[1:]):
        if found[1] in _NOT_FOR_MODELS:
            ends.append(found.start())
        if found[1] in _OF_ARGUMENTS:
            section = text[found.end() : following.start() if following else len(text)]
            texts.update(_rows(section, _ROWS[found[2].strip()[0]]))
    said = {name: " ".join(words.split()) for name, words in texts.items()}
    return text[: min(ends, default=len(text))].strip(), {n: one for n, one in said.items() if one}


def _rows(section: str, row: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The parameters of a section: each starts at a line that is not indented further."""
    for part in re.split(r"\n(?=\S)", inspect.cleandoc(section)):
        if found := row.match(part):
            yield found[1], found[2]
