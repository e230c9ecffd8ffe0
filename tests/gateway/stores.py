"""What every store of the gateway must do, against a dictionary; and a server to cache in."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mull.gateway.memory import SEVERAL, StoreUnavailable

SCOPES = st.sampled_from(["", "a", "b"])
KEYS = st.lists(st.sampled_from(["k", "l", "call:x", "ü\0\ud800", "k" * 5_000]), max_size=4)
RECORDS = st.sampled_from([b"1", b"two", bytes(20_000)])


class Contract(RuleBasedStateMachine):
    """Everything that can be done with a store, in any order. `make` gives an empty one."""

    @initialize()
    def begin(self):
        self.loop = asyncio.new_event_loop()
        self.model = defaultdict(dict)
        self.store = self.run(self.make())

    def run(self, work):
        return self.loop.run_until_complete(work)

    async def make(self):
        raise NotImplementedError

    async def end(self):
        await self.store.close()

    @rule(scope=SCOPES, keys=KEYS, data=RECORDS)
    def keep(self, scope, keys, data):
        several = self.note(scope, keys, data)
        assert {*self.run(self.store.keep(scope, keys, data))} == several

    def note(self, scope, keys, data):
        """Keep it in the model: a key of several records finds none of them."""
        held = self.model[scope]
        several = {key for key in keys if held.get(key, data) != data}
        held |= dict.fromkeys(keys, data) | dict.fromkeys(several, SEVERAL)
        return several

    @rule(scope=SCOPES, keys=KEYS)
    def forget(self, scope, keys):
        held = self.model[scope]
        gone = {held[key] for key in keys if key in held} - {SEVERAL}
        self.model[scope] = {key: data for key, data in held.items() if data not in gone}
        self.run(self.store.forget(scope, keys))

    @rule(scope=SCOPES)
    def forget_all(self, scope):
        held = self.model[scope]  # a key of several says nothing of them, and stays
        self.model[scope] = {key: data for key, data in held.items() if data == SEVERAL}
        self.run(self.store.forget_all(scope))

    @rule(scope=SCOPES, keys=KEYS)
    def find(self, scope, keys):
        expected = {key: self.model[scope][key] for key in keys if key in self.model[scope]}
        assert dict(self.run(self.store.find(scope, keys))) == expected

    @invariant()
    def is_well(self):
        if hasattr(self, "store"):
            assert set(self.store.health()) <= {"store", "cache"}

    def teardown(self):
        if hasattr(self, "store"):
            for scope, held in self.model.items():
                self.model[scope] = held
                self.find(scope, list(held))
            self.run(self.end())
        if hasattr(self, "loop"):
            self.loop.close()


class Flaky:
    """A memory that fails while `broken`."""

    def __init__(self, memory):
        self.memory, self.broken = memory, False

    def _check(self):
        if self.broken:
            raise OSError("broken")

    async def find(self, scope, keys):
        self._check()
        return await self.memory.find(scope, keys)

    async def keep(self, scope, keys, data):
        self._check()
        return await self.memory.keep(scope, keys, data)

    async def forget(self, scope, keys):
        self._check()
        await self.memory.forget(scope, keys)

    async def forget_all(self, scope):
        self._check()
        return await self.memory.forget_all(scope)

    async def agree(self, key):
        self._check()
        return await self.memory.agree(key)

    def health(self):
        return self.memory.health()

    async def close(self):
        await self.memory.close()


async def attempt(work):
    """What the work comes to, or what is known without the store."""
    try:
        return await work
    except StoreUnavailable as error:
        return error.found


class RespServer:
    """Speaks enough RESP to cache in. `answers` is cleared to have it say nothing."""

    def __init__(self, password=None):
        self.password, self.values, self.seen = password, {}, []
        self.refuses = None
        self.answers = asyncio.Event()
        self.answers.set()
        self._server, self._open = None, set()
        self.port = 0

    @property
    def url(self):
        secret = f":{self.password}@" if self.password else ""
        return f"valkey://{secret}127.0.0.1:{self.port}/2"

    async def start(self, **options):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, **options)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        if self._server is not None:
            self._server.close()
            self._server = None
        self.answers.set()
        for writer in self._open:
            writer.transport.abort()
        while self._open:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def _serve(self, reader, writer):
        self._open.add(writer)
        try:
            while line := await reader.readline():
                words = []
                for _ in range(int(line[1:])):
                    length = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(length + 2))[:-2])
                await self.answers.wait()
                self.seen.append(words)
                writer.write(self._reply(*words))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    def _reply(self, command, *words):
        if self.refuses:
            return b"-%b\r\n" % self.refuses
        match command:
            case b"AUTH":
                right = words == ((self.password or "").encode(),)
                return b"+OK\r\n" if right else b"-WRONGPASS\r\n"
            case b"SELECT" | b"PING":
                return b"+OK\r\n"
            case b"MGET":
                found = [self.values.get(one) for one in words]
                bulk = [b"$-1\r\n" if v is None else b"$%d\r\n%b\r\n" % (len(v), v) for v in found]
                return b"*%d\r\n%b" % (len(bulk), b"".join(bulk))
            case b"SET" if words[-1] == b"NX" and words[0] in self.values:
                return b"$-1\r\n"
            case b"SET":
                self.values[words[0]] = words[1]
                return b"+OK\r\n"
            case b"DEL":
                gone = sum(self.values.pop(one, None) is not None for one in words)
                return b":%d\r\n" % gone
        return b"-ERR unknown\r\n"
