"""Responses stored under their ids, and the conversations that they form.

A record holds one response and the input of its own request. Earlier messages are in the records of
the preceding responses, so a conversation is stored once however long it grows. Each record names
several preceding responses, so that a long conversation is read in few steps. Thinking is not
stored here: it is in the record that the gateway keeps of every answer.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from mull.gateway.anchors import answer_key
from mull.gateway.http import TooLarge, aside
from mull.gateway.memory import Memory, StoreUnavailable
from mull.gateway.packing import packed
from mull.logs import log_warning
from mull.neutral.blocks import Value
from mull.neutral.errors import RefusedError
from mull.neutral.former import Reader

__all__ = ["ResponseStore", "StoredResponse", "check_size", "not_found"]

NAMED = 64
"""How many preceding responses a record names."""
MOST_HELD = 64 << 20
"""The most bytes of a conversation that can be continued: twice the limit of one request."""


class StoredResponse(Value, frozen=True):
    """One response and the input items of its own request. `before` holds the ids of the responses
    that it continues, latest first. `size` is the total bytes of those responses; once the record
    is read from the store, its own bytes are included."""

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
        """`before` and `size` for a response that continues this one."""
        return (self.id, *self.before)[:NAMED], self.size

    @property
    def items(self) -> list[Any]:
        """The items that it adds to the conversation."""
        return [*self.input, *self.response["output"]]


_read: Reader[StoredResponse] = Reader(StoredResponse)
_encode = msgspec.json.Encoder().encode


def _unpacked(data: bytes) -> StoredResponse | None:
    try:
        plain = zlib.decompressobj().decompress(data, 2 * MOST_HELD)
        stored = _read(plain)
        return replace(stored, size=stored.size + len(plain))
    except (zlib.error, msgspec.DecodeError):  # written by another version
        return None


def _key(response_id: str) -> str:
    return f"response:{response_id}"


def _item_key(item_id: str) -> str:
    return f"item:{item_id}"


class ResponseStore:
    """The responses of one client, in one or more stores; a lookup tries them in order."""

    def __init__(self, scope: str, *memories: Memory) -> None:
        self._scope = scope
        self._memories = memories
        self._is_cut_off = False

    async def find(self, response_id: str) -> StoredResponse | None:
        """The response with this id, if it is stored."""
        return (await self._find([_key(response_id)])).get(_key(response_id))

    async def chain(self, response_id: str) -> list[StoredResponse]:
        """The conversation that ends with this response, oldest response first.

        Raises:
            RefusedError: a response in it does not exist, or the store cannot be read.
            TooLarge: the conversation exceeds the size limit.
        """
        found = await self.known(response_id)
        if not found or found[0].before:
            raise _unavailable() if self._is_cut_off else _previous_not_found(response_id)
        return found

    async def known(self, response_id: str) -> list[StoredResponse]:
        """The stored part of the conversation that ends with this response, oldest response first.

        Raises:
            TooLarge: the conversation exceeds the size limit.
        """
        found: list[StoredResponse] = []
        wanted: Sequence[str] = (response_id,)
        while wanted:
            records = await self._find(map(_key, wanted))
            for name in wanted:
                stored = records.get(_key(name))
                if stored is None:
                    return found[::-1]
                check_size(stored.size)
                found.append(stored)
            wanted = found[-1].before
        return found[::-1]

    async def holders(self, item_ids: Iterable[str]) -> list[StoredResponse]:
        """The responses that have output items with these ids, each once."""
        records = await self._find(map(_item_key, item_ids))
        return list({stored.id: stored for stored in records.values()}.values())

    async def keep(self, stored: StoredResponse, memory: Memory) -> None:
        """Store a response."""
        named = [item["id"] for item in stored.response["output"] if item.get("id")]
        keys = [_key(stored.id), *map(_item_key, named)]
        try:
            plain = _encode(stored)
            data = await aside(len(plain), packed, plain)
            await memory.keep(self._scope, keys, data)
        except StoreUnavailable:  # kept in memory until the store is available
            return
        except Exception as error:  # the client gets the answer anyway
            log_warning(f"the gateway cannot write to its store: {error!r:.200}")

    async def forget(self, response_id: str) -> None:
        """Remove a response and the record of its answer."""
        for memory in self._memories:
            with suppress(StoreUnavailable):  # it can no longer be found, and is removed later
                await memory.forget(self._scope, [_key(response_id), answer_key(response_id)])

    async def _find(self, keys: Iterable[str]) -> dict[str, StoredResponse]:
        found: dict[str, StoredResponse] = {}
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
            log_warning(f"the gateway cannot read its store: {error!r:.200}")
            return {}


def check_size(size: int) -> None:
    """Check the bytes of a conversation.

    Raises:
        TooLarge: they exceed the limit.
    """
    if size > MOST_HELD:
        raise TooLarge(f"the conversation exceeds {MOST_HELD >> 20} MB")


def not_found(what: str, name: str) -> RefusedError:
    """The error for an id that is not stored."""
    text = f"{what} with id '{name[:100]}' not found."
    return RefusedError(text, status=404, text=text, code="not_found")


def _unavailable() -> RefusedError:
    """The error for a store that cannot be read: whether the id exists is unknown."""
    text = "The gateway cannot read its store at the moment; try again in a few seconds."
    return RefusedError(text, status=503, text=text, retry_after=2)


def _previous_not_found(name: str) -> RefusedError:
    text = f"Previous response with id '{name[:100]}' not found."
    return RefusedError(text, status=400, text=text, code="previous_response_not_found")
