"""`make demo`: the main job on the embedded model, with nothing but this machine.

A question about a file: a thought, a call that reads the file, the thought sent back with the
result, the answer. The last line counts what was kept and what was sent, from the conversation and
from the requests. In a terminal the assistant then stays open in the same folder.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from mull.agent.library import Conversation
from mull.agent.tools.table import builtin_tools
from mull.agent.tools.tool import RunnableTool
from mull.agent.tools.workspace import Workspace
from mull.catalog.resolve import resolve
from mull.client.exchange import ExchangeOptions
from mull.local.manage import embedded
from mull.local.server import MODEL
from mull.neutral.errors import MullError
from mull.neutral.events import StateChanged, TextDelta, ThinkingDelta, ToolStarted
from mull.store.paths import data_dir

__all__ = ["count", "heard", "taught_tools"]

FILES = {"settings.toml": "host = localhost\nport = 8080\n", "notes.txt": "Buy milk.\n"}
QUESTION = "What is the port in settings.toml?"


def show(folder: Path) -> None:
    """Ask the question, show all that comes, and count."""
    sent: list[dict[str, Any]] = []
    print(f"You      {QUESTION}", flush=True)
    if embedded(data_dir() / "local").status() is None:
        print("         (starting the model ...)", flush=True)
    page = _Page()
    with Conversation(MODEL, tools=taught_tools(folder), temperature=0, limits=heard(sent)) as talk:
        for event in talk.stream(QUESTION):
            page.take(event)
        page.end()
        print(f"mull     {count(talk, sent)}")


def taught_tools(folder: Path) -> list[RunnableTool]:
    """mull's own tools in a folder that the model was taught."""
    every = builtin_tools(Workspace(folder))
    return [every[name] for name in resolve(MODEL).facts.taught_tools or ()]


def heard(sent: list[dict[str, Any]]) -> ExchangeOptions:
    """Options that keep the body of every request."""
    return ExchangeOptions(sending=lambda prepared, wire: sent.append(json.loads(wire.body)))


class _Page:
    """Writes a turn as it comes, each kind of thing under its own word."""

    def __init__(self) -> None:
        self._kind: str | None = None
        self._held = ""

    def take(self, event: Any) -> None:
        match event:
            case StateChanged(state="sending"):
                self._write("", "(reading ...)")
            case ThinkingDelta(text=text):
                self._write("Thinks", text)
            case TextDelta(text=text):
                self._write("Answers", text)
            case ToolStarted(title=title):
                self._write("Calls", title)

    def _write(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self.end()
            print(f"{kind:<9}", end="")
            text = text.lstrip()
            self._kind = kind
        whole = self._held + text
        text = whole.rstrip("\n")
        self._held = whole[len(text) :]  # empty lines at the end are nobody's
        print(text.replace("\n", "\n" + " " * 9), end="", flush=True)

    def end(self) -> None:
        """Finish the line."""
        if self._kind is not None:
            print()
        self._held = ""


def count(talk: Conversation, sent: list[dict[str, Any]]) -> str:
    """What was kept of the thinking, and what of it went back."""
    thoughts = [one for message in talk.messages for one in message.thinking]
    back = {
        message["reasoning_content"]
        for body in sent
        for message in body["messages"]
        if message.get("reasoning_content")
    }
    exact = sum(one.thought in back for one in thoughts)
    return (
        f"kept {len(thoughts)} thoughts whole; sent {exact} of them back, character for character,"
        f" in {len(sent)} requests"
    )


def main() -> None:
    """Show it, and stay open in a terminal."""
    with tempfile.TemporaryDirectory(prefix="mull-demo-") as name:
        folder = Path(name).resolve()
        for file, text in FILES.items():
            (folder / file).write_text(text)
        try:
            show(folder)
        except MullError as error:
            sys.exit(f"mull: {error}")
        if sys.stdin.isatty() and sys.stdout.isatty():
            print("\nNow ask it yourself; this folder holds settings.toml and notes.txt.\n")
            os.chdir(folder)
            status = os.spawnv(
                os.P_WAIT, sys.executable, [sys.executable, "-P", "-m", "mull", "-m", MODEL]
            )
            sys.exit(status)


if __name__ == "__main__":
    main()
