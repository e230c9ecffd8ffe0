"""A Valkey cache in front of a store: it holds records written or read in the last hour.

Records that are not in the cache are read from the store; if the cache fails, requests only become
slower. Entries that could not be changed while the cache was unavailable are removed before it is
used again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping

from mull.gateway.memory import OK, Memory, StoreUnavailable, anchor_of, record_id
from mull.gateway.resp import PATIENCE, Command, Reply, RespClient, RespError, read_address
from mull.logs import log_warning

__all__ = ["Cached"]

_SECONDS = 3600
_MOST_CACHED = 1_000_000
_MOST_OWED = 10_000
_QUIET = 60.0


class Cached:
    """A cache in front of a store. Anchors refer to records by id, so removing a record removes it
    under all its keys."""

    def __init__(self, url: str, memory: Memory, *, patience: float = PATIENCE) -> None:
        self._client = RespClient(read_address(url), patience=patience)
        self._memory = memory
        self._owed: dict[bytes, None] = {}
        self._broken_since: float | None = None
        self._was_lost = False
        self._told = float("-inf")

    async def find(self, scope: str, keys: Iterable[str]) -> Mapping[str, bytes]:
        """The stored records by key.

        Raises:
            StoreUnavailable: the store does not respond; carries the records that the cache has.
        """
        wanted = tuple(dict.fromkeys(keys))
        found = await self._cached(scope, wanted)
        missing = [key for key in wanted if key not in found]
        if not missing:
            return found
        try:
            stored = await self._memory.find(scope, missing)
        except StoreUnavailable as error:
            raise StoreUnavailable({**found, **error.found}) from None
        by_record: dict[bytes, list[str]] = {}
        for key, data in stored.items():
            by_record.setdefault(data, []).append(key)
        if by_record:
            await self._ask([c for data, of in by_record.items() for c in _set(scope, of, data)])
        return {**found, **stored}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Store a record.

        Raises:
            StoreUnavailable: it is not in the store yet.
        """
        named = tuple(keys)
        changed = [_anchor(scope, key) for key in named]
        kept, _ = await asyncio.gather(
            self._memory.keep(scope, named, data),
            self._change(_set(scope, named, data), changed),
            return_exceptions=True,
        )
        if kept is not None:
            raise kept

    async def forget(self, scope: str, keys: Iterable[str]) -> None:
        """Remove the records that these keys refer to, along with all their other keys.

        Raises:
            StoreUnavailable: they are not removed from the store yet.
        """
        named = tuple(keys)
        try:
            held = await self._memory.find(scope, named)
        except StoreUnavailable as error:
            held = error.found
        held = {**held, **await self._cached(scope, named)}
        gone = [_anchor(scope, key) for key in named]
        gone += {_record(record_id(scope, data)) for data in held.values()}
        try:
            await self._memory.forget(scope, named)
        finally:
            if gone:
                await self._change([("DEL", *gone)], gone)

    async def agree(self, key: bytes) -> bytes:
        """The key with which all gateways of the store encrypt envelopes.

        Raises:
            StoreUnavailable: the store does not respond.
        """
        return await self._memory.agree(key)

    def health(self) -> Mapping[str, str]:
        """The state of the cache and of the store behind it."""
        state = OK
        if self._broken_since is not None and not (self._was_lost and self._client.is_connected):
            seconds = time.monotonic() - self._broken_since
            state = f"unavailable for {seconds:.0f} s"
        return {**self._memory.health(), "cache": state}

    async def close(self) -> None:
        """Finish pending writes and close the connection."""
        await self._memory.close()
        await self._client.close()

    async def _cached(self, scope: str, keys: tuple[str, ...]) -> dict[str, bytes]:
        if not keys:
            return {}
        ids = await self._values([_anchor(scope, key) for key in keys])
        wanted = list(dict.fromkeys(one for one in ids if one))
        if not wanted:
            return {}
        held = await self._values([_record(one) for one in wanted])
        records = {  # an entry that does not match its id counts as missing
            one: data
            for one, data in zip(wanted, held, strict=False)
            if data is not None and record_id(scope, data) == one
        }
        return {key: records[one] for key, one in zip(keys, ids, strict=False) if one in records}

    async def _values(self, names: list[bytes]) -> list[bytes | None]:
        replies = await self._ask([("MGET", *names)])
        values = replies[0] if replies else []
        if not isinstance(values, list):
            return []
        return [value if isinstance(value, bytes) else None for value in values]

    async def _change(self, commands: list[Command], names: list[bytes]) -> None:
        """Change the entries of these names; if that fails, they are removed later."""
        if await self._ask(commands) is None:
            self._owed |= dict.fromkeys(names)
            while len(self._owed) > _MOST_OWED:
                del self._owed[next(iter(self._owed))]

    async def _ask(self, commands: list[Command]) -> list[Reply] | None:
        """The replies; None if the cache does not respond or rejects a command."""
        owed = tuple(self._owed)
        try:
            replies = await self._client.ask([("DEL", *owed), *commands] if owed else commands)
        except (OSError, RespError) as error:
            self._fail(error)
            return None
        for reply in replies:
            if isinstance(reply, RespError):
                self._fail(reply)
                return None
        for name in owed:
            self._owed.pop(name, None)
        if self._broken_since is not None:
            if self._broken_since == self._told:
                log_warning("the gateway's cache is available again")
            self._broken_since = None
        return replies[1:] if owed else replies

    def _fail(self, error: Exception) -> None:
        self._was_lost = isinstance(error, OSError)
        if self._broken_since is not None:
            return
        now = self._broken_since = time.monotonic()
        if now - self._told > _QUIET:
            self._told = now
            text = f"{type(error).__name__}: {error}"[:200]
            log_warning(f"the gateway's cache is unavailable ({text}): using the store alone")


def _anchor(scope: str, key: str) -> bytes:
    return b"mull:a:" + anchor_of(scope, key).hex().encode()


def _record(record: bytes) -> bytes:
    return b"mull:r:" + record.hex().encode()


def _set(scope: str, keys: Iterable[str], data: bytes) -> list[Command]:
    if len(data) > _MOST_CACHED:
        return [("DEL", *(_anchor(scope, key) for key in keys))]
    record = record_id(scope, data)
    anchors = [("SET", _anchor(scope, key), record, "EX", _SECONDS) for key in keys]
    return [("SET", _record(record), data, "EX", _SECONDS), *anchors]
