"""Adds a table to config.toml, or takes one out, and leaves every other byte as it is.

The file is the user's: its comments, order and spelling stay. So the text is edited, not written
anew from what was read; before anything is written the edited text is read again, and it must say
what the old one said, plus or minus that one table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mull.neutral.errors import ConfigError
from mull.store.config import read_config
from mull.store.files import read_bytes, write_atomic
from mull.store.tables import decode_toml

__all__ = ["TomlValue", "add_table", "remove_table"]

TomlValue = str | bool | int | float | list[str] | dict[str, str]

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_TOKEN = re.compile(
    r"""
      (?P<text>
        \"\"\"(?:\\.|[^\\])*?\"{3,5} | '''.*?'{3,5}
      | "(?:\\.|[^"\\\n])*" | '[^'\n]*'
      )
    | (?P<comment>\#[^\n]*) | (?P<open>[\[{]) | (?P<close>[\]}]) | (?P<line>\r?\n)
    | (?P<blank>[ \t]+) | (?P<other>[^"'\#\[\]{}\r\n \t]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def add_table(path: Path, name: tuple[str, str], values: Mapping[str, TomlValue]) -> None:
    """Write a new table at the end of the file.

    Raises:
        ConfigError: there is one of this name, or what it says is not allowed; nothing is changed.
    """
    text, tables = _read(path)
    group, key = name
    if key in tables.get(group, {}):
        raise ConfigError(f"{path.name} has a table [{_dotted(name)}] already")
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{_dotted(name)}]", *(f"{k} = {_toml(v)}" for k, v in values.items())]
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else newline * 2
    edited = text + gap + "".join(line + newline for line in lines)
    wanted = {**tables, group: {**tables.get(group, {}), key: dict(values)}}
    _write(path, edited, wanted, f"[{_dotted(name)}] cannot be added to it")


def remove_table(path: Path, name: tuple[str, str]) -> None:
    """Take a table out of the file, with the tables below it.

    Raises:
        ConfigError: it is not there, or not in a form that can be taken out; nothing is changed.
    """
    text, tables = _read(path)
    group, key = name
    if key not in tables.get(group, {}):
        raise ConfigError(f"{path.name} has no table [{_dotted(name)}]")
    edited = text
    for start, end in reversed([span for found, span in _spans(text) if found[:2] == name]):
        edited = edited[:start] + edited[end:]
    rest = {k: v for k, v in tables[group].items() if k != key}
    wanted = {**tables, group: rest}
    _write(path, edited, wanted, f"{_dotted(name)} is not a table of its own there")


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    data = read_bytes(path) or b""
    tables = decode_toml(data, path.name)
    return data.decode(), tables


def _write(path: Path, text: str, wanted: dict[str, Any], problem: str) -> None:
    """Write the edited text if it says what is wanted and mull can read it."""
    advice = f"{problem}; edit {path} by hand"
    try:
        data = text.encode()
        said = decode_toml(data, path.name)
    except (ConfigError, UnicodeEncodeError):
        raise ConfigError(advice) from None
    if _without_empty(said) != _without_empty(wanted):
        raise ConfigError(advice)
    read_config(data, path.name)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_atomic(path, data, mode)


def _without_empty(tables: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tables.items() if value != {}}


def _spans(text: str) -> Iterator[tuple[tuple[str, ...], tuple[int, int]]]:
    """Each table's name, and where it stands: from its head to the end of its last value.

    Comments and blank lines after the last value are not the table's: they mostly speak of the
    next one. One blank line before the head goes with it.
    """
    name: tuple[str, ...] | None = None
    start = end = 0
    for head, begin, after in _statements(text):
        if head is not None:
            if name is not None:
                yield name, (start, end)
            name, start = head, _with_blank_line(text, begin)
        end = after
    if name is not None:
        yield name, (start, end)


def _statements(text: str) -> Iterator[tuple[tuple[str, ...] | None, int, int]]:
    """Each head or pair of key and value, and the lines it takes; a head with its name."""
    depth = 0
    begin: int | None = None
    line_start = 1 if text.startswith("\ufeff") else 0
    at = line_start
    for token in _TOKEN.finditer(text, line_start):
        kind, at = token.lastgroup, token.end()
        depth += (kind == "open") - (kind == "close")
        if kind == "line" and depth == 0:
            if begin is not None:
                yield _head(text[begin:at]), begin, at
            begin, line_start = None, at
        elif begin is None and kind not in ("blank", "comment", "line"):
            begin = line_start
    if begin is not None:
        yield _head(text[begin:at]), begin, at


def _head(statement: str) -> tuple[str, ...] | None:
    """The name in a table's head; None for anything else."""
    if not statement.lstrip().startswith("["):
        return None
    found: Any = tomllib.loads(statement)
    path: list[str] = []
    while found:
        if isinstance(found, list):
            found = found[0]
        else:
            ((key, found),) = found.items()
            path.append(key)
    return tuple(path)


def _with_blank_line(text: str, begin: int) -> int:
    before = re.search(r"(?<=\n)\r?\n\Z", text[:begin])
    return before.start() if before else begin


def _dotted(name: tuple[str, str]) -> str:
    return ".".join(_key(part) for part in name)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _toml(value: TomlValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_text, value))}]"
        case dict():
            return f"{{ {', '.join(f'{_key(k)} = {_text(v)}' for k, v in value.items())} }}"
        case _:
            return str(value)


def _text(text: str) -> str:
    """A basic string; control characters escaped, all else as it is."""
    escaped = "".join(
        f"\\{char}" if char in '"\\' else f"\\u{ord(char):04x}" if _is_control(char) else char
        for char in text
    )
    return f'"{escaped}"'


def _is_control(char: str) -> bool:
    return ord(char) < 0x20 or ord(char) == 0x7F
