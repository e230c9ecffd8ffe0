"""A Valkey cache in front of a store: it holds records written or read in the last hour.

Records that are not in the cache are read from the store; if the cache fails, requests only become
slower. Entries that could not be changed while the cache was unavailable are removed before it is
used again.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence

from mull.gateway.anchors import is_proof
from mull.gateway.memory import OK, SEVERAL, Memory, StoreUnavailable, anchor_of, record_id
from mull.gateway.resp import PATIENCE, Command, Reply, RespClient, RespError, read_address
from mull.logs import log_warning

__all__ = ["Cached"]

_SECONDS = 3600
_MOST_CACHED = 1_000_000
_MOST_OWED = 10_000
_MOST_TOGETHER = 1_000
_QUIET = 60.0
_SEVERAL = b"several"
"""What the cache holds under a key of several records."""


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
        found = _certain(await self._cached(scope, wanted))
        missing = [key for key in wanted if key not in found]
        if not missing:
            return found
        try:
            stored = await self._memory.find(scope, missing)
        except StoreUnavailable as error:
            raise StoreUnavailable({**found, **error.found}) from None
        by_record: dict[bytes, list[bytes]] = {}
        for key, data in stored.items():
            by_record.setdefault(data, []).append(_anchor(scope, key))
        several = by_record.pop(SEVERAL, [])
        commands = [_set_several(anchor) for anchor in several]
        for data, anchors in by_record.items():
            if len(data) <= _MOST_CACHED:
                commands += _set(scope, anchors, data)
        if commands:
            await self._ask(commands)
        return {**found, **stored}

    async def keep(self, scope: str, keys: Iterable[str], data: bytes) -> Collection[str]:
        """Store a record; return those of its keys under which there are several.

        Raises:
            StoreUnavailable: it is not in the store yet.
        """
        named = tuple(keys)
        try:
            several = await self._memory.keep(scope, named, data)
        except StoreUnavailable:  # so only the cache knows what others have stored meanwhile
            await self._place(scope, named, data)
            raise
        single = [key for key in named if key not in several]
        if several:
            anchors = [_anchor(scope, key) for key in several]
            await self._change([_set_several(anchor) for anchor in anchors], anchors)
        await self._place(scope, single, data)
        return several

    async def _place(self, scope: str, keys: Iterable[str], data: bytes) -> None:
        """Put a record into the cache. It never replaces another under the same key: from then on
        there are several."""
        anchors = [_anchor(scope, key) for key in keys]
        if len(data) > _MOST_CACHED:
            await self._change([("DEL", *anchors)] if anchors else [], anchors)
            return
        record = record_id(scope, data)
        told = await self._change(_set(scope, anchors, data), anchors)
        taken = [anchor for anchor, reply in zip(anchors, told[1:], strict=False) if reply is None]
        if taken:
            held = await self._values(taken)
            if len(held) < len(taken):
                self._owe(taken)
            others = [anchor for anchor, one in zip(taken, held, strict=False) if one != record]
            await self._change([_set_several(anchor) for anchor in others], others)

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
        gone += {_record(record_id(scope, data)) for data in held.values() if data}
        try:
            await self._memory.forget(scope, named)
        finally:
            if gone:
                await self._change([("DEL", *gone)], gone)

    async def forget_all(self, scope: str) -> Sequence[bytes]:
        """Remove all records of a scope from the store and the cache; returns their ids."""
        gone = await self._memory.forget_all(scope)
        for start in range(0, len(gone), _MOST_TOGETHER):
            names = [_record(one) for one in gone[start : start + _MOST_TOGETHER]]
            await self._change([("DEL", *names)], names)
        return gone

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
        several = {key: SEVERAL for key, one in zip(keys, ids, strict=False) if one == _SEVERAL}
        wanted = list(dict.fromkeys(one for one in ids if one and one != _SEVERAL))
        if not wanted:
            return several
        held = await self._values([_record(one) for one in wanted])
        records = {  # an entry that does not match its id counts as missing
            one: data
            for one, data in zip(wanted, held, strict=False)
            if data is not None and record_id(scope, data) == one
        }
        found = {key: records[one] for key, one in zip(keys, ids, strict=False) if one in records}
        return several | found

    async def _values(self, names: list[bytes]) -> list[bytes | None]:
        replies = await self._ask([("MGET", *names)])
        values = replies[0] if replies else []
        if not isinstance(values, list):
            return []
        return [value if isinstance(value, bytes) else None for value in values]

    async def _change(self, commands: list[Command], names: list[bytes]) -> list[Reply]:
        """Change the entries of these names; if that fails, they are removed later."""
        replies = await self._ask(commands) if commands else []
        if replies is None:
            self._owe(names)
        return replies or []

    def _owe(self, names: list[bytes]) -> None:
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


def _certain(found: dict[str, bytes]) -> dict[str, bytes]:
    """What holds whatever the cache has missed: that there are several, and what a proof is for.

    A gateway that cannot reach the cache may have stored another record under any other key.
    """
    proved = {SEVERAL, *(data for key, data in found.items() if is_proof(key))}
    return {key: data for key, data in found.items() if data in proved}


def _anchor(scope: str, key: str) -> bytes:
    return b"mull:a:" + anchor_of(scope, key).hex().encode()


def _record(record: bytes) -> bytes:
    return b"mull:r:" + record.hex().encode()


def _set(scope: str, anchors: Iterable[bytes], data: bytes) -> list[Command]:
    """Put a record into the cache, under those of the anchors that have none."""
    record = record_id(scope, data)
    named = [("SET", anchor, record, "EX", _SECONDS, "NX") for anchor in anchors]
    return [("SET", _record(record), data, "EX", _SECONDS), *named]


def _set_several(anchor: bytes) -> Command:
    return ("SET", anchor, _SEVERAL, "EX", _SECONDS)
