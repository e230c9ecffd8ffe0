"""All configured servers together: started at once, each for itself, their tools in one order.

What one server does cannot harm another: each has a task of its own, and one that fails is only
reported.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from mull.agent.mcp.server import Server, State
from mull.agent.mcp.tool import McpTool, offered_tools
from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.settings.words import quote
from mull.store.mcp import McpConfig
from mull.store.paths import data_dir

__all__ = ["McpServers", "ServerStatus", "log_folder"]


class ServerStatus(Value, frozen=True):
    """How a server is. `seconds` is how long it took to start; `notes` are for a person."""

    name: str
    state: State
    tools: tuple[str, ...] = ()
    reason: str = ""
    seconds: float | None = None
    notes: tuple[str, ...] = ()


def log_folder() -> Path:
    """Where the servers' logs lie."""
    return data_dir() / "mcp"


class McpServers:
    """The servers of a session: `async with McpServers(config.mcp) as servers: servers.tools`.

    `on_change` is told the new status whenever a server starts, fails, ends or changes its tools.
    """

    def __init__(
        self,
        configs: Mapping[str, McpConfig],
        *,
        environ: Mapping[str, str] | None = None,
        logs: Path | None = None,
        on_change: Callable[[ServerStatus], None] | None = None,
    ) -> None:
        self._on_change = on_change
        self._offered: dict[str, tuple[list[McpTool], list[str]]] = {}
        self._servers = [
            Server(
                name,
                config,
                environ=os.environ if environ is None else environ,
                logs=logs or log_folder(),
                on_change=self._changed,
            )
            for name, config in configs.items()
        ]

    async def start(self) -> None:
        """Start all at once; returns when each is up or has failed, as `statuses` tells."""
        for server in self._servers:
            server.start()
        await asyncio.gather(*(server.settled() for server in self._servers))

    async def restart(self, name: str) -> None:
        """Start one afresh, also one that was given up.

        Raises:
            LocalError: there is none of this name.
        """
        server = next((server for server in self._servers if server.name == name), None)
        if server is None:
            known = ", ".join(server.name for server in self._servers) or "none"
            raise LocalError(f"no MCP server is called {quote(name)}: there is {known}")
        await server.restart()

    async def close(self) -> None:
        """End all."""
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
        """The tools by the names models call them: servers in the file's order, tools by name."""
        return {
            tool.definition.name: tool
            for server in self._servers
            for tool in self._offered.get(server.name, ([], []))[0]
        }

    @property
    def statuses(self) -> tuple[ServerStatus, ...]:
        """How each server is, in the file's order."""
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
        if server.state == "ready":
            self._offered[server.name] = offered_tools(server)
        if self._on_change is not None:
            self._on_change(self._status(server))
