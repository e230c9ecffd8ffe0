"""The commands of the terminal: one table for dispatch, /help, completion and the docs."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from mull.neutral.errors import LocalError
from mull.settings.words import closest, quote
from mull.tui.commands import export as command_export
from mull.tui.commands import jobs as command_jobs
from mull.tui.commands import keys as command_keys
from mull.tui.commands import profile as command_profile
from mull.tui.commands import thinking as command_thinking
from mull.tui.commands import why as command_why
from mull.tui.commands.attach import attach_image, image_offers
from mull.tui.commands.context import compress_now, compress_offers, show_context
from mull.tui.commands.copy import copy_answer, copy_offers
from mull.tui.commands.export import export_offers, export_session
from mull.tui.commands.host import Command, Host, page
from mull.tui.commands.jobs import job_offers, use_jobs
from mull.tui.commands.keys import key_offers, log_in, login_offers, use_keys
from mull.tui.commands.known import Known
from mull.tui.commands.look import choose_theme, choose_view, theme_offers, view_offers
from mull.tui.commands.model import USAGE, choose_model, model_offers
from mull.tui.commands.own import own_commands
from mull.tui.commands.profile import profile_offers, use_profiles
from mull.tui.commands.prompts import prompt_commands
from mull.tui.commands.sessions import (
    begin_session,
    fork_session,
    list_sessions,
    redo_turn,
    rename_session,
    resume_session,
    retry_turn,
    session_offers,
    undo_turn,
)
from mull.tui.commands.settings import set_offers, set_value, unset_offers, unset_value
from mull.tui.commands.stats import show_stats
from mull.tui.commands.thinking import set_thinking, thinking_offers
from mull.tui.commands.tools import mcp_offers, show_servers, tool_offers, use_tools
from mull.tui.commands.why import explain_request, why_offers
from mull.tui.screen.front import Item

__all__ = ["COMMANDS", "brought_commands", "find_command", "run_command"]


async def _help(host: Host, text: str) -> None:
    """All commands and keys, or one command with its forms."""
    shown, name = page(host), text.strip().lstrip("/")
    theme, prompts = shown.theme, brought_commands(host)
    if name:
        command = find_command(name, prompts)
        shown.title(command.shown)
        shown.text(command.line, indent=2)
        shown.table(command.forms, (theme.accent, theme.note))
        if command.aliases:
            also = ", ".join(f"/{alias}" for alias in command.aliases)
            shown.text(f"also {also}", theme.note, indent=2)
    else:
        shown.title("Commands")
        rows = [(f"/{command.name}", command.line) for command in (*COMMANDS, *prompts)]
        shown.table(rows, (theme.accent, theme.text))
        if keys := [(key.shown, key.line) for key in host.front.keys if key.shown]:
            shown.title("Keys")
            shown.table(keys, (theme.accent, theme.text))
        shown.blank()
        shown.text(
            (
                "/help COMMAND describes a command. @path in a message attaches a file, "
                "!COMMAND runs a command."
            ),
            theme.note,
        )
    host.show(shown.lines)


async def _quit(host: Host, text: str) -> None:
    host.front.leave()


def _help_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    rows = (*COMMANDS, *brought_commands(known)) if len(words) == 1 else ()
    return [Item(command.name, command.line) for command in rows]


COMMANDS: tuple[Command, ...] = (
    Command("model", USAGE, "switch to another model; without a name, choose from a list",
            choose_model, model_offers),
    Command("thinking", "[effort|budget|on|off|clear]", "show or change how much the model thinks",
            set_thinking, thinking_offers, forms=command_thinking.FORMS),
    Command("set", "[KEY [VALUE]]", "show settings and their sources, or change one",
            set_value, set_offers),
    Command("unset", "KEY", "remove a setting from this session", unset_value, unset_offers),
    Command("profile", "[ACTION NAME]", "save, load and manage profiles",
            use_profiles, profile_offers, forms=command_profile.FORMS),
    Command("context", "", "what fills the context window, and what is not sent", show_context),
    Command("compress", "[STRATEGY|undo]", "replace earlier messages with a summary", compress_now,
            compress_offers, while_busy=False),
    Command("sessions", "[WORDS]", "list the sessions of this folder, or search them",
            list_sessions),
    Command("resume", "[SESSION]", "continue another session; without a name, choose from a list",
            resume_session, session_offers, while_busy=False),
    Command("new", "", "start a new session", begin_session, while_busy=False,
            aliases=("clear",)),
    Command("fork", "[TURN]", "continue in a copy of this session, whole or up to a turn",
            fork_session, while_busy=False),
    Command("rename", "[NAME]", "name this session", rename_session),
    Command("retry", "", "discard the last answer and ask again", retry_turn,
            while_busy=False),
    Command("undo", "[TURNS]", "undo the last turn, including its changes to files", undo_turn,
            while_busy=False),
    Command("redo", "", "restore what /undo removed", redo_turn, while_busy=False),
    Command("keys", "[set|delete PROVIDER]", "show where keys were found; store or delete one",
            use_keys, key_offers, forms=command_keys.FORMS),
    Command("login", "[PROVIDER]", "log in to a provider", log_in, login_offers),
    Command("tools", "[all|read|none|NAMES|auto|ask|accept-edits|yes|read-only]",
            "show the tools and approval mode, or change them", use_tools, tool_offers),
    Command("jobs", "[N|end N|end all]", "show background commands, or end them", use_jobs,
            job_offers, forms=command_jobs.FORMS),
    Command("copy", "[code]", "copy the last answer, or its last code block", copy_answer,
            copy_offers),
    Command("mcp", "[restart NAME]", "show MCP servers, or restart one", show_servers, mcp_offers),
    Command("image", "[PATH|clear]", "attach a picture to the next message", attach_image,
            image_offers),
    Command("export", "[FILE]", "export this session as HTML, Markdown, JSON or JSONL",
            export_session, export_offers, forms=command_export.FORMS),
    Command("stats", "", "tokens and costs by turn and by model", show_stats),
    Command("why", "[body [FILE]]", "explain the last request: what was asked, sent and changed",
            explain_request, why_offers, forms=command_why.FORMS),
    Command("view", "[full|preview|hidden]", "how thinking is shown, including earlier thinking",
            choose_view, view_offers),
    Command("theme", "[NAME]", "change the colours", choose_theme, theme_offers),
    Command("help", "[COMMAND]", "this", _help, _help_offers, aliases=("?",)),
    Command("quit", "", "quit mull; the session is saved", _quit, aliases=("exit",)),
)  # fmt: skip

_BY_NAME = {name: row for row in COMMANDS for name in (row.name, *row.aliases)}


def brought_commands(host: Host | Known) -> list[Command]:
    """The commands that the session adds: of MCP servers, of the project, and the user's own."""
    return [*prompt_commands(host), *own_commands(host)]


def find_command(name: str, more: Sequence[Command] = ()) -> Command:
    """The command of this name or alias, in any case; `more` are those from servers.

    Raises:
        LocalError: there is no such command; names the closest.
    """
    brought = {row.name.lower(): row for row in more}
    found = _BY_NAME.get(name.lower()) or brought.get(name.lower())
    if found is None:
        near = closest(name, [*_BY_NAME, *(row.name for row in more)])
        hint = f"did you mean /{near}?" if near else "/help lists them"
        if "/" in name:
            hint = "to send it to the model, start with a space"
        raise LocalError(f"unknown command {quote('/' + name)}: {hint}")
    return found


def run_command(host: Host, text: str) -> Coroutine[Any, Any, None]:
    """Run what was typed after a slash.

    Whether the model is working is checked now: a running command may itself count as work.
    """
    return _run(host, text, busy=host.busy)


async def _run(host: Host, text: str, *, busy: bool) -> None:
    name, _, rest = text.strip().partition(" ")
    is_own = (name.lower() or "help") in _BY_NAME
    command = find_command(name or "help", () if is_own else brought_commands(host))
    if busy and not command.while_busy:
        raise LocalError(
            f"/{command.name} cannot run while the model works: press Esc to interrupt it"
        )
    await command.run(host, rest.strip())
