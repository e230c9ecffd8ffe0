"""A very fast endpoint in a process of its own: one pre-rendered stream, sent in one go.

`python -m bench.upstream DIALECT` prints its port and answers until its standard input is closed.
What each event of the answer gives is an HTTP chunk of its own, as real servers send them.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

from bench.streams import events
from mull.dialects.serving import answer_writer
from mull.neutral.messages import Dialect

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n"
    b"cache-control: no-cache\r\n\r\n"
)


def render(dialect: Dialect) -> bytes:
    """The whole answer as it goes over the wire."""
    writer = answer_writer(dialect)
    pieces = filter(None, map(writer.feed, events(dialect)))
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join([HEAD % writer.MEDIA_TYPE.encode(), *chunks, b"0\r\n\r\n"])


def serve(client: socket.socket, answer: bytes) -> None:
    """Answer every request on one connection with the same bytes."""
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = b""
    try:
        while piece := client.recv(65536):
            data += piece
            head, found, body = data.partition(b"\r\n\r\n")
            if found and len(body) >= _length(head):
                data = body[_length(head) :]
                client.sendall(answer)
    except OSError:
        pass
    finally:
        client.close()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def main() -> None:
    """Listen on loopback."""
    answer = render(sys.argv[1])
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = listening.accept()
        threading.Thread(target=serve, args=(client, answer), daemon=True).start()


if __name__ == "__main__":
    main()
