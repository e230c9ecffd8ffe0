"""A server's tool as any other tool that a model may call."""

from __future__ import annotations

from typing import Any

import msgspec

from mull.agent.mcp.names import tool_name
from mull.agent.mcp.results import cut, outcome_of
from mull.agent.mcp.server import Server
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    ToolContext,
    ToolFailure,
    input_of,
    json_subject,
)
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.errors import RemoteError
from mull.neutral.request import Tool
from mull.policy.approval import Asked

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
        only_reads = hints.get("readOnlyHint") is True
        self._destroys = hints.get("destructiveHint") is True
        trusted = self._name in server.config.read_only
        self.changes = not trusted and (self._destroys or not only_reads)
        self.source = f"mcp:{server.name}"

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The server, the tool and what it is to be given; the server checks what that is.

        Raises:
            ToolFailure: the arguments are no object.
        """
        given = input_of(call, self.definition.parameters)
        asked = Asked(self.definition.name, self.changes, json_subject(given))

        async def ask(context: ToolContext) -> Outcome:
            try:
                return outcome_of(await self._server.call(self._name, given, context.emit))
            except RemoteError as error:
                raise ToolFailure(str(error)) from None

        return PreparedCall(call, self.source, asked, self._preview(given), ask)

    def _preview(self, given: dict[str, Any]) -> Preview:
        name = "".join(char if char.isprintable() else "?" for char in self._name[:100])
        title = f"{self._server.name}: {name}{' (may destroy something)' * self._destroys}"
        if not given:
            return Preview(title)
        return Preview(title, cut(msgspec.json.format(msgspec.json.encode(given)).decode(), _SHOWN))


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
