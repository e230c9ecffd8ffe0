"""Clients that cost next to nothing, in a process of their own.

`python -m bench.serving.load` reads a JSON object from a line of its standard input (`port`,
`path`, `body`, `clients`, `requests`, `held`) and prints one with what it measured. Each client
keeps its connection and asks again as soon as it is answered; if the server has closed a connection
meanwhile, the client makes another. `NUMBER` in the body is replaced, in
every request by another number. With `held` each asks once, and all
stay open until the next line comes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import statistics
import sys
import time
from typing import Any

import uvloop

_numbers = itertools.count(1)
NUMBER = "0123456789"
"""What is replaced in the body of a request."""


class Client(asyncio.Protocol):
    """One connection at a time: asks while there is something left to ask."""

    def __init__(self, request: bytes, left: list[int], port: int, held: bool) -> None:
        self._request, self._left, self._held = request, left, held
        self._port = port
        self._connecting: asyncio.Task[None] | None = None
        self._tail = b""
        self._length: int | None = None
        self.seconds: list[float] = []
        self.size = 0
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self) -> None:
        """Make a connection, and ask."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, "127.0.0.1", self._port)

    def connection_made(self, transport: Any) -> None:
        self._transport, self._answers = transport, 0
        self._ask()

    def _ask(self) -> None:
        if not self._left[0]:
            self._transport.close()
            return
        self._left[0] -= 1
        number = f"{next(_numbers):0{len(NUMBER)}}"
        self._head: bytes | None = b""
        self._tail, self._began = b"", time.perf_counter()
        self._transport.write(self._request.replace(NUMBER.encode(), number.encode()))

    def data_received(self, data: bytes) -> None:
        self.size += len(data)
        if self._head is not None:
            self._head += data
            head, found, body = self._head.partition(b"\r\n\r\n")
            if not found:
                return
            if b" 200 " not in head[:20]:
                told = head.partition(b"\r\n")[0] + b": " + body
                self.over.set_exception(RuntimeError(told.decode("latin-1")))
                self._transport.close()
                return
            lower, self._head = head.lower(), None
            at = lower.find(b"content-length:")
            self._length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else None
            data = body
        if self._held:
            if data and not self.over.done():
                self.over.set_result(None)
            return
        if self._length is not None:
            self._length -= len(data)
            done = self._length <= 0
        else:
            self._tail = (self._tail + data)[-5:]
            done = self._tail == b"0\r\n\r\n"
        if done:
            self.seconds.append(time.perf_counter() - self._began)
            self._answers += 1
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._head == b"" and self._answers:  # a server may close what it has kept open
            self._left[0] += 1
            self._connecting = asyncio.ensure_future(self.connect())
        elif not self.over.done():
            self.over.set_result(None)

    def close(self) -> None:
        self._transport.close()


async def run(asked: dict[str, Any]) -> tuple[dict[str, Any], list[Client]]:
    """Ask all that is to be asked."""
    body = asked["body"].encode()
    head = (
        f"POST {asked['path']} HTTP/1.1\r\nhost: 127.0.0.1:{asked['port']}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in asked.get("headers", {}).items())
    )
    request = f"{head}\r\n".encode() + body
    left, held = [asked["requests"]], asked.get("held", False)
    began = time.perf_counter()
    clients = [Client(request, left, asked["port"], held) for _ in range(asked["clients"])]
    for client in clients:
        await client.connect()
    await asyncio.gather(*(client.over for client in clients))
    wall = time.perf_counter() - began
    seconds = [one for client in clients for one in client.seconds]
    if not held and len(seconds) != asked["requests"]:
        raise RuntimeError(f"{len(seconds)} of {asked['requests']} requests were answered")
    told = {
        "wall": wall,
        "p50": statistics.median(seconds) if seconds else 0.0,
        "p99": sorted(seconds)[int(len(seconds) * 0.99)] if seconds else 0.0,
        "bytes": sum(client.size for client in clients),
    }
    return told, clients


async def _main() -> None:
    loop = asyncio.get_running_loop()
    clients: list[Client] = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        for client in clients:
            client.close()
        try:
            told, clients = await run(json.loads(line))
        except RuntimeError as error:
            told, clients = {"error": str(error)}, []
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    uvloop.run(_main())
