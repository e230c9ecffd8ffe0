"""Text of a model or a person inside a Markdown document of ours, such that it cannot get out.

Text stays Markdown where it is plain how every reader takes it: headings become small ones, no
HTML tag is left outside of code, images are links, links lead to the web or to files beside the
document, and code fences are closed. Where readers could differ on what
is code (a fence without an end, or inside a quote), the text is shown as its own source in a
fence longer than any in it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["contain", "escape_marks", "fence", "inline_code", "visible"]

_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_ODD_FENCE = re.compile(r"[ \t]*(?:(?:[-+*>]|\d{1,9}[.)])[ \t]*)*(?:`{3}|~{3})")
_HEADING = re.compile(r"( {0,3})(#{1,6})(?=[ \t]|$)")
_EQUALS = re.compile(r" {0,3}=+[ \t]*")
_DASHES = re.compile(r" {0,3}-+[ \t]*")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_IMAGE = re.compile(r"!(?=\[)")
_FOREIGN = re.compile(
    r"(?<=\])[(:](?![ \t]*(?:https?://|mailto:|\#|\.{0,2}/|[\w./%~-]+(?:[?#)\s]|$)))"
)
"""What begins the target of a link that is neither on the web nor beside the document."""
_TIMES = re.compile(r"(?<=[A-Za-z0-9])\*+(?=[A-Za-z0-9])")
_TICKS = re.compile(r"`+")
_MARKS = re.compile(r"([\\`*_\[\]<>&~|$#])")
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}

_LEVELS_OF_OURS = 3


class _Fence(NamedTuple):
    indent: int
    mark: str

    def closes(self, line: str) -> bool:
        """Whether the line looks like its end."""
        bare = line.strip(" \t")
        same = bare.strip(self.mark[0]) == "" and len(bare) >= len(self.mark)
        return same and (len(bare) == len(self.mark) or self.indent <= 3)


class _Unclear(Exception):
    """Readers of Markdown could differ on what is code here."""


def visible(text: str) -> str:
    """The text with one kind of line end, and control characters as their pictures."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)


def contain(text: str) -> str:
    """The text as Markdown that stays where it is put."""
    text = visible(text)
    try:
        return "\n".join(_lines(text.split("\n")))
    except _Unclear:
        return fence(text, "markdown")


def fence(text: str, language: str = "") -> str:
    """The text as a code block, in a fence longer than any inside."""
    text = visible(text)
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def inline_code(text: str) -> str:
    """The text as code within a line."""
    text = " ".join(visible(text).split()) or " "
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{marks}{pad}{text}{pad}{marks}"


def escape_marks(text: str) -> str:
    """The text within a line, with no mark left that means something."""
    return _MARKS.sub(r"\\\1", " ".join(visible(text).split()))


def _lines(lines: list[str]) -> list[str]:
    out: list[str] = []
    waiting: list[str] = []
    open_fence: _Fence | None = None
    for line in lines:
        if open_fence is not None:
            open_fence = _inside(open_fence, line)
            out.append(line)
        elif (opened := _opening(line, after=waiting)) is not None:
            out += [*_paragraph(waiting), line]
            waiting, open_fence = [], opened
        elif line.strip():
            waiting.append(line)
        else:
            out += [*_paragraph(waiting), line]
            waiting = []
    if open_fence is not None:
        raise _Unclear
    return out + _paragraph(waiting)


def _inside(opened: _Fence, line: str) -> _Fence | None:
    """What is open after a line inside a fence."""
    before = line[: len(line) - len(line.lstrip())]
    if opened.closes(line):
        if before != " " * opened.indent:
            raise _Unclear  # the end of it for some, one more line for others
        return None
    if line.strip() and not before.startswith(" " * opened.indent):
        raise _Unclear  # a list that ends here would end the fence
    if opened.indent > 3 and opened.mark[0] * 3 in line:
        raise _Unclear
    return opened


def _opening(line: str, *, after: list[str]) -> _Fence | None:
    """The fence that a line opens."""
    found = _FENCE.match(line)
    if found and not (found[2][0] == "`" and "`" in found[3]):
        indent = len(found[1])
        if indent > 3 and (after or found[2][0] == "~"):
            raise _Unclear
        return _Fence(indent, found[2])
    if not found and _ODD_FENCE.match(line):
        raise _Unclear
    return None


def _paragraph(lines: list[str]) -> list[str]:
    """Lines between blank ones, outside of fences."""
    spans = [_code_spans(line) for line in lines]
    clear = all(found is not None for found in spans)
    out: list[str] = []
    for line, found in zip(lines, spans, strict=True):
        line = _escape(line, (found or []) if clear else [])
        if heading := _HEADING.match(line):
            level = min(6, len(heading[2]) + _LEVELS_OF_OURS)
            line = heading[1] + "#" * level + line[heading.end() :]
        elif _EQUALS.fullmatch(line):
            line = "\\" + line.lstrip()
        elif _DASHES.fullmatch(line) and out:
            out.append("")  # a rule, not a heading of the line before
        out.append(line)
    return out


def _code_spans(line: str) -> list[tuple[int, int]] | None:
    """Where the code is in a line; None where a mark has no other in the same line."""
    spans: list[tuple[int, int]] = []
    runs = iter(_TICKS.finditer(line))
    for opener in runs:
        if line.endswith("\\", 0, opener.start()):
            return None
        closer = next((run for run in runs if run[0] == opener[0]), None)
        if closer is None:
            return None
        if "|" not in line[opener.end() : closer.start()]:  # a table would be cut there
            spans.append((opener.start(), closer.end()))
    return spans


def _escape(line: str, code: list[tuple[int, int]]) -> str:
    """No tag, no image that a reader would fetch, no link that runs something, and no emphasis
    inside a word (`2*3*4`), but in code."""

    def plain(text: str) -> str:
        text = _IMAGE.sub("&#33;", _TAG.sub("&lt;", text))
        text = _FOREIGN.sub(lambda found: f"&#{ord(found[0])};", text)
        return _TIMES.sub(lambda found: "\\*" * len(found[0]), text)

    out, at = [], 0
    for start, end in code:
        out += [plain(line[at:start]), line[start:end]]
        at = end
    return "".join(out) + plain(line[at:])
