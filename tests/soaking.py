"""A long session on small windows: tools, compression, switches of models, against played servers.

What is left of it is measured, so that short and long ones can be held to the same.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from mull.agent.engine import Engine
from mull.agent.opening import open_session_async
from mull.agent.session import Session
from mull.neutral.events import Compressed
from mull.neutral.messages import Message
from mull.store.paths import data_dir
from mull.store.sessions.sqlite import open_sessions
from small_server import SmallServer

MODELS = ("llama.cpp/small", "vllm/other")
SWITCHED_EVERY, CALLED_EVERY = 7, 3
_WORDS = "The survey of the northern line found bridge 17 sound and culvert 4 blocked. "


class Soaked(NamedTuple):
    """What a session came to. Sizes in MB are taken after a tenth of the turns, and at the end."""

    turns: int
    requests: int
    longest: dict[str, int]
    refused: list[int]
    compressions: int
    failed: int
    size: tuple[float, float]
    descriptors: tuple[int, int]
    tasks: int
    threads: tuple[int, int]
    seconds: float

    def figures(self) -> str:
        """In one line."""
        grown = self.size[1] - self.size[0]
        return (
            f"{self.turns:,} turns, {self.requests:,} requests, longest {self.longest},"
            f" {len(self.refused)} refused, {self.compressions:,} compressions"
            f" ({self.failed:,} not done), {self.size[0]:.0f} MB + {grown:.1f} MB,"
            f" descriptors {self.descriptors[0]} → {self.descriptors[1]},"
            f" {self.tasks} tasks left, {self.seconds:.1f} s"
        )


def soak(turns: int) -> Soaked:
    """Hold a session of so many turns, and look at what it leaves."""
    first = SmallServer(2048, says=_says, characters=3.0)
    second = SmallServer(4096, says=_says, characters=2.2, model="other")
    with first, second:
        _configure(**{"llama.cpp": first.url, "vllm": second.url})
        began = time.perf_counter()
        before = _descriptors(), threading.active_count()
        events: list[Compressed] = []
        sizes, tasks = asyncio.run(_hold(turns, events))
        gc.collect()
        after = _descriptors(), threading.active_count()
        took = time.perf_counter() - began
    servers = {"small": first, "other": second}
    return Soaked(
        turns=turns,
        requests=sum(len(one.counts) for one in servers.values()),
        longest={name: max(one.counts) for name, one in servers.items()},
        refused=[held for one in servers.values() for held in one.refused],
        compressions=sum(one.ok for one in events),
        failed=sum(not one.ok for one in events),
        size=sizes,
        descriptors=(before[0], after[0]),
        tasks=tasks,
        threads=(before[1], after[1]),
        seconds=took,
    )


async def _hold(turns: int, events: list[Compressed]) -> tuple[tuple[float, float], int]:
    early = 0.0
    async with Engine() as engine:
        session = await open_session_async("soak", model=MODELS[0], tools=[look], engine=engine)
        session.subscribe(lambda e: events.append(e) if isinstance(e, Compressed) else None)
        try:
            for number in range(turns):
                if number and number % SWITCHED_EVERY == 0:
                    session.switch(MODELS[number // SWITCHED_EVERY % len(MODELS)])
                answer = await session.ask_async(f"Question {number}: {_WORDS * (1 + number % 4)}")
                assert answer.status == "complete"
                assert answer.text.startswith("Noted")
                if number == turns // 10:
                    early = _megabytes()
            late = _megabytes()
            _check(session)
        finally:
            await session.aclose()
    return (early, late), len(asyncio.all_tasks()) - 1


def look(at: str) -> str:
    """Looks at something and says what is there."""
    size = sum(map(ord, at)) % 5
    return f"At {at}: " + "row 1, 2, 3; " * (4 + 12 * size)


def _says(body: dict[str, Any]) -> str | list[dict[str, Any]]:
    last = body["messages"][-1]
    asked = str(last.get("content"))
    if last["role"] != "user" or not body.get("tools"):
        return f"Noted. {_WORDS}"
    number = int(asked.rpartition("Question ")[2].partition(":")[0] or 0)
    if number % CALLED_EVERY:
        return f"Noted. {_WORDS * 2}"
    return [
        {"id": f"c{number}x{n}", "name": "look", "input": {"at": f"{number}/{n}"}} for n in (0, 1)
    ]


def _check(session: Session) -> None:
    """What is on disk is what was said, each call has its result, and the file is sound."""
    _, records = session.store.load(session.info.id)
    assert list(records) == list(session.log)
    assert _unanswered(session.messages) == set()
    with sqlite3.connect(data_dir() / "sessions.db") as file:
        assert file.execute("pragma integrity_check").fetchone() == ("ok",)


def _unanswered(messages: tuple[Message, ...]) -> set[str]:
    called = {call.id for message in messages for call in message.tool_calls}
    blocks = (block for message in messages if message.role == "tool" for block in message.blocks)
    return called - {block.call_id for block in blocks}  # type: ignore[union-attr]


def _configure(**addresses: str) -> None:
    config = Path(os.environ["MULL_CONFIG_DIR"]) / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    rows = (f'[providers."{name}"]\nbase_url = "{url}"\n' for name, url in addresses.items())
    config.write_text("".join(rows))
    open_sessions(print)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _megabytes() -> float:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
