"""`mull` by itself, or with a question: a conversation at the terminal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from mull.agent.engine import Engine
from mull.cli import interrupt, opening, setup
from mull.neutral.errors import ConfigError

__all__ = ["arguments", "run"]

_TEXT = """\
Talks with a model at the terminal: thinking is shown as it comes, tools ask before
they change anything, and everything is kept. `mull` alone is the same as `mull chat`;
a question is asked at once.
"""
_EXAMPLES = """\
examples:
  mull
  mull "What does this project do?"
  mull -m claude-sonnet-4-5/high --continue
  mull --session refactoring --read-only
"""


def arguments(parser: ArgumentParser) -> None:
    """Add what shapes the conversation."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("prompt", nargs="*", metavar="QUESTION", help="what to begin with")
    setup.add_model_argument(parser)
    setup.add_arguments(parser)
    parser.add_argument("--system", metavar="TEXT", help="instructions for the model")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="limit of each answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="how freely it answers")
    parser.add_argument("--base-url", metavar="URL", help="the endpoint's address")
    opening.add_session_arguments(parser, "conversation")
    opening.add_tool_arguments(parser)
    parser.add_argument(
        "--view",
        choices=("full", "preview", "hidden"),
        help="how thoughts are shown; Ctrl-T changes it (preview unless set)",
    )
    parser.add_argument(
        "--theme", metavar="NAME", default="auto", help="colours: /theme lists them"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="no redrawing and no colours: plain lines, for screen readers and old terminals",
    )


def run(options: Namespace) -> int:
    """Talk until the user leaves.

    Raises:
        LocalError: an option is not as it should be, or there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and not options.plain:
        asked = " ".join(options.prompt) or "your question"
        raise ConfigError(
            f'a conversation needs a terminal: write `mull ask "{asked}"` in scripts and'
            " pipes, or `mull --plain` to talk line by line"
        )
    from mull.store.sessions.sqlite import open_sessions
    from mull.tui.main import Wishes, run_terminal

    engine = Engine(setup.load(options))
    wishes = Wishes(
        theme=options.theme,
        plain=options.plain,
        view=options.view,
        tools=options.tools,
        mode=opening.approval_mode(options),
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        question=" ".join(options.prompt).strip(),
    )
    told: list[str] = []
    store = open_sessions(told.append)
    talk = run_terminal(engine, store, opening.wanted(options), wishes, told)
    kept = interrupt.run(talk)
    if kept is not None and sys.stdout.isatty():
        print(f"Come back with: mull --session {kept}")
    return 0
