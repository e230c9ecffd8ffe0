"""Resources of servers: texts, pictures and documents with a URI.

A user attaches one with `@server:uri`; a model gets two tools, one that lists and one that reads.
Reading contacts the server, so it needs approval like anything that reaches beyond this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct

from mull.agent.mcp.results import cut, outcome_of
from mull.agent.mcp.server import Server
from mull.agent.tools.shown import visible
from mull.agent.tools.tool import (
    Outcome,
    PreparedCall,
    Preview,
    RunnableTool,
    ToolContext,
    ToolFailure,
    input_of,
    json_subject,
    read_arguments,
    schema_of,
)
from mull.neutral.blocks import ToolCallBlock
from mull.neutral.errors import RemoteError
from mull.neutral.request import Tool
from mull.policy.approval import Asked

__all__ = ["RESOURCE_TOOLS", "read_resource", "resource_tools"]

_LIST = "list_resources"
_READ = "read_resource"
RESOURCE_TOOLS = (_LIST, _READ)
_MOST_LISTED = 500
_SOURCE = "mcp"


async def read_resource(server: Server, uri: str) -> Outcome:
    """The content of a resource.

    Raises:
        RemoteError: it cannot be read; says why.
    """
    contents = (await server.read_resource(uri)).get("contents") or []
    parts = [{"type": "resource", "resource": content} for content in contents]
    return outcome_of({"content": parts})


def resource_tools(servers: Sequence[Server]) -> dict[str, RunnableTool]:
    """The tools for the resources of these servers; none if no server has any."""
    having = {server.name: server for server in servers if server.listing.has_resources}
    return {_LIST: _List(having), _READ: _Read(having)} if having else {}


class _ListArguments(Struct, frozen=True, forbid_unknown_fields=True):
    server: Annotated[str, Meta(description="one server; all by default")] = ""


class _ReadArguments(Struct, frozen=True, forbid_unknown_fields=True):
    server: Annotated[str, Meta(description="the server that has the resource")]
    uri: Annotated[str, Meta(description="the URI of the resource, as listed")]


_LIST_SCHEMA = schema_of(_ListArguments)
_READ_SCHEMA = schema_of(_ReadArguments)


class _List:
    """Lists resources."""

    changes = False
    source = _SOURCE

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._servers = servers
        said = f"List the resources (documents and data with a URI) of {_or(servers)}."
        self.definition = Tool(_LIST, said, _LIST_SCHEMA)

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The servers to query.

        Raises:
            ToolFailure: there is no server of this name.
        """
        given = input_of(call, _LIST_SCHEMA)
        name = read_arguments(given, _ListArguments, _LIST_SCHEMA, strict=False).server
        chosen = [_known(self._servers, name)] if name else list(self._servers.values())

        async def ask(context: ToolContext) -> Outcome:
            listed = await asyncio.gather(*map(_listed, chosen))
            return Outcome(cut("\n".join(listed)))

        asked = Asked(_LIST, False, json_subject(given))
        title = f"list resources of {', '.join(server.name for server in chosen)}"
        return PreparedCall(call, self.source, asked, Preview(title), ask)


class _Read:
    """Reads one resource."""

    changes = False
    source = _SOURCE

    def __init__(self, servers: Mapping[str, Server]) -> None:
        self._servers = servers
        said = f"Read a resource of {_or(servers)} by its URI; {_LIST} lists them."
        self.definition = Tool(_READ, said, _READ_SCHEMA)

    def prepare(self, call: ToolCallBlock) -> PreparedCall:
        """The server and the URI.

        Raises:
            ToolFailure: there is no such server.
        """
        given = input_of(call, _READ_SCHEMA)
        wanted = read_arguments(given, _ReadArguments, _READ_SCHEMA, strict=False)
        server = _known(self._servers, wanted.server)

        async def ask(context: ToolContext) -> Outcome:
            try:
                return await read_resource(server, wanted.uri)
            except RemoteError as error:
                raise ToolFailure(str(error)) from None

        asked = Asked(_READ, False, json_subject(given), asks=True)
        preview = Preview(f"{server.name}: read a resource", visible(cut(wanted.uri, 500)))
        return PreparedCall(call, self.source, asked, preview, ask)


def _known(servers: Mapping[str, Server], name: str) -> Server:
    if name not in servers:
        raise ToolFailure(f"no server with resources is called {name!r}: use {_or(servers)}")
    return servers[name]


def _or(servers: Mapping[str, Server]) -> str:
    return ", ".join(servers)


async def _listed(server: Server) -> str:
    try:
        found = await server.list_resources()
    except RemoteError as error:
        return f"{server.name}: {error}"
    rows = [_row(one) for one in found[:_MOST_LISTED]]
    more = [f"  [{len(found) - _MOST_LISTED:,} more]"] if len(found) > _MOST_LISTED else []
    return "\n".join([f"{server.name}:", *(rows or ["  (none)"]), *more])


def _row(resource: Mapping[str, Any]) -> str:
    address = resource.get("uri") or resource.get("uriTemplate")
    named = (str(resource[key]) for key in ("title", "description") if resource.get(key))
    return "  " + " – ".join([str(address), *named, *filter(None, [resource.get("mimeType")])])
