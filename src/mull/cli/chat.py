"""`mull` alone, or with a question: a conversation in the terminal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from mull.cli import opening, setup
from mull.neutral.errors import ConfigError

__all__ = ["arguments", "run"]

_TEXT = """\
Talks with a model in the terminal. Thinking is shown as it arrives, tools ask before they
change anything, and everything is stored. `mull` alone is the same as `mull chat`; a
question is asked immediately.
"""
_EXAMPLES = """\
examples:
  mull
  mull "What does this project do?"
  mull -m claude-sonnet-4-5/high --continue
  mull --session refactoring --read-only
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the options of the conversation."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument("prompt", nargs="*", metavar="QUESTION", help="the first message")
    setup.add_model_argument(parser)
    setup.add_arguments(parser, keeps=True)
    parser.add_argument("--system", metavar="TEXT", help="system prompt")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="token limit of each answer")
    parser.add_argument("--temperature", type=float, metavar="T", help="sampling temperature")
    parser.add_argument("--base-url", metavar="URL", help="base URL of the endpoint")
    opening.add_session_arguments(parser, "conversation")
    opening.add_tool_arguments(parser)
    parser.add_argument(
        "--view",
        choices=("full", "preview", "hidden"),
        help="how thinking is shown (default: preview); Ctrl-T opens it",
    )
    parser.add_argument(
        "--theme", metavar="NAME", default="auto", help="colour theme; /theme lists them"
    )
    parser.add_argument(
        "--plain",
        action="store_true",
        help="plain lines without redrawing or colours, for screen readers and old terminals",
    )


def run(options: Namespace) -> int:
    """Run the conversation until the user quits.

    Raises:
        LocalError: an option is invalid, or there is no terminal.
    """
    from mull.neutral.extras import is_installed, missing

    if not (sys.stdin.isatty() and sys.stdout.isatty()) and not options.plain:
        asked = " ".join(options.prompt) or "your question"
        raise ConfigError(
            f'a conversation needs a terminal: in scripts and pipes use `mull ask "{asked}"`,'
            " or `mull --plain` for a line-by-line conversation"
        )
    if not options.plain and not is_installed("terminal"):
        raise ConfigError(f"{missing('terminal')}, or use `mull --plain` or `mull ask`")
    if not options.plain:
        _show_prompt(options.theme)
    from mull.agent.engine import Engine
    from mull.cli import interrupt
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
        print(f"Continue with: mull --session {kept}")
    return 0


def _show_prompt(theme: str) -> None:
    """Show the instant prompt, unless it is there already; a message takes its place."""
    from mull.tui.instant import prompt
    from mull.tui.text.safe import make_room_by

    shown = prompt.begin(theme)
    if shown is not None:
        make_room_by(shown.hide)
