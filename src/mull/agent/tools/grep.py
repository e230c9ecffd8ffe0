"""The search program used without ripgrep: prints in ripgrep's format.

It is a process and not a thread because a regular expression can run forever and cannot be stopped
from outside. Prints `PATH\\0NUMBER:TEXT`, `PATH\\0NUMBER-TEXT` for context lines, and `--` between
groups. Exit status 2 means that the expression is invalid, and stderr says why.
"""

from __future__ import annotations

import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from io import TextIOWrapper
from typing import BinaryIO

import msgspec

from mull.agent.tools.text import encoding_of
from mull.agent.tools.walk import walk

__all__ = ["Wanted", "main"]

_HEAD = 1 << 16
_LONGEST_LINE = 1 << 20


class Wanted(msgspec.Struct):
    """A search in `start`, a file or a folder, with ripgrep's options."""

    start: str
    pattern: str
    ignore_case: bool = False
    context: int = 0
    longest: int = 2000


def main() -> int:
    """Read the search from the last argument, and print the matches."""
    wanted = msgspec.json.decode(sys.argv[-1], type=Wanted)
    try:
        expression = re.compile(wanted.pattern, re.IGNORECASE if wanted.ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        print(error, file=sys.stderr)
        return 2
    printed = False
    for path in _files(wanted.start):
        for row in _rows(path, expression, wanted, printed):
            printed = True
            sys.stdout.buffer.write(row)
        sys.stdout.buffer.flush()
    return 0


def _files(start: str) -> Iterator[str]:
    if os.path.isfile(start):
        yield start
        return
    for entry in walk(start):
        if not entry.is_folder:
            yield entry.path if start == "." else os.path.join(start, entry.path)


def _rows(path: str, expression: re.Pattern[str], wanted: Wanted, printed: bool) -> Iterator[bytes]:
    name = os.fsencode(path)
    around: deque[tuple[int, str]] = deque(maxlen=wanted.context)
    last, after = 0, 0
    for number, line in enumerate(_lines(path), 1):
        if expression.search(line) is None:
            if after:
                yield _row(name, number, b"-", line, wanted)
                after, last = after - 1, number
            else:
                around.append((number, line))
            continue
        first = around[0][0] if around else number
        if wanted.context and (printed or last) and first != last + 1:
            yield b"--\n"
        for earlier, text in around:
            yield _row(name, earlier, b"-", text, wanted)
        around.clear()
        yield _row(name, number, b":", line, wanted)
        after, last = wanted.context, number


def _row(name: bytes, number: int, sign: bytes, line: str, wanted: Wanted) -> bytes:
    text = line[: wanted.longest + 1].encode("utf-8", "replace")
    return b"%b\0%d%b%b\n" % (name, number, sign, text)


def _lines(path: str) -> Iterator[str]:
    """The lines of a text file; none of any other. Only the first part of a very long one."""
    file = _open(path)
    if file is None:
        return
    with file:
        head = file.peek(_HEAD)[:_HEAD]  # type: ignore[attr-defined]
        encoding = encoding_of(head, is_cut=len(head) == _HEAD)
        if encoding is None:
            return
        file.read(len(encoding.mark))
        text = TextIOWrapper(file, encoding.codec, errors="replace", newline="\n")
        while line := text.readline(_LONGEST_LINE):
            yield line.removesuffix("\n").removesuffix("\r")
            while line and not line.endswith("\n"):
                line = text.readline(_LONGEST_LINE)


def _open(path: str) -> BinaryIO | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        if not os.path.isfile(path):  # a FIFO or a device is not even opened
            return None
        return os.fdopen(os.open(path, flags), "rb", buffering=_HEAD)
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(main())
