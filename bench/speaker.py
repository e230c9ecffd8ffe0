"""An endpoint that says as much as it is asked to: `python -m bench.speaker` prints its port.

A request that holds `say:5000x4@1000` is answered with 5,000 deltas of four characters each, the
first half as reasoning, the second as text, 1,000 of them a second (0: as fast as they are taken).
The last word is `LAST`. It answers until its standard input is closed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.draw import pieces

__all__ = ["LAST"]

LAST = "Quizzaciously"
_WISH = re.compile(rb"say:(\d+)x(\d+)@(\d+)")
_TICK = 0.01
"""Seconds between two writes of a stream that is paced."""


def frames(count: int, size: int) -> list[bytes]:
    """The server-sent events of an answer."""
    texts = pieces(count, size)
    half = count // 2
    said = [("reasoning_content", text) for text in texts[:half]]
    said += [("content", text) for text in texts[half:]]
    deltas = [{field: text} for field, text in [*said, ("content", f"\n\n{LAST}.\n")]]
    usage = {"prompt_tokens": 9, "completion_tokens": count, "total_tokens": count + 9}
    ends = [({}, "stop")]
    chunks = [_chunk(delta, reason) for delta, reason in [*((d, None) for d in deltas), *ends]]
    chunks.append({**_chunk({}, None), "choices": [], "usage": usage})
    return [b"data: %b\n\n" % json.dumps(one).encode() for one in chunks] + [b"data: [DONE]\n\n"]


def _chunk(delta: dict[str, str], reason: str | None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "thinker"}
    return {**head, "choices": [choice]}


class Speaker(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        """Answer until the other side is done, or is killed."""
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        """The models, or nothing that is known."""
        self._whole({"object": "list", "data": [{"id": "thinker", "object": "model"}]})

    def do_POST(self) -> None:
        """A stream as it was wished for; a short answer to everything else."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        wishes = _WISH.findall(body)
        if wishes and b'"stream":true' in body.replace(b" ", b""):
            self._stream(*map(int, wishes[-1]))
        else:
            message = {"role": "assistant", "content": "a title"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._whole({"id": "c1", "object": "chat.completion", "choices": [choice]})

    def _whole(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, count: int, size: int, rate: int) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        chunks = [b"%x\r\n%b\r\n" % (len(one), one) for one in frames(count, size)]
        began, sent = time.perf_counter(), 0
        while rate and sent < len(chunks):
            due = int((time.perf_counter() - began) * rate) + 1
            self.wfile.write(b"".join(chunks[sent:due]))
            sent = due
            time.sleep(_TICK)
        self.wfile.write(b"".join(chunks[sent:]) + b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Nothing is said about it."""


def main() -> None:
    """Listen on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Speaker)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
