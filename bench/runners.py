"""One client of the end-to-end measurement, in a process of its own.

`python runners.py NAME URL`: for every line on standard input it reads the whole stream once and
prints the CPU seconds that took. It runs in whatever environment has the library, so it imports
nothing of the bench; each client hands over everything it made of the stream.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import sys
import time
from collections.abc import Callable

LEAST = 19_990
"""Pieces that a client must have handed over, of 20,000 chunks."""
MESSAGES = [{"role": "user", "content": "q"}]


def on_loop(make: Callable[[], object]) -> Callable[[], int]:
    """A blocking step out of an asynchronous one, on one event loop for all rounds."""
    runner = asyncio.Runner()
    return lambda: runner.run(make())


def bytes_only(url: str) -> Callable[[], int]:
    """mull's transport, and nothing done with what it brings; a piece is an SSE frame."""
    from mull.client.http import HttpClient
    from mull.client.transport import HttpRequest

    transport = HttpClient()
    request = HttpRequest("POST", f"{url}/chat/completions", {}, b"{}")

    async def read() -> int:
        count = 0
        async with transport.send(request) as answer:
            async for piece in answer:
                count += piece.count(b"\n\n")
        return count

    return on_loop(read)


def mull_async(url: str) -> Callable[[], int]:
    """`mull.stream_async`: events, the folded message, the result."""
    from mull import stream_async
    from mull.agent.engine import Engine

    engine = Engine()

    async def read() -> int:
        count = 0
        stream = stream_async("q", "openai-compatible/m", base_url=url, engine=engine)
        async for _ in stream:
            count += 1
        return count if stream.result.message.tool_calls else 0

    return on_loop(read)


def mull_sync(url: str) -> Callable[[], int]:
    """`mull.stream`, its thread included."""
    from mull import stream
    from mull.agent.engine import Engine

    engine = Engine()

    def read() -> int:
        going = stream("q", "openai-compatible/m", base_url=url, engine=engine)
        count = sum(1 for _ in going)
        return count if going.result.message.tool_calls else 0

    return read


def openai_sync(url: str) -> Callable[[], int]:
    """The official SDK's chunks."""
    from openai import OpenAI

    client = OpenAI(api_key="-", base_url=url)
    return lambda: sum(
        1 for _ in client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    )


def openai_async(url: str) -> Callable[[], int]:
    """The same, asynchronous."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="-", base_url=url)

    async def read() -> int:
        stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        return len([None async for _ in stream])

    return on_loop(read)


def litellm(url: str) -> Callable[[], int]:
    """litellm's chunks."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it is fetched
    import litellm

    litellm.telemetry = False
    call = {"model": "openai/m", "api_base": url, "api_key": "-", "messages": MESSAGES}
    return lambda: sum(1 for _ in litellm.completion(**call, stream=True))


def pydantic_ai(url: str) -> Callable[[], int]:
    """pydantic-ai's events, without an agent around them."""
    from pydantic_ai import ModelRequest
    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="-"))

    async def read() -> int:
        asked = [ModelRequest.user_text_prompt("q")]
        async with model_request_stream(model, asked) as stream:
            return len([None async for _ in stream])

    return on_loop(read)


RUNNERS = {
    "bytes": (bytes_only, ""),
    "mull, async": (mull_async, ""),
    "mull, sync": (mull_sync, ""),
    "openai SDK, async": (openai_async, "openai"),
    "openai SDK, sync": (openai_sync, "openai"),
    "litellm": (litellm, "litellm"),
    "pydantic-ai": (pydantic_ai, "pydantic-ai-slim"),
}


def main(name: str, url: str) -> None:
    """Read once to warm up, then once for every line that comes."""
    make, package = RUNNERS[name]
    read = make(url)
    count = read()
    if count < LEAST:
        raise SystemExit(f"{name} made only {count} pieces of the stream")
    print(importlib.metadata.version(package) if package else "", flush=True)
    for _ in sys.stdin:
        began = time.process_time()
        read()
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
