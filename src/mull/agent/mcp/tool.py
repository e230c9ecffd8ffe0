"""A server's tool as any other tool that a model may call."""

from __future__ import annotations

from typing import Any

import msgspec

from mull.agent.mcp.names import tool_name
from mull.agent.mcp.results import cut, result_block
from mull.agent.mcp.server import Server
from mull.agent.tools.tool import Preview, ToolContext
from mull.neutral.blocks import ToolCallBlock, ToolResultBlock
from mull.neutral.errors import RemoteError
from mull.neutral.request import Tool

__all__ = ["McpTool", "offered_tools"]

MOST_TOOLS = 200
"""Tools of one server that are offered; more would fill the context before the first word."""
_LONGEST_DESCRIPTION = 8_000
_LARGEST_SCHEMA = 64_000
_SHOWN = 4_000


class McpTool:
    """One tool of one server."""

    def __init__(self, server: Server, listed: dict[str, Any]) -> None:
        self._server = server
        self._name: str = listed["name"]
        hints = listed.get("annotations") or {}
        schema = {key: value for key, value in listed["inputSchema"].items() if key != "$schema"}
        self.definition = Tool(
            tool_name(server.name, self._name),
            cut(listed.get("description") or hints.get("title") or "", _LONGEST_DESCRIPTION),
            {"type": "object", **schema},
        )
        self.changes = not (
            hints.get("readOnlyHint") is True or self._name in server.config.read_only
        )
        self.source = f"mcp:{server.name}"

    def preview(self, input: dict[str, Any]) -> Preview:
        """The server, the tool and what it would be given."""
        name = "".join(char if char.isprintable() else "?" for char in self._name[:100])
        title = f"{self._server.name}: {name}"
        if not input:
            return Preview(title)
        given = msgspec.json.format(msgspec.json.encode(input)).decode()
        return Preview(title, cut(given, _SHOWN))

    async def run(self, call: ToolCallBlock, context: ToolContext) -> ToolResultBlock:
        """Ask the server; whatever goes wrong is an error result."""
        if call.arguments is not None and not call.input:
            said = f"the arguments are not a JSON object: {call.arguments[:200]}"
            return ToolResultBlock(call.id, said, is_error=True)
        try:
            result = await self._server.call(self._name, call.input, context.emit)
        except RemoteError as error:
            return ToolResultBlock(call.id, str(error), is_error=True)
        return result_block(call.id, result)


def offered_tools(server: Server) -> tuple[list[McpTool], list[str]]:
    """The tools of a server that are offered, by name, and what there is to say of the others."""
    wanted, read_only = server.config.tools, server.config.read_only
    listed = {tool["name"]: tool for tool in reversed(server.listed)}
    asked_for = dict.fromkeys((*(wanted or ()), *read_only))
    notes = [f"it has no tool {name}" for name in asked_for if name not in listed]
    names = sorted(name for name in listed if wanted is None or name in wanted)
    huge = [name for name in names if _is_huge(listed[name]["inputSchema"])]
    notes += [f"{tool_name(server.name, name)} is left out: its schema is large" for name in huge]
    fitting = [name for name in names if name not in huge]
    if len(fitting) > MOST_TOOLS:
        notes.append(f"{MOST_TOOLS} of its {len(fitting)} tools are offered: choose with tools")
    return [McpTool(server, listed[name]) for name in fitting[:MOST_TOOLS]], notes


def _is_huge(schema: dict[str, Any]) -> bool:
    return len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA
