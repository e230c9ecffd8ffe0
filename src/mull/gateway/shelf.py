"""Responses that were stored under their ids, and the conversations that they make up.

A record holds one response and the input that came with it. What was said before is in the records
of the responses before it, so a conversation is stored once however long it grows. Each record
names several of those before it, so that a long conversation is found in few steps. Thoughts are
not in here: they are in the record of the answer, which every answer has.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from mull.gateway.http import TooLarge
from mull.gateway.memory import Memory, StoreUnavailable
from mull.logs import log_warning
from mull.neutral.blocks import Value
from mull.neutral.errors import RefusedError
from mull.neutral.former import Reader

__all__ = ["Shelf", "Stored", "answer_key", "not_found"]

NAMED = 64
"""How many of the responses before it a record names."""
MOST_HELD = 64 << 20
"""Bytes of a conversation that can be continued: twice what one request may bring."""


class Stored(Value, frozen=True):
    """One response, and the input items of its own request. `before` are the ids of the responses
    that it continues, nearest first. `size` are the bytes of them all, with its own when it was
    found."""

    response: dict[str, Any]
    input: list[Any] = []
    before: tuple[str, ...] = ()
    size: int = 0

    @property
    def id(self) -> str:
        """The id of the response."""
        name: str = self.response["id"]
        return name

    def next(self) -> tuple[tuple[str, ...], int]:
        """`before` and `size` of a response that continues it."""
        return (self.id, *self.before)[:NAMED], self.size

    @property
    def items(self) -> list[Any]:
        """What the conversation gained by it."""
        return [*self.input, *self.response["output"]]


_read: Reader[Stored] = Reader(Stored)
_encode = msgspec.json.Encoder().encode


def _packed(stored: Stored) -> bytes:
    return zlib.compress(_encode(stored), 1)


def _unpacked(data: bytes) -> Stored | None:
    try:
        plain = zlib.decompressobj().decompress(data, 2 * MOST_HELD)
        stored = _read(plain)
        return replace(stored, size=stored.size + len(plain))
    except (zlib.error, msgspec.DecodeError):  # written by another version
        return None


def _key(response_id: str) -> str:
    return f"response:{response_id}"


def answer_key(response_id: str) -> str:
    """The key of the answer's record that a response was made of."""
    return f"answer:{response_id}"


def _item_key(item_id: str) -> str:
    return f"item:{item_id}"


class Shelf:
    """The responses of one client, in one or several memories; the first that has one gives it."""

    def __init__(self, scope: str, *memories: Memory) -> None:
        self._scope = scope
        self._memories = memories
        self._is_cut_off = False

    async def find(self, response_id: str) -> Stored | None:
        """The response of this id."""
        return (await self._find([_key(response_id)])).get(_key(response_id))

    async def chain(self, response_id: str) -> list[Stored]:
        """The conversation that ends with this response, oldest response first.

        Raises:
            RefusedError: a response in it is not there, or cannot be looked for.
            TooLarge: it has become too long to be held.
        """
        found = await self.known(response_id)
        if not found or found[0].before:
            raise _unavailable() if self._is_cut_off else _previous_not_found(response_id)
        return found

    async def known(self, response_id: str) -> list[Stored]:
        """What is there of the conversation that ends with this response, oldest response first.

        Raises:
            TooLarge: it has become too long to be held.
        """
        found: list[Stored] = []
        wanted: Sequence[str] = (response_id,)
        while wanted:
            records = await self._find(map(_key, wanted))
            for name in wanted:
                stored = records.get(_key(name))
                if stored is None:
                    return found[::-1]
                if stored.size > MOST_HELD:
                    raise TooLarge(f"the conversation has more than {MOST_HELD >> 20} MB")
                found.append(stored)
            wanted = found[-1].before
        return found[::-1]

    async def items(self, item_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Output items of responses, by their ids."""
        names = list(item_ids)
        records = await self._find(map(_item_key, names))
        held = {
            item["id"]: item
            for stored in records.values()
            for item in stored.response["output"]
            if "id" in item
        }
        return {name: held[name] for name in names if name in held}

    async def keep(self, stored: Stored, memory: Memory) -> None:
        """Store a response."""
        named = [item["id"] for item in stored.response["output"] if item.get("id")]
        keys = [_key(stored.id), *map(_item_key, named)]
        try:
            await memory.keep(self._scope, keys, _packed(stored))
        except StoreUnavailable:  # it is held until the store takes it
            return
        except Exception as error:  # the answer goes out all the same
            log_warning(f"the gateway's store cannot be written: {error!r:.200}")

    async def forget(self, response_id: str) -> None:
        """Remove a response, and its answer with it."""
        for memory in self._memories:
            with suppress(StoreUnavailable):  # it is not found any more, and removed later
                await memory.forget(self._scope, [_key(response_id), answer_key(response_id)])

    async def _find(self, keys: Iterable[str]) -> dict[str, Stored]:
        found: dict[str, Stored] = {}
        missing = list(keys)
        for memory in self._memories:
            for key, data in (await self._asked(memory, missing)).items():
                if (stored := _unpacked(data)) is not None:
                    found[key] = stored
            missing = [key for key in missing if key not in found]
            if not missing:
                break
        return found

    async def _asked(self, memory: Memory, keys: Sequence[str]) -> Mapping[str, bytes]:
        try:
            return await memory.find(self._scope, keys)
        except StoreUnavailable as error:
            self._is_cut_off = True
            return error.found
        except Exception as error:
            log_warning(f"the gateway's store cannot be read: {error!r:.200}")
            return {}


def not_found(what: str, name: str) -> RefusedError:
    """There is no such thing here."""
    text = f"{what} with id '{name[:100]}' not found."
    return RefusedError(text, status=404, text=text, code="not_found")


def _unavailable() -> RefusedError:
    """Nobody knows whether it is there: the client may ask again."""
    text = "The gateway's store cannot be read at the moment; try again in a few seconds."
    return RefusedError(text, status=503, text=text, retry_after=2)


def _previous_not_found(name: str) -> RefusedError:
    text = f"Previous response with id '{name[:100]}' not found."
    return RefusedError(text, status=400, text=text, code="previous_response_not_found")
