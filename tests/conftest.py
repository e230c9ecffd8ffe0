"""Tests run with a home of their own and may reach loopback only."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from contextlib import aclosing
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.detection import is_hypothesis_test

import judges_hidden
import time_limits
from mull.agent import discover
from mull.client import exchange
from mull.store.sessions import database as session_database
from mull.store.sessions.sqlite import SqliteSessions

SEARCHES = "MULL_EXAMPLES" in os.environ
settings.register_profile(
    "mull",
    deadline=None,
    max_examples=int(os.environ.get("MULL_EXAMPLES", "30")),
    derandomize=not SEARCHES,  # a change fails by its own fault, not by luck
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("mull")
if not SEARCHES:
    # hypothesis draws constants from whatever code is loaded by then, which is another in every run
    providers.is_local_module_file = lambda path: False

# started in the background of a shell or by nohup, we would hand on what these ignore
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGQUIT, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)

PURE = {"auth", "dialects", "history", "markdown", "neutral", "policy", "settings"}


def pytest_configure(config):
    if "not slow" in config.option.markexpr:
        judges_hidden.hide()
    config.pluginmanager.register(time_limits.SecondLimit(config))


def pytest_collection_modifyitems(items):
    """Examples of the layers that do no I/O are the core; properties and sweeps take longer, and
    `make core` runs without pytest's logging plugin, which `caplog` needs."""
    for item in items:
        is_pure = item.nodeid.split("/", 2)[1] in PURE
        is_long = is_hypothesis_test(item.obj) or item.get_closest_marker("sweep")
        if is_pure and not is_long and "caplog" not in item.fixturenames:
            item.add_marker("core")


_connect = socket.socket.connect
_connect_to_database = session_database._connect


def _connect_to_loopback(self: socket.socket, address: object) -> None:
    host = address[0] if isinstance(address, tuple) else None
    if host is not None and host not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a test tried to reach {host}")
    _connect(self, address)


@pytest.fixture(scope="session", autouse=True)
def _sheltered():
    """Nothing of the user's environment is seen, and nothing but loopback is reached."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("MULL_", "XDG_", "AWS_", "GOOGLE_", "CLOUDSDK_")) or name.endswith(
                ("_API_KEY", "_TOKEN")
            ):
                patch.delenv(name)
        for name in ("THINKING", "REASONING_EFFORT", "CLEAR_THINKING", "DEBUG"):
            patch.delenv(name, raising=False)
        patch.setattr(socket.socket, "connect", _connect_to_loopback)
        patch.setattr(discover, "_PATIENCE", 20.0)  # nobody there is seen at once all the same
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory):
    """Names of folders that are not there yet: most tests never need theirs."""
    place = tmp_path_factory.mktemp("homes")
    return (str(place / str(number)) for number in count())


async def _say_nothing(*_):
    return None


def _connect_quickly(path):
    connection = _connect_to_database(path)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


@pytest.fixture(autouse=True)
def _alone(request, _homes):
    """A home of its own, servers that are not asked what they say of their models, and sessions
    that do not wait for the disk. One fixture, since there are thousands of tests."""
    home, asked_for = next(_homes), request.node.fixturenames
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home)
        patch.setenv("MULL_CONFIG_DIR", f"{home}/config")
        patch.setenv("MULL_DATA_DIR", f"{home}/data")
        if "inspected_servers" not in asked_for:
            patch.setattr(discover, "look", _say_nothing)
        if "real_disk" not in asked_for:
            patch.setattr(session_database, "_connect", _connect_quickly)
        yield


@pytest.fixture
def inspected_servers():
    """Servers of one's own are asked what they say of their models, as they are outside tests."""


@pytest.fixture
def real_disk():
    """Sessions wait until the disk has them, as they do outside tests."""


@pytest.fixture
def clock():
    """What the store reads the time from; a module with a time of its own has another."""
    return time.time


@pytest.fixture
def store_path(tmp_path):
    return tmp_path / "sessions.db"


@pytest.fixture
def store(store_path, clock):
    store = SqliteSessions(store_path, clock=clock)
    yield store
    store.close()


@pytest.fixture
def in_step(monkeypatch):
    """Answers come one event at a time, each when its reader had time to do something about it."""
    whole = exchange.exchange

    async def slowly(*args, **more):
        async with aclosing(whole(*args, **more)) as batches:
            async for events in batches:
                for event in events:
                    yield [event]
                    for _ in range(20):
                        await asyncio.sleep(0)

    monkeypatch.setattr(exchange, "exchange", slowly)
