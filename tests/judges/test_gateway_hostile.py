"""A gateway as a process of its own under attack: crowds, floods, frames, and a broken store.

It stays small, says no secret, and answers the next request.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from judges.test_gateway_process import LIMIT, Process, answer, chunk, models, until
from mull.testing import Gate, Reply, ScriptedServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc"),
]

QUESTION = {"model": "m", "messages": [{"role": "user", "content": "q"}], "stream": True}
CROWD, STREAMS = 10_000, 1_000
MOST_MB = 400


class World:
    """A gateway with a client token, and an upstream that answers as `reply` says."""

    def __init__(self, folder: Path):
        self.reply = lambda _: answer()
        self.upstream = ScriptedServer(lambda request: self.reply(request))
        self.upstream.start()
        self.folder = folder
        environ = {**os.environ, "XDG_DATA_HOME": str(folder / "data"), "HOME": str(folder)}
        command = [sys.executable, "-m", "mull", "serve", "token", "add", "ann"]
        made = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        found = re.search(r"mull-\w{40}", made.stdout + made.stderr)
        assert found
        self.token = found[0]
        config = models(self.upstream.url, more="connections = 12000\nwatch = true")
        self.process = Process(folder, config)
        until(lambda: self.process.said("mull serves at"))
        assert self.asks()

    def close(self):
        for connection in self.process.open:
            connection.close()
        if self.process.child.poll() is None:
            self.process.child.kill()
        self.process.child.wait(LIMIT)
        self.upstream.stop()
        assert self.token not in self.process.log.read_text()

    def head(self, line: str, *more: str) -> bytes:
        lines = (line, "Host: localhost", f"Authorization: Bearer {self.token}", *more, "", "")
        return "\r\n".join(lines).encode()

    def open(self, data: bytes = b"", receive: int | None = None) -> socket.socket:
        one = socket.socket()
        if receive is not None:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        one.settimeout(LIMIT)
        one.connect(("127.0.0.1", self.process.port))
        one.sendall(data)
        return one

    def question(self) -> bytes:
        body = json.dumps(QUESTION).encode()
        length = f"Content-Length: {len(body)}"
        return self.head("POST /v1/chat/completions HTTP/1.1", length) + body

    def asks(self) -> bool:
        """Whether a good request is answered."""
        with self.open(self.question()) as one:
            heard = b""
            while b"[DONE]" not in heard:
                if not (piece := one.recv(1 << 16)):
                    return False
                heard += piece
        return b"Milk." in heard

    def memory(self) -> float:
        status = Path(f"/proc/{self.process.child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1_024

    def health(self) -> dict:
        return self.process.get("/health", authorization=f"Bearer {self.token}")[1]


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def test_ten_thousand_silent_connections_and_a_good_one(world):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * CROWD:
        pytest.skip("this system allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * CROWD, hard))
    crowd = []
    try:
        crowd = [world.open() for _ in range(CROWD)]
        assert world.asks()
        assert world.memory() < MOST_MB
    finally:
        for one in crowd:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert world.asks()


def test_a_thousand_streams_whose_clients_vanish(world):
    gate = Gate()
    world.reply = lambda _: Reply.events(chunk("a"), gate, "[DONE]")
    before = len(world.upstream.requests)
    crowd = [world.open(world.question()) for _ in range(STREAMS)]
    assert world.upstream.wait_requests(before + STREAMS, LIMIT)
    assert world.memory() < MOST_MB
    for one in crowd:
        one.close()
    assert all(one.wait_left(LIMIT) for one in world.upstream.requests[before:])
    gate.open()
    world.reply = lambda _: answer()
    assert world.asks()


def test_readers_that_do_not_read_hold_the_upstream_and_no_memory(world):
    assert world.asks()  # what a first request loads is not what readers hold
    piece = chunk("a" * 16_000)
    world.reply = lambda _: Reply.events(*[piece] * 20_000)
    before, size = len(world.upstream.requests), world.memory()
    crowd = [world.open(world.question(), 4_096) for _ in range(5)]
    assert world.upstream.wait_requests(before + 5, LIMIT)
    assert not any(one.wait_left(1) for one in world.upstream.requests[before:])
    assert world.memory() - size < 200  # what the sockets of five clients take, and its copies
    for one in crowd:
        one.close()
    assert all(one.wait_left(LIMIT) for one in world.upstream.requests[before:])
    world.reply = lambda _: answer()
    assert world.asks()


def test_an_endless_answer_is_ended(world):
    piece = chunk("a" * 16_000)
    world.reply = lambda _: Reply.events(*[piece] * 20_000)
    connection = world.process.connect()
    body = json.dumps({**QUESTION, "stream": False})
    shown = {"authorization": f"Bearer {world.token}"}
    connection.request("POST", "/v1/chat/completions", body, shown)
    response = connection.getresponse()
    assert response.status == 502
    assert b"exceeds the limit" in response.read()
    assert world.memory() < 2 * MOST_MB
    world.reply = lambda _: answer()
    assert world.asks()


def frame(data: bytes, op: int = 1, *, fin: bool = True, mask: bool = True, size=None) -> bytes:
    size = len(data) if size is None else size
    short = size if size < 126 else 126 if size < 1 << 16 else 127
    head = bytes([fin << 7 | op, mask << 7 | short])
    head += struct.pack(">H", size) if short == 126 else b""
    head += struct.pack(">Q", size) if short == 127 else b""
    return head + (bytes(4) if mask else b"") + data


FRAMES = {
    "unmasked": [frame(b"{}", mask=False)],
    "an unknown kind": [frame(b"x", 3)],
    "a size beyond memory": [frame(b"", size=1 << 40)],
    "a long ping": [frame(b"a" * 200, 9)],
    "fragments without end": [frame(b"a" * (1 << 20), int(at == 0), fin=False) for at in range(90)],
    "no text": [frame(b"\xff\xfe")],
    "40 MB": [frame(b"a" * (40 << 20))],
}


@pytest.mark.parametrize("name", FRAMES)
def test_a_broken_frame_ends_its_connection(world, name):
    line = "GET /v1/responses HTTP/1.1"
    more = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    head = world.head(line, *more, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
    with world.open(head) as one:
        assert b" 101 " in one.recv(1 << 16)
        try:
            for data in FRAMES[name]:
                one.sendall(data)
            while one.recv(1 << 16):
                pass
        except ConnectionError:
            pass
    assert world.memory() < MOST_MB
    assert world.asks()


def test_a_store_that_is_broken_or_gone_refuses_nobody(world):
    found = [path for path in (world.folder / "data").rglob("*.db*") if path.is_file()]
    assert found
    for path in found:
        if not path.name.endswith("-shm"):  # memory that SQLite shares: to cut it is to kill
            path.write_bytes(os.urandom(8_192))
    assert world.asks()
    for path in found:
        path.unlink()
    next(path for path in found if path.suffix == ".db").mkdir()
    assert world.asks()


def test_told_to_end_in_the_middle_of_everything_it_ends(world):
    gate = Gate()
    world.reply = lambda _: Reply.events(chunk("a"), gate, "[DONE]")
    before, question = len(world.upstream.requests), world.question()
    crowd = [world.open(question if at % 2 else question[:-5]) for at in range(100)]
    assert world.upstream.wait_requests(before + 50, LIMIT)
    world.process.file.unlink()
    os.mkfifo(world.process.file)  # and its file is one that never ends
    world.process.child.send_signal(signal.SIGHUP)
    until(lambda: world.process.said("is not a regular file"))
    world.process.child.terminate()
    until(world.process.refuses)
    world.process.child.terminate()
    assert world.process.child.wait(LIMIT) == 0
    for one in crowd:
        one.close()
    gate.open()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl speaks HTTP/2")
@pytest.mark.parametrize(("host", "status"), [("localhost", "200"), ("evil.example", "403")])
def test_the_name_in_http_2_is_checked(world, host, status):
    command = ["curl", "-sS", "-o", "/dev/null", "--http2-prior-knowledge", "-w", "%{http_code}"]
    command += ["-H", f"Host: {host}", "-H", f"x-api-key: {world.token}"]
    url = f"http://127.0.0.1:{world.process.port}/v1/models"
    assert subprocess.check_output([*command, url], text=True, timeout=LIMIT) == status
