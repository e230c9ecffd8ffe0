"""A very fast endpoint of every dialect, in a process of its own: answers that are rendered before.

`python -m bench.upstream` prints its port and answers until its standard input is closed. What
comes back is in the path of a request: `/DIALECT/CHUNKS/…` for a stream that is sent in one go,
`/DIALECT/CHUNKS-paced/…` for one that is sent chunk by chunk, 2,000 a second,
`/DIALECT/document/…` for 200 kB in one piece and `/DIALECT/sentence/…` for a short answer in one.
What each event of a stream gives is an HTTP chunk of its own, as real servers send them.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from functools import cache
from typing import cast

from bench.streams import frames
from mull.dialects.serving import answer_writer, write_answer
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.messages import Dialect, Message

PACE = 1 / 2000
"""Seconds between two chunks of a paced stream."""
_SENTENCE = "So the answer would then follow from this.\n"
_WHOLE = {"document": 100_000 // len(_SENTENCE), "sentence": 1}
"""Answers in one piece, and how often the sentence stands in their thinking and in their text."""
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n"
    b"cache-control: no-cache\r\n\r\n"
)
_DOCUMENT = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


@cache
def render(dialect: Dialect, what: str) -> list[bytes]:
    """An answer as it goes over the wire, in the pieces that are sent together."""
    if what in _WHOLE:
        body = document(dialect, what)
        return [_DOCUMENT % len(body) + body]
    chunks, _, paced = what.partition("-")
    pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in frames(dialect, int(chunks))]
    head = _STREAM % answer_writer(dialect).MEDIA_TYPE.encode()
    whole = [head, *pieces, b"0\r\n\r\n"]
    return whole if paced else [b"".join(whole)]


def document(dialect: Dialect, what: str) -> bytes:
    """An answer in one document."""
    half = _SENTENCE * _WHOLE[what]
    blocks = (ThinkingBlock(half), TextBlock(half))
    said = Message(role="assistant", status="complete", stop_reason="stop", blocks=blocks)
    return write_answer(said, dialect).body


def serve(client: socket.socket) -> None:
    """Answer every request on one connection."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    try:
        while piece := client.recv(65536):
            data += piece
            head, found, body = data.partition(b"\r\n\r\n")
            if found and len(body) >= _length(head):
                data = body[_length(head) :]
                _, dialect, what, _ = head.decode("latin-1").split(" ")[1].split("/", 3)
                answer(client, render(cast(Dialect, dialect), what))
    except OSError:
        pass
    finally:
        client.close()


def answer(client: socket.socket, pieces: list[bytes]) -> None:
    """Send the pieces, at their pace if there are several."""
    for piece in pieces:
        client.sendall(piece)
        if len(pieces) > 1:
            time.sleep(PACE)


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def main() -> None:
    """Listen on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = listening.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
