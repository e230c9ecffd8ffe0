"""`mull trust`: lets the instructions of a project (AGENTS.md) reach models, as they are now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mull.agent.instructions import load_instructions
from mull.neutral.errors import ConfigError
from mull.store.paths import data_dir
from mull.store.trust import Trust

__all__ = ["arguments", "run"]

_TEXT = """\
Shows the instructions that a folder and its repository have for models (AGENTS.md,
CLAUDE.md), and lets them be used as they are now. If one changes, mull asks again.
"""
_EXAMPLES = """\
examples:
  mull trust
  mull trust ~/work/site
  mull trust --forget
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the folder and what is to be done with it."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="this one unless set"
    )
    parser.add_argument("--forget", action="store_true", help="ask about them again")


def run(options: Namespace) -> int:
    """Show the files, and keep that they are trusted.

    Raises:
        ConfigError: there is no such folder, or nothing to trust in it.
    """
    folder: Path = options.folder
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    found = [one for one in load_instructions(folder) if not one.is_own]
    for one in found:
        if one.note:
            print(f"{one.path}: {one.note}")
    readable = [one for one in found if one.text.strip()]
    if not readable:
        raise ConfigError(f"{folder} has no instructions (AGENTS.md, CLAUDE.md) to trust")
    trust = Trust(data_dir())
    for one in readable:
        if options.forget:
            known = trust.forget(one.path)
            print(f"{one.path}: {'forgotten' if known else 'nothing was said of it'}")
            continue
        print(f"{one.path}:\n")
        print("".join(f"  | {line}\n" for line in one.text.rstrip().split("\n")))
        trust.remember(one.path, one.digest, trusted=True)
    if not options.forget:
        print("Models get these instructions from now on, as long as they say the same.")
    return 0
