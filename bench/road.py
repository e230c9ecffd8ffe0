"""The whole road over loopback in each dialect: `stream_async` beside what nobody can do without.

The limit is a bare socket on an event loop, HTTP's chunks taken apart by their sizes, frames split,
each decoded into a typed value and made an event (`bench.limits`). mull's figure holds all that a
user gets: events, the folded message, the turn.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import time
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from bench import limits
from bench.client import upstream
from bench.report import Figure, median_ratio
from bench.streams import CHUNKS, STREAMS
from mull import Engine, stream_async
from mull.client.http1 import AnswerReader

ROUNDS = 7
REQUEST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"


def limit(dialect: str, url: str) -> Callable[[], Coroutine[Any, Any, int]]:
    """A socket, and the limit of decoding."""
    parts = urlsplit(url)

    async def read() -> int:
        loop = asyncio.get_running_loop()
        with socket.create_connection((parts.hostname, parts.port)) as link:
            link.setblocking(False)
            await loop.sock_sendall(link, REQUEST)
            reader, decoding, count = AnswerReader("POST"), limits.Decoding(dialect), 0
            while not reader.done:
                data = await loop.sock_recv(link, 65536)
                count = decoding.feed(reader.feed(data))
            return count

    return read


def mull(dialect: str, url: str) -> Callable[[], Coroutine[Any, Any, int]]:
    """The library's stream."""
    engine = Engine(isolated=True)

    async def read() -> int:
        count = 0
        asked = {"base_url": url, "dialect": dialect, "engine": engine}
        async with stream_async("q", "openai-compatible/m", **asked) as stream:
            async for _ in stream:
                count += 1
        return count if stream.result.message.tool_calls else 0

    return read


def measure(dialect: str) -> list[Figure]:
    """CPU of this process per chunk, both interleaved."""
    with upstream(dialect) as url, asyncio.Runner() as runner:
        steps = {"limit": limit(dialect, url), "mull": mull(dialect, url)}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for turn in range(ROUNDS + 1):
            for name, step in steps.items():
                began = time.process_time()
                count = runner.run(step())
                assert count > CHUNKS * 0.9, (dialect, name, count)
                if turn:  # the first one warms up
                    times[name].append((time.process_time() - began) / CHUNKS * 1e6)
    ratio = median_ratio(times["mull"], times["limit"])
    best = {name: statistics.median(values) for name, values in times.items()}
    return [
        Figure(f"{dialect}: limit", best["limit"], "µs CPU"),
        Figure(f"{dialect}: mull, stream_async", best["mull"], "µs CPU", "limit", ratio, "≤ 3"),
    ]


def run() -> list[Figure]:
    """All dialects."""
    return [figure for dialect in STREAMS for figure in measure(dialect)]
