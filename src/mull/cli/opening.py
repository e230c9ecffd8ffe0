"""The options that choose a session and its tools, and what they set up."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mull.agent.engine import Engine
from mull.agent.opening import Opening
from mull.store.sessions.sqlite import this_folder

if TYPE_CHECKING:
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
    """Add the options that choose a session; `last` is the one that `--continue` goes on with."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-c",
        "--continue",
        dest="go_on",
        action="store_true",
        help=f"go on with the last {last} of this folder",
    )
    which.add_argument(
        "--session", metavar="REF", help="go on with this session: its id, its beginning, or a name"
    )
    which.add_argument("--name", metavar="NAME", help="give the new session a name")


def add_tool_arguments(parser: ArgumentParser) -> None:
    """Add the options that choose tools and what they may do."""
    parser.add_argument(
        "--tools",
        metavar="TOOLS",
        help="what the model may use: all, read, none, or names such as read,search,mcp__git__*",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--yes", action="store_true", help="run tools without asking; denied stays so")
    how.add_argument(
        "--accept-edits",
        action="store_true",
        help="change files in the working folder without asking; commands are asked about",
    )
    how.add_argument("--read-only", action="store_true", help="offer no tool that changes anything")


def approval_mode(options: Namespace) -> Mode:
    """What is done with calls that change things."""
    if options.accept_edits:
        return "accept-edits"
    return "yes" if options.yes else "read-only" if options.read_only else "ask"


def wanted(options: Namespace, kind: SessionKind = "conversation") -> Opening:
    """The session that the options mean.

    Raises:
        ConfigError: the folder is gone.
    """
    return Opening(
        folder=this_folder(),
        reference=options.session,
        last=options.go_on,
        name=options.name,
        model=options.model,
        base_url=options.base_url,
        system=options.system,
        kind=kind,
    )


def pack_tools(
    options: Namespace, engine: Engine, approver: Approver | None = None, **more: Any
) -> Toolbox | None:
    """The tools that were asked for; None for none.

    Raises:
        LocalError: a name fits no tool, or a policy file is not as it should be.
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
