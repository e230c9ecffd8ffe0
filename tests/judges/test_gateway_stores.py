"""Real PostgreSQL and Valkey servers behind the gateway: shared by gateways, killed, stopped in the
middle. No request is refused, and no thought is lost that is in any of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis.stateful import run_state_machine_as_test
from tools.databases import postgres, valkey

from gateway.conftest import serving
from gateway.ledgers import NOON, agrees, steps
from gateway.stores import Contract, attempt
from gateway.test_square import CLIENTS, EACH_DIALECT, UPSTREAMS, client
from gateway.test_stores import healthy
from mull.gateway import ledger_postgres as ledger_module
from mull.gateway import postgres as postgres_module
from mull.gateway.damage import TokenMark
from mull.gateway.guard import Guarded
from mull.gateway.ledger import Entry, Second, Tally
from mull.gateway.ledger_postgres import PostgresLedger
from mull.gateway.memory import InProcess, StoreUnavailable
from mull.gateway.postgres import PostgresMemory
from mull.gateway.sqlite import SqliteMemory
from mull.gateway.tokens import ClientToken
from mull.gateway.valkey import Cached
from mull.neutral.errors import ConfigError
from mull.store.serve import ServedModel
from mull.testing import Say, StrictServer, Think
from naive_clients import CHAIN, TWO_TURNS, post
from ports import free_port

asyncpg = pytest.importorskip("asyncpg")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
PAIRS = list(itertools.product(CLIENTS, EACH_DIALECT))
_names = itertools.count()


@pytest.fixture(scope="module")
def truth():
    with postgres() as server:
        yield server


@pytest.fixture
def cache():
    with valkey() as server:
        yield server


def database(server):
    """The address of a new, empty database."""

    async def make(name):
        connection = await asyncpg.connect(server.url)
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        return server.url.rpartition("/")[0] + f"/{name}"

    return asyncio.run(make(f"test{next(_names)}"))


def shared(url, cache=None):
    """The store as a gateway has it, but as patient as a busy machine needs it."""
    store = Guarded(PostgresMemory(url), patience=30)
    return store if cache is None else Cached(cache.url, store, patience=30)


class Turns:
    """An address that is another one for every request; `before` is called with its number."""

    def __init__(self, *urls, before=lambda number: None):
        self._urls, self._before, self._asked = itertools.cycle(urls), before, itertools.count()

    def __add__(self, path):
        self._before(next(self._asked))
        return next(self._urls) + path


@contextmanager
def two_gateways(upstream, address, *memories):
    models = {"m": ServedModel(UPSTREAMS[upstream], base_url=address)}
    with ExitStack() as open_ones:
        yield [open_ones.enter_context(serving(models, memory)) for memory in memories]


@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_two_gateways_take_turns_on_one_store(truth, cache, name, upstream):
    url = database(truth)
    memories = [shared(url, cache) for _ in range(2)]
    with StrictServer(upstream, TWO_TURNS) as server:
        with two_gateways(upstream, server.url, *memories) as urls:
            talk = client(name, Turns(*urls), "drops")
            assert talk.ask("q") == "Done."
            assert talk.ask("and again") == "Done."
        assert not server.refusals
        assert server.answered == len(TWO_TURNS)


@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_servers_stop_in_the_middle_and_nothing_is_refused_or_lost(truth, cache, name, upstream):
    """The cache goes away and comes back empty, then the database does, while two gateways take
    turns: at every moment one of them has what the client drops."""

    def change(number):
        changes.get(number, int)()
        if number in (5, 10):  # the gateways notice by themselves
            wait_until(lambda: all(health(url) == {"status": "ok"} for url in urls))

    changes = {3: cache.stop, 5: cache.start, 8: truth.stop, 10: truth.start}
    url = database(truth)
    memories = [shared(url, cache) for _ in range(2)]
    script = TWO_TURNS + CHAIN
    try:
        with StrictServer(upstream, script) as server:
            with two_gateways(upstream, server.url, *memories) as urls:
                turns = Turns(*urls, before=change)
                talk = client(name, turns, "drops")
                for question in ("q", "and again", "and then"):
                    assert talk.ask(question) == "Done."
            assert not server.refusals
            assert server.answered == len(script)
    finally:
        truth.start_if_down()


@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_a_gateway_without_its_database_answers_and_finds_all_when_it_is_back(
    truth, name, upstream
):
    """The second gateway never saw the conversation, and starts while the database is away."""
    url = database(truth)
    script = [[Think(f"Thought {n}. "), Say("Done.")] for n in range(4)]
    with StrictServer(upstream, script) as server, ExitStack() as open_ones:
        open_ones.callback(truth.start_if_down)
        models = {"m": ServedModel(UPSTREAMS[upstream], base_url=server.url)}
        start = partial(serving, models)
        with start(shared(url)) as first:
            talk = client(name, first, "drops")
            assert talk.ask("one") == "Done."
        truth.stop()
        second = open_ones.enter_context(start(shared(url)))
        talk.url = second
        assert talk.ask("two") == "Done."
        assert health(second)["status"] == "degraded"
        truth.start()
        wait_until(lambda: health(second) == {"status": "ok"})
        assert talk.ask("three") == "Done."
        talk.url = open_ones.enter_context(start(shared(url)))
        assert talk.ask("four") == "Done."
        assert not server.refusals
        assert server.answered == len(script)
        assert server.returned[1] == ()
        for number in (2, 3):
            assert server.returned[number] == server.issued[:number]


def health(url):
    return json.loads(urllib.request.urlopen(f"{url}/health", timeout=10).read())


def wait_until(holds):
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


class Served:
    """`mull serve`, a process that is killed and started again on the same port."""

    def __init__(self, folder, model, address, more=""):
        self.port, self._folder = free_port(), folder
        self.url = f"http://127.0.0.1:{self.port}"
        config = folder / "serve.toml"
        config.write_text(
            f'[serve]\nlisten = "127.0.0.1:{self.port}"\nstore_timeout = 30\n{more}\n'
            f'[serve.models.m]\nmodel = "{model}"\nbase_url = "{address}"\n'
            'key_env = "UPSTREAM_KEY"\n'
        )
        self._command = [sys.executable, "-m", "mull", "serve", "--config", str(config)]
        self._process = None

    def start(self, number=0):
        environ = {"HOME": str(self._folder), "PATH": os.environ["PATH"], "UPSTREAM_KEY": "k"}
        self._process = subprocess.Popen(
            self._command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        wait_until(self._answers)

    def _answers(self):
        assert self._process.poll() is None, self._process.stdout.read()
        try:
            return bool(health(self.url))
        except OSError:
            return False

    def end(self, how=signal.SIGKILL):
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            output, _ = process.communicate(timeout=60)
            return process.returncode, output.decode()
        return None

    def renew(self, number):
        """Kill it as it is, and start another."""
        self.end()
        self.start()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize(("name", "upstream"), PAIRS)
def test_a_gateway_that_is_killed_between_requests_has_lost_nothing(
    truth, tmp_path, name, upstream, store
):
    more = f'store = "{database(truth)}"' if store == "postgres" else ""
    with StrictServer(upstream, CHAIN) as server:
        served = Served(tmp_path, UPSTREAMS[upstream], server.url, more)
        try:
            talk = client(name, Turns(served.url, before=served.renew), "drops")
            assert talk.ask("q") == "Done."
        finally:
            served.end()
        assert not server.refusals
        assert server.answered == len(CHAIN)


@pytest.mark.parametrize(("name", "upstream"), [("messages", "openai"), ("chat", "anthropic")])
def test_installations_that_share_a_store_open_each_others_envelopes(
    truth, tmp_path, name, upstream
):
    """The client replays what it got from the first, and the store is away."""
    more = f'store = "{database(truth)}"'
    with StrictServer(upstream, CHAIN) as server, ExitStack() as ends:
        ends.callback(truth.start_if_down)
        urls = []
        for folder in (tmp_path / "one", tmp_path / "two"):
            folder.mkdir()
            served = Served(folder, UPSTREAMS[upstream], server.url, more)
            ends.callback(served.end)
            served.start()
            urls.append(served.url)
        truth.stop()
        talk = client(name, Turns(*urls), "replays")
        assert talk.ask("q") == "Done."
        assert not server.refusals
        assert server.answered == len(CHAIN)
        assert server.returned[-1] == server.issued[:-1]


def test_a_gateway_that_is_told_to_end_writes_what_it_held(truth, tmp_path):
    url = database(truth)
    asked = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
    with StrictServer("kimi", [[Think("Let me see."), Say("Done.")]]) as server:
        served = Served(tmp_path, UPSTREAMS["kimi"], server.url, f'store = "{url}"')
        try:
            served.start()
            truth.stop()
            post(f"{served.url}/v1/chat/completions", asked)
            assert "waiting to be written" in health(served.url)["store"]
            truth.start()
            assert served.end(signal.SIGTERM) is not None
        finally:
            truth.start_if_down()
            served.end()

    async def count():
        connection = await asyncpg.connect(url)
        query = "SELECT count(*) FROM mull_record WHERE length(data) > 0"
        found = await connection.fetchval(query)
        await connection.close()
        return found

    assert asyncio.run(count()) == 1


class Apart:
    """A part of a store that nobody else uses."""

    def __init__(self, memory):
        self._memory, self._name = memory, f"{next(_names)}/"
        self.health, self.close = memory.health, memory.close

    async def find(self, scope, keys):
        return await self._memory.find(self._name + scope, keys)

    async def keep(self, scope, keys, data):
        return await self._memory.keep(self._name + scope, keys, data)

    async def forget(self, scope, keys):
        await self._memory.forget(self._name + scope, keys)

    async def forget_all(self, scope):
        return await self._memory.forget_all(self._name + scope)


def test_real_stores_do_what_a_dictionary_does(truth, cache):
    url = database(truth)

    class Postgres(Contract):
        async def make(self):
            return Apart(PostgresMemory(url))

    class Both(Contract):
        async def make(self):
            return Apart(Cached(cache.url, Guarded(PostgresMemory(url), patience=60), patience=60))

    for machine in (Postgres, Both):
        run_state_machine_as_test(machine, settings=settings(max_examples=30, deadline=None))


@pytest.mark.parametrize("at_once", [5_000, 5_000_000])
def test_a_removed_clients_records_are_in_no_store(truth, cache, monkeypatch, at_once):
    monkeypatch.setattr(postgres_module, "_MOST_READ", at_once)
    url = database(truth)

    async def work():
        store = shared(url, cache)
        for scope in ("ann", "ann#1", "bob"):
            for n in range(20):
                await store.keep(scope, [f"call:{n}", f"answer:{n}"], b"%d" % n * 500)
        gone = await store.forget_all("ann#1")
        keys = [f"{kind}:{n}" for kind in ("call", "answer") for n in range(20)]
        alone = Cached(cache.url, InProcess(), patience=30)
        found = [
            len(await one.find(scope, keys))
            for one in (store, alone)
            for scope in ("ann", "ann#1", "bob")
        ]
        await alone.close()
        await store.close()
        return len(gone), found

    assert asyncio.run(work()) == (20, [40, 0, 40, 40, 0, 40])


def test_another_database_in_the_place_of_one_with_tokens_lets_nobody_in(truth, tmp_path):
    url = database(truth)

    async def work():
        ledger = PostgresLedger(url, mark=TokenMark(tmp_path / "serve.tokens", "db"))
        assert await ledger.put_token(ClientToken("ann", "h"), new=True)
        await ledger.remove_token("ann")
        assert await ledger.tokens() == []  # on purpose
        assert await ledger.put_token(ClientToken("ann", "h"), new=True)
        other = PostgresLedger(url, mark=TokenMark(tmp_path / "other.tokens", "db"))
        assert len(await other.tokens()) == 1
        connection = await asyncpg.connect(url)
        await connection.execute("TRUNCATE mull_token")  # as in a copy from before
        for one in (ledger, other):
            with pytest.raises(ConfigError, match="there were client tokens, and db has none"):
                await one.tokens()
        assert await ledger.put_token(ClientToken("ann", "h"), new=True)
        await ledger.remove_token("ann")
        assert await other.tokens() == []
        await other.close()
        assert await ledger.put_token(ClientToken("ann", "h"), new=True)
        await connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        await connection.close()
        with pytest.raises(asyncpg.UndefinedTableError):
            await ledger.tokens()
        with pytest.raises(ConfigError, match="there were client tokens, and db has none"):
            await ledger.tokens()
        assert await ledger.put_token(ClientToken("bob", "h"), new=True)
        assert [token.name for token in await ledger.tokens()] == ["bob"]
        await ledger.close()

    asyncio.run(work())


def test_a_ledger_of_the_first_version_gains_an_id_and_keeps_its_tokens(truth):
    url = database(truth)

    async def work():
        connection = await asyncpg.connect(url)
        await connection.execute(
            "CREATE TABLE mull_schema (part text PRIMARY KEY, version integer NOT NULL);"
            "INSERT INTO mull_schema VALUES ('ledger', 1);"
            + ";".join(ledger_module._SCHEMA.versions[0])
        )
        old = b'{"name":"ann","hash":"h"}'
        await connection.execute("INSERT INTO mull_token VALUES ('ann', $1)", old)
        await connection.close()
        ledger = PostgresLedger(url)
        found = [(token.name, token.scope) for token in await ledger.tokens()]
        await ledger.close()
        return found

    assert asyncio.run(work()) == [("ann", "ann")]


def test_ten_gateways_start_at_once_on_an_empty_database(truth):
    url = database(truth)

    async def work():
        ten = [PostgresMemory(url) for _ in range(10)] + [PostgresLedger(url) for _ in range(10)]
        keeps = [one.keep("", ["all", f"k{n}"], b"%d" % n) for n, one in enumerate(ten[:10])]
        await asyncio.gather(*keeps, *(one.tokens() for one in ten[10:]))
        found = await ten[0].find("", [f"k{n}" for n in range(10)])
        await asyncio.gather(*(one.close() for one in ten))
        return found

    assert asyncio.run(work()) == {f"k{n}": b"%d" % n for n in range(10)}


def test_ten_processes_start_at_once_on_a_new_file(tmp_path):
    path = tmp_path / "serve.db"
    program = (
        "import asyncio, pathlib, sys\n"
        "from mull.gateway.sqlite import SqliteMemory\n"
        "async def go(path, name):\n"
        "    store = SqliteMemory(pathlib.Path(path))\n"
        "    await asyncio.gather(store.find('', ['x']), store.keep('', [name], name.encode()))\n"
        "    await store.close()\n"
        "asyncio.run(go(*sys.argv[1:]))\n"
    )
    names = [f"k{n}" for n in range(10)]
    ten = [subprocess.Popen([sys.executable, "-c", program, path, name]) for name in names]
    assert [one.wait(120) for one in ten] == [0] * 10

    async def work():
        store = SqliteMemory(path)
        try:
            return await store.find("", names)
        finally:
            await store.close()

    assert asyncio.run(work()) == {name: name.encode() for name in names}


def test_the_database_is_bounded_and_one_gateway_at_a_time_cleans_it(truth):
    url = database(truth)

    async def work():
        large, small = PostgresMemory(url), PostgresMemory(url, megabytes=1)
        for n in range(40):
            await large.keep("", [f"k{n}"], bytes([n]) * 100_000)
        other = await asyncpg.connect(url)
        await other.execute("SELECT pg_advisory_lock($1)", postgres_module._CLEAN_LOCK)
        await small.clean()
        assert len(await small.find("", [f"k{n}" for n in range(40)])) == 40
        await other.close()
        await small.clean()
        found = await small.find("", [f"k{n}" for n in range(40)])
        assert set(found) == {f"k{n}" for n in range(31, 40)}
        short = PostgresMemory(url, days=1e-9)
        await short.clean()
        assert await short.find("", [f"k{n}" for n in range(40)]) == {}
        for one in (large, small, short):
            await one.close()

    asyncio.run(work())


def test_records_in_use_stay(truth):
    url = database(truth)

    async def work():
        store = PostgresMemory(url, days=1)
        await store.keep("", ["used"], b"1")
        await store.keep("", ["unused"], b"2")
        other = await asyncpg.connect(url)
        await other.execute("UPDATE mull_record SET used = used - interval '2 days'")
        await store.find("", ["used"])
        query = "SELECT count(*) FROM mull_record WHERE used > now() - interval '1 day'"
        while not await other.fetchval(query):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await other.close()
        await store.clean()
        found = await store.find("", ["used", "unused"])
        await store.close()
        return found

    assert asyncio.run(work()) == {"used": b"1"}


def test_servers_that_answer_nothing_are_left_and_used_again(truth, cache):
    url = database(truth)

    async def work():
        store = Cached(cache.url, Guarded(PostgresMemory(url), patience=2))
        await store.keep("", ["k"], b"1")
        with cache.frozen():
            assert await store.find("", ["k"]) == {"k": b"1"}
            with truth.frozen():
                with pytest.raises(StoreUnavailable):
                    await store.find("", ["k"])
                with pytest.raises(StoreUnavailable):
                    await store.keep("", ["l"], b"2")
                with pytest.raises(StoreUnavailable) as unsure:  # the store may have another one
                    await store.find("", ["l"])
                assert unsure.value.found == {"l": b"2"}
            await healthy(store)
            assert await store.find("", ["k", "l"]) == {"k": b"1", "l": b"2"}
        while store.health()["cache"] != "ok":
            await store.find("", ["k"])
            await asyncio.sleep(0.01)
        await store.close()

    asyncio.run(work())


def test_dropped_tables_are_made_again(truth):
    url = database(truth)

    async def work():
        store = Guarded(PostgresMemory(url))
        await store.keep("", ["k"], b"1")
        other = await asyncpg.connect(url)
        await other.execute("DROP TABLE mull_anchor, mull_record, mull_schema")
        await other.close()
        await attempt(store.keep("", ["l"], b"2"))
        await healthy(store)
        found = await store.find("", ["k", "l"])
        await store.close()
        return found

    assert asyncio.run(work()) == {"l": b"2"}


def test_the_shared_ledger_does_what_the_model_does(truth):
    @settings(max_examples=25, deadline=None)
    @given(steps)
    def tried(drawn):
        async def work():
            other = await asyncpg.connect(url)
            for table in ("token", "usage", "second", "batch"):
                await other.execute(f"TRUNCATE mull_{table}")
            await other.close()
            ledger = PostgresLedger(url, lambda: NOON)
            await agrees(ledger, drawn)
            await ledger.close()

        asyncio.run(work())

    url = database(truth)
    asyncio.run(made(PostgresLedger(url)))
    tried()


async def made(ledger):
    await ledger.tokens()
    await ledger.close()


def test_gateways_that_count_at_once_add_up(truth):
    url = database(truth)
    entries = [
        Entry(client, model, NOON, Tally(requests=1, output=1))
        for client in ("ann", "bob", "eve")
        for model in ("a", "b")
    ]

    async def work():
        one, other = (PostgresLedger(url, lambda: NOON) for _ in range(2))
        await asyncio.gather(
            *(one.add(f"a{n}", entries) for n in range(20)),
            *(other.add(f"b{n}", entries[::-1]) for n in range(20)),
            *(one.add(f"b{n}", entries) for n in range(20)),
        )
        spent = await other.spent("ann", NOON)
        await asyncio.gather(one.close(), other.close())
        return spent.day.requests, spent.recent

    assert asyncio.run(work()) == (80, (Second(int(NOON), 80, 80),))
