"""Servers of tools for tests: how they are configured, and how their tools are called."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from loops import run_moved
from mull.agent.mcp.servers import McpServers
from mull.agent.tools.tool import ToolContext
from mull.neutral.blocks import ToolCallBlock
from mull.store.mcp import McpConfig
from tool_calls import answer

FIXTURES = Path(__file__).parent / "fixtures/mcp"


def plain(*flags, **settings):
    """The server in plain Python, with its flags."""
    script = str(FIXTURES / "plain.py")
    return McpConfig(command=sys.executable, args=(script, *flags), **settings)


def with_sdk(**settings):
    """The server written with the official SDK, over stdio."""
    return McpConfig(command=sys.executable, args=(str(FIXTURES / "with_sdk.py"),), **settings)


class Running(McpServers):
    """Servers that remember every status they told of."""

    def __init__(self, configs, logs, environ=None, **more):
        self.told = []
        self._news = asyncio.Event()
        environ = {"PATH": "/usr/bin:/bin"} if environ is None else environ
        super().__init__(configs, environ=environ, logs=logs, on_change=self._hear, **more)

    def _hear(self, status):
        self.told.append(status)
        self._news.set()

    def states(self, name):
        return [status.state for status in self.told if status.name == name]

    async def call(self, name, emitted=None, **given):
        """The result of one call; what was emitted meanwhile goes into the list."""
        emitted = [] if emitted is None else emitted
        context = ToolContext(None, on_emit=emitted.append)
        return await answer(self.tools[name], ToolCallBlock("call_1", name, given), context)

    async def until(self, condition):
        """Wait for what a server does by itself, as told by a change of its status."""
        async with asyncio.timeout(50):
            while not condition():
                self._news.clear()
                await self._news.wait()


def serving(configs, logs, body, environ=None, **more):
    """Start the servers, let `body` use them, end them; what it returned."""

    async def main():
        async with Running(configs, logs, environ, **more) as servers:
            return await body(servers)

    return asyncio.run(main())


def serving_moved(configs, logs, body):
    """The same where time passes only if `body`, which gets the loop too, moves it."""

    async def main(loop):
        async with Running(configs, logs) as servers:
            return await body(servers, loop)

    return run_moved(main)
