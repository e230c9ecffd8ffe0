"""Things that pile up: descriptors, tasks, memory, over many turns and broken streams."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator

from mull.neutral.events import TextDelta, ToolCallDelta
from tools.attack.ground import Server, Trial, attack, crash_of, home, saying

_KIND = "Resources"
_MANY = """
import asyncio, json, os, sys
from mull import Conversation

def tool(text: str = "") -> str:
    "Says it again."
    return text

def held():
    return len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())

async def main(url, form, times):
    counts = []
    async def talk(conversation, number):
        if form == "closed early":
            async with conversation.stream_async(f"q{number}") as stream:
                async for event in stream:
                    break
        else:
            try:
                await conversation.ask_async(f"q{number}")
            except Exception as error:
                if form != "refused":
                    raise
    conversation = Conversation("openai-compatible/m", base_url=url, tools=[tool])
    for number in range(times):
        if form == "refused":
            conversation = Conversation("openai-compatible/m", base_url=url)
        await talk(conversation, number)
        if number in (times // 10, times - 1):
            await asyncio.sleep(0.2)
            counts.append(held())
    print(json.dumps(counts))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def _piled_up(form: str, url: str, times: int) -> str | None:
    """Whether more descriptors or tasks are held after all rounds than after the first few."""
    with home() as place:
        done = subprocess.run(
            [sys.executable, "-c", _MANY, url, form, str(times)],
            cwd=place.folder, env=place.environment, capture_output=True, text=True, check=False,
            timeout=300,
        )  # fmt: skip
    if done.returncode:
        return done.stderr.strip()[-200:]
    (files, tasks), (more_files, more_tasks) = json.loads(done.stdout.splitlines()[-1])
    if more_files > files + 2 or more_tasks > tasks + 1:
        return f"{files} descriptors and {tasks} tasks became {more_files} and {more_tasks}"
    return None


@attack(_KIND, "200 turns with tools in one conversation")
def _turns() -> Iterator[Trial]:
    call = saying("openai-chat", ToolCallDelta(0, "c", "tool", '{"text":"x"}'), finish="tool_calls")
    say = saying("openai-chat", TextDelta("fine"))

    def play(connection: socket.socket, number: int) -> None:
        (call if number % 2 else say)(connection, number)

    with Server(play) as server:
        problem = _piled_up("turns", server.url, 200)
        for _ in range(200):
            yield "turn", problem


@attack(_KIND, "200 streams closed early")
def _closed() -> Iterator[Trial]:
    with Server(saying("openai-chat", *(TextDelta(f"{n} ") for n in range(50)))) as server:
        problem = _piled_up("closed early", server.url, 200)
        for _ in range(200):
            yield "stream", problem


@attack(_KIND, "200 refused conversations that nobody closes")
def _refused() -> Iterator[Trial]:
    def no(connection: socket.socket, number: int) -> None:
        connection.sendall(b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n{}")

    with Server(no) as server:
        problem = _piled_up("refused", server.url, 200)
        for _ in range(200):
            yield "conversation", problem


@attack(_KIND, "an answer of 50 MB, 100,000 pieces, 3,000 calls, and the question after it")
def _large() -> Iterator[Trial]:
    plays = {
        "50 MB": saying("openai-chat", TextDelta("word " * (10 << 20))),
        "100,000 pieces": saying("openai-chat", *(TextDelta("x") for _ in range(100_000))),
        "3,000 calls": saying(
            "openai-chat", *(ToolCallDelta(n, f"c{n}", "read", "{}") for n in range(3000))
        ),
    }
    for form, play in plays.items():
        with home() as place, Server(play) as server:
            yield form, crash_of(place.ask("openai-chat", server.url), 0, 4)
            small = saying("openai-chat", TextDelta("fine"))
            with Server(small) as other:
                ran = place.ask("openai-chat", other.url, "--continue", "and?")
                yield f"after {form}", crash_of(ran, 0, 3, 4)
