"""All configured servers together: started in parallel, independently, their tools in one order.

Servers do not affect each other: each has its own task, and one that fails is only reported.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from mull.agent.mcp.prompts import Prompt, prompts_of
from mull.agent.mcp.resources import RESOURCE_TOOLS, resource_tools
from mull.agent.mcp.server import Server, State
from mull.agent.mcp.tool import McpTool, offered_tools, tool_prefix
from mull.agent.tools.table import GROUPS
from mull.agent.tools.tool import RunnableTool
from mull.client.connection import running_loop
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.settings.words import quote
from mull.store.keys import Keys
from mull.store.mcp import McpConfig
from mull.store.paths import data_dir

__all__ = ["McpServers", "ServerStatus", "log_folder", "may_mean"]


class ServerStatus(Value, frozen=True):
    """The state of a server. `seconds` is how long it took to start; `notes` are for the user."""

    name: str
    state: State
    tools: tuple[str, ...] = ()
    reason: str = ""
    seconds: float | None = None
    notes: tuple[str, ...] = ()


def log_folder() -> Path:
    """The folder of the servers' logs."""
    return data_dir() / "mcp"


class McpServers:
    """The servers of a session: `async with McpServers(config.mcp) as servers: servers.tools`.

    `on_change` gets the new status whenever a server starts, fails, ends or changes its tools. With
    `lazy`, a server whose tools are known from an earlier run starts at the first call. Without
    `logins`, stored ones are not used. `home` is the event loop that they run on, while they do.
    """

    def __init__(
        self,
        configs: Mapping[str, McpConfig],
        *,
        environ: Mapping[str, str] | None = None,
        logs: Path | None = None,
        on_change: Callable[[ServerStatus], None] | None = None,
        lazy: bool = False,
        logins: bool = True,
    ) -> None:
        self.home: asyncio.AbstractEventLoop | None = None
        self._on_change = on_change
        self._lazy = lazy
        self._offered: dict[str, tuple[list[McpTool], list[str]]] = {}
        environ = os.environ if environ is None else environ
        self._servers = [
            Server(
                name,
                config,
                environ=environ,
                logs=logs or log_folder(),
                on_change=self._changed,
                keys=Keys(data_dir(), environ) if logins else None,
            )
            for name, config in configs.items()
        ]

    async def start(self, wanted: str = "all") -> None:
        """Start those that `--tools` may refer to, all at once.

        Returns when each is up, has failed, or is known well enough; `statuses` tells.
        """
        self.home = running_loop()
        needed = [server for server in self._servers if may_mean(wanted, server.name)]
        for server in needed:
            server.start(lazily=self._lazy)
        await asyncio.gather(*(server.settled() for server in needed))

    async def restart(self, name: str) -> None:
        """Restart one, also after mull has given up on it.

        Raises:
            LocalError: there is no server of this name.
        """
        await self.server(name).restart()

    def server(self, name: str) -> Server:
        """The server of this name.

        Raises:
            LocalError: there is none.
        """
        for server in self._servers:
            if server.name == name:
                return server
        known = ", ".join(server.name for server in self._servers) or "none"
        raise LocalError(f"unknown MCP server {quote(name)}: use {known}")

    async def close(self) -> None:
        """End all servers."""
        self.home = None
        await asyncio.gather(*(server.close() for server in self._servers))

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    @property
    def tools(self) -> dict[str, McpTool]:
        """The tools by name: servers in the file's order, tools by name."""
        return {
            tool.definition.name: tool
            for server in self._servers
            for tool in self._offered.get(server.name, ([], []))[0]
        }

    @property
    def resource_tools(self) -> dict[str, RunnableTool]:
        """The tools that list and read resources, if a server has any."""
        return resource_tools(self._servers)

    @property
    def prompts(self) -> list[Prompt]:
        """The prompts of all servers, in the file's order."""
        return [prompt for server in self._servers for prompt in prompts_of(server)]

    @property
    def statuses(self) -> tuple[ServerStatus, ...]:
        """The state of each server, in the file's order."""
        return tuple(self._status(server) for server in self._servers)

    def _status(self, server: Server) -> ServerStatus:
        tools, notes = self._offered.get(server.name, ([], []))
        return ServerStatus(
            name=server.name,
            state=server.state,
            tools=tuple(tool.definition.name for tool in tools),
            reason=server.reason,
            seconds=server.seconds,
            notes=tuple(notes),
        )

    def _changed(self, server: Server) -> None:
        if server.state in ("ready", "idle"):
            self._offered[server.name] = offered_tools(server)
        if self._on_change is not None:
            self._on_change(self._status(server))


def may_mean(wanted: str, server: str) -> bool:
    """Whether a word of `--tools` may refer to a tool of this server."""
    prefix = tool_prefix(server)
    words = [word for part in wanted.split(",") if (word := part.strip())]
    return any(_fits(word, prefix) for word in words)


def _fits(word: str, prefix: str) -> bool:
    if word in GROUPS or word in RESOURCE_TOOLS:
        return word != "none"
    literal = re.split(r"[*?\[{]", word, maxsplit=1)[0]
    return literal.startswith(prefix) or (literal != word and prefix.startswith(literal))
