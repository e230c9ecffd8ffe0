"""Prompts of MCP servers as commands, `/server:prompt`, and resources in messages, `@server:uri`.

Text from a server goes into the message unchanged: mentions and commands in it have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mull.agent.attachments import MENTION, TRAILING
from mull.neutral.blocks import Block, TextBlock
from mull.neutral.errors import LocalError, MullError
from mull.tui.commands.host import Command, Host

if TYPE_CHECKING:
    from mull.agent.mcp.prompts import Prompt
    from mull.agent.mcp.server import Server
    from mull.agent.mcp.servers import McpServers
    from mull.agent.session import Session
    from mull.tui.commands.known import Known

__all__ = ["attach_resources", "prompt_commands"]


def prompt_commands(host: Host | Known) -> list[Command]:
    """The commands that the session's servers provide; none before there is a session."""
    try:
        toolbox = host.session.toolbox
    except LocalError:
        return []
    servers = toolbox.mcp if toolbox else None
    return [_command(prompt) for prompt in servers.prompts] if servers else []


def _command(prompt: Prompt) -> Command:
    async def run(host: Host, text: str) -> None:
        host.submit(await prompt.message(text))

    return Command(prompt.command, prompt.usage, prompt.line, run, while_busy=False)


async def attach_resources(text: str, session: Session) -> tuple[list[Block], list[str]]:
    """The resources that a message mentions, and messages about those that could not be read."""
    from mull.agent.mcp.resources import read_resource

    servers = session.toolbox.mcp if session.toolbox else None
    blocks: list[Block] = []
    notes: list[str] = []
    for server, uri in _mentioned(text, servers) if servers else ():
        try:
            outcome = await read_resource(server, uri)
        except MullError as error:
            notes.append(f"{server.name}:{uri} is not attached: {error}")
            continue
        blocks += [TextBlock(f"\n\n{outcome.text}")] if outcome.text else []
        blocks += outcome.media
    return blocks, notes


def _mentioned(text: str, servers: McpServers) -> Iterator[tuple[Server, str]]:
    """The mentioned servers and URIs, each once."""
    known: Sequence[str] = [status.name for status in servers.statuses]
    seen: set[str] = set()
    for found in MENTION.finditer(text):
        name = (found["quoted"] or found["plain"]).rstrip(TRAILING)
        server, colon, uri = name.partition(":")
        if colon and "://" in uri and server in known and name not in seen:
            seen.add(name)
            yield servers.server(server), uri
