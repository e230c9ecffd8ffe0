"""The `mull` command: finds the subcommand, loads only what it needs, and speaks of errors.

A subcommand is a module with `arguments(parser)` and `run(options) -> int`, named in COMMANDS
with its one line of help; nothing else lists them.
"""

from __future__ import annotations

import sys

from mull._version import __version__

TYPE_CHECKING = False  # without importing typing: `mull --version` answers at once
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence
    from typing import NoReturn

    from mull.neutral.errors import MullError

__all__ = ["COMMANDS", "entry", "main", "parse", "parser_of"]

COMMANDS = {
    "chat": ("mull.cli.chat", "talk with a model at the terminal; the same as mull alone"),
    "ask": ("mull.cli.ask", "ask a model and print its answer"),
    "doctor": ("mull.cli.doctor", "see what is set up, and test a model's reasoning"),
    "sessions": (
        "mull.cli.sessions",
        "list, search, show, export and import what was said and thought",
    ),
    "models": ("mull.cli.models", "list and show models, and what thinking levels become"),
    "wire": ("mull.cli.wire", "see what a request or an answer is on the wire, without sending"),
    "strict": ("mull.cli.strict", "play a provider by its real rules, to test a client"),
    "serve": ("mull.cli.serve", "serve any model to any client, with its reasoning kept"),
    "local": ("mull.cli.local", "start, stop and look at the small model that comes with mull"),
    "keys": ("mull.cli.keys", "store keys, log in, and see where each key is found"),
    "mcp": ("mull.cli.mcp", "add, test and list servers of tools (MCP)"),
    "trust": ("mull.cli.trust", "let models have the instructions (AGENTS.md) of a folder"),
    "settings": ("mull.cli.settings", "show every setting, its value and where it comes from"),
    "profile": ("mull.cli.profile", "save, show and choose named sets of settings"),
}

_TEXT = """\
mull keeps a model's thinking. Alone, or with a question, it is a conversation at the
terminal; the options are those of the conversation."""
EXIT_INTERRUPTED = 130
_YOUNG = 20_000
"""Objects between two looks for garbage; the usual 700 is looked through 200 times at the start."""


def entry() -> NoReturn:
    """Run the command line as a program of its own, and end."""
    import gc
    import os

    gc.set_threshold(_YOUNG)
    status = main()
    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        sys.exit(status)
    # taking the interpreter apart takes longer than an answer; the system does it at once
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    _write_anything()
    _guard()
    if words in (["--version"], ["-V"]):
        print(f"mull {__version__}")
        return 0
    from mull.neutral.errors import MullError

    try:
        options = parse(_with_default(words))
        status: int = options.run(options)
        sys.stdout.flush()
    except MullError as error:
        status = _told(error)
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    except BrokenPipeError:
        _forget_stdout()
        return 0
    if status == EXIT_INTERRUPTED:
        _end_at_once()
    return status


def _write_anything() -> None:
    """A terminal that is not UTF-8 shows what it cannot write as escapes, and nothing is lost."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _guard() -> None:
    """A terminal obeys nothing of what is printed."""
    if sys.stdout.isatty() or sys.stderr.isatty():
        from mull.tui.text.safe import guard_standard_streams

        guard_standard_streams()


def _told(error: MullError) -> int:
    """Tell what went wrong; the exit status for it."""
    import os

    if os.environ.get("DEBUG") == "1":
        raise error
    print(f"mull: {error}", file=sys.stderr)
    return error.exit_status


def _with_default(words: list[str]) -> list[str]:
    """What names no command is a conversation: nothing, options, or a question to begin with.

    Raises:
        ConfigError: a single word looks like a command that is misspelt.
    """
    if words and (words[0] in COMMANDS or words[0] in ("-h", "--help")):
        return words
    if words and words[0].isalpha() and len(words) < 3:
        from mull.neutral.errors import ConfigError
        from mull.settings.words import closest

        near = closest(words[0], COMMANDS)
        if near:
            raise ConfigError(
                f"there is no command {words[0]!r}: did you mean {near}?"
                f' To ask the model, write `mull chat "{" ".join(words)}"`'
            )
    return ["chat", *words]


def parse(words: list[str]) -> Namespace:
    """The options that the words are; `run` among them is what does the work."""
    if words[0] in COMMANDS:
        return parser_of(words[0]).parse_args(words[1:])
    return parser_of(None).parse_args(words)


def parser_of(name: str | None) -> ArgumentParser:
    """The parser of one command, or the one that lists them: all of them at once would take longer
    than most commands do."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter
    from functools import partial
    from importlib import import_module

    # told its width, a formatter does not load half the standard library to find it out
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
    return "\n".join(("commands (`mull COMMAND --help` says more):", *lines))


def _columns() -> int:
    """How wide help may be: what COLUMNS says, or the terminal."""
    import os

    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 80
    except (OSError, ValueError):
        return 80


def _end_at_once() -> None:
    """Who presses Ctrl-C once more gets no traceback of an interpreter that ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _forget_stdout() -> None:
    """The reader went away: keep the interpreter from complaining when it flushes at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
