"""The memory of one `mull serve` with a store, a page and a ledger, while requests pass through.

Every request is of another conversation, so that whatever is kept by its content grows as it can.
The first figures still grow: the latest requests are kept for the page, and what was read before is
kept as long as there is room. From then on memory is to stay as it is. Then streams are held open.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.gateway import CLIENTS, Load, Way, body, started_gateway, upstream
from bench.peers import say
from bench.report import QUICK, Figure

MANY = 2_000 if QUICK else 30_000
OPEN = 100 if QUICK else 1_000
STEPS = 10
_PATHS = ("/v1/chat/completions", "/v1/messages")


def run() -> list[Figure]:
    """Measure."""
    load = Load()
    try:
        with tempfile.TemporaryDirectory() as home, upstream() as url:
            server = started_gateway(Path(home), url)
            try:
                ways = [Way("mull", server, path) for path in _PATHS]
                return list(_figures(load, ways))
            finally:
                server.end()
    finally:
        load.end()


def _figures(load: Load, ways: list[Way]) -> Iterator[Figure]:
    way, held = ways[0], list[float]()
    each = MANY // STEPS // len(ways)
    for step in range(1, STEPS + 1):
        for one in ways:
            load.put(one, body(one.path, "short", stream=True, varied=True), CLIENTS, each)
        held.append(way.server.megabytes)
        say(f"{step * MANY // STEPS:,} requests: {held[-1]:.0f} MB")
    half = held[STEPS // 2 - 1]
    told = f"{half:.0f} MB after {MANY // 2:,}"
    name = f"memory after {MANY:,} requests: mull"
    yield Figure(name, held[-1], "MB", told, held[-1] / half, "≤ 1.2×")
    load.put(way, body(way.path, "held", stream=True), OPEN, OPEN, held=True)
    both = way.server.megabytes
    yield Figure(f"memory with {OPEN:,} streams open: mull", both, "MB", target="≤ 300 MB")
    yield Figure("memory for each open stream: mull", (both - held[-1]) / OPEN * 1e3, "kB")
