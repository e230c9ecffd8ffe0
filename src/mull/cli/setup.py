"""The options that all commands share."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from mull.agent.setup import Setup, apply_sets, load_setup, profiles
from mull.store.profiles import NO_PROFILE

__all__ = ["Setup", "add_arguments", "add_model_argument", "apply_sets", "load", "profiles", "tell"]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options that choose settings."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="sets",
        help="change a setting for this command; may be repeated",
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
        metavar="MODEL",
        help="the model: provider/model or a unique part of it, optionally with /LEVEL or /TOKENS",
    )


def load(options: Namespace) -> Setup:
    """The settings with all layers in place, according to the options.

    Raises:
        LocalError: a file, a variable or an option is invalid; says which and why.
    """
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
