"""Makes names and texts from files and models safe to show and to store.

Users approve what they see, so nothing may hide: no escape sequences, no carriage returns that
overwrite a line, no characters that change the writing direction.
"""

from __future__ import annotations

import os

__all__ = ["NOT_RUN", "REFUSED", "one_line", "plural", "shown_name", "telling_line", "visible"]

NOT_RUN = "not run: "
"""What a model is told instead of a result begins so, if the call was not allowed."""
REFUSED = f"{NOT_RUN}the user refused"
_LONGEST_LINE = 120


def visible(text: str) -> str:
    """The text with everything spelled out that a terminal would not print as itself."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(
        char if char in "\n\t" or char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def one_line(text: str, longest: int = _LONGEST_LINE) -> str:
    """The first line, shortened; an ellipsis says that there is more."""
    first, _, rest = visible(text).strip().partition("\n")
    short = first.replace("\t", " ")
    if len(short) > longest:
        return f"{short[: longest - 1]}…"
    return f"{short} …" if rest.strip() else short


def shown_name(path: str | os.PathLike[str]) -> str:
    """A path as text that any encoding supports; bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def plural(count: int, thing: str) -> str:
    """`1 line`, `1,200 lines`, `3 matches`."""
    ending = "" if count == 1 else "es" if thing.endswith(("ch", "s")) else "s"
    return f"{count:,} {thing}{ending}"


def telling_line(output: str, *, at_end: bool) -> str:
    """The most informative line of a result: the first, or for a command the last, with mull's
    remark about its end.
    """
    body = output.strip()
    if not at_end:
        return body.partition("\n")[0].strip()
    before, _, last = body.rpartition("\n")
    said = before.rstrip().rpartition("\n")[2]
    return f"{said.strip()} {last}".strip() if last.startswith("[") else last.strip()
