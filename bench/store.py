"""The store of sessions: durable appends, resuming, and search over 100 MB of thoughts.

An append is a turn with a thought of 4 kB, stored and indexed, on the disk when it returns (SQLite
in WAL mode with `synchronous = FULL`, one fsync for each). Beside it, in turns: the same bytes
inserted by SQLite alone, with the same settings, and written to a file with an fsync. Appends and
searches are times of the clock. Resuming is time of the processor, from the stored bytes to the
first request as it would be sent; the limit is reading the same rows and decoding them with
msgspec. The limit of a search is what SQLite's full-text index itself takes for the newest 50
texts, and for parts of words `grep` over the same texts.

Other libraries store the same turns in the same rounds, each in a process of its own and with its
own settings; only the call that stores is timed. Both keep the text of the thinking and have it on
the disk when they return (SQLite's default, `synchronous = FULL`). `SQLiteSession` of openai-agents
(WAL mode) stores items as they are and searches nothing. llm (rollback journal) logs a response
with the whole conversation before it, and indexes questions and answers, not thinking, so neither
takes part in the search. Loading is CPU time from opening the file until the turns are in memory.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.helper import Helper, peer_script
from bench.history import reported_turn
from bench.peers import leave_out, peer_python
from bench.report import QUICK, Figure, median_ratio
from mull import Log, Settings, TextBlock, assistant, counter_for, prepare, resolve, user
from mull.dialects.registry import encode_request
from mull.history.log import Entry, Record
from mull.neutral.blocks import ThinkingBlock
from mull.policy.tokens import CHARACTERS, Counter
from mull.store.sessions.records import encode_record
from mull.store.sessions.sqlite import SqliteSessions

APPENDS = 40 if QUICK else 300
TURNS = 1000 if QUICK else 10_000
SEARCHED_TURNS = 2_500 if QUICK else 25_000
"""Of 4 kB each."""
PEERS = ("openai-agents", "llm")
_SESSION_TURNS = 500
_TIMES = 3 if QUICK else 7
_RARE = "zyzzyva"
_INSERT = "INSERT INTO records (data) VALUES (?)"
_TARGET = resolve("moonshotai/kimi-k2-thinking")


def _entries(seed: int) -> list[Entry]:
    return [Entry(message, 1.0) for message in reported_turn(seed)]


def _clock(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def _processor(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1e3


@contextmanager
def _store(folder: Path) -> Iterator[SqliteSessions]:
    store = SqliteSessions(folder / "sessions.db")
    try:
        yield store
    finally:
        store.close()


class Peer:
    """Another library that stores the turns too."""

    def __init__(self, name: str, python: str, folder: Path) -> None:
        self._process: Helper = peer_script(python, "store_peer.py", name, str(folder))
        self.label = f"{name} {self._process.said}"
        self.close = self._process.close
        self.appends: list[float] = []

    def append(self, entries: list[Entry]) -> None:
        """Let it store a turn."""
        question, answer = (entry.message for entry in entries)
        thought = "".join(one.thought for one in answer.blocks if isinstance(one, ThinkingBlock))
        wanted = {"append": [question.text, thought, answer.text]}
        self.appends.append(float(self._process.ask(json.dumps(wanted))))

    def load(self) -> float:
        """CPU milliseconds until it has all turns again, with their thoughts.

        Raises:
            ValueError: thoughts are missing.
        """
        taken, thoughts = self._process.ask(json.dumps({"load": True})).split()
        if int(thoughts) != len(self.appends):
            raise ValueError(f"{self.label} has {thoughts} thoughts of {len(self.appends)}")
        return float(taken)


def _peers(folder: Path, stack: ExitStack) -> Iterator[Peer]:
    for name in PEERS:
        if python := peer_python(name):
            peer = Peer(name, python, folder)
            stack.callback(peer.close)
            if peer.label.split()[1:]:
                yield peer
            else:
                leave_out(name, "it does not start")


def beside(folder: Path) -> list[Figure]:
    """The same turns stored and loaded by mull and by others, round by round."""
    with ExitStack() as stack:
        peers = [*_peers(folder, stack)]
        own = list[float]()
        store = stack.enter_context(_store(folder))
        session = store.create(folder="/bench").id
        for seed in range(APPENDS):
            entries = _entries(seed)
            own.append(_clock(lambda at=2 * seed, new=entries: store.append(session, at, *new)))
            for peer in peers:
                peer.append(entries)

        def load() -> None:
            with _store(folder) as opened:
                opened.load(session)

        rounds = [[_processor(load), *(peer.load() for peer in peers)] for _ in range(_TIMES)]
        loaded, *others = map(list, zip(*rounds, strict=True))
    turns = f"{APPENDS} turns"
    figures = [Figure(f"each of {turns} appended: mull", statistics.median(own), "ms")]
    for peer in peers:
        name = f"each of {turns} appended: {peer.label}"
        figures.append(_against(own, peer.appends, name, "mull", ""))
    figures.append(Figure(f"{turns} loaded: mull", statistics.median(loaded), "ms CPU"))
    for peer, times in zip(peers, others, strict=True):
        ratio = median_ratio(times, loaded)
        name = f"{turns} loaded: {peer.label}"
        figures.append(Figure(name, statistics.median(times), "ms CPU", "mull", ratio))
    return figures


def appends(folder: Path) -> list[Figure]:
    """Turns per second, beside SQLite and a file."""
    with _store(folder) as store, (folder / "bare").open("ab", 0) as bare:
        plain = sqlite3.connect(folder / "bare.db", isolation_level=None)
        plain.execute("PRAGMA journal_mode = WAL")
        plain.execute("PRAGMA synchronous = FULL")
        plain.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, data BLOB)")
        session = store.create(folder="/bench").id
        own, sqlite, file = list[float](), list[float](), list[float]()
        for seed in range(APPENDS):
            entries = _entries(seed)
            data = b"".join(map(encode_record, entries))

            def synced(data: bytes = data) -> None:
                bare.write(data)
                os.fsync(bare.fileno())

            own.append(_clock(lambda at=2 * seed, new=entries: store.append(session, at, *new)))
            sqlite.append(_clock(lambda data=data: plain.execute(_INSERT, (data,))))
            file.append(_clock(synced))
        plain.close()
    names = "SQLite alone, the same bytes", "a file, the same bytes"
    return [
        Figure(f"{names[1]}, written and synced", _rate(file), "per s"),
        Figure(f"{names[0]}, inserted", _rate(sqlite), "per s"),
        Figure("a turn appended", _rate(own), "per s", names[0], median_ratio(own, sqlite), "≤ 3"),
        Figure("a turn appended", statistics.median(own), "ms", names[1], median_ratio(own, file)),
    ]


def _rate(times: list[float]) -> float:
    return 1e3 / statistics.median(times)


def resume(folder: Path) -> list[Figure]:
    """A stored session until its first request is encoded."""
    with _store(folder) as store:
        session = store.create(folder="/bench", model=_TARGET.name).id
        store.append(session, 0, *(entry for seed in range(TURNS) for entry in _entries(seed)))
    decode = msgspec.json.Decoder(Record).decode
    counter = counter_for(_TARGET)
    counter.count("warm")

    def limit() -> None:
        connection = sqlite3.connect(folder / "sessions.db")
        query = "SELECT data FROM records WHERE session = ? ORDER BY position"
        for (data,) in connection.execute(query, (session,)):
            decode(data)
        connection.close()

    def load() -> list[Record]:
        with _store(folder) as store:
            return store.load(session)[1]

    def ask(counter: Counter) -> None:
        made = prepare(Log(records=load()), Settings().snapshot(), _TARGET, counter=counter)
        encode_request(made.request, made.target)

    steps = (limit, load, lambda: ask(CHARACTERS), lambda: ask(counter))
    rounds = [[_processor(step) for step in steps] for _ in range(_TIMES)]
    base, loaded, asked, counted = map(list, zip(*rounds, strict=True))
    name = f"a session of {TURNS:,} turns"
    than = "rows read and decoded"
    return [
        Figure(f"{name}: {than}", statistics.median(base), "ms"),
        _against(base, loaded, f"{name} loaded", than, "≤ 3"),
        _against(base, asked, f"{name}, first request, tokens estimated", than, ""),
        _against(base, counted, f"{name}, first request, tokens counted", than, ""),
    ]


def _against(base: list[float], times: list[float], name: str, than: str, target: str) -> Figure:
    return Figure(name, statistics.median(times), "ms", than, median_ratio(times, base), target)


def _filled(folder: Path) -> float:
    """Megabytes of texts in a new store of sessions; one of them has a rare word."""
    with _store(folder) as store:
        for start in range(0, SEARCHED_TURNS, _SESSION_TURNS):
            seeds = range(start, start + _SESSION_TURNS)
            info = store.create(folder=f"/bench/{start % 3}")
            store.append(info.id, 0, *(entry for seed in seeds for entry in _entries(seed)))
            if SEARCHED_TURNS // 2 in seeds:
                said = assistant(ThinkingBlock(f"where the {_RARE} is"), TextBlock("there"))
                store.append(info.id, 2 * _SESSION_TURNS, Entry(user("where")), Entry(said))
    connection = sqlite3.connect(folder / "sessions.db")
    with (folder / "texts").open("w") as texts:
        for (text,) in connection.execute("SELECT text FROM texts"):
            texts.write(text + "\n")
    connection.close()
    return (folder / "texts").stat().st_size / 1e6


_BARE = (
    "SELECT snippet(texts_index, 0, '', '', '…', 24) FROM texts_index WHERE texts_index MATCH ?"
    " ORDER BY rowid DESC LIMIT 50"
)


def search(folder: Path) -> list[Figure]:
    """Words that are rare, common, or only parts of words."""
    size = f"{_filled(folder):,.0f} MB"
    figures = []
    with _store(folder) as store:
        first = _clock(lambda: store.search([_RARE]))
        later = statistics.median(_clock(lambda: store.search([_RARE])) for _ in range(_TIMES))
        figures.append(_within(f"a rare word in {size}, the store just opened", first))
        figures.append(_within(f"a rare word in {size}, again", later))
        bare = sqlite3.connect(folder / "sessions.db")
        limits: list[tuple[str, str, str, Callable[[str], object]]] = [
            ("common word", "whether", "SQLite's index", lambda word: _matched(bare, word)),
            ("part of a word", _RARE[1:-1], "`grep`", lambda word: _grep(word, folder)),
            ("word that is nowhere", "qwxzk", "`grep`", lambda word: _grep(word, folder)),
        ]
        for kind, word, than, limit in limits:
            base, own = list[float](), list[float]()
            for _ in range(_TIMES):
                base.append(_clock(lambda limit=limit, word=word: limit(word)))
                own.append(_clock(lambda word=word: store.search([word])))
            figures.append(_against(base, own, f"a {kind} in {size}", than, "≤ 3"))
        bare.close()
    return figures


def _matched(connection: sqlite3.Connection, word: str) -> None:
    connection.execute(_BARE, (word,)).fetchall()


def _within(name: str, milliseconds: float) -> Figure:
    return Figure(name, milliseconds, "ms", target="≤ 100 ms")


def _grep(word: str, folder: Path) -> None:
    subprocess.run(["grep", "-ic", word, folder / "texts"], stdout=subprocess.DEVNULL, check=False)


def run() -> list[Figure]:
    """Appends, peers, resuming, search; each with a store of its own."""
    figures = []
    for part in (appends, beside, resume, search):
        with TemporaryDirectory() as folder:
            figures += part(Path(folder))
    return figures
