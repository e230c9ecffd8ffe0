"""tools.toml: what tools may do without asking, and what they may not do at all.

The user's own file lies in the config directory: `[tools]` holds everywhere, `[folders."PATH"]`
in one working folder. A project's file lies in its `.mull` folder. A project may come from
anywhere, so its file can deny and never allow, unless the user's file trusts that folder. mull
itself writes one thing: after "always", a rule more for the folder that it was answered in.
What is harmless in one project need not be in the next: `make test` runs what a Makefile says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mull.neutral.errors import ConfigError, SettingError
from mull.neutral.patterns import pattern
from mull.policy.approval import Effect, Rule, parse_rule
from mull.store.files import read_bytes, write_atomic
from mull.store.paths import config_dir
from mull.store.tables import VARIABLE, check_keys, decode_toml, refused, table_of

__all__ = [
    "PROJECT_FILE",
    "TOOLS_FILE",
    "RuleFile",
    "ToolPolicy",
    "load_policy",
    "own_rules",
    "rules_file",
]

TOOLS_FILE = "tools.toml"
PROJECT_FILE = f".mull/{TOOLS_FILE}"

_LARGEST = 1 << 20
_ALLOW = pattern(r"^[ \t]*allow[ \t]*=[ \t]*\[", re.MULTILINE)
_NEXT_TABLE = pattern(r"^[ \t]*\[", re.MULTILINE)


class ToolPolicy(Struct, frozen=True):
    """The rules of both files. `environment` are variables that commands get although they look
    like keys; `trusted` are folders whose files are obeyed; `warnings` is what the user should
    know."""

    rules: tuple[Rule, ...] = ()
    environment: tuple[str, ...] = ()
    trusted: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


class _Rules(Struct, frozen=True):
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


class _File(_Rules, frozen=True):
    trusted: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()


def load_policy(config: Path, folder: Path) -> ToolPolicy:
    """The policy for work in a folder; a missing file is an empty one.

    Raises:
        ConfigError: a file cannot be read as what it should be; says where.
    """
    own, here = _own(_tables(config / TOOLS_FILE, TOOLS_FILE), folder)
    tables = _tables(folder / PROJECT_FILE, PROJECT_FILE)
    check_keys(tables, ("tools",), PROJECT_FILE)
    theirs = _file(tables, PROJECT_FILE)
    rules = (*own.deny, *here.deny, *theirs.deny, *own.allow, *here.allow)
    trusted = tuple(Path(os.path.realpath(os.path.expanduser(path))) for path in own.trusted)
    if theirs == _File(deny=theirs.deny):
        return ToolPolicy(rules, own.environment, trusted)
    if Path(os.path.realpath(folder)) in trusted:
        environment = (*own.environment, *theirs.environment)
        return ToolPolicy((*rules, *theirs.allow), environment, trusted)
    warning = (
        f"{PROJECT_FILE} in this folder has allow rules, which mull ignores: a project may"
        f" only deny. If you trust it, add it to trusted in {config / TOOLS_FILE}"
    )
    return ToolPolicy(rules, own.environment, trusted, (warning,))


def rules_file() -> str:
    """Where the user's own rules are kept, as people write it."""
    return _as_written(config_dir() / TOOLS_FILE)


def _as_written(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def own_rules(folder: str | Path) -> tuple[Rule, ...]:
    """The rules for a folder where no tools are in use.

    Raises:
        ConfigError: a file cannot be read as what it should be; says where.
    """
    return load_policy(config_dir(), Path(folder)).rules


class RuleFile:
    """The user's file, to which rules that allow something in a folder are added; every other byte
    of it stays as it is.
    """

    def __init__(self, config: Path, folder: Path) -> None:
        self._path = config / TOOLS_FILE
        self._folder = folder

    def preview(self, rules: Sequence[str]) -> str:
        """The file and the line, and below it the lines that `keep` would write; empty if the
        rules are there already.

        Raises:
            ConfigError: as `keep`.
        """
        before, after = self._added(rules)
        if before == after:
            return ""
        old, new = before.split("\n"), after.split("\n")
        first = _same(old, new)
        last = _same(old[first:][::-1], new[first:][::-1])
        lines = "\n".join(new[first : len(new) - last]).rstrip("\n")
        return f"{_as_written(self._path)}, line {first + 1}:\n{lines}"

    def keep(self, rules: Sequence[str]) -> None:
        """Add the rules that are not there yet.

        Raises:
            ConfigError: the file cannot be read or written, or has a form that cannot be added to.
        """
        before, after = self._added(rules)
        if before != after:
            write_atomic(self._path, after.encode())

    def _added(self, rules: Sequence[str]) -> tuple[str, str]:
        """The file as it is, and with the rules."""
        data = read_bytes(self._path) or b""
        _allowed(data, self._folder)  # it is a file of rules
        text = before = data.decode()
        for rule in rules:
            text = self._with(text, rule)
        return before, text

    def _with(self, text: str, rule: str) -> str:
        parse_rule("allow", rule)
        before = _allowed(text.encode(), self._folder)
        if rule in before:
            return text
        head = f"[folders.{_toml(os.path.realpath(self._folder))}]"
        added = _with_rule(text, head, rule)
        try:
            after = _allowed(added.encode(), self._folder)
        except ConfigError:
            after = set()
        if after != {*before, rule}:
            raise ConfigError(
                f"cannot add to {self._path}: write {_toml(rule)} under {head} by hand"
            )
        return added


def _same(old: list[str], new: list[str]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))


def _allowed(data: bytes, folder: Path) -> set[str]:
    _, here = _own(decode_toml(data, TOOLS_FILE), folder)
    return {rule.text for rule in here.allow}


def _with_rule(text: str, head: str, rule: str) -> str:
    """At the front of the list where there is one: that fits every way to write a list."""
    at = text.find(f"{head}\n")
    if at < 0:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{head}\nallow = [\n  {_toml(rule)},\n]\n"
    begin = at + len(head) + 1
    following = _NEXT_TABLE.search(text, begin)
    there = _ALLOW.search(text, begin, following.start() if following else len(text))
    if there is None:
        return f"{text[:begin]}allow = [\n  {_toml(rule)},\n]\n{text[begin:]}"
    rest = text[there.end() :]
    gap = "" if rest.startswith(("\n", "\r\n")) else "\n  "
    return f"{text[: there.end()]}\n  {_toml(rule)},{gap}{rest}"


def _toml(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


def _tables(path: Path, file: str) -> dict[str, Any]:
    # a project's file may be anything: a FIFO would hold us for ever
    if path.exists() and not (path.is_file() and path.stat().st_size <= _LARGEST):
        raise ConfigError(f"{path} is not a file of rules: remove it, or write rules into it")
    data = read_bytes(path)
    return {} if data is None else decode_toml(data, file)


def _own(tables: dict[str, Any], folder: Path) -> tuple[_File, _Rules]:
    """What the user's file says everywhere, and in this folder."""
    check_keys(tables, ("tools", "folders"), TOOLS_FILE)
    folders = table_of(tables, "folders", TOOLS_FILE)
    read = {path: _folder(table_of(folders, path, TOOLS_FILE), path) for path in folders}
    here = [rules for path, rules in read.items() if _is_same(folder, path)]
    return _file(tables, TOOLS_FILE), _Rules(
        tuple(rule for rules in here for rule in rules.allow),
        tuple(rule for rules in here for rule in rules.deny),
    )


def _file(tables: dict[str, Any], file: str) -> _File:
    table = table_of(tables, "tools", file)
    where = f"{file}: tools"
    check_keys(table, _File.__struct_fields__, where)
    return _File(
        allow=_rules(table, "allow", where, file),
        deny=_rules(table, "deny", where, file),
        trusted=_texts(table, "trusted", where, "a list of folders"),
        environment=_variables(table, where),
    )


def _folder(table: dict[str, Any], path: str) -> _Rules:
    where = f"{TOOLS_FILE}: folders.{path}"
    check_keys(table, _Rules.__struct_fields__, where)
    return _Rules(
        _rules(table, "allow", where, TOOLS_FILE), _rules(table, "deny", where, TOOLS_FILE)
    )


def _rules(table: dict[str, Any], effect: Effect, where: str, file: str) -> tuple[Rule, ...]:
    try:
        texts = _texts(table, effect, where, 'a list of rules such as ["run(git status *)"]')
        return tuple(parse_rule(effect, text, file) for text in texts)
    except SettingError as error:
        raise ConfigError(f"{where}.{effect}: {error}") from None


def _variables(table: dict[str, Any], where: str) -> tuple[str, ...]:
    names = _texts(table, "environment", where, "a list of names of variables")
    if not all(VARIABLE.fullmatch(name) for name in names):
        raise refused(where, "environment", list(names), "a list of names of variables")
    return names


def _texts(table: dict[str, Any], key: str, where: str, allowed: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        raise refused(where, key, value, allowed)
    return tuple(value)


def _is_same(folder: Path, path: str) -> bool:
    """A folder is named for itself, not for what lies in it."""
    return os.path.realpath(os.path.expanduser(path)) == os.path.realpath(folder)
