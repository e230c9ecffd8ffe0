"""The MCP servers given to a conversation: started by its first turn, and closed with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from mull.agent.mcp.elsewhere import at, at_now, from_here
from mull.agent.mcp.find import OnDemand
from mull.agent.mcp.servers import McpServers
from mull.agent.tools.tool import RunnableTool
from mull.neutral.errors import LocalError
from mull.settings.layers import Snapshot
from mull.store.mcp import McpConfig, check_name, read_servers

__all__ = ["GivenServers", "McpGiven"]

McpGiven: TypeAlias = McpServers | Mapping[str, McpConfig | Mapping[str, Any]]
"""Servers by name, each a `McpConfig` or its keys in a mapping; or servers that you start and close
yourself."""


class GivenServers:
    """Servers of one conversation. Those that are already running belong to whoever started them.

    Those of an `isolated` engine store nothing and use no stored login.

    Raises:
        LocalError: the configuration of one is invalid; says which.
    """

    def __init__(self, given: McpGiven, *, isolated: bool = False) -> None:
        self._servers = given if isinstance(given, McpServers) else None
        self._configs = {} if isinstance(given, McpServers) else _configs_of(given)
        self._isolated = isolated
        self._folder: TemporaryDirectory[str] | None = None
        self._is_owner = False
        self._closing: asyncio.Task[None] | None = None
        self._demand = OnDemand()

    async def start(self) -> bool:
        """Start them, unless they are running; returns whether that is news. A server whose tools
        are known from an earlier run starts at its first call.

        Raises:
            LocalError: one did not start; says why. None is left running. Or they run on another
                event loop, which is blocked.
        """
        if self._home is not None:
            await at(self._home, _respond)
            return False
        if self._servers is None or self._configs:
            self._servers = self._made()
        self._is_owner = True
        try:
            await self._servers.start()
            failed = [one for one in self._servers.statuses if one.state == "failed"]
            if failed:
                said = (f"the MCP server {one.name} did not start: {one.reason}" for one in failed)
                raise LocalError("; ".join(said))
        except BaseException:
            await self.close()
            raise
        return True

    def tools(self, settings: Snapshot) -> Mapping[str, RunnableTool]:
        """The tools that they offer now. If there are many, the model searches for those it
        needs.
        """
        servers, home = self._servers, self._home
        if servers is None or home is None:
            return {}
        offered = from_here({**servers.tools, **servers.resource_tools}, home)
        most, tokens = settings["tools.onDemandOver"], settings["tools.onDemandTokens"]
        assert isinstance(most, int)
        assert isinstance(tokens, int)
        return self._demand.narrow(offered, most, tokens)

    def lent(self) -> GivenServers:
        """The same servers for a fork, which does not close them."""
        lent = copy(self)
        lent._is_owner, lent._folder = False, None
        return lent

    async def close(self) -> None:
        """End the servers that were started here. `start` starts them again."""
        if (home := self._let_go()) is not None:
            await at(home, self._end)
        self._clean_up()

    def close_now(self) -> None:
        """`close` for blocking code."""
        if (home := self._let_go()) is not None:
            self._closing = at_now(home, self._end)
        if self._closing is None:
            self._clean_up()

    @property
    def _home(self) -> asyncio.AbstractEventLoop | None:
        """Where they run; None if they do not."""
        home = self._servers.home if self._servers is not None else None
        return None if home is None or home.is_closed() else home

    def _let_go(self) -> asyncio.AbstractEventLoop | None:
        """Where servers that were started here run; they are not closed twice."""
        home = self._home if self._is_owner else None
        self._is_owner = False
        return home

    async def _end(self) -> None:
        assert self._servers is not None
        await self._servers.close()
        self._clean_up()

    def _clean_up(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def _made(self) -> McpServers:
        if not self._isolated:
            return McpServers(self._configs, lazy=True)
        self._clean_up()
        self._folder = TemporaryDirectory(prefix="mull-mcp-", ignore_cleanup_errors=True)
        return McpServers(self._configs, logs=Path(self._folder.name), logins=False)


async def _respond() -> None:
    """Show that a loop runs."""


def _configs_of(given: Mapping[str, McpConfig | Mapping[str, Any]]) -> dict[str, McpConfig]:
    if not isinstance(given, Mapping):
        raise LocalError(
            f"mcp must be a mapping of names to servers, or McpServers, not {type(given).__name__}"
        )
    configs: dict[str, McpConfig] = {}
    for name, one in given.items():
        if isinstance(one, McpConfig):
            check_name(name)
            configs[name] = one
        else:
            configs |= read_servers({name: _table(one)}, "Conversation")
    return {name: one for name, one in configs.items() if one.enabled}


def _table(given: object) -> object:
    """The keys of a server as a file would contain them."""
    if not isinstance(given, Mapping):
        return given
    return {key: list(v) if isinstance(v, tuple) else v for key, v in given.items()}
