"""The process around the application: its socket, its end, reading its files anew."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest

from gateway.test_app import ask
from mull.agent.engine import Engine
from mull.gateway.app import GatewayApp
from mull.gateway.envelope import Envelopes
from mull.gateway.listening import Listener, open_sockets
from mull.gateway.memory import InProcess
from mull.gateway.mounted import ServeApp, serve_app
from mull.gateway.reload import Files, Reloader, needs_restart
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.silent import close_silent
from mull.neutral.errors import ConfigError
from mull.store.serve import ServeConfig, ServedModel
from ports import free_port


def open_socket(config: ServeConfig) -> socket.socket:
    (opened,) = open_sockets(config)
    return opened


def at(port: int, **more) -> ServeConfig:
    return ServeConfig(listen=f"127.0.0.1:{port}", **more)


def test_a_taken_port_is_told():
    port = free_port()
    with open_socket(at(port)), pytest.raises(ConfigError, match="cannot listen on"):
        open_socket(at(port))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere workers share one socket")
def test_each_worker_has_a_socket_and_nobody_else_has_the_port():
    port = free_port()
    opened = open_sockets(at(port, workers=3))
    try:
        assert len({one.fileno() for one in opened}) == 3
        assert {one.getsockname() for one in opened} == {("127.0.0.1", port)}
        for workers in (1, 3):
            with pytest.raises(ConfigError, match="cannot listen on"):
                open_sockets(at(port, workers=workers))
    finally:
        for one in opened:
            one.close()


def test_a_unix_socket_is_for_its_owner_alone(tmp_path):
    path = tmp_path / "s"
    config = ServeConfig(listen=f"unix:{path}")
    with open_socket(config):
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(ConfigError, match="another server listens on it"):
            open_socket(config)
    with open_socket(config):  # what is left of the other is removed
        assert path.is_socket()
    path.unlink()
    path.write_text("precious")
    with pytest.raises(ConfigError, match="a file with this name exists"):
        open_socket(config)
    assert path.read_text() == "precious"


async def until(so) -> None:
    while not so():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def read(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    try:
        return await reader.read()
    finally:
        writer.close()


class Slow:
    """Says `begun`, and the rest when it may."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.cancelled = asyncio.Event(), asyncio.Event(), False

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun ", "more_body": True})
        self.begun.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        await send({"type": "http.response.body", "body": b"done"})


@pytest.mark.parametrize("way", ["finishes", "runs out of time", "is told twice"])
def test_the_end_of_a_server(way):
    async def run() -> tuple[bytes, bool]:
        app, port = Slow(), free_port()
        grace = 0.05 if way == "runs out of time" else 1_000
        config = at(port, grace=grace)
        stop, at_once = asyncio.Event(), asyncio.Event()
        opened = open_socket(config)
        serving = asyncio.create_task(Listener(app, opened, config).run(stop, at_once))
        answer = asyncio.create_task(read(port))
        await app.begun.wait()
        stop.set()
        await until(lambda: opened.fileno() == -1)
        if way == "finishes":
            app.may_end.set()
        elif way == "is told twice":
            at_once.set()
        await serving
        return await answer, app.cancelled

    said, cancelled = asyncio.run(asyncio.wait_for(run(), 30))
    assert (b"done" in said) == (way == "finishes")
    assert cancelled == (way != "finishes")


@pytest.mark.skipif(sys.platform != "linux", reason="only there the kernel says it")
def test_connections_that_say_nothing_are_closed_and_others_are_not():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ends = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
        taken = [server.accept()[0] for _ in ends]
        try:
            ends[0].sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert taken[0].recv(100)
            assert close_silent(port, 1_000) == 2
            assert close_silent(port, 0) == 1
            assert ends[1].recv(1) == b""
            taken[0].sendall(b"x")
            assert ends[0].recv(1) == b"x"
        finally:
            for one in (*ends, *taken):
                one.close()


class Loads:
    """What a reloader reads and applies."""

    def __init__(self, file: Path) -> None:
        self.files = Files(file)
        self.problem: Exception | None = None
        self.config = ServeConfig()
        self.applied: list[ServeConfig] = []
        self.reloader = Reloader(self.files, ServeConfig(), self.load, self.apply)

    def load(self):
        if self.problem:
            raise self.problem
        return None, self.config

    async def apply(self, engine, config):
        self.applied.append(config)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes with names")
def test_whatever_is_in_the_place_of_a_file_the_next_one_is_taken(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("a")
    loads = Loads(file)
    for problem in (RecursionError("deep"), KeyError(), ConfigError("wrong")):
        loads.problem = problem
        asyncio.run(loads.reloader.reload())
        assert loads.reloader.problem
    loads.problem = None
    file.unlink()
    os.mkfifo(file)
    asyncio.run(loads.reloader.reload())
    assert "not a regular file" in (loads.reloader.problem or "")
    file.unlink()
    file.write_text("b")
    asyncio.run(loads.reloader.reload())
    assert loads.reloader.problem is None
    assert len(loads.applied) == 1


def test_a_change_is_noticed_once_and_a_bad_one_keeps_the_old(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text("a")
    loads = Loads(file)
    assert not loads.files.change()
    file.write_text("ab")
    assert loads.files.change()
    assert not loads.files.change()
    loads.problem = ConfigError("wrong")
    asyncio.run(loads.reloader.reload())
    assert (loads.reloader.problem, loads.applied) == ("wrong", [])
    loads.problem, loads.config = None, ServeConfig(listen="127.0.0.1:1", hosts=("x",))
    asyncio.run(loads.reloader.reload())
    assert (loads.reloader.problem, loads.applied) == (None, [loads.config])
    assert loads.reloader.pending == ("listen",)
    file.unlink()
    assert loads.files.change()
    asyncio.run(loads.reloader.reload())
    assert loads.reloader.problem == f"{file} no longer exists"
    assert len(loads.applied) == 1


def test_what_changed_before_it_was_read_is_noticed(tmp_path):
    file = tmp_path / "c.toml"
    loads = Loads(file)
    file.write_text("new")
    assert loads.files.change()
    assert loads.files.lost() is None


def test_a_reloader_goes_on_until_it_is_cancelled(tmp_path):
    async def run():
        loads = Loads(tmp_path / "c.toml")
        task = asyncio.create_task(loads.reloader.run())
        for count in (1, 2):
            loads.reloader.ask()
            await until(lambda: len(loads.applied) == count)  # noqa: B023
        task.cancel()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_only_models_names_and_the_default_change_without_a_restart():
    now = ServeConfig()
    assert needs_restart(now, now) == []
    later = ServeConfig(
        models={"m": ServedModel("x/y")}, default="m", hosts=("h",), workers=2, grace=1
    )
    assert needs_restart(now, later) == ["workers", "grace"]


def test_an_application_is_renewed_between_two_requests():
    def routes(name, **more):
        engine = Engine(isolated=True)
        served = ServedModel("moonshotai/kimi-k2.5", base_url="http://127.0.0.1:9")
        return engine, Routes(engine, ServeConfig(models={name: served}, **more))

    async def run():
        engine, found = routes("old")
        app = GatewayApp(Gateway(engine, found, InProcess(), Envelopes(b"k" * 32)))
        before = await ask(app, "GET", "/v1/models")
        refused = await ask(app, "GET", "/v1/models", host="gate.example")
        await app.renew(*routes("new"), hosts=["gate.example"])
        after = await ask(app, "GET", "/v1/models", host="gate.example")
        await app.close()
        return before.json, refused.status, after.json

    before, status, after = asyncio.run(run())
    assert (before["data"][0]["id"], status, after["data"][0]["id"]) == ("old", 403, "new")


def test_the_application_for_others_reads_its_configuration(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text('[serve]\nworkers = "two"')
    with pytest.raises(ConfigError, match="workers cannot be"):
        serve_app(file)
    assert isinstance(serve_app(engine=Engine(isolated=True), hosts=["x"]), ServeApp)


@pytest.mark.skipif(sys.platform != "linux", reason="connections have it from the socket there")
def test_the_pieces_of_a_stream_do_not_wait_for_each_other():
    (listening,) = open_sockets(at(free_port()))
    with listening, socket.create_connection(listening.getsockname()):
        listening.setblocking(True)
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
