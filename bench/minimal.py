"""The least that can be called a terminal assistant: the physical limit of `bench.terminal`.

It shows a prompt and the keys that are pressed, sends a line when Enter is pressed, and writes what
comes back: one socket, the standard library's JSON, no style, no history.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import termios
import tty
from urllib.parse import urlsplit


def ask(host: str, port: int, path: str, text: str) -> socket.socket:
    """Send one question."""
    said = {"model": "thinker", "stream": True, "messages": [{"role": "user", "content": text}]}
    body = json.dumps(said).encode()
    head = f"POST {path}/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {len(body)}"
    link = socket.create_connection((host, port))
    link.sendall(f"{head}\r\n\r\n".encode() + body)
    return link


def show(frames: list[bytes]) -> None:
    """Write the words of these events."""
    for frame in frames:
        at = frame.find(b"data: {")
        if at < 0:
            continue
        for choice in json.loads(frame[at + 6 :])["choices"]:
            delta = choice["delta"]
            words = delta.get("reasoning_content") or delta.get("content") or ""
            os.write(1, words.replace("\n", "\r\n").encode())


def main(url: str) -> None:
    """Talk until the terminal is gone."""
    place = urlsplit(url)
    tty.setraw(0, termios.TCSANOW)
    os.write(1, b"> ")
    typed, rest, link = b"", b"", None
    while True:
        ready = select.select([0, *([link] if link else [])], [], [])[0]
        if 0 in ready:
            keys = os.read(0, 4096)
            os.write(1, keys)
            typed += keys
            if typed.endswith(b"\r"):
                link = ask(place.hostname or "", place.port or 80, place.path, typed.decode())
                typed = b""
        if link in ready:
            piece = link.recv(65536)
            *frames, rest = (rest + piece).split(b"\n\n")
            show(frames)
            if not piece:
                link = None


if __name__ == "__main__":
    main(sys.argv[1])
