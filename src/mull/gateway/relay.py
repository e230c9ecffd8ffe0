"""Translates the upstream's events for the client.

Two things change. Calls get the gateway's own ids. If the client speaks another dialect than the
upstream, opaque values such as signatures and encrypted reasoning are replaced by envelopes, in the
field where the client's dialect has its own opaque values.
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
    """The client of a request: its dialect, and the scope in which its envelopes are valid."""

    dialect: Dialect
    scope: str = ""


class Relay:
    """Translates one answer: `translate` returns the events for the client's writer, `keep` the
    record to store.

    Blocks get keys by their position in the answer, so that the writer separates them as the
    assembler does, whatever keys and ids the upstream uses. `names` maps the names of tools that
    were renamed for the upstream to the client's names.
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

    def translate(self, events: Sequence[Event]) -> list[Event]:
        """The events for the client; most are passed on unchanged."""
        if self._own and ToolCallDelta not in map(type, events):
            self._upstream.add_all(events)
            return [*events]
        return [made for event in events for made in self._translate(event)]

    def _translate(self, event: Event) -> Iterator[Event]:
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
                if event.text:  # an empty delta only carries a signature
                    yield event if bare else replace(event, signature=None, wire=None)
            case _:
                yield from self._close_thought()
                yield event

    def _think(self, event: ThinkingDelta | ThinkingCarrier) -> Iterator[Event]:
        """Thinking for a client of another dialect, without its carriers."""
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
        """End the open thinking block, if any, with its envelope."""
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
        """A delta of a call under the gateway's id, without what another dialect cannot read."""
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
        """The envelope of all thinking before the first call, for clients that keep the signatures
        of calls."""
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
        """The answer as the provider sent it."""
        return self._upstream.message()

    def keep(self, past: Past) -> tuple[list[str], Kept]:
        """The keys and the record under which to store the answer."""
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
