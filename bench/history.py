"""Preparing and counting a long conversation: first, and after one more turn."""

from __future__ import annotations

import gc
import random
import statistics
import time

from bench.report import Figure
from mull import (
    Log,
    Message,
    Settings,
    TextBlock,
    ThinkingBlock,
    assistant,
    counter_for,
    prepare,
    resolve,
    user,
)

SIZES = (10, 1000, 10_000)
THOUGHT_BYTES = 4096
MORE_TURNS = 51
_WORDS = ("weigh", "the", "step", "whether", "each", "follows", "from", "what", "was", "seen")


def turn(seed: int) -> list[Message]:
    """A question, a thought of 4 kB that no other turn has, and an answer."""
    choose = random.Random(seed)
    thought = ""
    while len(thought) < THOUGHT_BYTES:
        thought += f"{choose.choice(_WORDS)} {choose.randrange(1000)} "
    block = ThinkingBlock(thought[:THOUGHT_BYTES], source_field="reasoning_content")
    return [user(f"question {seed}"), assistant(block, TextBlock(f"answer {seed}"))]


def measure(size: int) -> tuple[float, float]:
    """Milliseconds for the first view of `size` turns, and for each of some more turns."""
    where = resolve("moonshotai/kimi-k2-thinking")
    settings = Settings()
    settings.set("reasoning.includeInContext", True)
    snapshot, counter = settings.snapshot(), counter_for(where)
    counter.count("warm")
    log = Log(message for seed in range(size) for message in turn(seed))
    gc.collect()
    start = time.perf_counter()
    prepare(log, snapshot, where, counter=counter)
    first = time.perf_counter() - start
    more = []
    for seed in range(size, size + MORE_TURNS):
        for message in turn(seed):
            log.append(message)
        start = time.perf_counter()
        prepare(log, snapshot, where, counter=counter)
        more.append(time.perf_counter() - start)
    return first * 1e3, statistics.median(more) * 1e3


def run() -> list[Figure]:
    """First view and one more turn for each size; the last against the smallest."""
    figures = []
    results = {size: measure(size) for size in SIZES}
    base = results[SIZES[0]][1]
    for size, (first, more) in results.items():
        figures.append(Figure(f"prepare and count {size:,} turns, first time", first, "ms"))
        target = "≤ 2" if size == SIZES[-1] else ""
        name = f"one turn more than {size:,}"
        against = f"one turn more than {SIZES[0]}"
        figures.append(Figure(name, more, "ms", against, more / base, target))
    return figures
