"""A gateway on loopback, served as it is in life."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from mull.agent.engine import Engine
from mull.gateway.app import GatewayApp
from mull.gateway.door import Door
from mull.gateway.envelope import Envelopes
from mull.gateway.listening import Listener
from mull.gateway.memory import InProcess, Memory
from mull.gateway.pages import pages_of
from mull.gateway.routes import Routes
from mull.gateway.service import Gateway
from mull.gateway.tokens import ClientToken
from mull.gateway.watching import Watch
from mull.store.serve import ServeConfig, ServedModel

SECRET = b"0123456789abcdef0123456789abcdef"


@contextmanager
def serving(
    models: Mapping[str, ServedModel],
    memory: Memory | None = None,
    default: str | None = None,
    watch: Watch | None = None,
    tokens: tuple[ClientToken, ...] = (),
) -> Iterator[str]:
    """The address of a gateway that serves these models."""
    ready, stop = threading.Event(), threading.Event()
    opened = socket.socket()  # ours from here on: no other process can take the port
    opened.bind(("127.0.0.1", 0))
    port: int = opened.getsockname()[1]

    async def run() -> None:
        async with Engine(isolated=True) as engine:
            config = ServeConfig(models=models, default=default)
            routes = Routes(engine, config)
            observers = (watch,) if watch else ()
            gateway = Gateway(engine, routes, memory or InProcess(), Envelopes(SECRET), observers)
            app = GatewayApp(gateway, Door(tokens), pages_of(watch) if watch else {})
            ending = asyncio.Event()
            task = asyncio.create_task(Listener(app, opened, config).run(ending, ending))
            await asyncio.to_thread(_wait_open, port)
            ready.set()
            await asyncio.to_thread(stop.wait)
            ending.set()
            await task

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{port}"
    finally:
        stop.set()
        thread.join(30)


def _wait_open(port: int) -> None:
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.01)


@pytest.fixture
def gateway():
    return serving
