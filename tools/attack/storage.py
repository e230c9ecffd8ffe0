"""Power that goes, bytes that rot, disks that are full or not ours, and two who write at once."""

from __future__ import annotations

import os
import random
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mull.neutral.events import TextDelta
from tools.attack.ground import (
    Home,
    Ran,
    Server,
    Trial,
    attack,
    crash_of,
    frames,
    head,
    home,
    saying,
)

_KIND = "Storage"
_SEED = 15


def _talked(place: Home, times: int = 3) -> None:
    with Server(saying("openai-chat", TextDelta("kept in the store"))) as server:
        for number in range(times):
            place.ask("openai-chat", server.url, "--name", f"s{number}", f"question {number}")


def _integrity(path: Path) -> str | None:
    with closing(sqlite3.connect(path)) as connection:
        said = connection.execute("PRAGMA integrity_check").fetchone()[0]
    return None if said == "ok" else str(said)


@attack(_KIND, "killed at any moment of a question: what was told is stored")
def _killed() -> Iterator[Trial]:
    chance = random.Random(_SEED)

    def slowly(connection: socket.socket, number: int) -> None:
        connection.sendall(head("openai-chat"))
        for piece in frames("openai-chat", *(TextDelta(f"w{n} ") for n in range(40))):
            connection.sendall(piece)
            time.sleep(0.05)

    for number in range(16):
        with home() as place, Server(slowly) as server:
            place.configure("openai-chat", server.url)
            words = ["ask", "-m", "evil-openai-chat/m", "--stream-json", f"question {number}"]
            with (place.top / "told").open("wb") as told:
                process = subprocess.Popen(
                    [sys.executable, "-m", "mull", *words],
                    cwd=place.folder, env=place.environment, stdout=told, stderr=told,
                )  # fmt: skip
                time.sleep(chance.uniform(0.2, 3.0))
                process.kill()
                process.wait()
            yield f"{number}", _after_the_kill(place, f"question {number}")


def _after_the_kill(place: Home, question: str) -> str | None:
    told = (place.top / "told").read_text(encoding="utf-8")
    store = place.data / "sessions.db"
    if not store.exists():
        return "an answer was told and nothing is stored" if '"text"' in told else None
    listed = place.mull("sessions", "search", "--all", question)
    if '"text"' in told and question not in listed.out:
        return f"the question is lost: {listed.said[-100:]}"
    return _integrity(store) or crash_of(listed, 0, 1)


def _damages(place: Home) -> Iterator[tuple[str, bytes]]:
    whole = (place.data / "sessions.db").read_bytes()
    chance = random.Random(_SEED)
    for number in range(12):
        rotten = bytearray(whole)
        for _ in range(chance.choice((1, 20, 200))):
            rotten[chance.randrange(100, len(rotten))] = chance.randrange(256)
        yield f"random bytes {number}", bytes(rotten)
    for page in range(1, len(whole) // 4096, 4):
        yield (
            f"page {page} zeroed",
            whole[: page * 4096] + bytes(4096) + whole[page * 4096 + 4096 :],
        )
    yield "half", whole[: len(whole) // 2]
    yield "header", b"\xff" * 100 + whole[100:]
    yield "text", b"not a database\n" * 100
    yield "empty", b""


@attack(_KIND, "a damaged database: told in a line, and one can go on")
def _damaged() -> Iterator[Trial]:
    with home() as place:
        _talked(place)
        for left in place.data.glob("sessions.db-*"):
            left.unlink()
        for form, data in list(_damages(place)):
            for old in place.data.glob("sessions.db*"):
                old.unlink()
            (place.data / "sessions.db").write_bytes(data)
            problem: str | None = None
            with Server(saying("openai-chat", TextDelta("fine"))) as server:
                runs: list[Ran] = [
                    place.mull("sessions", "list", "--all"),
                    place.mull("sessions", "search", "kept"),
                    place.mull("sessions", "repair"),
                    place.ask("openai-chat", server.url),
                ]
            for ran in runs:
                problem = problem or crash_of(ran, 0, 1, 2)  # 1: nothing is found
            yield form, problem or crash_of(runs[-1], 0)


@attack(_KIND, "a store of the future, without tables, or that is no file")
def _odd_stores() -> Iterator[Trial]:
    for form in ("future", "no tables", "folder", "pipe"):
        with home() as place:
            place.data.mkdir(mode=0o700)
            path = place.data / "sessions.db"
            if form == "folder":
                path.mkdir()
            elif form == "pipe":
                os.mkfifo(path)
            else:
                with closing(sqlite3.connect(path)) as connection:
                    connection.execute(f"PRAGMA user_version = {999 if form == 'future' else 1}")
                    connection.execute("CREATE TABLE other (x)")
                    connection.commit()
            before = path.read_bytes() if path.is_file() else b""
            problem = crash_of(place.mull("sessions", "list"), 0, 2)
            same = not before or path.read_bytes() == before or form != "future"
            yield form, problem or (None if same else "it was changed")


@attack(_KIND, "twelve at once, in one folder and in one session")
def _at_once() -> Iterator[Trial]:
    from concurrent.futures import ThreadPoolExecutor

    with home() as place, Server(saying("openai-chat", TextDelta("fine"))) as server:
        place.configure("openai-chat", server.url)
        model = ("ask", "-m", "evil-openai-chat/m")
        with ThreadPoolExecutor(4) as pool:
            apart = list(pool.map(lambda n: place.mull(*model, f"q{n}"), range(12)))
            _talked(place, 1)
            place.configure("openai-chat", server.url)
            one = list(
                pool.map(lambda n: place.mull(*model, "--session", "s0", f"q{n}"), range(12))
            )
        for number, ran in enumerate(apart):
            yield f"apart {number}", crash_of(ran, 0)
        for number, ran in enumerate(one):
            yield f"together {number}", crash_of(ran, 0, 2)
        yield "integrity", _integrity(place.data / "sessions.db")
