"""Another library's store of conversations, in a process of its own: turns come as lines of JSON.

    python -P bench/store_peer.py llm FOLDER

The first line that it writes is the library's version. `{"append": [question, thought, answer]}`
is answered by the milliseconds until the turn is stored, `{"load": true}` by the CPU milliseconds
until the conversation is in memory again, from a file that is opened for it, and the number of
thoughts in it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol


class Store(Protocol):
    """One conversation, stored as the library recommends."""

    def turn(self, question: str, thought: str, answer: str) -> Callable[[], object]:
        """A turn in the library's own values; returns what stores it."""

    def load(self) -> int:
        """Read the conversation as a new process would; returns how many thoughts it has."""


class Agents:
    """openai-agents: `SQLiteSession` with a file."""

    def __init__(self, folder: Path) -> None:
        from agents import SQLiteSession

        self._open = lambda: SQLiteSession("bench", folder / "agents.db")
        self._session = self._open()
        self._loop = asyncio.new_event_loop()
        self._turns = 0

    def turn(self, question: str, thought: str, answer: str) -> Callable[[], object]:
        """One call with the items of a turn, as the runner makes it."""
        at, self._turns = self._turns, self._turns + 1
        said = {"type": "output_text", "text": answer, "annotations": []}
        items: list[Any] = [
            {"role": "user", "content": question},
            {
                "type": "reasoning",
                "id": f"rs_{at}",
                "summary": [],
                "content": [{"type": "reasoning_text", "text": thought}],
            },
            {"type": "message", "id": f"msg_{at}", "role": "assistant", "content": [said]},
        ]
        return lambda: self._loop.run_until_complete(self._session.add_items(items))

    def load(self) -> int:
        """All items, through another session on the same file."""
        session = self._open()
        items = self._loop.run_until_complete(session.get_items())
        session.close()
        return sum(item.get("type") == "reasoning" for item in items)


class Llm:
    """llm: its log, `logs.db`."""

    def __init__(self, folder: Path) -> None:
        import llm
        import sqlite_utils
        from llm.migrations import migrate

        class Silent(llm.Model):
            model_id = "silent"

            def execute(self, *_: Any, **__: Any) -> Any:
                yield ""

        self._database = lambda: sqlite_utils.Database(folder / "logs.db")
        self._db = self._database()
        migrate(self._db)
        self._model = Silent()
        self._conversation = llm.Conversation(model=self._model)
        self._said: list[dict[str, Any]] = []

    def turn(self, question: str, thought: str, answer: str) -> Callable[[], object]:
        """Log a response to the conversation so far, as the command does."""
        import llm

        asked = {"role": "user", "parts": [{"type": "text", "text": question}]}
        parts = [{"type": "reasoning", "text": thought}, {"type": "text", "text": answer}]
        answered = {"role": "assistant", "parts": parts}
        self._said.append(asked)
        response = llm.Response.from_dict(
            {"model": "silent", "prompt": {"messages": [*self._said]}, "messages": [answered]},
            model=self._model,
        )
        response.conversation = self._conversation
        self._said.append(answered)
        return lambda: response.log_to_db(self._db)

    def load(self) -> int:
        """The messages of the thread, through another connection."""
        from llm.logs import LogStore
        from llm.parts import ReasoningPart

        db = self._database()
        messages = LogStore(db).thread_messages(self._conversation.id)
        db.close()
        return sum(isinstance(part, ReasoningPart) for one in messages for part in one.parts)


STORES: dict[str, type[Agents | Llm]] = {"openai-agents": Agents, "llm": Llm}


def _asked(store: Store, wanted: dict[str, Any]) -> str:
    if "append" in wanted:
        stored = store.turn(*wanted["append"])
        start = time.perf_counter()
        stored()
        return f"{(time.perf_counter() - start) * 1e3}"
    start = time.process_time()
    thoughts = store.load()
    return f"{(time.process_time() - start) * 1e3} {thoughts}"


def main(name: str, folder: str) -> None:
    """Answer line by line."""
    store = STORES[name](Path(folder))
    print(version(name), flush=True)
    for line in sys.stdin:
        print(_asked(store, json.loads(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
