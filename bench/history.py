"""A turn on a long conversation: prepared and counted, encoded, and appended to a stored session.

Lengths are measured in turns of each other: what the machine does meanwhile then falls on all.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import Figure, median_ratio
from mull import (
    Log,
    Message,
    Settings,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    assistant,
    counter_for,
    prepare,
    resolve,
    user,
)
from mull.dialects.registry import encode_request
from mull.history.log import Entry
from mull.store.sessions.sqlite import SqliteSessions

SIZES = (10, 1000, 10_000)
ROUNDS = (10, 1500)
THOUGHT_BYTES = 4096
MORE_TURNS = 51
_WORDS = ("weigh", "the", "step", "whether", "each", "follows", "from", "what", "was", "seen")
_TARGET = resolve("moonshotai/kimi-k2-thinking")


def _thought(seed: int) -> ThinkingBlock:
    """A thought of 4 kB that no other seed has."""
    choose = random.Random(seed)
    thought = ""
    while len(thought) < THOUGHT_BYTES:
        thought += f"{choose.choice(_WORDS)} {choose.randrange(1000)} "
    return ThinkingBlock(thought[:THOUGHT_BYTES], source_field="reasoning_content")


def turn(seed: int) -> list[Message]:
    """A question, a thought and an answer."""
    return [user(f"question {seed}"), assistant(_thought(seed), TextBlock(f"answer {seed}"))]


def tool_round(seed: int) -> list[Message]:
    """A thought with a call, and its result."""
    call = ToolCallBlock(f"call_{seed}", "look", {"at": seed})
    result = Message(role="tool", blocks=(ToolResultBlock(call.id, f"seen {seed}"),))
    return [assistant(_thought(seed), call), result]


class Growing:
    """A log that is looked at after each step, and the time that each part of a step took."""

    def __init__(self, log: Log, step: Callable[[int], list[Message]], sends: bool = True) -> None:
        self.log = log
        self._step = step
        settings = Settings()
        settings.set("reasoning.includeInContext", sends)
        self._snapshot, self._counter = settings.snapshot(), counter_for(_TARGET)
        self._counter.count("warm")
        self.first = self._timed(self._look)
        self.looks: list[float] = []
        self.appends: list[float] = []
        self.encodes: list[float] = []

    def grow(self, seed: int, store: SqliteSessions | None = None, session: str = "") -> None:
        """One step more; what a store is given too."""
        added = self._step(seed)
        for message in added:
            self.log.append(message)
        self.looks.append(self._timed(self._look))
        if store:
            at = len(self.log) - len(added)
            entries = [Entry(message) for message in added]
            self.appends.append(self._timed(lambda: store.append(session, at, *entries)))

    def encode(self) -> None:
        """The request as it is now, to bytes."""
        request = self._look().request
        self.encodes.append(self._timed(lambda: encode_request(request, _TARGET)))

    def _look(self):
        return prepare(self.log, self._snapshot, _TARGET, counter=self._counter)

    def _timed(self, work: Callable[[], object]) -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e3


def _turns(count: int) -> Log:
    return Log(message for seed in range(count) for message in turn(seed))


def _chain(count: int) -> Log:
    rounds = (message for seed in range(count) for message in tool_round(seed))
    return Log([user("look at everything"), *rounds])


def _against(base: list[float], values: list[float], name: str, than: str, target: str) -> Figure:
    ratio = median_ratio(values, base)
    return Figure(name, statistics.median(values), "ms", than, ratio, target)


def views() -> list[Figure]:
    """First view and one more turn for each size; the last against the smallest."""
    growing = {size: Growing(_turns(size), turn) for size in SIZES}
    gc.collect()
    for more in range(MORE_TURNS):
        for size, one in growing.items():
            one.grow(size + more)
    figures = []
    base = growing[SIZES[0]].looks
    for size, one in growing.items():
        name = f"prepare and count {size:,} turns, first time"
        target = "≤ 2" if size == SIZES[-1] else ""
        figures.append(Figure(name, one.first, "ms"))
        than = f"one turn more than {SIZES[0]}"
        figures.append(_against(base, one.looks, f"one turn more than {size:,}", than, target))
    return figures


def chains() -> list[Figure]:
    """One more round of a tool chain, short and long."""
    short, long = (Growing(_chain(count), tool_round) for count in ROUNDS)
    for more in range(MORE_TURNS):
        short.grow(ROUNDS[0] + more)
        long.grow(ROUNDS[1] + more)
    names = [f"one tool round more than {count:,} in one turn" for count in ROUNDS]
    return [
        Figure(names[0], statistics.median(short.looks), "ms"),
        _against(short.looks, long.looks, names[1], names[0], "≤ 2"),
    ]


def stored() -> list[Figure]:
    """A turn on a stored session, short and long: viewed, counted and on the disk."""
    with TemporaryDirectory() as folder:
        store = SqliteSessions(Path(folder) / "sessions.db")
        try:
            return _stored(store)
        finally:
            store.close()


def _stored(store: SqliteSessions) -> list[Figure]:
    sizes = SIZES[0], SIZES[-1]
    found = []
    for size in sizes:
        log = _turns(size)
        info = store.create(folder="/bench", model=_TARGET.name)
        store.append(info.id, 0, *log)
        found.append((Growing(log, turn, sends=False), info.id, size))
    start = time.perf_counter()
    _, records = store.load(found[-1][1])
    loaded = (time.perf_counter() - start) * 1e3
    assert len(records) == 2 * sizes[-1]
    gc.collect()
    for more in range(MORE_TURNS):
        for one, session, size in found:
            one.grow(size + more, store, session)
    for _ in range(5):
        for one, _, _ in found:
            one.encode()
    (short, _, _), (long, _, _) = found
    both = [[a + b for a, b in zip(one.looks, one.appends, strict=True)] for one in (short, long)]
    names = [f"a turn on a stored session of {size:,}" for size in sizes]
    bodies = [f"encode a request of {size:,} turns, thoughts not sent" for size in sizes]
    return [
        Figure(f"load a stored session of {sizes[1]:,} turns", loaded, "ms"),
        Figure(f"{names[0]}: view, count, append", statistics.median(both[0]), "ms"),
        _against(both[0], both[1], f"{names[1]}: view, count, append", names[0], "≤ 2"),
        _against(short.appends, long.appends, f"{names[1]}: append alone", names[0], "≤ 2"),
        Figure(bodies[0], statistics.median(short.encodes), "ms"),
        Figure(bodies[1], statistics.median(long.encodes), "ms", "all of it is sent"),
    ]


def run() -> list[Figure]:
    """Views, tool chains and stored sessions."""
    return [*views(), *chains(), *stored()]
