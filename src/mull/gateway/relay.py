"""Translates the upstream's events for the client.

Two things change. Calls get the gateway's own ids. If the client speaks another dialect than the
upstream, opaque values such as signatures and encrypted reasoning are replaced by envelopes, in the
field where the client's dialect has its own opaque values.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from mull.dialects.traits import TRAITS
from mull.gateway.anchors import (
    Past,
    answer_key,
    call_key,
    carrier_key,
    carriers_of,
    thought_keys,
)
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
    """The client of a request: its dialect, the scope in which its envelopes are valid and its
    records are found, and the session that its headers name."""

    dialect: Dialect
    scope: str = ""
    session: str = ""


class Relay:
    """Translates one answer: `translate` returns the events for the client's writer, `keep` the
    record to store.

    Blocks get keys by their position in the answer, so that the writer separates them as the
    assembler does, whatever keys and ids the upstream uses. `answer` is the gateway's id of the
    answer. `names` maps the names of tools that were renamed for the upstream to the client's
    names.
    """

    def __init__(
        self,
        client: Client,
        origin: Origin,
        envelopes: Envelopes,
        answer: str,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._client = client
        self._origin = origin
        self._answer = answer
        self._names = names
        self._envelopes = envelopes
        self._traits = TRAITS[client.dialect]
        self._own = client.dialect == origin.dialect
        self._calls_last = self._traits.takes == "fields"
        """Whether the client's API has one text for an answer, before all its calls."""
        self._upstream = Assembler(origin)
        self._ids: dict[int, str] = {}
        """The gateway's id of each call, by its position."""
        self._given: set[str] = set()
        """The keys of those ids."""
        self._called: list[int] = []
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
                yield from self._carry_call(event)
                yield self._call(event)
            case ThinkingDelta() | ThinkingCarrier() if not self._own:
                yield from self._think(event)
            case TextDelta() if not self._own:
                yield from self._close_thought()
                bare = event.signature is None and event.wire is None
                if event.text:  # an empty delta only carries a signature
                    yield event if bare else replace(event, signature=None, wire=None)
            case BlockEnded() if self._thought is not None and self._calls_last:
                pass  # it ends where what it led to begins: its envelope holds that
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

    def _close_thought(self, call: Mapping[int, Block] = MappingProxyType({})) -> Iterator[Event]:
        """End the open thinking block, if any, with its envelope. That may also hold the
        call that it led to."""
        if self._thought is None:
            return
        at, self._thought = self._thought, None
        if envelope := self._seal({at: self._upstream.blocks()[at], **call}):
            carrier = ThinkingCarrier(self._thought_key)
            yield replace(carrier, **{self._traits.envelope: envelope})
        yield BlockEnded(self._thought_key)

    def _carry_call(self, event: ToolCallDelta) -> Iterator[Event]:
        """What a client gets before a call. Its API may have no place for what the call carries:
        then that is in the envelope of the thinking before it, which is empty if there is none."""
        at = self._upstream.at or 0
        has_place = self._own or self._traits.signs_calls or at in self._ids
        block = None if has_place else self._upstream.blocks()[at]
        if not isinstance(block, ToolCallBlock):
            yield from self._close_thought()
        elif self._thought is not None:
            is_held = self._calls_last or carriers_of(block)
            yield from self._close_thought({at: _bare(block)} if is_held else {})
        elif carriers_of(block):
            self._thoughts += 1
            yield ThinkingDelta("", self._thought_key)
            if envelope := self._seal({at: _bare(block)}):
                carrier = ThinkingCarrier(self._thought_key)
                yield replace(carrier, **{self._traits.envelope: envelope})
            yield BlockEnded(self._thought_key)

    def _seal(self, blocks: dict[int, Block]) -> str | None:
        calls = {at: bisect_left(self._called, at) for at in blocks}
        for held in (Sealed(self._origin, blocks, calls, self._answer), self._reference):
            if envelope := self._envelopes.seal(self._client.scope, held):
                return envelope
        return None

    @property
    def _reference(self) -> Sealed:
        """What is sealed of thinking that is too long for an envelope: only where it is stored."""
        return Sealed(self._origin, {}, {}, self._answer)

    def _call(self, event: ToolCallDelta) -> ToolCallDelta:
        """A delta of a call under the gateway's id, without what another dialect cannot read."""
        at = self._upstream.at or 0
        begins = at not in self._ids
        if begins:
            name = event.id or ""
            if not is_sound(name) or call_key(name) in self._given:
                name = mint(self._client.dialect, event.id)
            self._ids[at] = name
            self._given.add(call_key(name))
            self._called.append(at)
        event = replace(event, key=f"call {at}", id=self._ids[at] if begins else None)
        if self._own:
            return event
        signature = self._signature() if self._traits.signs_calls else None
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
                held[at] = _bare(block)
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
        keys = [answer_key(self._answer), *ids, *thought_keys(message), *past.keys(message)]
        if self._own:
            keys += [carrier_key(one) for block in message.blocks for one in carriers_of(block)]
        return keys, Kept(self._origin, message.blocks, ids)


def _bare(call: ToolCallBlock) -> ToolCallBlock:
    """A call without its arguments, which the client sends back itself."""
    return replace(call, input={}, arguments=None)
