"""Runs the examples of a page in order and compares what they print with what the page shows.

Files are the blocks after "save … as `name`". Commands are the lines of `sh` blocks; one whose
comment says that it needs a key or a server is only parsed. A `text` block right below code or
commands is what they print; `...` in a command's output stands for any lines. A `terminal` block
is a conversation: a command, lines that are typed behind ❯, and what is seen in between.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mull.cli.main import _with_default, main, parse

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w-]+\.\w+)`")
_NEEDS = re.compile(r"#.*\bneeds a (key|server|terminal)\b")
_COMMAND = re.compile(r"(?:echo '(?P<piped>[^']*)' \| )?mull\b(?P<words>[^|]*)")
_PROMPT = "❯ "


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    file: str | None = None
    follows: bool = False
    """Whether nothing stands between it and the block before it."""


def blocks(path: Path) -> list[Block]:
    page, found, end = path.read_text(), [], 0
    for match in _BLOCK.finditer(page):
        kind, between = match[1], page[end : match.start()].strip()
        named = _FILE.findall(between.rpartition("\n\n")[2]) if "ave" in between else []
        file = named[-1] if named and kind in ("json", "sse") else None
        found.append(Block(kind, match[2], file, follows=not between))
        end = match.end()
    return found


def command_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if _COMMAND.match(line)]


def is_only_parsed(line: str) -> bool:
    return bool(_NEEDS.search(line))


def words_of(line: str) -> list[str]:
    found = _COMMAND.match(line)
    assert found, line
    return shlex.split(found["words"], comments=True)


def run_command(line: str, monkeypatch) -> int:
    """Run a line of the page in this process."""
    found = _COMMAND.match(line)
    assert found, line
    with typed(found["piped"] or "") as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        return main(words_of(line))


@contextmanager
def typed(text: str):
    """A pipe that this text comes out of."""
    read_end, write_end = os.pipe()
    os.write(write_end, text.encode())
    os.close(write_end)
    with open(read_end) as keyboard:
        yield keyboard


def parse_command(line: str) -> None:
    """Check a line's form; argparse exits if it is wrong."""
    words = _with_default(words_of(line))
    parse(words)


def run_conversation(text: str, monkeypatch) -> str:
    """Run a `terminal` block in plain lines; what is to be seen of it."""
    command, *lines = text.splitlines()
    said = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
    with typed("".join(f"{line}\n" for line in said)) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        assert main([*words_of(command.removeprefix("$ ")), "--plain"]) == 0
    return "".join(f"{line}\n" for line in lines if not line.startswith(_PROMPT))


def assert_shown(shown: str, printed: str) -> None:
    """Each line that is shown is printed, in this order; without `...` nothing else is. Pages show
    the terminal, where a list has dots and a switch a tick; what is run here is plain."""
    plain = shown.replace("·", "-").replace("✓ Switched", "Switched")
    lines, left = plain.splitlines(), printed.splitlines()
    if "..." not in lines:
        assert left == lines
        return
    for line in lines:
        if line != "...":
            assert line in left, f"{line!r} is not printed after what stands before it"
            left = left[left.index(line) + 1 :]


def run_page(path: Path, monkeypatch, capsys, names: dict[str, object] | None = None) -> int:
    """Run all of a page; how many of its blocks ran."""
    space, ran = dict(names or {}), 0
    page = blocks(path)
    for at, block in enumerate(page):
        after = page[at + 1] if at + 1 < len(page) else Block("", "")
        shown = after.text if after.kind == "text" and after.follows else None
        if block.file is not None:
            Path(block.file).write_text(block.text)
        elif block.kind == "python":
            exec(compile(block.text, str(path), "exec"), space)
            assert capsys.readouterr().out == (shown or ""), block.text
            ran += 1
        elif block.kind == "terminal":
            assert_shown(run_conversation(block.text, monkeypatch), capsys.readouterr().out)
            ran += 1
        elif block.kind == "sh":
            for line in command_lines(block.text):
                if is_only_parsed(line):
                    parse_command(line)
                else:
                    assert run_command(line, monkeypatch) == 0, line
            printed = capsys.readouterr().out
            if shown is not None:
                assert_shown(shown, printed)
            ran += 1
    return ran
