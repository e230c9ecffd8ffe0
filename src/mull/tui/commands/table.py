"""The commands of the terminal: one table that makes dispatch, /help, completion and the docs."""

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
            "/help COMMAND says more. @path in a message attaches a file, !COMMAND runs a command.",
            theme.note,
        )
    host.show(shown.lines)


async def _quit(host: Host, text: str) -> None:
    host.front.leave()


def _help_offers(known: Known, words: Sequence[str]) -> Iterable[Item]:
    rows = (*COMMANDS, *brought_commands(known)) if len(words) == 1 else ()
    return [Item(command.name, command.line) for command in rows]


COMMANDS: tuple[Command, ...] = (
    Command("model", USAGE, "go on with another model; picks one when bare", choose_model,
            model_offers),
    Command("thinking", "[effort|budget|on|off|clear]", "how the model thinks, and how hard",
            set_thinking, thinking_offers, forms=command_thinking.FORMS),
    Command("set", "[KEY [VALUE]]", "show settings and where they come from, or change one",
            set_value, set_offers),
    Command("unset", "KEY", "let other layers decide about a setting", unset_value, unset_offers),
    Command("profile", "[ACTION NAME]", "save, load and choose named sets of settings",
            use_profiles, profile_offers, forms=command_profile.FORMS),
    Command("context", "", "where the window goes, and what is not sent", show_context),
    Command("compress", "[STRATEGY|undo]", "let a summary stand for what was said", compress_now,
            compress_offers, while_busy=False),
    Command("sessions", "[WORDS]", "list the sessions of this folder, or search them",
            list_sessions),
    Command("resume", "[SESSION]", "go on with another session; picks one when bare",
            resume_session, session_offers, while_busy=False),
    Command("new", "", "begin a new session", begin_session, while_busy=False,
            aliases=("clear",)),
    Command("fork", "[TURN]", "go on with a copy of this session, whole or up to a turn",
            fork_session, while_busy=False),
    Command("rename", "[NAME]", "give this session a name", rename_session),
    Command("retry", "", "take the last answer back and ask for another", retry_turn,
            while_busy=False),
    Command("undo", "[TURNS]", "take the last turn back, and what it did to files", undo_turn,
            while_busy=False),
    Command("redo", "", "bring back what /undo took", redo_turn, while_busy=False),
    Command("keys", "[set|delete PROVIDER]", "where keys are found; store or delete one",
            use_keys, key_offers, forms=command_keys.FORMS),
    Command("login", "[PROVIDER]", "log in at a provider that has a login", log_in, login_offers),
    Command("tools", "[all|read|none|NAMES|ask|accept-edits|yes|read-only]",
            "what the model may use, and what is asked about first", use_tools, tool_offers),
    Command("jobs", "[N|end N|end all]", "commands that run in the background", use_jobs,
            job_offers, forms=command_jobs.FORMS),
    Command("copy", "[code]", "copy the last answer, or the last code in it", copy_answer,
            copy_offers),
    Command("mcp", "[restart NAME]", "the servers that tools come from", show_servers, mcp_offers),
    Command("image", "[PATH|clear]", "send a picture with the next message", attach_image,
            image_offers),
    Command("export", "[FILE]", "write this session as HTML, Markdown, JSON or JSONL",
            export_session, export_offers, forms=command_export.FORMS),
    Command("stats", "", "tokens and costs by turn and by model", show_stats),
    Command("why", "[body [FILE]]", "what was asked for, what was sent, what was changed",
            explain_request, why_offers, forms=command_why.FORMS),
    Command("view", "[full|preview|hidden]", "how thoughts are shown, past ones too", choose_view,
            view_offers),
    Command("theme", "[NAME]", "draw in other colours", choose_theme, theme_offers),
    Command("help", "[COMMAND]", "this", _help, _help_offers, aliases=("?",)),
    Command("quit", "", "end mull; the session is kept", _quit, aliases=("exit",)),
)  # fmt: skip

_BY_NAME = {name: row for row in COMMANDS for name in (row.name, *row.aliases)}


def brought_commands(host: Host | Known) -> list[Command]:
    """The commands that the session brings: of MCP servers, of the project, of the user's own."""
    return [*prompt_commands(host), *own_commands(host)]


def find_command(name: str, more: Sequence[Command] = ()) -> Command:
    """The command of this name or alias, in any case; `more` are those that servers bring.

    Raises:
        LocalError: there is none; names the closest.
    """
    brought = {row.name.lower(): row for row in more}
    found = _BY_NAME.get(name.lower()) or brought.get(name.lower())
    if found is None:
        near = closest(name, [*_BY_NAME, *(row.name for row in more)])
        hint = f"did you mean /{near}?" if near else "/help lists them"
        if "/" in name:
            hint = "to say it to the model, begin with a space"
        raise LocalError(f"there is no command {quote('/' + name)}: {hint}")
    return found


def run_command(host: Host, text: str) -> Coroutine[Any, Any, None]:
    """Run what was typed behind a slash.

    Whether the model works is asked now: once it runs, a command may itself count as work.
    """
    return _run(host, text, busy=host.busy)


async def _run(host: Host, text: str, *, busy: bool) -> None:
    name, _, rest = text.strip().partition(" ")
    is_own = (name.lower() or "help") in _BY_NAME
    command = find_command(name or "help", () if is_own else brought_commands(host))
    if busy and not command.while_busy:
        raise LocalError(f"/{command.name} waits for the model: Esc stops it")
    await command.run(host, rest.strip())
