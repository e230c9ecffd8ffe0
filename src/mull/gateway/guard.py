"""A wrapper for a store that may fail, so that requests do not wait for it.

A store may be unreachable, full, locked or slow. A request waits for it about a quarter of a
second. After a failure no request waits until the store responds again, which is probed in the
background. Records that could not be written are held in memory, can be found there, and are
written as soon as the store accepts them: many at a time, because others arrive meanwhile. Reading
and writing fail independently: a full disk can still be read.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice, takewhile
from typing import NamedTuple, TypeVar

from mull.gateway.memory import OVERHEAD, SEVERAL, Memory, StoreUnavailable
from mull.logs import log_warning

__all__ = ["Guarded"]

_PER_KEY = 0.000_5
_PER_BYTE = 1 / 20_000_000
_MOST_HELD = 64_000_000
_MOST_TOGETHER = 1_000
"""Held changes that are written at the same time. In a busy process one write takes a second,
however fast the store is."""
_LONGEST_PAUSE = 2.0
_PROBE_PATIENCE = 2.0
_HELD_PATIENCE = 10.0
_LAST_PATIENCE = 2.0
_QUIET = 60.0
_T = TypeVar("_T")


class _Held(NamedTuple):
    """A change that has not been written yet. Without data it removes the records of its keys."""

    scope: str
    keys: tuple[str, ...]
    data: bytes | None

    @property
    def size(self) -> int:
        keys = sum(len(key) + OVERHEAD for key in self.keys)
        return len(self.data or b"") + keys + OVERHEAD


class _Circuit:
    """A circuit breaker for reading or writing: whether it works, and since when it has not."""

    def __init__(self, name: str, verb: str, meanwhile: str) -> None:
        self._name, self._verb, self._meanwhile = name, verb, meanwhile
        self.broken_since: float | None = None
        self._reported_at = float("-inf")

    def open(self, error: BaseException) -> None:
        """Stop using the store. Logs a warning, but not for each failure of an unstable store."""
        if self.broken_since is not None:
            return
        now = self.broken_since = time.monotonic()
        if now - self._reported_at > _QUIET:
            self._reported_at = now
            log_warning(
                f"the gateway's {self._name} cannot be {self._verb} ({_describe(error)});"
                f" until it can, {self._meanwhile}"
            )

    def close(self) -> None:
        """Use the store again."""
        if self.broken_since is not None and self.broken_since == self._reported_at:
            log_warning(f"the gateway's {self._name} can be {self._verb} again")
        self.broken_since = None

    @property
    def problem(self) -> str | None:
        if self.broken_since is None:
            return None
        seconds = time.monotonic() - self.broken_since
        return f"could not be {self._verb} for the last {seconds:.0f} s"


class Guarded:
    """A memory in front of another one that may fail. `patience` is how many seconds a request
    waits for the other one."""

    def __init__(self, memory: Memory, *, patience: float = 0.25, name: str = "store") -> None:
        self._memory = memory
        self._patience = patience
        self._name = name
        self._reading = _Circuit(name, "read", "reasoning that clients drop is not restored")
        self._writing = _Circuit(name, "written", "new records are kept in memory")
        self._held: deque[_Held] = deque()
        self._held_size = 0
        self._index: dict[tuple[str, str], bytes | None] = {}
        self._recovery: asyncio.Task[None] | None = None

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The records found, by key.

        Raises:
            StoreUnavailable: the store did not respond; `found` has the records held in memory.
        """
        wanted = tuple(keys)
        held = self._find_held(scope, wanted)
        left = tuple(key for key in wanted if held.get(key, b"") is not None)
        known = {key: data for key, data in held.items() if data is not None}
        if not left:
            return known
        patience = self._patience + _PER_KEY * len(left)
        try:
            found = await self._attempt(
                self._reading, patience, lambda: self._memory.find(scope, left)
            )
        except StoreUnavailable:
            raise StoreUnavailable(known) from None
        both = {key: _both(found.get(key), data) or SEVERAL for key, data in known.items()}
        return {**found, **both}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record; return those of its keys under which there are several.

        Raises:
            StoreUnavailable: the record is not written yet, but held in memory until it is.
        """
        named = tuple(keys)
        patience = self._patience + _PER_BYTE * len(data)
        return await self._change(
            _Held(scope, named, data), patience, lambda: self._memory.keep(scope, named, data)
        )

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records stored under these keys.

        Raises:
            StoreUnavailable: they are not removed yet, but will be once the store works again.
        """
        named = tuple(keys)
        await self._change(
            _Held(scope, named, None), self._patience, lambda: self._memory.forget(scope, named)
        )

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope from the store. The command that does so waits for the
        store and is told of its errors."""
        return await self._memory.forget_all(scope)

    async def agree(self, key: bytes) -> bytes:
        """The key with which all gateways on this store seal envelopes.

        Raises:
            StoreUnavailable: the store did not respond.
        """
        return await self._attempt(self._reading, _PROBE_PATIENCE, lambda: self._memory.agree(key))

    def health(self) -> Mapping[str, str]:
        """The current state of the store."""
        problems = [one.problem for one in (self._reading, self._writing) if one.problem]
        if not problems:
            return self._memory.health()
        if self._held:
            problems.append(f"changes waiting to be written: {len(self._held)}")
        return {**self._memory.health(), self._name: "; ".join(problems)}

    async def close(self) -> None:
        """Write the held changes, unless that takes too long, and close the store."""
        recovery, self._recovery = self._recovery, None
        if recovery is not None:
            recovery.cancel()
            with suppress(asyncio.CancelledError):
                await recovery
        if self._held:
            with suppress(Exception):
                async with asyncio.timeout(_LAST_PATIENCE):
                    await self._write_held()
        if self._held:
            lost = len(self._held)
            log_warning(
                f"the gateway's {self._name} could not be written: {lost} changes were lost"
            )
        await self._memory.close()

    async def _change(
        self, change: _Held, patience: float, work: Callable[[], Awaitable[_T]]
    ) -> _T:
        try:
            if self._find_held(change.scope, change.keys):
                raise StoreUnavailable  # it would overtake a change of the same records
            return await self._attempt(self._writing, patience, work)
        except StoreUnavailable:
            self._hold(change)
            raise

    async def _attempt(
        self, circuit: _Circuit, patience: float, work: Callable[[], Awaitable[_T]]
    ) -> _T:
        if circuit.broken_since is not None:
            raise StoreUnavailable
        try:
            return await _within(patience, work)
        except Exception as error:
            circuit.open(error)
            if self._recovery is None or self._recovery.done():
                self._recovery = asyncio.get_running_loop().create_task(self._recover())
            raise StoreUnavailable from None

    def _find_held(self, scope: str, keys: Iterable[str]) -> dict[str, bytes | None]:
        if not self._index:
            return {}
        return {key: self._index[scope, key] for key in keys if (scope, key) in self._index}

    def _hold(self, change: _Held) -> None:
        self._held.append(change)
        self._held_size += change.size
        if change.data is None:
            gone = {self._index.get((change.scope, key)) for key in change.keys} - {None, SEVERAL}
            for name, data in list(self._index.items()) if gone else ():
                if name[0] == change.scope and data in gone:
                    self._index[name] = None
        for key in change.keys:
            self._index[change.scope, key] = _both(
                self._index.get((change.scope, key)), change.data
            )
        while self._held_size > _MOST_HELD and len(self._held) > 1:
            self._drop(self._held.popleft())

    def _drop(self, change: _Held) -> None:
        """Remove a change from the index, except for keys that a later change has replaced."""
        self._held_size -= change.size
        if not self._held:
            self._index.clear()
            return
        for key in change.keys:
            if self._index.get((change.scope, key)) is change.data:
                self._index.pop((change.scope, key), None)

    async def _recover(self) -> None:
        """Probe the store until it can be read and written again, or is closed: a task group whose
        task fails just then loses the cancellation. The first probe is immediate, because a single
        slow request may have been the cause."""
        pause = 0.0
        while self._recovery is not None:
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2 or 0.1)
            with suppress(Exception):
                async with asyncio.timeout(_PROBE_PATIENCE):
                    await self._memory.find("", ("probe",))
                self._reading.close()
            try:
                await self._write_held()
            except Exception as error:
                self._writing.open(error)
            if self._reading.broken_since is None and self._writing.broken_since is None:
                return

    async def _write_held(self) -> None:
        """Write the held changes in their order: one to probe the store, then groups that grow.
        Once all but the last group are written, new changes are no longer held: otherwise there
        might always be some left."""
        most = 1
        while self._held:
            group = self._next_group(most)
            size = sum(change.size for change in group)
            async with (
                asyncio.timeout(_HELD_PATIENCE + _PER_BYTE * size),
                asyncio.TaskGroup() as tasks,
            ):
                for change in group:  # in any order: a key of several finds none of them
                    tasks.create_task(self._write(change))
            for change in group:
                if self._held and self._held[0] is change:
                    self._drop(self._held.popleft())
            most = min(2 * most, _MOST_TOGETHER)
            if len(self._held) <= most:
                self._writing.close()
        self._writing.close()

    def _next_group(self, most: int) -> list[_Held]:
        """The oldest held changes: one that removes records, or at most so many before the next
        such one."""
        first = self._held[0]
        if first.data is None:
            return [first]
        records = takewhile(lambda change: change.data is not None, self._held)
        return list(islice(records, most))

    async def _write(self, change: _Held) -> None:
        scope, keys, data = change
        if data is None:
            await self._memory.forget(scope, keys)
        else:
            await self._memory.keep(scope, keys, data)


def _both(before: bytes | None, after: bytes | None) -> bytes | None:
    """What a key finds that had the first and gets the second; None removes what it finds."""
    if before == SEVERAL or (before is not None and after is not None and before != after):
        return SEVERAL
    return after


async def _within(patience: float, work: Callable[[], Awaitable[_T]]) -> _T:
    """The result of the work.

    Raises:
        TimeoutError: it took longer than `patience`. If that was because this process was busy, the
            work is tried once more.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(patience):
            return await work()
    except TimeoutError:
        if loop.time() - began < 2 * patience:
            raise
    async with asyncio.timeout(patience):
        return await work()


def _describe(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it did not respond in time"
    return f"{type(error).__name__}: {error}"[:200]
