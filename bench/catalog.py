"""Finding a model: the first time in a process, and again."""

from __future__ import annotations

import statistics
import time

from bench.report import Figure
from mull.catalog.load import load
from mull.catalog.resolve import resolve

NAMES = ("anthropic/claude-sonnet-4-5", "gpt-5", "openrouter/moonshotai/kimi-k2-thinking/high")


def run() -> list[Figure]:
    """Loading the catalog, and resolving a full, a bare and a routed name in it."""
    loads = []
    for _ in range(9):
        start = time.perf_counter()
        catalog = load()
        loads.append((time.perf_counter() - start) * 1e3)
    figures = [Figure("load the catalog", statistics.median(loads), "ms")]
    for name in NAMES:
        times = []
        for _ in range(200):
            start = time.perf_counter()
            resolve(name, catalog=catalog)
            times.append((time.perf_counter() - start) * 1e6)
        figures.append(Figure(f"resolve {name}", statistics.median(times), "µs"))
    return figures
