"""One answer on its way from an upstream to a client.

The client's writer is fed the upstream's events with two changes. Calls get ids of the gateway's
own. And where the client speaks another dialect than the upstream, what only the upstream can read
travels in an envelope, in the place where this client keeps what it does not understand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.gateway.anchors import Past, call_key, carrier_key, carriers_of
from mull.gateway.envelope import Envelopes, Sealed
from mull.gateway.ids import is_sound, mint
from mull.gateway.record import Kept
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import Block, ThinkingBlock, ToolCallBlock
from mull.neutral.events import (
    BlockEnded,
    Event,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
)
from mull.neutral.messages import Dialect, Message, Origin

__all__ = ["Client", "Relay"]


class Client(NamedTuple):
    """Who an answer is for: the dialect it speaks and the scope that its envelopes hold in."""

    dialect: Dialect
    scope: str = ""


class Relay:
    """Follows one answer: `told` gives the events for the client's writer, `keep` what is to be
    remembered of it.

    Blocks are named by their place in the answer, so that the writer tells them apart as the
    assembler does, whatever keys and ids the upstream uses. `names` are the client's names of the
    tools that go by others upstream.
    """

    def __init__(
        self,
        client: Client,
        origin: Origin,
        envelopes: Envelopes,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._client = client
        self._origin = origin
        self._names = names
        self._envelopes = envelopes
        self._traits = TRAITS[client.dialect]
        self._own = client.dialect == origin.dialect
        self._upstream = Assembler(origin)
        self._ids: dict[int, str] = {}
        self._thought: int | None = None
        self._thoughts = 0
        self._calls_signed = False

    def told(self, events: Sequence[Event]) -> list[Event]:
        """The events as the client is to hear them: most are told as they are."""
        if self._own and ToolCallDelta not in map(type, events):
            self._upstream.add_all(events)
            return [*events]
        return [told for event in events for told in self._tell(event)]

    def _tell(self, event: Event) -> Iterator[Event]:
        if isinstance(event, ToolCallDelta) and (name := self._names.get(event.name or "")):
            event = replace(event, name=name)
        self._upstream.add(event)
        match event:
            case ToolCallDelta():
                yield from self._close_thought()
                yield self._call(event)
            case ThinkingDelta() | ThinkingCarrier() if not self._own:
                yield from self._think(event)
            case TextDelta() if not self._own:
                yield from self._close_thought()
                bare = event.signature is None and event.wire is None
                if event.text:  # an empty one has only carried a signature
                    yield event if bare else replace(event, signature=None, wire=None)
            case _:
                yield from self._close_thought()
                yield event

    def _think(self, event: ThinkingDelta | ThinkingCarrier) -> Iterator[Event]:
        """A piece of a thought that goes to a client of another dialect, carriers aside."""
        at = self._upstream.at
        if self._thought != at:
            yield from self._close_thought()
            self._thought, self._thoughts = at, self._thoughts + 1
            if isinstance(event, ThinkingCarrier):
                yield ThinkingDelta("", self._thought_key, kind=event.kind or "raw")
        if isinstance(event, ThinkingDelta):
            yield replace(event, key=self._thought_key)

    @property
    def _thought_key(self) -> str:
        return f"thought {self._thoughts}"

    def _close_thought(self) -> Iterator[Event]:
        """End the thought that is open with its envelope."""
        if self._thought is None:
            return
        at, self._thought = self._thought, None
        if envelope := self._seal({at: self._upstream.blocks()[at]}):
            carrier = ThinkingCarrier(self._thought_key)
            yield replace(carrier, **{self._traits.envelope: envelope})
        yield BlockEnded(self._thought_key)

    def _seal(self, blocks: dict[int, Block]) -> str | None:
        calls = {at: sum(call < at for call in self._ids) for at in blocks}
        return self._envelopes.seal(self._client.scope, Sealed(self._origin, blocks, calls))

    def _call(self, event: ToolCallDelta) -> ToolCallDelta:
        """A piece of a call under its minted id; without what another dialect cannot read."""
        at = self._upstream.at or 0
        begins = at not in self._ids
        if begins:
            sound = (
                event.id is not None and is_sound(event.id) and event.id not in self._ids.values()
            )
            self._ids[at] = event.id if sound and event.id else mint(self._client.dialect)
        event = replace(event, key=f"call {at}", id=self._ids[at] if begins else None)
        if self._own:
            return event
        signature = self._signature() if begins and self._traits.signs_calls else None
        return replace(event, signature=signature, wire=None)

    def _signature(self) -> str | None:
        """For the first call an envelope of all that was thought before it, where calls are what
        the client keeps."""
        if self._calls_signed:
            return None
        self._calls_signed = True
        held: dict[int, Block] = {}
        for at, block in enumerate(self._upstream.blocks()):
            if isinstance(block, ThinkingBlock):
                held[at] = block
            elif isinstance(block, ToolCallBlock):
                held[at] = replace(block, input={}, arguments=None)
        return self._seal(held)

    @property
    def upstream(self) -> Message:
        """The answer as its provider gave it."""
        return self._upstream.message()

    def keep(self, past: Past) -> tuple[list[str], Kept]:
        """The record of the answer, and the keys that it is found by."""
        message = self.upstream
        ids = {
            call_key(minted): call.id
            for at, minted in self._ids.items()
            if isinstance(call := message.blocks[at], ToolCallBlock)
        }
        keys = [*ids, *past.keys(message)]
        if self._own:
            keys += [carrier_key(one) for block in message.blocks for one in carriers_of(block)]
        return keys, Kept(self._origin, message.blocks, ids)
