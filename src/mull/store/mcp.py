"""Servers of tools in config.toml: what may stand in a table `[mcp.NAME]`.

A server is a command that is run here or an address that is asked. Values that are secrets are
not written down: `$VAR` in `env`, `headers` and `url` stands for a variable of the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mull.neutral.errors import ConfigError
from mull.neutral.patterns import pattern
from mull.settings.words import join_or, quote
from mull.store.tables import VARIABLE, check_keys, is_address, read_headers, refused

__all__ = ["McpConfig", "check_name", "read_servers"]

# no "__" and no "_" at an end: a tool is called mcp__NAME__tool, and NAME must be found in that
_NAME = pattern(r"[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*", re.ASCII)
_LONGEST_NAME = 32
_LONGEST_WAIT = 24 * 60 * 60
_OF_COMMANDS = ("args", "env", "cwd", "sandbox")
_OF_ADDRESSES = ("headers",)


class McpConfig(Struct, frozen=True):
    """One server. Either `command` or `url` is set; times are in seconds."""

    command: str | None = None
    """The program that is the server."""
    args: tuple[str, ...] = ()
    """The arguments of that program."""
    env: Mapping[str, str] = {}
    """Environment variables for it beside a few that are passed on; `$VAR` refers to mull's own."""
    cwd: str | None = None
    """The folder that it runs in; None is mull's own working folder."""
    url: str | None = None
    """The address of a server that runs elsewhere."""
    headers: Mapping[str, str] = {}
    """The headers of every request to that address."""
    timeout: float = 60
    """How long a call may take."""
    start_timeout: float = 30
    """How long the server may take to start."""
    enabled: bool = True
    """Whether the server is used at all."""
    tools: tuple[str, ...] | None = None
    """The tools that are offered to models; None offers all."""
    read_only: tuple[str, ...] = ()
    """The tools that change nothing, so that they run without approval."""
    sandbox: bool = False
    """Whether the program is confined as the commands of a model are."""


def read_servers(table: Mapping[str, Any], file: str) -> dict[str, McpConfig]:
    """The servers by their names, in the order of the file.

    Raises:
        ConfigError: one of them is not as it should be; says which and how.
    """
    servers: dict[str, McpConfig] = {}
    for name in table:
        check_name(name, f"{file}: ")
        if not isinstance(table[name], dict):
            raise refused(file, f"mcp.{name}", table[name], f"a table, [mcp.{name}]")
        servers[name] = _server(table[name], f"{file}: mcp.{name}")
    return servers


def check_name(name: str, where: str = "") -> None:
    """Refuse what cannot be the name of a server.

    Raises:
        ConfigError: it cannot.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise ConfigError(
            f"{where}an MCP server cannot be called {quote(name)}: use letters and digits, with "
            f"single '-' and '_' between them, {_LONGEST_NAME} characters at most"
        )


def _server(table: Mapping[str, Any], where: str) -> McpConfig:
    check_keys(table, McpConfig.__struct_fields__, where)
    _check_kind(table, where)
    tools = table.get("tools")
    return McpConfig(
        command=_command(table.get("command"), where),
        args=_words(table, "args", where, blank=True),
        env=_env(table.get("env", {}), where),
        cwd=_line(table.get("cwd"), "cwd", where),
        url=_url(table.get("url"), where),
        headers=read_headers(table.get("headers", {}), where),
        timeout=_seconds(table.get("timeout", McpConfig().timeout), "timeout", where),
        start_timeout=_seconds(
            table.get("start_timeout", McpConfig().start_timeout), "start_timeout", where
        ),
        enabled=_flag(table.get("enabled", True), "enabled", where),
        tools=None if tools is None else _words(table, "tools", where),
        read_only=_words(table, "read_only", where),
        sandbox=_flag(table.get("sandbox", False), "sandbox", where),
    )


def _check_kind(table: Mapping[str, Any], where: str) -> None:
    """A server is either run or asked, and each kind has keys of its own."""
    if ("command" in table) == ("url" in table):
        found = "has both a command and a url" if "url" in table else "has no command and no url"
        raise ConfigError(f"{where} {found}: give exactly one of them")
    foreign, kind = (
        (_OF_COMMANDS, "a command") if "url" in table else (_OF_ADDRESSES, "an address, url")
    )
    for key in foreign:
        if key in table:
            raise ConfigError(f"{where}: {key} is for a server with {kind}: leave it out")


def _command(value: object, where: str) -> str | None:
    command = _line(value, "command", where)
    if command and " " in command and not re.search(r"[/\\]", command):
        first = command.split()[0]
        raise ConfigError(
            f"{where}: command cannot be {quote(command)}: write command = {quote(first)} and the "
            "other words as args = [...]"
        )
    return command


def _line(value: object, key: str, where: str) -> str | None:
    if value is None or (isinstance(value, str) and value.strip() and value.isprintable()):
        return value
    raise refused(where, key, value, "one line of text")


def _words(
    table: Mapping[str, Any], key: str, where: str, *, blank: bool = False
) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, list) and all(
        isinstance(word, str) and "\0" not in word and (blank or word.strip()) for word in value
    ):
        return tuple(value)
    raise refused(where, key, value, 'a list of texts such as ["a", "b"]')


def _env(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise refused(where, "env", value, 'a table such as { "API_TOKEN" = "$API_TOKEN" }')
    for name, text in value.items():
        if not (VARIABLE.fullmatch(name) and isinstance(text, str) and "\0" not in text):
            raise ConfigError(f"{where}: env.{quote(name)} cannot be that: use a text for a name")
    return value


def _url(value: object, where: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and is_address(value):
        if "@" not in value.partition("://")[2].partition("/")[0]:
            return value
        raise ConfigError(
            f"{where}: url contains a user name or password before the @: remove it, and send it"
            ' as headers = { Authorization = "Basic $VAR" }'
        )
    raise ConfigError(f"{where}: url cannot be that: use an address such as https://host/mcp")


def _seconds(value: object, key: str, where: str) -> float:
    if isinstance(value, int | float) and value is not True and 0 < value <= _LONGEST_WAIT:
        return value
    raise refused(where, key, value, f"seconds above 0, {_LONGEST_WAIT:,} at most")


def _flag(value: object, key: str, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise refused(where, key, value, join_or(("true", "false")))
