"""CPU per chunk of decoding, beside the limit and the vendors' own SDKs, in one run."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable

from bench import limits, sdks
from bench.report import Figure, median_ratio
from bench.streams import CHUNKS, STREAMS
from mull import resolve
from mull.dialects.registry import decoder
from mull.neutral.assemble import Assembler

ROUNDS = 5
READ = 4096
MODELS = {
    "openai-chat": "moonshotai/kimi-k2.5",
    "anthropic": "anthropic/claude-sonnet-4-5",
    "openai-responses": "openai/gpt-5",
    "gemini": "google/gemini-2.5-pro",
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
        for event in reading.feed(chunk):
            folding.add(event)
    for event in reading.close():
        folding.add(event)
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
    for _ in range(ROUNDS):
        for name, step in steps.items():
            times[name].append(cpu_us(step))
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


def memory(dialect: str) -> Figure:
    """Peak memory of twice as many deltas with the same text, against once."""
    peaks = []
    for parts in (1, 2):
        body = STREAMS[dialect](CHUNKS)
        read = READ // parts
        chunks = [body[at : at + read] for at in range(0, len(body), read)]
        tracemalloc.start()
        assembled(dialect, chunks)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    text = sum(len(piece) for piece in STREAMS[dialect](CHUNKS).split(b"\n\n"))
    name = f"{dialect}: peak memory, reads of half the size"
    return Figure(name, peaks[1] / 1e6, "MB", f"{text / 1e6:.1f} MB of stream", peaks[1] / peaks[0])


def run() -> list[Figure]:
    """All dialects."""
    figures = [figure for dialect in STREAMS for figure in measure(dialect)]
    return figures
