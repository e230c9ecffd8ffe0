"""`/tools` and `/mcp`: which tools the model may use, which need approval, and the state of the
servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from mull.neutral.errors import LocalError
from mull.policy.approval import Mode
from mull.store.approvals import rules_file
from mull.tui.commands.change import telling_cost
from mull.tui.commands.host import Host, page
from mull.tui.commands.known import Known
from mull.tui.commands.page import Page
from mull.tui.commands.words import split_words
from mull.tui.screen.front import Item

if TYPE_CHECKING:
    from mull.agent.mcp.servers import ServerStatus
    from mull.agent.toolbox import Toolbox

__all__ = ["cycle_mode", "mcp_offers", "show_servers", "tool_offers", "use_tools"]

MODES: dict[Mode, str] = {
    "auto": "files in this folder are changed and commands run in a sandbox without asking",
    "ask": "mull asks before a tool changes anything",
    "accept-edits": "files in this folder are changed without asking, mull asks before commands",
    "yes": "every call runs without asking",
    "read-only": "tools that change anything are not offered",
}
_CYCLE: tuple[Mode, ...] = ("auto", "ask", "accept-edits", "read-only")
"""The modes a key cycles through; `yes` is never one keypress away."""
_NO_TOOLS = "this session has no tools: mull was started with --tools none"
_NO_SERVERS = "No MCP servers configured. `mull mcp add NAME -- COMMAND` adds one."


async def use_tools(host: Host, text: str) -> None:
    """Show the tools, choose among them, or set the approval mode.

    Raises:
        LocalError: a word matches no tool and no mode; nothing has changed.
    """
    toolbox, words = host.session.toolbox, split_words(text)
    if toolbox is None:
        raise LocalError(_NO_TOOLS)
    wanted = ",".join(words)
    mode = next((mode for mode in get_args(Mode) if mode == wanted.lower()), None)
    if wanted:
        if mode is None:
            await toolbox.reach(wanted)
        if mode == "auto" and (why := await asyncio.to_thread(toolbox.cage().why_not)):
            raise LocalError(f"the mode auto needs the sandbox for commands: {why}")
        with telling_cost(host, "tools"):
            if mode is None:
                toolbox.choose(wanted)
            else:
                toolbox.gate.choose(mode)
    _show_tools(host, toolbox)


def cycle_mode(host: Host) -> None:
    """Switch to the next approval mode; bound to a key.

    Raises:
        LocalError: there are no tools to approve.
    """
    toolbox = host.session.toolbox
    if toolbox is None:
        raise LocalError(_NO_TOOLS)
    before = toolbox.gate.mode
    possible = [mode for mode in _CYCLE if mode != "auto" or not toolbox.cage().why_not()]
    at = possible.index(before) + 1 if before in possible else 0
    after = possible[at % len(possible)]
    with telling_cost(host, "tools"):
        toolbox.gate.choose(after)
    host.tell(f"Approval: {after}, {MODES[after]}.")


def _show_tools(host: Host, toolbox: Toolbox) -> None:
    shown, gate = page(host), toolbox.gate
    theme, offered = shown.theme, toolbox.offered(host.session.target.facts.taught_tools)
    shown.text(f"Approval: {gate.mode}, {MODES[gate.mode]}.")
    shown.text(f"Offered: {len(offered)} of {len(toolbox.all)} tools ({toolbox.wanted}).")
    marks = ("not offered", "offered") if theme.words else ("–", "✓")
    rows = [
        (
            marks[name in offered],
            name,
            "changes something" if tool.changes else "read-only",
            tool.source,
        )
        for name, tool in toolbox.all.items()
    ]
    shown.table(rows, (theme.accent, theme.text, theme.note, theme.note))
    for rule in gate.rules:
        shown.note(f"{rule.effect} {rule.text}" + (f" ({rule.where})" if rule.where else ""))
    shown.note(f"Rules you choose to keep are stored in {rules_file()}.")
    host.show(shown.lines)


async def show_servers(host: Host, text: str) -> None:
    """Show the state of the MCP servers; `restart NAME` restarts one.

    Raises:
        LocalError: there is no server of this name.
    """
    toolbox, words = host.session.toolbox, split_words(text)
    servers = toolbox.mcp if toolbox else None
    if words and (len(words) != 2 or words[0] != "restart"):
        raise LocalError("/mcp shows the servers, /mcp restart NAME restarts one")
    shown = page(host)
    if servers is None:
        shown.text(_NO_SERVERS, shown.theme.note)
    else:
        if words:
            await servers.restart(words[1])
        for status in servers.statuses:
            _show_server(shown, status)
    host.show(shown.lines)


def _show_server(shown: Page, status: ServerStatus) -> None:
    theme = shown.theme
    if status.state == "ready":
        count = len(status.tools)
        took = f" in {status.seconds:.1f} s" if status.seconds is not None else ""
        shown.text(f"{status.name}: {count} tool{'' if count == 1 else 's'}{took}", mark="✓ ")
        shown.text(", ".join(status.tools), theme.note, indent=4)
    elif status.state == "idle":
        count = len(status.tools)
        shown.text(
            f"{status.name}: {count} tool{'' if count == 1 else 's'}, starts on first use",
            theme.note,
            mark="– ",
        )
    else:
        bad = status.state == "failed"
        reason = f": {status.reason}" if status.reason else ""
        style = theme.error if bad else theme.note
        shown.text(f"{status.name} is {status.state}{reason}", style, mark="✗ " if bad else "– ")
    for note in status.notes:
        shown.note(note, warning=True, indent=4)


def tool_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """Modes, groups and the names of tools."""
    from mull.agent.tools.table import GROUPS

    modes = [Item(mode, about) for mode, about in MODES.items()] if len(words) == 1 else []
    groups = [Item(group, "tools") for group in GROUPS]
    return [*modes, *groups, *(Item(name, tool.source) for name, tool in known.tools().items())]


def mcp_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    """`restart`, then the servers."""
    if len(words) == 1:
        return [Item("restart", "restart a server")]
    return [Item(name) for name in known.servers()]
