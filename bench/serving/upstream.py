"""An upstream that costs next to nothing: canned answers of the Chat Completions API.

`python -m bench.serving.upstream` prints its port and answers until its standard input is closed.
What is answered is said by the path: `/short/v1` a few words, `/long/v1` a stream of `CHUNKS`
chunks, `/held/v1` the beginning of a stream whose end never comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading

import uvloop

from bench.streams import events
from mull.dialects.serving import answer_writer
from mull.neutral.events import BlockEnded, Event, Finished, Started, TextDelta, ThinkingDelta

CHUNKS = 2_000
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
_WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
_WORDS: list[Event] = [
    Started("r1", "m"),
    *[ThinkingDelta("so the ", "t")] * 3,
    BlockEnded("t"),
    TextDelta("Milk and bread.", "m"),
    Finished("stop"),
]


def _stream(said: list[Event]) -> bytes:
    writer = answer_writer("openai-chat")
    pieces = filter(None, [*map(writer.feed, said), writer.close()])
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join([_STREAM, *chunks, b"0\r\n\r\n"])


def _whole() -> bytes:
    message = {"role": "assistant", "reasoning_content": "so the ", "content": "Milk and bread."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29}
    body = {"id": "r1", "object": "chat.completion", "created": 1, "model": "m"}
    data = json.dumps(body | {"choices": [choice], "usage": usage}).encode()
    return _WHOLE % (len(data), data)


SHORT, WHOLE = _stream(_WORDS), _whole()
LONG = _stream(list(events("openai-chat", CHUNKS)))
HELD = SHORT[: SHORT.index(b"so the ")] + b"so the " + SHORT[SHORT.index(b"so the ") + 7 :][:20]


class Answering(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end].lower()
            stop = _end(head, self._held, end + 4)
            if not 0 < stop <= len(self._held):
                return
            body, self._held = self._held[end + 4 : stop], self._held[stop:]
            self._transport.write(_answer(head, body))


def _end(head: bytes, data: bytes, start: int) -> int:
    """Where the body of a request ends; 0 where that is not known yet."""
    at = head.find(b"content-length:")
    if at < 0:  # in chunks
        found = data.find(b"\r\n0\r\n\r\n", start)
        return found + 7 if found >= 0 else 0
    return start + int(head[at + 15 :].split(b"\r\n", 1)[0])


def _answer(head: bytes, body: bytes) -> bytes:
    if b" /long/" in head:
        return LONG
    if b" /held/" in head:
        return HELD
    is_stream = b'"stream":true' in body or b'"stream": true' in body
    return SHORT if is_stream else WHOLE


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    uvloop.run(_serve())
