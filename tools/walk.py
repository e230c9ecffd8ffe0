"""Walks one question down to the socket and up again, and counts what it passes.

`python -m tools.walk` prints the table of docs/architecture.md: which functions of mull stand on
the stack when the request is written, which are passed by one piece of the answer, and how often
each thing that shapes a request is asked for. A task stands on the stack of whoever began it.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sqlite3
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from mull.testing import Call, Say, StrictServer, Think
from mull.testing.server import Gate, Reply, ScriptedServer

ROOT = str(Path(__file__).parent.parent / "src" / "mull") + os.sep
MODEL = "moonshotai/kimi-k2-thinking"
ASKED = {
    "snapshots": ("settings/layers.py", "snapshot"),
    "thinking planned": ("policy/thinking/plan.py", "plan_thinking"),
    "requests prepared": ("policy/prepare.py", "prepare"),
    "targets resolved": ("catalog/resolve.py", "resolve"),
    "lessons applied": ("policy/heal/lessons.py", "apply_lessons"),
    "keys looked up": ("store/keys.py", "find"),
    "tools chosen": ("agent/tools/table.py", "choose_tools"),
    "calls prepared": ("agent/tools/builtin.py", "prepare"),
}
"""What is counted, and the function that does it."""


class Walk:
    """A profile of one command."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.down: list[str] = []
        self.ups: list[tuple[str, ...]] = []
        self.drawn: Callable[[], None] = lambda: None
        self.generators: set[str] = set()
        self.commits = 0
        self._stacks: dict[Any, list[str]] = {}
        self._rising: dict[str, None] | None = None

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """`sys.setprofile`: a function was called, or a coroutine goes on."""
        name = _name(frame)
        if event != "call" or name is None:
            return
        path, _, function = name.partition(":")
        if frame.f_lasti < 0 or not frame.f_code.co_flags & 0x2A0:
            self.calls[path, function] += 1
        if name == "client/connection.py:ask" and not self.down:
            self.down = [*self._logical(frame.f_back), name]
        self._rise(name, frame)

    @property
    def up(self) -> tuple[str, ...]:
        """The shortest way up: that of a piece which brings nothing else with it."""
        return min(self.ups, key=len)

    def _rise(self, name: str, frame: FrameType) -> None:
        """What one piece of the answer passes, from the socket to the screen."""
        if name == "client/connection.py:data_received":
            self._rising = {}
        if self._rising is None:
            return
        self._rising[name] = None
        if frame.f_code.co_flags & 0x200:
            self.generators.add(name)
        if name.startswith(("cli/draw.py", "tui/screen/painter.py")) and name.endswith("event"):
            self.ups.append(tuple(self._rising))
            self._rising = None
            self.drawn()

    def _logical(self, frame: FrameType | None) -> list[str]:
        """The stack, up to the event loop, below that of whoever began the task."""
        own: list[str] = []
        while frame is not None and frame.f_code.co_name != "_run_once":
            if name := _name(frame):
                own.insert(0, name)
            frame = frame.f_back
        task = None if frame is None else asyncio.current_task()
        return [*self._stacks.get(task, []), *own]

    def make_task(self, loop: Any, work: Any, **more: Any) -> asyncio.Task[Any]:
        """A task factory that remembers who began it."""
        task = asyncio.Task(work, loop=loop, **more)
        self._stacks[task] = self._logical(sys._getframe(1))
        return task


def _name(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(ROOT) or frame.f_code.co_name.startswith("<"):
        return None
    return f"{path[len(ROOT) :]}:{frame.f_code.co_name}"


@contextlib.contextmanager
def watched(walk: Walk) -> Iterator[None]:
    """Profile what runs meanwhile, on every event loop that is made, and count commits."""
    make, connect = asyncio.new_event_loop, sqlite3.connect

    def looped() -> asyncio.AbstractEventLoop:
        loop = make()
        loop.set_task_factory(walk.make_task)
        return loop

    def connected(*args: Any, **more: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = connect(*args, **more)

        def said(statement: str) -> None:
            walk.commits += statement.lstrip().upper().startswith("COMMIT")

        made.set_trace_callback(said)
        return made

    asyncio.events.new_event_loop = looped
    sqlite3.connect = connected  # type: ignore[assignment]
    sys.setprofile(walk.see)
    threading.setprofile(walk.see)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        asyncio.events.new_event_loop = make
        sqlite3.connect = connect


def walk_up() -> Walk:
    """One `mull ask` whose answer comes piece by piece, each when the last one was drawn."""
    from mull.cli.main import main

    walk, gates = Walk(), [Gate(), Gate(), Gate()]
    left = iter(gates)

    def open_next() -> None:
        for gate in left:
            gate.open()
            return

    walk.drawn = open_next
    pieces = ({"content": f"{word} "} for word in ("so", "it", "is"))
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": piece}]} for piece in pieces]
    steps = [step for pair in zip(chunks, gates, strict=True) for step in pair]
    server = ScriptedServer(lambda _: Reply.events(*steps, "[DONE]"))
    with server, _home(), watched(walk):
        main(["ask", "-m", "openai-compatible/m", "--base-url", server.url, "hi"])
    return walk


@contextlib.contextmanager
def _home() -> Iterator[None]:
    """A place of its own, and nothing printed."""
    with (
        tempfile.TemporaryDirectory() as home,
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        os.environ.update(MULL_CONFIG_DIR=home, MULL_DATA_DIR=home, MOONSHOTAI_API_KEY="k")
        sys.stdin = io.StringIO()
        yield


def walk_ask(*words: str, script: Any) -> Walk:
    """One `mull ask` against a played provider, when everything is loaded by one before it."""
    from mull.cli.main import main

    walk = Walk()
    with StrictServer("kimi", [*script, *script]) as server, _home():
        asked = ["ask", "-m", MODEL, "--base-url", server.url, *words, "hi"]
        main(asked)
        with watched(walk):
            main(asked)
    return walk


def walk_terminal(*lines: str, script: Any) -> Walk:
    """What these lines make mull do at the terminal, beyond opening it."""
    from mull.cli.main import main

    opened, walk = Walk(), Walk()
    with StrictServer("kimi", [*script, *script]) as server, _home():
        asked = ["chat", "--plain", "--yes", "-m", MODEL, "--base-url", server.url]
        for said, seen in ((lines, Walk()), ((), opened), (lines, walk)):
            typed, written = os.pipe()
            os.write(written, "".join(f"{line}\n" for line in said).encode())
            os.close(written)
            with open(typed) as sys.stdin, watched(seen):
                main(asked)
    walk.calls.subtract(opened.calls)
    walk.commits -= opened.commits
    return walk


def table(walks: dict[str, Walk]) -> list[str]:
    """The counts, one row each."""
    rows: list[tuple[str, Callable[[Walk], object]]] = [
        ("functions down", lambda walk: len(walk.down)),
        ("asynchronous generators", lambda walk: len(walk.generators)),
        ("calls in all", lambda walk: walk.calls.total()),
        ("synced commits", lambda walk: walk.commits),
        *((what, lambda walk, at=at: walk.calls[at]) for what, at in ASKED.items()),
    ]
    lines = [f"| | {' | '.join(walks)} |", "|---" * (len(walks) + 1) + "|"]
    lines += [f"| {what} | {' | '.join(str(of(w)) for w in walks.values())} |" for what, of in rows]
    return lines


def main() -> None:
    """Print the walk."""
    calls = [[Think("hm"), Call("list", {"path": "."})], [Think("so"), Say("yes")]]
    walks = {
        "`mull ask`": walk_ask(script=[[Think("hm"), Say("yes")]]),
        "a tool round at the terminal": walk_terminal("what is there?", script=calls),
        "`/model X/high`": walk_terminal(f"/model {MODEL}/high", script=[]),
    }
    print("down:", *walks["`mull ask`"].down, "", "up:", *walk_up().up, "", sep="\n")
    print(*table(walks), sep="\n")


if __name__ == "__main__":
    main()
