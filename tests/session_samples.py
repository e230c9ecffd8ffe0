"""Stores, records and processes that several tests of sessions share."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import strategies as st

from conversations import messages, origins, texts
from mull.history.log import Condensed, Entry, Record, Summary, Undone
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import assistant, user
from mull.store.sessions.sqlite import SqliteSessions
from mull.store.sessions.values import JournalBatch

seconds = st.none() | st.floats(allow_nan=False, allow_infinity=False)
places = st.integers(0, 2**40)
records = st.one_of(
    st.builds(Entry, messages, seconds, seconds, seconds),
    st.builds(
        Summary,
        places,
        places,
        texts,
        st.sampled_from(["user", "assistant"]),
        texts,
        st.none() | origins,
        at=seconds,
    ),
    st.builds(Condensed, places, places, texts, st.none() | origins, at=seconds),
    st.builds(Undone, places, places, seconds),
)

VERSION_1 = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, name TEXT COLLATE NOCASE, title TEXT NOT NULL DEFAULT '',
    folder TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, model TEXT, base_url TEXT,
    system TEXT NOT NULL DEFAULT '', settings TEXT NOT NULL DEFAULT '{}', parent TEXT,
    parent_at INTEGER
);
CREATE UNIQUE INDEX session_names ON sessions (folder, name) WHERE name IS NOT NULL;
CREATE INDEX session_times ON sessions (folder, updated);
CREATE TABLE records (
    id INTEGER PRIMARY KEY, session TEXT NOT NULL, position INTEGER NOT NULL, data BLOB NOT NULL,
    UNIQUE (session, position)
);
CREATE TABLE journal (
    number INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, at REAL NOT NULL, origin BLOB,
    events BLOB NOT NULL
);
CREATE INDEX journal_sessions ON journal (session, number);
PRAGMA user_version = 1;
"""
"""The first version as it was, so that no change to the code changes what is migrated."""


class Clock:
    """A time that moves when it is asked to."""

    def __init__(self, now: float = 1_785_500_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def turn(question: str, thought: str, answer: str) -> list[Record]:
    return [
        Entry(user(question)),
        Entry(assistant(ThinkingBlock(thought, "reasoning_content"), TextBlock(answer))),
    ]


def write_version_1(path: Path, session: str, kept: list[Record]) -> list[bytes]:
    """A store of version 1 with one session; the bytes of its records."""
    data = [msgspec.json.encode(record) for record in kept]
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.execute(
        "INSERT INTO sessions (id, folder, created, updated, title) VALUES (?, '/w', 1, 2, 'old')",
        (session,),
    )
    connection.executemany(
        "INSERT INTO records (session, position, data) VALUES (?, ?, ?)",
        [(session, position, each) for position, each in enumerate(data)],
    )
    connection.commit()
    connection.close()
    return data


def stored_bytes(path: Path, session: str) -> list[bytes]:
    connection = sqlite3.connect(path)
    query = "SELECT data FROM records WHERE session = ? ORDER BY position"
    rows = connection.execute(query, (session,)).fetchall()
    connection.close()
    return [data for (data,) in rows]


def faults(path: Path) -> list[str]:
    """What SQLite finds wrong with a file."""
    connection = sqlite3.connect(path)
    said = [line for (line,) in connection.execute("PRAGMA integrity_check")]
    connection.close()
    return [] if said == ["ok"] else said


class Process:
    """A real process that does something with sessions and says so, line by line."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        reading, writing = os.pipe()
        sys.stdout.flush()
        with warnings.catch_warnings():  # from 3.12 on about threads: the child needs none of them
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            status = 1
            try:
                work(lambda line: os.write(writing, f"{line}\n".encode()) and None)
                status = 0
            except BaseException:
                os.write(writing, f"!{traceback.format_exc()}".encode())
            finally:
                os._exit(status)
        os.close(writing)
        self._lines = os.fdopen(reading, encoding="utf-8")

    def line(self) -> str:
        return self._lines.readline().rstrip("\n")

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def rest(self) -> list[str]:
        """The lines that are left, when the process has ended; an unfinished one is none."""
        text = self._lines.read()
        self._lines.close()
        os.waitpid(self.pid, 0)
        return [line.rstrip("\n") for line in text.splitlines(keepends=True) if line[-1] == "\n"]


def new_store(path: Path, **more: object) -> SqliteSessions:
    return SqliteSessions(path / "sessions.db", **more)  # type: ignore[arg-type]


def journaled(store: SqliteSessions, session: str, after: int = 0) -> list[JournalBatch]:
    return store.news(session, 0, after)[1]
