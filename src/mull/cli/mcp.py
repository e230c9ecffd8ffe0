"""`mull mcp`: MCP servers in config.toml, and whether they work.

`add` and `remove` change one table of the file and leave the rest unchanged. What looks like a key
is rejected: the file contains the name of the variable that holds it.
"""

from __future__ import annotations

import shlex
import sys
from argparse import ArgumentParser, Namespace, _SubParsersAction
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mull.neutral.errors import ConfigError, RemoteError
from mull.settings.words import closest, looks_secret, quote
from mull.store.config import CONFIG_FILE, load_config
from mull.store.mcp import McpConfig, check_name
from mull.store.paths import config_dir

if TYPE_CHECKING:
    from mull.agent.mcp.servers import McpServers, ServerStatus
    from mull.store.config_edit import TomlValue

__all__ = ["arguments", "run"]

_EXIT_FAILED = 1
_DESCRIPTION = 70

_KINDS = {
    (True, True): "changes    ",
    (True, False): "changes    ",
    (False, True): "reaches out",
    (False, False): "read-only  ",
}
"""By whether a tool changes something and whether it reaches beyond its server."""

_FORMS = """\
  mull mcp add time -- uvx mcp-server-time
  mull mcp add github --url https://api.githubcopilot.com/mcp/ \\
      --header 'Authorization=Bearer $GITHUB_TOKEN'
  mull mcp login tracker
  mull mcp test
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the subcommands."""
    parser.epilog = _FORMS
    actions = parser.add_subparsers(metavar="ACTION", required=True, parser_class=_Parser)
    listing = _action(actions, "list", _list, "list the servers in config.toml")
    listing.add_argument("--json", action="store_true", help="print JSON")
    test = _action(
        actions, "test", _test, "start servers and list their tools, or show why they fail"
    )
    test.add_argument("name", metavar="NAME", nargs="?", help="the server (default: all)")
    test.add_argument("--json", action="store_true", help="print JSON")
    _action(actions, "remove", _remove, "remove a server from config.toml").add_argument(
        "name", metavar="NAME", help="the server's name"
    )
    login = _action(actions, "login", _login, "log in to a server with OAuth, in a browser")
    login.add_argument("name", metavar="NAME", help="the server's name")
    login.add_argument("--port", type=int, default=0, help="the local port the browser returns to")
    login.add_argument("--no-browser", action="store_true", help="only print the URL")
    for name, action, line in (
        ("logout", _logout, "delete the login for a server"),
        ("trust", _trust, "accept the changes a server made to its tools"),
    ):
        _action(actions, name, action, line).add_argument(
            "name", metavar="NAME", help="the server's name"
        )
    add = _action(actions, "add", _add, "add a server to config.toml")
    add.add_argument("name", metavar="NAME", help="a name for the server")
    add.add_argument("--url", help="its URL, for a server reached over HTTP")
    add.add_argument(
        "--header",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="an HTTP header for a server with --url; $VAR is expanded from the environment",
    )
    add.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="an environment variable for a command; $VAR is expanded from the environment",
    )
    add.add_argument("--cwd", metavar="FOLDER", help="working folder of the command")
    add.add_argument("--timeout", type=float, metavar="SECONDS", help="time limit of a call (60)")
    add.add_argument(
        "command", nargs="*", metavar="-- COMMAND ARG", help="the command that runs the server"
    )


class _Parser(ArgumentParser):
    """A parser for which all words after the first `--` are the command, whatever they look like.

    argparse alone rejects them as unknown if an option comes between the name and the `--`.
    """

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Namespace | None = None
    ) -> tuple[Namespace, list[str]]:
        words = list(args or ())
        end = words.index("--") if "--" in words else len(words)
        options, unknown = super().parse_known_args(words[:end], namespace)
        if "command" not in options:
            return options, unknown + words[end + 1 :]
        options.command += words[end + 1 :]
        return options, unknown


def run(options: Namespace) -> int:
    """Run the chosen subcommand.

    Raises:
        LocalError: the file or the request is invalid.
    """
    status: int = options.action(options)
    return status


def _action(
    actions: _SubParsersAction[_Parser], name: str, action: object, line: str
) -> ArgumentParser:
    parser = actions.add_parser(name, help=line, description=line)
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help=f"use this file instead of {CONFIG_FILE}"
    )
    parser.set_defaults(action=action)
    return parser


def _path(options: Namespace) -> Path:
    path: Path = options.config or config_dir() / CONFIG_FILE
    return path


def _list(options: Namespace) -> int:
    servers = load_config(_path(options)).mcp
    if options.json:
        import json

        rows = [
            {"name": name, "enabled": config.enabled, "reached": _reached(config)}
            for name, config in servers.items()
        ]
        print(json.dumps(rows, indent=2))
        return 0
    wide = max(map(len, servers), default=0)
    for name, config in servers.items():
        print(f"{name.ljust(wide)}  {'' if config.enabled else '(off)  '}{_reached(config)}")
    if not servers:
        print("No MCP servers configured. `mull mcp add NAME -- COMMAND` adds one.")
    return 0


def _reached(config: McpConfig) -> str:
    """How a server is reached: only the names of env and headers, and the URL without its query."""
    if config.url is not None:
        shown = config.url.partition("?")[0].partition("#")[0]
        return shown + (f"  (headers: {', '.join(config.headers)})" if config.headers else "")
    words = [config.command or "", *config.args]
    shown = " ".join("…" if looks_secret(word) else shlex.quote(word) for word in words)
    return shown + (f"  (env: {', '.join(config.env)})" if config.env else "")


def _add(options: Namespace) -> int:
    from mull.cli.mcp_secrets import refuse_secrets
    from mull.store.config_edit import add_table

    path = _path(options)
    check_name(options.name)
    if options.name in load_config(path).mcp:
        raise ConfigError(
            f"the server {options.name} already exists: run `mull mcp remove {options.name}` first"
        )
    refuse_secrets(
        options.name,
        env=options.env,
        headers=options.header,
        command=options.command,
        url=options.url,
    )
    table: dict[str, TomlValue] = {}
    if options.command:
        table["command"], *args = options.command
        table |= {"args": args} if args else {}
    pairs = {"env": _pairs(options.env, "--env"), "headers": _pairs(options.header, "--header")}
    rest = {"url": options.url, "cwd": options.cwd, "timeout": options.timeout, **pairs}
    table |= {key: value for key, value in rest.items() if value}
    if not options.command and not options.url:
        raise ConfigError(
            f"give the command of the server, `mull mcp add {options.name} -- COMMAND "
            "ARG`, or its URL with --url"
        )
    add_table(path, ("mcp", options.name), table)
    print(f"Added {options.name} to {path}; `mull mcp test {options.name}` tests it.")
    return 0


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConfigError(f"{option} {quote(text)} has no value: use {option} NAME=TEXT")
        pairs[name] = value
    return pairs


def _remove(options: Namespace) -> int:
    from mull.cli.mcp_login import forget
    from mull.store.config_edit import remove_table

    path = _path(options)
    config = _known(load_config(path).mcp, options.name)
    remove_table(path, ("mcp", options.name))
    forget(options.name, config)
    print(f"Removed {options.name} from {path}.")
    return 0


def _known(servers: Mapping[str, McpConfig], name: str) -> McpConfig:
    if name in servers:
        return servers[name]
    near = closest(name, servers)
    hint = f"did you mean {near}?" if near else "`mull mcp list` lists them"
    raise ConfigError(f"unknown MCP server {quote(name)}: {hint}")


def _login(options: Namespace) -> int:
    from mull.cli import interrupt
    from mull.cli.mcp_login import log_in

    config = _known(load_config(_path(options)).mcp, options.name)
    work = log_in(options.name, config, port=options.port, browser=not options.no_browser)
    try:
        interrupt.run(work)
    except RemoteError as error:
        print(f"mull: login to {options.name} failed: {error}", file=sys.stderr)
        return _EXIT_FAILED
    return 0


def _logout(options: Namespace) -> int:
    from mull.cli.mcp_login import log_out

    _known(load_config(_path(options)).mcp, options.name)
    log_out(options.name)
    return 0


def _trust(options: Namespace) -> int:
    import msgspec

    from mull.cli import interrupt
    from mull.cli.mcp_login import trust

    config = _known(load_config(_path(options)).mcp, options.name)
    return interrupt.run(trust(options.name, msgspec.structs.replace(config, enabled=True)))


def _test(options: Namespace) -> int:
    import msgspec

    from mull.cli import interrupt

    servers = dict(load_config(_path(options)).mcp)
    if options.name is not None:  # a disabled one may be tested
        config = _known(servers, options.name)
        servers = {options.name: msgspec.structs.replace(config, enabled=True)}
    if not servers:
        print("No MCP servers configured. `mull mcp add NAME -- COMMAND` adds one.")
        return 0
    statuses = interrupt.run(_try(servers, options.json))
    return _EXIT_FAILED if any(status.state == "failed" for status in statuses) else 0


async def _try(servers: dict[str, McpConfig], as_json: bool) -> tuple[ServerStatus, ...]:
    import msgspec

    from mull.agent.mcp.servers import McpServers

    async with McpServers(servers) as running:
        statuses = running.statuses
        if as_json:
            print(msgspec.json.encode(statuses).decode())
        else:
            for status in statuses:
                _tell(status, running)
    return statuses


def _tell(status: ServerStatus, running: McpServers) -> None:
    from mull.agent.mcp.servers import log_folder

    if status.state == "off":
        return print(f"– {status.name}: off")
    if status.state == "failed":
        print(f"✗ {status.name}: {status.reason}")
        log = log_folder() / f"{status.name}.log"
        return print(f"    log: {log}") if log.exists() else None
    count = len(status.tools)
    print(f"✓ {status.name}: {count} tool{'' if count == 1 else 's'} in {status.seconds:.1f} s")
    wide = max(map(len, status.tools), default=0)
    for name in status.tools:
        tool = running.tools[name]
        kind = _KINDS[tool.changes, tool.reaches_out]
        about = " ".join(tool.definition.description.split())[:_DESCRIPTION]
        print(f"    {name.ljust(wide)}  {kind}  {''.join(filter(str.isprintable, about))}".rstrip())
    for note in status.notes:
        print(f"    ⚠ {note}")
