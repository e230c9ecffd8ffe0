"""The `mull` command: finds the subcommand, imports only what it needs, and reports errors.

A subcommand is a module with `arguments(parser)` and `run(options) -> int`, listed in COMMANDS with
its line of help; nothing else lists them.
"""

from __future__ import annotations

import errno
import sys

from mull._version import __version__

TYPE_CHECKING = False  # without importing typing, so that `mull --version` is fast
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from mull.neutral.errors import MullError

__all__ = ["COMMANDS", "OPTIONS_OF_A_PROMPT", "main", "parse", "parser_of"]

COMMANDS = {
    "chat": ("mull.cli.chat", "talk with a model in the terminal; the same as mull alone"),
    "ask": ("mull.cli.ask", "ask a model and print its answer"),
    "sweep": ("mull.cli.sweep", "measure what thinking buys, with tasks of your own"),
    "batch": ("mull.cli.batch", "ask many questions from a file, and store the answers"),
    "doctor": ("mull.cli.doctor", "check the setup, and test a model's reasoning"),
    "sessions": (
        "mull.cli.sessions",
        "list, search, show, export and import sessions",
    ),
    "models": ("mull.cli.models", "list and show models and their thinking levels"),
    "wire": ("mull.cli.wire", "show a request or a response on the wire, without sending"),
    "strict": ("mull.cli.strict", "run a strict fake provider, to test a client"),
    "fidelity": ("mull.cli.fidelity", "score how a client or gateway keeps reasoning"),
    "serve": ("mull.cli.serve", "serve any model to any client, and keep its reasoning"),
    "local": ("mull.cli.local", "manage the embedded model"),
    "keys": ("mull.cli.keys", "store keys, log in, and show where each key was found"),
    "mcp": ("mull.cli.mcp", "add, test and list MCP servers"),
    "trust": ("mull.cli.trust", "approve a folder's instructions for models (AGENTS.md)"),
    "settings": ("mull.cli.settings", "show every setting, its value and its source"),
    "profile": ("mull.cli.profile", "save, show and choose profiles"),
}

OPTIONS_OF_A_PROMPT = {
    "-c": False,
    "--continue": False,
    "--session": True,
    "-m": True,
    "--model": True,
    "--base-url": True,
    "--profile": True,
}
"""Usual options of a conversation, and whether a value follows: with them the prompt is drawn
before the command line is parsed.
"""

_TEXT = """\
mull keeps a model's thinking. Without a command it starts a conversation in the terminal, and
the options are those of the conversation."""
EXIT_INTERRUPTED = 130
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    _write_anything()
    if words in (["--version"], ["-V"]):
        print(f"mull {__version__}")
        return 0
    try:
        if _is_plain_conversation(words):
            from mull.tui.instant import prompt

            prompt.begin()
        status = _run(words)
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    finally:
        _end_prompt()
    return status


def _run(words: list[str]) -> int:
    from mull.neutral.errors import MullError

    _guard()
    try:
        options = parse(_with_default(words))
        status: int = options.run(options)
        sys.stdout.flush()
    except MullError as error:
        unsent = _end_prompt()
        status = _told(error)
        if unsent:
            print(f"mull: not sent: {unsent}", file=sys.stderr)
    except BrokenPipeError:
        _forget_stdout()
        return 0
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            raise
        _forget_stdout()
        print(f"mull: cannot write the output: {error.strerror}", file=sys.stderr)
        return 1
    return status


def _is_plain_conversation(words: list[str]) -> bool:
    """Whether these words start a conversation at a usual prompt, as far as can be told at once."""
    rest = iter(words)
    for word in rest:
        if word not in OPTIONS_OF_A_PROMPT:
            return False
        if OPTIONS_OF_A_PROMPT[word] and next(rest, "-").startswith("-"):
            return False
    return True


def _end_prompt() -> str:
    """Leave the terminal as it was before the instant prompt; returns what was typed there."""
    prompt = sys.modules.get("mull.tui.instant.prompt")
    return str(prompt.end()) if prompt is not None else ""


def _write_anything() -> None:
    """A terminal that is not UTF-8 shows unsupported characters as escapes, so nothing is lost."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _guard() -> None:
    """Neutralise everything that is printed to a terminal."""
    if sys.stdout.isatty() or sys.stderr.isatty():
        from mull.tui.text.safe import guard_standard_streams

        guard_standard_streams()


def _told(error: MullError) -> int:
    """Report an error; returns its exit status."""
    import os

    if os.environ.get("DEBUG") == "1":
        raise error
    print(f"mull: {error}", file=sys.stderr)
    return error.exit_status


def _with_default(words: list[str]) -> list[str]:
    """Input without a command is a conversation: nothing, options, or a first question.

    Raises:
        ConfigError: a single word looks like a misspelt command.
    """
    if words and (words[0] in COMMANDS or words[0] in ("-h", "--help")):
        return words
    if words and words[0].isalpha() and len(words) < 3:
        from mull.neutral.errors import ConfigError
        from mull.settings.words import closest

        near = closest(words[0], COMMANDS)
        if near:
            raise ConfigError(
                f"unknown command {words[0]!r}: did you mean {near}?"
                f' To ask the model, use `mull chat "{" ".join(words)}"`'
            )
    return ["chat", *words]


def parse(words: list[str]) -> Namespace:
    """The parsed options; `run` among them does the work."""
    if words[0] in COMMANDS:
        return parser_of(words[0]).parse_args(words[1:])
    return parser_of(None).parse_args(words)


def parser_of(name: str | None) -> ArgumentParser:
    """The parser of one command, or the one that lists them: building all of them would take longer
    than most commands.
    """
    from argparse import ArgumentParser, RawDescriptionHelpFormatter
    from functools import partial
    from importlib import import_module

    # given its width, a formatter does not import half the standard library to find it
    formatter = partial(RawDescriptionHelpFormatter, width=_columns() - 2)
    if name is not None:
        module, line = COMMANDS[name]
        command = ArgumentParser(f"mull {name}", description=line, formatter_class=formatter)
        loaded = import_module(module)
        loaded.arguments(command)
        command.set_defaults(run=loaded.run)
        return command
    from mull.cli import chat

    parser = ArgumentParser(
        "mull", usage="mull [OPTION]… [QUESTION]\n       mull COMMAND …", formatter_class=formatter
    )
    chat.arguments(parser)
    parser.description, parser.epilog = f"{_TEXT}\n\n{_command_lines()}", None
    parser.add_argument("--version", "-V", action="version", version=f"mull {__version__}")
    parser.set_defaults(run=chat.run)
    return parser


def _command_lines() -> str:
    width = max(map(len, COMMANDS)) + 2
    lines = (f"  {name:{width}}{line}" for name, (_, line) in COMMANDS.items())
    return "\n".join(("commands (`mull COMMAND --help` describes each):", *lines))


def _columns() -> int:
    """The width of help: COLUMNS, or that of the terminal."""
    import os

    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 80
    except (OSError, ValueError):
        return 80


def _forget_stdout() -> None:
    """The reader of stdout is gone: keep the interpreter from complaining when it flushes at
    exit.
    """
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
