"""Every store does the same, whatever fails behind it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import ssl
import stat
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from effort import tried
from gateway.stores import KEYS, RECORDS, SCOPES, Contract, Flaky, RespServer, attempt
from mull.agent.engine import Engine
from mull.gateway import guard, service, sqlite
from mull.gateway.anchors import Past, is_proof
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.guard import Guarded
from mull.gateway.key_file import put_first, read_keys
from mull.gateway.memory import (
    OK,
    SEVERAL,
    InProcess,
    StoreUnavailable,
    anchor_of,
    record_id,
)
from mull.gateway.record import Kept, kept_from, kept_to
from mull.gateway.relay import Client, Relay
from mull.gateway.resp import Address, RespClient, RespError, read_address
from mull.gateway.response_store import ResponseStore, StoredResponse
from mull.gateway.service import Gateway
from mull.gateway.sqlite import SqliteMemory
from mull.gateway.stores import check_stores, open_ledger, open_memory
from mull.gateway.valkey import Cached
from mull.neutral.blocks import TextBlock, ThinkingBlock
from mull.neutral.errors import ConfigError, RefusedError
from mull.neutral.events import TextDelta, ToolCallDelta
from mull.neutral.messages import Origin
from mull.store.serve import ServeConfig, read_serve


class InProcessContract(Contract):
    async def make(self):
        return InProcess()


class SqliteContract(Contract):
    async def make(self):
        self.folder = tempfile.TemporaryDirectory()
        return SqliteMemory(Path(self.folder.name) / "serve.db")

    @rule()
    def open_again(self):
        self.run(self.store.close())
        self.store = SqliteMemory(Path(self.folder.name) / "serve.db")

    async def end(self):
        await super().end()
        self.folder.cleanup()


class GuardedContract(Contract):
    """Whatever is written while the store is away is found, and is in the store afterwards."""

    async def make(self):
        self.flaky = Flaky(InProcess())
        return Guarded(self.flaky)

    @rule(scope=SCOPES, keys=KEYS, data=RECORDS)
    def keep(self, scope, keys, data):
        self.note(scope, keys, data)
        self.run(attempt(self.store.keep(scope, keys, data)))

    @rule(broken=st.booleans())
    def change(self, broken):
        self.flaky.broken = broken
        if not broken:
            self.run(healthy(self.store))

    @precondition(lambda self: not self.flaky.broken)
    @rule(scope=SCOPES, keys=KEYS)
    def forget(self, scope, keys):
        super().forget(scope, keys)

    @precondition(lambda self: not self.flaky.broken)
    @rule(scope=SCOPES)
    def forget_all(self, scope):
        super().forget_all(scope)

    @precondition(lambda self: not self.flaky.broken)
    @rule(scope=SCOPES, keys=KEYS)
    def find(self, scope, keys):
        super().find(scope, keys)

    def teardown(self):
        if hasattr(self, "flaky"):
            self.flaky.broken = False
            self.run(healthy(self.store))
            for scope, held in self.model.items():
                assert self.run(self.flaky.memory.find(scope, held)) == held
        super().teardown()


class CachedContract(Contract):
    """A cache that comes and goes is never seen, and what it holds meanwhile does no harm."""

    async def make(self):
        self.server = RespServer(password="pass word")
        await self.server.start()
        url = self.server.url.replace("pass word", "pass%20word")
        return Cached(url, InProcess())

    @rule(is_there=st.booleans(), connected=st.booleans())
    def change(self, is_there, connected):
        self.run(self.server.stop())
        if is_there:
            self.run(self.server.start())
            if connected:
                self.run(self.store.find("", ["any"]))
                self.run(until(lambda: self.store._client.is_connected))

    @rule(key=st.integers(0, 20))
    def evict(self, key):
        for name in list(self.server.values)[key : key + 1]:
            del self.server.values[name]

    async def end(self):
        await super().end()
        await self.server.stop()


async def until(holds):
    while not holds():  # noqa: ASYNC110  a store has no event for it
        await asyncio.sleep(0.001)


async def healthy(store):
    await until(lambda: store.health()["store"] == OK)


@pytest.mark.parametrize(
    "machine", [InProcessContract, SqliteContract, GuardedContract, CachedContract]
)
def test_every_store_does_what_a_dictionary_does(machine, monkeypatch):
    monkeypatch.setattr(guard, "_LONGEST_PAUSE", 0.001)
    monkeypatch.setattr("mull.gateway.resp._LONGEST_PAUSE", 0.001)
    run_state_machine_as_test(machine, settings=tried(0.3))


class Stuck:
    """A memory that takes requests and answers none, unless `answers` is set."""

    def __init__(self):
        self.memory, self.answers, self.asked = InProcess(), asyncio.Event(), []

    async def find(self, scope, keys):
        self.asked.append(("find", *keys))
        await self.answers.wait()
        return await self.memory.find(scope, keys)

    async def keep(self, scope, keys, data):
        self.asked.append(("keep", *keys))
        await self.answers.wait()
        return await self.memory.keep(scope, keys, data)

    def health(self):
        return {"store": OK}

    async def close(self):
        pass


def test_a_store_that_does_not_answer_is_waited_for_once(caplog):
    async def work():
        stuck = Stuck()
        store = Guarded(stuck, patience=0.01)
        with pytest.raises(StoreUnavailable):
            await store.find("", ["k"])
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await store.find("", ["never asked for"])
        with pytest.raises(StoreUnavailable):
            await store.keep("", ["new"], b"held")
        assert store.health()["store"].startswith("could not be read")
        with pytest.raises(StoreUnavailable) as told:
            await store.find("", ["new", "old"])
        assert told.value.found == {"new": b"held"}
        assert ("find", "never asked for") not in stuck.asked
        stuck.answers.set()
        await healthy(store)
        assert await stuck.memory.find("", ["new"]) == {"new": b"held"}
        await store.close()

    with caplog.at_level(logging.WARNING, "mull"):
        asyncio.run(work())
    said = [record.getMessage() for record in caplog.records]
    assert sum("cannot be read" in line for line in said) == 1
    assert any("in time" in line for line in said)
    assert any("can be read again" in line for line in said)


def test_a_store_that_fails_does_not_keep_the_gateway_from_ending():
    """Whatever it is probed with at that moment."""

    async def closed_after(steps: int) -> bool:
        flaky = Flaky(InProcess())
        flaky.broken = True
        store = Guarded(flaky)
        await attempt(store.keep("", ["k"], b"a"))
        for _ in range(steps):
            await asyncio.sleep(0)
        done, _ = await asyncio.wait([asyncio.create_task(store.close())], timeout=20)
        return bool(done)

    for steps in range(12):
        assert asyncio.run(closed_after(steps))


def test_what_is_held_is_removed_in_its_order_when_the_gateway_ends():
    async def work():
        flaky = Flaky(InProcess())
        store = Guarded(flaky)
        await store.keep("", ["k"], b"0")
        flaky.broken = True
        await attempt(store.keep("", ["k"], b"1"))
        await attempt(store.keep("", ["l"], b"1"))
        await attempt(store.forget("", ["l"]))
        await attempt(store.keep("", ["l"], b"3"))
        flaky.broken = False
        await store.close()
        return await flaky.memory.find("", ["k", "l"])

    assert asyncio.run(work()) == {"k": SEVERAL, "l": b"3"}


def test_a_store_that_fails_again_while_it_catches_up_is_not_believed():
    class Short(Flaky):
        allowed = 0

        async def keep(self, scope, keys, data):
            self.broken = self.allowed <= 0
            self.allowed -= 1
            several = await super().keep(scope, keys, data)
            self.broken = True
            return several

    async def work():
        short = Short(InProcess())
        store = Guarded(short)
        for data in (b"1", b"2", b"3"):
            await attempt(store.keep("", ["k", data.decode()], data))
        short.broken, short.allowed = False, 1
        await until(lambda: short.memory._records)
        with pytest.raises(StoreUnavailable) as told:
            await store.find("", ["k", "1"])
        assert told.value.found == {"k": SEVERAL}
        await attempt(store.keep("", ["k"], b"4"))
        short.allowed = 99
        short.broken = False
        await healthy(store)
        assert await short.memory.find("", ["k", "1", "3"]) == {
            "k": SEVERAL,
            "1": b"1",
            "3": b"3",
        }
        await store.close()

    asyncio.run(work())


def test_a_store_catches_up_while_records_arrive(monkeypatch):
    monkeypatch.setattr(guard, "_LONGEST_PAUSE", 0)

    class Slow(Flaky):
        async def keep(self, scope, keys, data):
            for _ in range(10):
                await asyncio.sleep(0)
            return await super().keep(scope, keys, data)

    async def work():
        slow = Slow(InProcess())
        slow.broken = True
        store, kept = Guarded(slow), {}
        while not kept or store.health()["store"] != OK:
            slow.broken = len(kept) < 10
            kept[f"{len(kept)}"] = data = b"%d" % len(kept)
            await attempt(store.keep("", [*kept][-1:], data))
            await asyncio.sleep(0)
            assert len(store._held) < 1_000
        await until(lambda: not store._held)
        assert await slow.memory.find("", kept) == kept
        assert not store._index
        await store.close()

    asyncio.run(work())


def test_held_records_with_the_same_keys_are_several_in_whatever_order_they_are_written():
    class Backwards(Flaky):
        async def keep(self, scope, keys, data):
            for _ in range(200 - int(data)):
                await asyncio.sleep(0)
            return await super().keep(scope, keys, data)

    async def work():
        flaky = Backwards(InProcess())
        store = Guarded(flaky)
        flaky.broken = True
        for number in range(200):
            keys = ["k", f"{number}", f"{number % 150} of 150"]
            await attempt(store.keep("", keys, b"%d" % number))
        flaky.broken = False
        await store.close()
        return await flaky.memory.find("", ["k", "0", "199", "49 of 150", "50 of 150"])

    expected = {"k": SEVERAL, "0": b"0", "199": b"199", "49 of 150": SEVERAL, "50 of 150": b"50"}
    assert asyncio.run(work()) == expected


def test_a_new_record_does_not_overtake_what_is_held(monkeypatch):
    monkeypatch.setattr(guard, "_LONGEST_PAUSE", 0)
    monkeypatch.setattr(guard, "_MOST_TOGETHER", 1)

    class Gated(Flaky):
        async def keep(self, scope, keys, data):
            if data == b"old":
                await self.gate.wait()
            return await super().keep(scope, keys, data)

    async def work():
        gated = Gated(InProcess())
        gated.gate, gated.broken = asyncio.Event(), True
        store = Guarded(gated)
        await attempt(store.keep("", ["first"], b"first"))
        await attempt(store.keep("", ["k"], b"old"))
        gated.broken = False
        await healthy(store)
        await store.keep("", ["other"], b"other")
        with pytest.raises(StoreUnavailable):
            await store.keep("", ["k"], b"new")
        gated.gate.set()
        await until(lambda: not store._held)
        await store.close()
        return await gated.memory.find("", ["first", "k", "other"])

    assert asyncio.run(work()) == {"first": b"first", "k": SEVERAL, "other": b"other"}


def test_what_is_held_is_bounded(monkeypatch):
    monkeypatch.setattr(guard, "_MOST_HELD", 10_000)

    async def work():
        flaky = Flaky(InProcess())
        flaky.broken = True
        store = Guarded(flaky)
        for number in range(100):
            await attempt(store.keep("", [f"k{number}"], bytes(1_000)))
        with pytest.raises(StoreUnavailable) as told:
            await store.find("", [f"k{number}" for number in range(100)])
        flaky.broken = False
        await store.close()
        return told.value.found

    found = asyncio.run(work())
    assert "k99" in found
    assert len(found) == 7


def test_a_busy_process_does_not_blame_the_store():
    class Busy(InProcess):
        times = 0

        async def find(self, scope, keys):
            self.times += 1
            if self.times == 1:
                time.sleep(0.05)  # noqa: ASYNC251  this is what is meant
                await asyncio.sleep(1)
            return await super().find(scope, keys)

    store = Guarded(busy := Busy(), patience=0.01)
    assert asyncio.run(store.find("", ["k"])) == {}
    assert busy.times == 2
    assert store.health() == {"store": OK}


VERSION_1 = (
    "CREATE TABLE record (id INTEGER PRIMARY KEY, data BLOB NOT NULL, size INTEGER NOT NULL,"
    " used REAL NOT NULL)",
    "CREATE INDEX record_used ON record (used)",
    "CREATE TABLE anchor (scope TEXT NOT NULL, key TEXT NOT NULL, record INTEGER NOT NULL"
    " REFERENCES record (id) ON DELETE CASCADE, PRIMARY KEY (scope, key)) WITHOUT ROWID",
    "CREATE INDEX anchor_record ON anchor (record)",
    "INSERT INTO record VALUES (1, x'31', 1, 9e9), (2, x'32', 1, 9e9), (3, x'31', 1, 9e9)",
    "INSERT INTO anchor VALUES ('a', 'k', 1), ('a', 'l', 2), ('b', 'k', 3), ('a', 'm', 3)",
    "PRAGMA user_version = 1",
)


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path):
    path = tmp_path / "serve.db"
    with sqlite3.connect(path) as db:
        for statement in VERSION_1:
            db.execute(statement)
    db.close()

    async def work():
        store = SqliteMemory(path)
        assert await store.find("a", "klm") == {"k": b"1", "l": b"2", "m": b"1"}
        await store.forget("a", ["k"])
        assert await store.find("a", "klm") == {"l": b"2"}
        assert await store.find("b", "k") == {"k": b"1"}
        await store.close()

    asyncio.run(work())


def test_what_is_found_or_stored_again_is_not_old(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_CLEAN_EVERY", -1.0)
    path = tmp_path / "serve.db"

    async def work():
        for key in ("found", "stored", "neither"):
            await SqliteMemory(path).keep("", [key], key.encode())
        with sqlite3.connect(path) as db:
            db.execute("UPDATE record SET used = used - 2 * 86400")
        db.close()
        store = SqliteMemory(path, days=1)
        await store.find("", ["found"])
        await store.keep("", ["stored"], b"stored")
        await store.close()
        return await fresh(path, "found", "stored", "neither")

    assert set(asyncio.run(work())) == {"found", "stored"}


def test_a_file_of_a_later_version_is_left_alone(tmp_path):
    path = tmp_path / "serve.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 3")
    db.close()

    async def work():
        store = SqliteMemory(path)
        with pytest.raises(sqlite3.DatabaseError, match="newer version of mull"):
            await store.keep("", ["k"], b"1")
        await store.close()

    asyncio.run(work())


def test_a_locked_file_is_read_and_written_when_it_is_free_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite, "_LOCK_PATIENCE", 0.01)
    path = tmp_path / "serve.db"

    async def work():
        store = Guarded(SqliteMemory(path), patience=30)
        await store.keep("", ["k"], b"1")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable):
            await store.keep("", ["l"], b"2")
        assert await store.find("", ["k", "l"]) == {"k": b"1", "l": b"2"}
        assert "changes waiting to be written: 1" in store.health()["store"]
        other.close()
        await healthy(store)
        await store.close()
        return await fresh(path, "k", "l")

    assert asyncio.run(work()) == {"k": b"1", "l": b"2"}


def test_a_full_disk_is_read_and_written_when_there_is_room(tmp_path, monkeypatch):
    limit = [40]
    set_up = sqlite.set_up

    def with_limit(db):
        set_up(db)
        db.execute(f"PRAGMA max_page_count = {limit[0]}")

    monkeypatch.setattr(sqlite, "set_up", with_limit)
    path = tmp_path / "serve.db"

    async def work():
        store = Guarded(SqliteMemory(path), patience=30)
        await store.keep("", ["k"], b"1")
        with pytest.raises(StoreUnavailable):
            await store.keep("", ["l"], bytes(1_000_000))
        assert await store.find("", ["k"]) == {"k": b"1"}
        limit[0] = 10_000
        await healthy(store)
        await store.close()
        return await fresh(path, "k", "l")

    assert set(asyncio.run(work())) == {"k", "l"}


async def fresh(path, *keys):
    store = SqliteMemory(path)
    try:
        return await store.find("", keys)
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("valkey://host", Address("host")),
        ("redis://host:7000/3", Address("host", 7000, database=3)),
        ("rediss://u:p%40@host", Address("host", user="u", password="p@", tls=True)),
        ("valkeys://:p@[::1]:1", Address("::1", 1, password="p", tls=True)),
        ("valkeys://h?sslrootcert=/ca", Address("h", tls=True, ca_file="/ca")),
    ],
)
def test_an_address_is_read_from_a_url(url, address):
    assert read_address(url) == address


@pytest.mark.parametrize(
    "url", ["http://:pw@h", "valkey://:pw@h/x", "valkey://:pw@h:x", "valkey://", "valkey://:pw@h?a"]
)
def test_what_is_no_address_is_refused_without_its_password(url):
    if url.endswith("?a"):
        url += "=1"
    with pytest.raises(ConfigError) as told:
        read_address(url)
    assert "pw" not in str(told.value)


def with_server(work, **options):
    async def run():
        server = RespServer(**options)
        await server.start()
        try:
            return await work(server)
        finally:
            await server.stop()

    return asyncio.run(run())


def test_commands_of_many_go_out_together_and_replies_find_their_way():
    async def work(server):
        client = RespClient(read_address(server.url), patience=30)
        await asyncio.gather(
            *(client.ask([("SET", f"k{n}", b"\r\n%d" % n), ("PING",)]) for n in range(50))
        )
        found = await client.ask([("MGET", *(f"k{n}" for n in range(50))), ("NONE",), ("DEL", "k")])
        await client.close()
        assert isinstance(found[1], RespError)
        assert found[2] == 0
        return found[0], server.seen[0]

    found, first = with_server(work)
    assert found == [b"\r\n%d" % n for n in range(50)]
    assert first == [b"SELECT", b"2"]


def test_a_wrong_password_is_told_and_not_shown():
    async def work(server):
        client = RespClient(Address("127.0.0.1", server.port, password="wrong"), patience=30)
        with pytest.raises(RespError) as told:
            await client.ask([("PING",)])
        with pytest.raises(OSError, match="cannot be reached"):
            await client.ask([("PING",)])
        await client.close()
        return str(told.value)

    assert with_server(work, password="right") == "WRONGPASS"


@pytest.mark.parametrize(
    "said",
    [
        b"!",
        b"$5\r\nab",
        b"$999999999999\r\n",
        b"*2\r\n:1\r\n",
        b"x" * 99_999,
        b":\r\n",
        b"*1\r\n" * 9,
    ],
)
def test_a_server_that_speaks_no_resp_is_left(said):
    async def work():
        async def serve(reader, writer):
            await reader.readexactly(14)
            writer.write(b"+PONG\r\n")
            await reader.read(100)
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = RespClient(Address("127.0.0.1", port), patience=30)
        with pytest.raises(OSError, match="lost"):
            await client.ask([("MGET", "a")])
        await client.close()
        server.close()

    asyncio.run(work())


def test_a_cache_that_says_nothing_costs_one_wait_and_is_used_again(caplog):
    async def work(server):
        store = Cached(server.url, InProcess(), patience=0.05)
        await store.keep("", ["k"], b"1")
        server.answers.clear()
        assert await store.find("", ["k"]) == {"k": b"1"}
        assert store.health()["cache"].startswith("unavailable for")
        await store.keep("", ["k"], b"2")
        server.answers.set()
        while store.health()["cache"] != OK:
            assert await store.find("", ["k"]) == {"k": SEVERAL}
            await asyncio.sleep(0.001)
        await store.close()

    with caplog.at_level(logging.WARNING, "mull"):
        with_server(work)
    said = [record.getMessage() for record in caplog.records if record.name == "mull"]
    assert len(said) == 2
    assert "using the store alone" in said[0]
    assert "again" in said[1]


def test_a_cache_that_is_full_or_holds_something_else_is_not_believed():
    async def work(server):
        store = Cached(server.url, InProcess(), patience=30)
        await store.keep("", ["k"], b"1")
        server.values[b"mull:r:" + record_id("", b"1").hex().encode()] = b"forged"
        assert await store.find("", ["k"]) == {"k": b"1"}
        server.refuses = b"OOM command not allowed"
        await store.keep("", ["k"], b"2")
        assert await store.find("", ["k"]) == {"k": SEVERAL}
        server.refuses = None
        assert await store.find("", ["k"]) == {"k": SEVERAL}
        await store.keep("", ["l"], bytes(2_000_000))
        assert await store.find("", ["l"]) == {"l": bytes(2_000_000)}
        assert all(len(value) < 100 for value in server.values.values())
        await store.close()

    with_server(work)


def test_what_is_forgotten_is_gone_from_the_cache_under_keys_that_are_not_asked_for():
    async def work(server):
        store = Cached(server.url, InProcess(), patience=30)
        await store.keep("", ["k", "l"], b"1")
        del server.values[b"mull:a:" + anchor_of("", "k").hex().encode()]
        await store.forget("", ["k"])
        assert await store.find("", ["k", "l"]) == {}
        await store.close()

    with_server(work)


def test_a_cache_that_does_not_let_us_in_is_done_without():
    async def work(server):
        store = Cached(f"redis://:wrong@127.0.0.1:{server.port}", InProcess())
        await store.keep("", ["k"], b"1")
        assert await store.find("", ["k"]) == {"k": b"1"}
        assert store.health()["cache"] != OK
        await store.close()

    with_server(work, password="right")


def test_the_cache_answers_while_the_store_is_away():
    async def work(server):
        flaky = Flaky(InProcess())
        one, other = (Cached(server.url, Guarded(flaky), patience=30) for _ in range(2))
        flaky.broken = True
        with pytest.raises(StoreUnavailable):
            await one.keep("", ["call:k"], b"1")
        assert await other.find("", ["call:k"]) == {"call:k": b"1"}
        with pytest.raises(StoreUnavailable) as told:
            await other.find("", ["call:k", "call:l"])
        assert told.value.found == {"call:k": b"1"}
        flaky.broken = False
        await one.close()
        await other.close()
        return await flaky.memory.find("", ["call:k"])

    assert with_server(work) == {"call:k": b"1"}


def test_a_look_alike_is_found_that_was_stored_where_the_cache_cannot_be_reached():
    """What was said leads to one answer only as far as the store knows; a proof always does."""

    async def work(server):
        memory = InProcess()
        store = Cached(server.url, memory, patience=30)
        keys = ["call:c", "turn:t"]
        await store.keep("", keys, b"1")
        assert await store.find("", keys) == {"call:c": b"1", "turn:t": b"1"}
        await memory.keep("", ["call:d", "turn:t"], b"2")
        assert await store.find("", ["turn:t"]) == {"turn:t": SEVERAL}
        assert await store.find("", ["call:c"]) == {"call:c": b"1"}
        await store.close()

    with_server(work)


def test_what_only_one_gateway_could_cache_is_several_where_another_has_stored_its_own():
    """Whether the store says so, or is away and only the cache can."""

    async def work(server):
        flaky = Flaky(InProcess())
        one, other = (Cached(server.url, Guarded(flaky), patience=30) for _ in range(2))
        await one.keep("", ["k"], b"1")
        server.values.clear()
        assert await other.keep("", ["k"], b"2") == ["k"]
        assert await one.find("", ["k"]) == {"k": SEVERAL}
        flaky.broken = True
        await attempt(one.keep("", ["l"], b"1"))
        await attempt(other.keep("", ["l"], b"2"))
        for store in (one, other):
            assert await attempt(store.find("", ["l"])) == {"l": SEVERAL}
        flaky.broken = False
        await one.close()
        await other.close()

    with_server(work)


def test_a_late_reader_does_not_put_a_single_record_back_into_the_cache():
    async def work(server):
        memory = InProcess()
        store = Cached(server.url, memory, patience=30)
        await memory.keep("", ["k"], b"1")
        find = memory.find

        async def slowly(scope, keys):
            found = dict(await find(scope, keys))
            memory.find = find
            await store.keep("", ["k"], b"2")  # while the first is on its way
            return found

        memory.find = slowly
        assert await store.find("", ["k"]) == {"k": b"1"}
        assert await store.find("", ["k"]) == {"k": SEVERAL}
        await store.close()

    with_server(work)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"store": "mysql://u:secret@h/db"}, "store is not valid"),
        ({"cache": "memcached://u:secret@h"}, "cache is not valid"),
        ({"store": ["secret"]}, "store is not valid"),
        ({"store": "postgresql://u:secret@h:port/db"}, "store is not a valid URL"),
        ({"cache": "valkey://u:secret@h:port/db"}, "cache cannot be this URL"),
        ({"store": "$MULL_NO_SUCH_VARIABLE"}, "needs MULL_NO_SUCH_VARIABLE"),
    ],
)
def test_a_wrong_url_is_told_without_its_password(table, words):
    with pytest.raises(ConfigError) as told:
        open_memory(read_serve(table, "config.toml"))
    assert words in str(told.value)
    assert "secret" not in str(told.value)


def test_keys_of_different_scopes_are_never_the_same():
    assert anchor_of("a", "bc") != anchor_of("ab", "c")
    assert anchor_of("1:a", "b") != anchor_of("1", ":ab")
    assert record_id("a", b"b") != record_id("", b"ab")


def test_gateways_that_start_at_once_make_one_key(tmp_path):
    path = tmp_path / "a" / "serve.key"
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: read_keys(path), range(8)))
    assert len(found) == 1
    (first,) = found.pop()
    for _ in range(2):
        put_first(path, b"k" * 32)
        assert read_keys(path) == (b"k" * 32, first)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [OSError("broken"), StoreUnavailable({"k": b"known"})])
def test_an_error_of_the_store_is_counted_and_fails_no_request(error):
    class Broken(InProcess):
        async def fail(self, *_):
            raise error

        find = keep = forget = agree = fail

    async def work():
        origin, client = Origin("p", "gemini", "m", "u"), Client("gemini")
        gateway = Gateway(Engine(isolated=True), None, Broken(), envelopes := Envelopes(b"mine"))
        found, notes = await gateway.find("", ["k"])
        assert found == getattr(error, "found", {})
        assert [(note.about, note.warning) for note in notes] == [("store", True)]
        await gateway.forget(client, [])
        assert gateway.store_failures == {"read": 1}
        await gateway.forget(client, [(["k"], Kept(origin, ()))])
        assert gateway.store_failures == {"read": 1, "write": 2}
        job = SimpleNamespace(client=client, past=Past(), keys=())
        notes = await gateway.remember(job, Relay(client, origin, envelopes, "a"))
        assert [(note.about, note.warning) for note in notes] == [("store", True)]
        assert gateway.store_failures == {"read": 1, "write": 3}
        await gateway.close()

    asyncio.run(work())


def test_of_a_record_whose_carriers_were_rejected_the_readable_part_is_left():
    origin, client = Origin("p", "anthropic", "m", "u"), Client("anthropic")
    kept = Kept(origin, (ThinkingBlock("Hm.", signature="s"), TextBlock("Milk.")))

    async def work():
        gateway = Gateway(Engine(isolated=True), None, InProcess(), Envelopes(b"mine"))
        await gateway.memory.keep("", ["k", "l"], kept_to(kept))
        await gateway.forget(client, [(["k"], kept)])
        found, _ = await gateway.find("", ["k", "l"])
        await gateway.close()
        return {key: kept_from(data) for key, data in found.items()}

    left = Kept(origin, (ThinkingBlock("Hm."), TextBlock("Milk.")))
    assert asyncio.run(work()) == {"k": left}


def test_an_answer_that_broke_off_proves_nothing_by_its_ids():
    async def work():
        client = Client("anthropic")
        origin = Origin("p", "anthropic", "m", "u")
        gateway = Gateway(Engine(isolated=True), None, InProcess(), envelopes := Envelopes(b"mine"))
        relay = Relay(client, origin, envelopes, "a")
        relay.translate(
            [TextDelta("t", "Milk."), ToolCallDelta("c", "toolu_0123456789abcdef", "f")]
        )
        await gateway.remember(SimpleNamespace(client=client, past=Past()), relay, is_whole=False)
        keys, _ = relay.keep(Past())
        found, _ = await gateway.find("", keys)
        await gateway.close()
        return keys, found

    keys, found = asyncio.run(work())
    assert [*found] == [key for key in keys if not is_proof(key)]
    assert 0 < len(found) < len(keys)


def test_a_gateway_agrees_on_the_key_of_the_others_as_soon_as_it_can(monkeypatch):
    monkeypatch.setattr(service, "_AGREE_AGAIN", 0.001)

    class Shared(InProcess):
        async def agree(self, key):
            return b"theirs" if self.is_there else await asyncio.sleep(0, 1 / 0)

        is_there = False

    async def work():
        told, sealed = [], Sealed(Origin("p", "gemini", "m", "u"), {0: ThinkingBlock("t")})
        envelopes = Envelopes(b"mine", keep=told.append)
        before = envelopes.seal("", sealed)
        memory = Shared()
        gateway = Gateway(Engine(isolated=True), None, Guarded(memory), envelopes)
        await gateway.open()
        assert envelopes.key == b"mine"
        memory.is_there = True
        await until(lambda: told)
        await gateway.close()
        assert told == [b"theirs"]
        assert Envelopes(b"theirs").open("", envelopes.seal("", sealed)) == sealed
        assert envelopes.open("", before) == sealed

    asyncio.run(work())


def test_a_missing_driver_is_told_before_anything_is_served(monkeypatch):
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    config = ServeConfig(store="postgresql://u:secret@h/db")
    for opened in (open_memory, open_ledger):
        with pytest.raises(ConfigError, match=r"install .*'mull-reasoning\[postgres\]'"):
            opened(config)


def test_a_cache_is_reached_with_tls_and_only_if_its_certificate_is_right(tmp_path):
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    other.cert_pem.write_to_path(tmp_path / "other.pem")

    async def work():
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("localhost").configure_cert(context)
        server = RespServer(password="secret")
        await server.start(ssl=context)
        url = f"valkeys://:secret@localhost:{server.port}?sslrootcert={tmp_path}"
        for file, is_right in (("ca.pem", True), ("other.pem", False)):
            client = RespClient(read_address(f"{url}/{file}"), patience=30)
            if is_right:
                assert await client.ask([("PING",)]) == [b"OK"]
            else:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await client.ask([("PING",)])
            await client.close()
        await server.stop()

    asyncio.run(work())


def test_a_check_says_which_servers_can_be_used():
    async def work(server):
        right = ServeConfig(cache=server.url)
        wrong = ServeConfig(cache=f"redis://:wrong@127.0.0.1:{server.port}")
        return await check_stores(right), await check_stores(wrong)

    assert with_server(work, password="right") == ({"cache": OK}, {"cache": "WRONGPASS"})
    assert asyncio.run(check_stores(ServeConfig())) == {}


def test_a_response_is_not_called_missing_while_nobody_can_look_for_it():
    async def work():
        flaky = Flaky(InProcess())
        responses = ResponseStore("", store := Guarded(flaky))
        await responses.keep(StoredResponse({"id": "resp_1", "output": []}), store)
        flaky.broken = True
        await responses.keep(
            StoredResponse({"id": "resp_2", "output": []}, before=("resp_1",)), store
        )
        with pytest.raises(RefusedError) as told:
            await ResponseStore("", store).chain("resp_2")
        assert (told.value.status, told.value.retry_after) == (503, 2)
        await ResponseStore("", store).forget("resp_2")
        flaky.broken = False
        await healthy(store)
        for missing in ("resp_2", "resp_3"):
            with pytest.raises(RefusedError) as told:
                await ResponseStore("", store).chain(missing)
            assert told.value.status == 400
        assert [one.id for one in await ResponseStore("", store).chain("resp_1")] == ["resp_1"]
        await store.close()

    asyncio.run(work())


def test_a_removed_clients_records_are_not_in_the_cache_either():
    async def work():
        server = RespServer()
        await server.start()
        store = Cached(server.url, InProcess())
        await store.keep("ann", ["k"], b"1")
        await store.keep("bob", ["k"], b"2")
        assert len(await store.forget_all("ann")) == 1
        found = [await store.find(scope, ["k"]) for scope in ("ann", "bob")]
        await store.close()
        await server.stop()
        return found, {*server.values.values()} - {record_id("ann", b"1")}

    assert asyncio.run(work()) == ([{}, {"k": b"2"}], {b"2", record_id("bob", b"2")})
