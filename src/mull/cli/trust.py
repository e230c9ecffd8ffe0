"""`mull trust`: approves the instructions of a project (AGENTS.md) for models, as they are now."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from mull.agent.instructions import load_instructions
from mull.neutral.errors import ConfigError
from mull.store.paths import data_dir
from mull.store.trust import Trust

__all__ = ["arguments", "run"]

_TEXT = """\
Shows the instructions that a folder and its repository contain for models (AGENTS.md,
CLAUDE.md), and approves them as they are now. If one changes, mull asks again.
"""
_EXAMPLES = """\
examples:
  mull trust
  mull trust ~/work/site
  mull trust --forget
"""


def arguments(parser: ArgumentParser) -> None:
    """Add the folder and the action."""
    parser.description, parser.epilog = _TEXT, _EXAMPLES
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="default: this folder",
    )
    parser.add_argument("--forget", action="store_true", help="withdraw the approval")


def run(options: Namespace) -> int:
    """Show the files, and remember that they are trusted.

    Raises:
        ConfigError: the folder does not exist, or contains nothing to trust.
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
        print("Models now get these instructions, until they change.")
    return 0
