"""The options that select a session and its tools."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mull.settings.words import NO_PROFILE

if TYPE_CHECKING:
    from mull.agent.engine import Engine
    from mull.agent.opening import Opening
    from mull.agent.toolbox import Toolbox
    from mull.agent.tools.approve import Approver
    from mull.policy.approval import Mode
    from mull.store.sessions.values import SessionKind

__all__ = [
    "add_session_arguments",
    "add_tool_arguments",
    "approval_mode",
    "pack_tools",
    "wanted",
]


def add_session_arguments(parser: ArgumentParser, last: str) -> None:
    """Add the options that select a session; `last` is what `--continue` continues."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c",
        "--continue",
        dest="go_on",
        action="store_true",
        help=f"continue the last {last} of this folder",
    )
    which.add_argument(
        "--session",
        metavar="REF",
        help="continue this session: its id, the start of its id, or a name",
    )
    which.add_argument("--name", metavar="NAME", help="name the new session")


def add_tool_arguments(parser: ArgumentParser) -> None:
    """Add the options that select tools and what they may do."""
    parser.add_argument(
        "--tools",
        metavar="TOOLS",
        help="tools to offer: all, read, none, or names such as read,search,mcp__git__*",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--mode",
        choices=("auto", "ask", "accept-edits", "read-only"),
        help="what tools do without asking (default: auto where commands can be confined and the"
        " folder is under version control, else ask)",
    )
    how.add_argument(
        "--auto",
        action="store_true",
        help="edit files here and run commands in a sandbox without asking; as --mode auto",
    )
    how.add_argument(
        "--yes", action="store_true", help="run tools without asking; rules that deny still apply"
    )
    how.add_argument(
        "--accept-edits",
        action="store_true",
        help="change files in the working folder without asking; ask before commands",
    )
    how.add_argument(
        "--read-only", action="store_true", help="offer only tools that change nothing"
    )


def approval_mode(options: Namespace) -> Mode | None:
    """The approval mode; None if nothing is said about it."""
    if options.accept_edits:
        return "accept-edits"
    mode: Mode | None = "auto" if options.auto else options.mode
    return "yes" if options.yes else "read-only" if options.read_only else mode


def wanted(options: Namespace, kind: SessionKind = "conversation") -> Opening:
    """The session that the options describe.

    Raises:
        ConfigError: the folder no longer exists.
    """
    from mull.agent.opening import Opening
    from mull.agent.setup import parse_sets
    from mull.store.sessions.sqlite import this_folder

    return Opening(
        folder=this_folder(),
        reference=options.session,
        last=options.go_on,
        name=options.name,
        model=options.model,
        base_url=options.base_url,
        system=options.system,
        settings=parse_sets(options.sets, options.model),
        profile=options.profile is not None and options.profile.lower() != NO_PROFILE,
        kind=kind,
    )


def pack_tools(
    options: Namespace, engine: Engine, approver: Approver | None = None, **more: Any
) -> Toolbox | None:
    """The requested tools; None for none.

    Raises:
        LocalError: a name matches no tool, or a policy file is invalid.
    """
    if options.tools in (None, "none"):
        return None
    from mull.agent.toolbox import Toolbox

    return Toolbox(
        engine.setup,
        Path.cwd(),
        wanted=options.tools,
        mode=approval_mode(options),
        approver=approver,
        **more,
    )
