"""CPU per chunk of decoding a stream of 20,000, beside the limit and the vendors' own SDKs.

There is no network. A quick run reads 4,000 chunks.
"""

from __future__ import annotations

import json
import statistics
import time
import tracemalloc
from collections.abc import Callable

from bench import limits, sdks
from bench.report import QUICK, Figure, median_ratio
from bench.streams import CHUNKS, STREAMS
from mull import resolve
from mull.dialects.registry import decoder
from mull.neutral.assemble import Assembler

ROUNDS = 2 if QUICK else 5
READ = 4096
MODELS = {
    "openai-chat": "moonshotai/kimi-k2.5",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-2.5-pro",
    "bedrock-converse": "amazon-bedrock/claude-sonnet-4-5",
}


def events_only(dialect: str, chunks: list[bytes]) -> None:
    """Decode into events and throw them away."""
    reading = decoder(resolve(MODELS[dialect]))
    for chunk in chunks:
        reading.feed(chunk)
    reading.close()


def assembled(dialect: str, chunks: list[bytes]) -> None:
    """Decode into events and fold them into a message."""
    reading, folding = decoder(resolve(MODELS[dialect])), Assembler()
    for chunk in chunks:
        folding.add_all(reading.feed(chunk))
    folding.add_all(reading.close())
    if folding.message().status != "complete":
        raise SystemExit(f"{dialect}: the bench's own stream was not read whole")


def cpu_us(step: Callable[[], object]) -> float:
    """CPU microseconds per chunk of one run."""
    start = time.process_time()
    step()
    return (time.process_time() - start) / CHUNKS * 1e6


def measure(dialect: str) -> list[Figure]:
    """Limit, events, blocks and SDK on the same bytes, interleaved."""
    body = STREAMS[dialect]()
    chunks = [body[at : at + READ] for at in range(0, len(body), READ)]
    steps: dict[str, Callable[[], object]] = {
        "limit": lambda: limits.decode(dialect, chunks),
        "events": lambda: events_only(dialect, chunks),
        "blocks": lambda: assembled(dialect, chunks),
    }
    if dialect in sdks.SDKS:
        steps["sdk"] = lambda: sdks.SDKS[dialect](body)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(ROUNDS + 1):
        for name, step in steps.items():
            taken = cpu_us(step)
            if turn:  # the first one warms up
                times[name].append(taken)
    unit = "µs CPU"
    figures = [Figure(f"{dialect}: limit", statistics.median(times["limit"]), unit)]
    for name, target in (("events", "≤ 3"), ("blocks", "≤ 4")):
        ratio = median_ratio(times[name], times["limit"])
        value = statistics.median(times[name])
        figures.append(Figure(f"{dialect}: mull, {name}", value, unit, "limit", ratio, target))
    if "sdk" in times:
        ratio = median_ratio(times["sdk"], times["blocks"])
        value = statistics.median(times["sdk"])
        figures.append(Figure(f"{dialect}: SDK", value, unit, "mull, blocks", ratio, "≥ 20"))
    return figures


def memory() -> Figure:
    """Peak memory of the same text in ten times as many deltas."""
    peaks = []
    for deltas in (CHUNKS, CHUNKS // 10):
        piece = "x" * (10 * CHUNKS // deltas)
        chunk = {"choices": [{"delta": {"content": piece}}]}
        frame = f"data: {json.dumps(chunk)}\n\n".encode()
        reading, folding = decoder(resolve(MODELS["openai-chat"])), Assembler()
        tracemalloc.start()
        for _ in range(deltas):
            for event in reading.feed(frame):
                folding.add(event)
        if len(folding.message().text) != 10 * CHUNKS:
            raise SystemExit("the bench's own stream was not read whole")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    name = f"peak memory, {10 * CHUNKS / 1000:,.0f} kB of text in {CHUNKS:,} deltas"
    against = f"the same in {CHUNKS // 10:,}"
    return Figure(name, peaks[0] / 1000, "kB", against, peaks[0] / peaks[1], "≤ 1.5")


def run() -> list[Figure]:
    """All dialects."""
    figures = [figure for dialect in STREAMS for figure in measure(dialect)]
    return [*figures, memory()]
