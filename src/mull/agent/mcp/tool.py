"""A server's tools as tools that a model may call: names, calls, and results.

A tool is called `mcp__SERVER__tool`, in characters that all APIs accept. A name depends only on
server and tool, never on what else is offered, so it stays the same for the prompt cache, for a
stored history and for approvals. If characters must be replaced or cut, a hash of the true name
keeps two tools apart.

A tool runs without approval only if it changes nothing and does not reach beyond its server,
according to the server or the user. A server cannot exempt itself from approval: see
`mull.agent.mcp.memory`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from mull.agent.mcp.results import cut, outcome_of
from mull.agent.mcp.server import Server
from mull.agent.tools.shown import one_line, visible
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
from mull.neutral.patterns import pattern
from mull.neutral.request import Tool
from mull.policy.approval import Asked

__all__ = ["McpTool", "offered_tools", "tool_name", "tool_prefix"]

MOST_TOOLS = 200
"""Maximum tools offered of one server; more would fill the context window."""
_LONGEST_DESCRIPTION = 8_000
_LARGEST_SCHEMA = 64_000

_LONGEST = 64
"""What the strictest API accepts (OpenAI and Anthropic)."""
_HASH = 8
_REFUSED = pattern(r"[^A-Za-z0-9_-]")


class McpTool:
    """One tool of one server."""

    def __init__(self, server: Server, listed: dict[str, Any]) -> None:
        self._server = server
        self._listed = listed
        self._name: str = listed["name"]
        said = listed.get("annotations") or {}
        schema = {key: value for key, value in listed["inputSchema"].items() if key != "$schema"}
        self.definition = Tool(
            tool_name(server.name, self._name),
            cut(listed.get("description") or said.get("title") or "", _LONGEST_DESCRIPTION),
            {"type": "object", **schema},
        )
        self._standing = server.memory.standing(listed)
        self._is_trusted = self._name in server.config.read_only
        self.changes = not self._is_trusted and self._standing.guarded.changes
        self.source = f"mcp:{server.name}"

    @property
    def reaches_out(self) -> bool:
        """Whether its input may leave the server: a web search, a mail."""
        return not self._is_trusted and self._standing.guarded.reaches_out

    @property
    def altered(self) -> str:
        """What the server changed since the tool was approved; empty if nothing."""
        return " and ".join(self._standing.altered)

    @property
    def is_new(self) -> bool:
        """Whether the server did not have this tool when its tools were first listed."""
        return self._standing.is_new

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The server, the tool and its arguments; the server validates those.

        Raises:
            ToolFailure: the arguments are not an object.
        """
        given = input_of(call, self.definition.parameters)
        asked = Asked(
            self.definition.name,
            self.changes,
            json_subject(given),
            asks=self.reaches_out or self.is_new,
            altered=self._how_to_accept() if self.altered else "",
        )

        async def ask(context: ToolContext) -> Outcome:
            if self.is_new or self.altered:  # the approval has seen that
                self._server.memory.approve([self._listed])
                self._standing = self._server.memory.standing(self._listed)
            try:
                return outcome_of(await self._server.call(self._listed, given, context.emit))
            except RemoteError as error:
                raise ToolFailure(str(error)) from None

        return PreparedCall(call, self.source, asked, self._preview(given), ask)

    def _how_to_accept(self) -> str:
        server = self._server.name
        return (
            f"the server {server} has changed its {self.altered} since you approved "
            f"it: `mull mcp trust {server}` accepts the change"
        )

    def _preview(self, given: dict[str, Any]) -> Preview:
        name = one_line(self._name, 100)
        warnings = [
            "may be destructive" if self._standing.guarded.destroys else "",
            f"the server has changed its {self.altered} since you approved it"
            if self.altered
            else "",
            "new since its tools were first listed" if self.is_new else "",
        ]
        about = "; ".join(filter(None, warnings))
        title = f"{self._server.name}: {name}" + (f" ({about})" if about else "")
        is_to_be_read = bool(self.altered or self.is_new)
        shown = [visible(self.definition.description)] if is_to_be_read else []
        if given:
            arguments = msgspec.json.format(msgspec.json.encode(given)).decode()
            shown.append(visible(arguments))
        return Preview(title, "\n\n".join(filter(None, shown)))


def offered_tools(server: Server) -> tuple[list[McpTool], list[str]]:
    """The offered tools of a server, by name, and remarks about the others."""
    wanted, read_only = server.config.tools, server.config.read_only
    listed = {tool["name"]: tool for tool in reversed(server.listing.tools)}
    asked_for = dict.fromkeys((*(wanted or ()), *read_only))
    notes = [f"it has no tool {name}" for name in asked_for if name not in listed]
    names = sorted(name for name in listed if wanted is None or name in wanted)
    huge = [name for name in names if _is_huge(listed[name]["inputSchema"])]
    notes += [
        f"{tool_name(server.name, name)} is left out: its schema is too large" for name in huge
    ]
    fitting = [name for name in names if name not in huge]
    if len(fitting) > MOST_TOOLS:
        notes.append(
            f"only {MOST_TOOLS} of its {len(fitting)} tools are offered: choose them with `tools`"
        )
    tools = [McpTool(server, listed[name]) for name in fitting[:MOST_TOOLS]]
    notes += [
        f"it changed the {tool.altered} of {tool.definition.name}: mull asks before "
        "each call until you approve it again"
        for tool in tools
        if tool.altered
    ]
    return tools, notes


def _is_huge(schema: dict[str, Any]) -> bool:
    return len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA


def tool_prefix(server: str) -> str:
    """The prefix of a server's tool names."""
    return f"mcp__{server}__"


def tool_name(server: str, tool: str) -> str:
    """The name by which a model calls this tool of this server."""
    plain = f"{tool_prefix(server)}{_REFUSED.sub('_', tool)}"
    if plain == f"{tool_prefix(server)}{tool}" and len(plain) <= _LONGEST and tool:
        return plain
    mark = sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{plain[: _LONGEST - _HASH - 1]}_{mark}"
