"""The options that every command shares, and what they set up."""

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
        help="think with this many tokens; the same as --set reasoning.maxTokens=TOKENS",
    )
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help=f"use this profile instead of the default one; {NO_PROFILE} for no profile",
    )
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="read this file instead of config.toml"
    )


def add_model_argument(parser: ArgumentParser) -> None:
    """Add the option that names the model."""
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        help="the model: provider/model, a unique part of it, or either with /LEVEL or /TOKENS",
    )


def load(options: Namespace) -> Setup:
    """The settings with all layers in place, as the options say.

    Raises:
        LocalError: a file, a variable or an option is not as it should be; says which and how.
    """
    return load_setup(
        model=getattr(options, "model", None),
        sets=options.sets,
        profile=options.profile,
        config=options.config,
        warn=tell,
    )


def tell(text: str) -> None:
    """Say something beside the result."""
    print(f"mull: {text}", file=sys.stderr)
