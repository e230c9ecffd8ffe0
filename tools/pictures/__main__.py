"""`python -m tools.pictures [NAME…]` runs mull at a terminal and draws docs/images/NAME.

Without names it makes those whose words are scripted. `ask.svg` shows the embedded model, which
says something else each time: look at it before you keep it. `--columns 60 --to FOLDER` draws what
is scripted as a narrower terminal shows it, to be looked at.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from mull.testing.server import ScriptedServer
from tools.pictures import scene
from tools.pictures.screen import TerminalScreen
from tools.pictures.svg import DARK, LIGHT, Look, picture
from tools.pseudo_terminal import PseudoTerminal

__all__ = ["IMAGES", "PICTURES", "SCRIPTED"]

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "docs" / "images"
COLUMNS, ROWS = 100, 50
ASK_COLUMNS = 88
ASKED = 'mull ask -m local/smollm2 --thinking show "Why is the sky blue?"'
PATIENCE = 60.0
STILL = 0.6
"""Seconds after which nothing moves any more."""


class Run:
    """A program at a terminal."""

    def __init__(
        self,
        command: list[str],
        folder: Path,
        look: Look,
        environment: dict[str, str],
        columns: int,
    ) -> None:
        self.screen = TerminalScreen(columns, ROWS)
        self.terminal = PseudoTerminal(
            command,
            environment=environment,
            folder=folder,
            size=(columns, ROWS),
            colours=(look.text, look.back),
            seen=self.screen.feed,
            cursor=self.screen.cursor,
        )

    def wait(self, words: str) -> None:
        """Return when these words are to be seen, and nothing moves any more."""
        self.terminal.read_until(lambda _: re.search(words, self.screen.text), PATIENCE)
        self.terminal.rest(STILL)

    def type(self, text: str) -> None:
        """Type as a person does."""
        for key in text:
            self.terminal.press(key)
            self.terminal.rest(0.01)
        self.terminal.press("\r")


def _environment(home: str) -> dict[str, str]:
    paths = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    looks = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
    return {"PATH": paths, "HOME": home, **looks}


def terminal(look: Look, columns: int = COLUMNS) -> str:
    """A question, two thoughts, a file read and edited, an answer."""
    with ScriptedServer(scene.model) as server, TemporaryDirectory() as home:
        folder = Path(home) / "shop"
        folder.mkdir()
        (folder / scene.FILE).write_text(scene.SOURCE)
        environment = {**_environment(home), "DEEPSEEK_API_KEY": "scripted"}
        command = ["mull", "-m", scene.MODEL, "--base-url", f"{server.url}/v1", "--view", "full"]
        run = Run(command, folder, look, environment, columns)
        last = scene.ANSWER.strip().splitlines()[-1].split()
        with run.terminal:
            run.wait(re.escape(f"{scene.MODEL} · "))
            run.type(scene.QUESTION)
            run.wait(r"❯ 1\. Yes")
            run.terminal.press("\r")
            run.wait(r"\s+".join(map(re.escape, last)))
    return picture(run.screen.rows(), look, f"mull at a terminal: {scene.QUESTION}")


def ask() -> str:
    """What the tutorial asks first, with the model that is installed here."""
    with TemporaryDirectory() as folder:
        environment = {**_environment(str(Path.home())), "PS1": "$ "}
        run = Run(["bash", "--norc"], Path(folder), DARK, environment, ASK_COLUMNS)
        with run.terminal:
            run.wait(r"^\$")
            run.type(ASKED)
            run.wait(r"(?s)\$ mull ask.*\n\$")
    rows = run.screen.rows()[:-1]
    return picture(rows, DARK, ASKED)


SCRIPTED: dict[str, Callable[[int], str]] = {
    "terminal-dark.svg": partial(terminal, DARK),
    "terminal-light.svg": partial(terminal, LIGHT),
}
PICTURES: dict[str, Callable[[int], str]] = {**SCRIPTED, "ask.svg": lambda _: ask()}


def main(arguments: list[str]) -> None:
    """Make the pictures that are named, or all whose words are scripted."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--to", type=Path, default=IMAGES)
    wanted = parser.parse_args(arguments)
    for name in wanted.names or SCRIPTED:
        (wanted.to / name).write_text(PICTURES[name](wanted.columns))


if __name__ == "__main__":
    main(sys.argv[1:])
