"""The options that all commands share."""

from __future__ import annotations

import sys
from argparse import Action, ArgumentParser, Namespace
from pathlib import Path

from mull.settings.words import NO_PROFILE

TYPE_CHECKING = False  # without importing typing, so that `mull --help` is fast
if TYPE_CHECKING:
    from typing import Any, Literal, TextIO

    from mull.agent.setup import Setup

__all__ = ["add_arguments", "add_model_argument", "load", "progress_stream", "tell"]


def add_arguments(parser: ArgumentParser, *, keeps: bool = False) -> None:
    """Add the options that choose settings; a command that `keeps` them stores them with its
    session."""
    scope = "and store it with the session" if keeps else "for this command"
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help=f"change a setting {scope}; may be repeated",
    )
    parser.add_argument(
        "--thinking-budget",
        action="append",
        default=[],
        type="reasoning.maxTokens={}".format,
        metavar="TOKENS",
        dest="sets",
        help="thinking budget in tokens; same as --set reasoning.maxTokens=TOKENS",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help=f"use this profile instead of the default; {NO_PROFILE} for none",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="use this file instead of config.toml"
    )


def add_model_argument(parser: ArgumentParser) -> None:
    """Add the option that names the model."""
    parser.add_argument(
        "-m",
        "--model",
        action=_Once,
        metavar="MODEL",
        help="the model: provider/model or a unique part of it, optionally with /LEVEL or /TOKENS",
    )


class _Once(Action):
    """An option that cannot be said twice with two meanings."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, _: str | None = None
    ) -> None:
        before = getattr(namespace, self.dest)
        if before not in (None, values):
            parser.error(f"{before} and {values} contradict each other: keep one of them")
        setattr(namespace, self.dest, values)


def load(options: Namespace) -> Setup:
    """The settings with all layers in place, according to the options.

    Raises:
        LocalError: a file, a variable or an option is invalid; says which and why.
    """
    from mull.agent.setup import load_setup

    return load_setup(
        model=getattr(options, "model", None),
        sets=options.sets,
        profile=options.profile,
        config=options.config,
        warn=tell,
    )


def tell(text: str) -> None:
    """Print a message to standard error."""
    print(f"mull: {text}", file=sys.stderr)


def progress_stream() -> TextIO | Literal[False]:
    """Where progress is drawn: on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        return False
    from mull.tui.text.safe import unguarded

    return unguarded(sys.stderr)
