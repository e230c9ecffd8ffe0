"""What markdown-it-py, a CommonMark parser, makes of a text, as the lines that mull should draw."""

from __future__ import annotations

from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from mull.markdown.events import BOLD, CODE, ITALIC, STRIKE

_FLAGS = {"strong_open": BOLD, "em_open": ITALIC, "s_open": STRIKE}
_parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.open: list[list[Any]] = []  # first mark, mark of later lines, whether drawn

    def write(self, line: str) -> None:
        marks = "".join(entry[1] if entry[2] else entry[0] for entry in self.open)
        for entry in self.open:
            entry[2] = True
        self.lines.append((marks + line).rstrip())


def reference_lines(text: str) -> list[str]:
    """The lines without blank ones, at any width; tables as their cells."""
    writer = _Writer()
    lists: list[int | None] = []
    for token in _parser.parse(text):
        match token.type:
            case "blockquote_open":
                writer.open.append(["▎ ", "▎ ", True])
            case "bullet_list_open":
                lists.append(None)
            case "ordered_list_open":
                lists.append(int(token.attrs.get("start", 1)))
            case "bullet_list_close" | "ordered_list_close":
                lists.pop()
            case "list_item_open":
                number = lists[-1]
                mark = "• " if number is None else f"{number}{token.markup} "
                if number is not None:
                    lists[-1] = number + 1
                writer.open.append([mark, " " * len(mark), False])
            case "list_item_close":
                if not writer.open[-1][2]:
                    writer.write("")
                writer.open.pop()
            case "blockquote_close":
                writer.open.pop()
            case _:
                _leaf(token, writer)
    return [line for line in writer.lines if line.strip(" ▎")]


def _leaf(token: Token, writer: _Writer) -> None:
    match token.type:
        case "inline":
            for line in _inline(token.children or []).split("\n"):
                writer.write(line.strip())
        case "fence" | "code_block":
            if token.info.strip():
                writer.write("  " + token.info.strip())
            for line in token.content.split("\n")[:-1]:
                writer.write("  " + line.expandtabs(4) if line.strip() else "")
        case "hr":
            writer.write("─" * 40)


def _inline(children: list[Token]) -> str:
    parts: list[str] = []
    links: list[tuple[int, str]] = []
    for token in children:
        match token.type:
            case "text" | "code_inline" | "html_inline":
                parts.append(token.content)
            case "softbreak" | "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(f"{token.content} ({token.attrs['src']})")
            case "link_open":
                links.append((len(parts), str(token.attrs["href"])))
            case "link_close":
                start, href = links.pop()
                said = "".join(parts[start:])
                if href not in (said, said + "/", ""):
                    parts.append(f" ({href})" if said else href)
    return "".join(parts)


def reference_flags(text: str) -> list[tuple[str, int]]:
    """Each character of a paragraph with the marks that hold for it."""
    seen: list[tuple[str, int]] = []
    flags: list[int] = []
    for token in _parser.parseInline(text)[0].children or []:
        if token.type in _FLAGS:
            flags.append(_FLAGS[token.type])
        elif token.type.endswith("_close"):
            flags.pop()
        else:
            code = CODE if token.type == "code_inline" else 0
            seen += [(c, sum(set(flags)) | code) for c in token.content]
    return seen
