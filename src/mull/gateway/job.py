"""One request of a client: tries its targets in order, and passes the answer of the first that
responds to the client."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Container, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import astuple, replace

from mull.client.exchange import ExchangeOptions
from mull.client.retry import RetryRules
from mull.client.transport import host_of
from mull.dialects.serving import answer_writer, write_answer
from mull.dialects.writer import About
from mull.gateway.drafts import Draft, Drafts
from mull.gateway.http import aside
from mull.gateway.ids import mint_answer_id
from mull.gateway.notes import notes_for_client
from mull.gateway.observing import Observed
from mull.gateway.record import Refused
from mull.gateway.relay import Client, Relay
from mull.gateway.routes import Route
from mull.gateway.trials import Trials, as_error, failure_reason, until_generated
from mull.logs import log_warning
from mull.neutral.asked import Asked
from mull.neutral.assemble import Assembler
from mull.neutral.blocks import Wire
from mull.neutral.errors import LocalError, MullError, RemoteError, TooLongError
from mull.neutral.events import (
    Event,
    Failed,
    Finished,
    TextDelta,
    ThinkingCarrier,
    ThinkingDelta,
    ToolCallDelta,
    Warned,
)
from mull.neutral.joining import join_deltas
from mull.neutral.messages import Message
from mull.neutral.request import Note, WireRequest
from mull.policy.heal.lessons import fingerprints
from mull.policy.prepare import Prepared
from mull.policy.view.calls import names_on_wire

if TYPE_CHECKING:
    from mull.dialects.writer import AnswerWriter
    from mull.gateway.anchors import Past
    from mull.gateway.service import Gateway

__all__ = ["Job"]

_T = TypeVar("_T")
_OPTIONS = ExchangeOptions(retry=RetryRules(attempts=1))
"""One attempt only: clients retry by themselves, and know how long they want to wait."""
MOST_ANSWER = 64 << 20
"""The approximate limit of an answer in bytes: an answer is kept in memory until it is stored."""
_EVENT_SIZE = 100
_THINKING = (ThinkingDelta, ThinkingCarrier)
_ENDLESS = f"the answer exceeds the limit of {MOST_ANSWER >> 20} MB"


class Job:
    """One request of a client, ready to be sent, and its answer.

    `route`, `prepared` and `notes` belong to the current target; until the answer begins, a
    fallback may replace that target.
    """

    route: Route
    prepared: Prepared
    notes: tuple[Note, ...]

    def __init__(
        self,
        gateway: Gateway,
        client: Client,
        asked: Asked,
        drafts: Drafts,
        body: bytes = b"",
        answer_id: str | None = None,
        size: int = 0,
    ) -> None:
        self.client = client
        self.asked = asked
        self.body = body
        self.size = size
        """The bytes of the conversation, by which its work is done in a thread or not."""
        self.id: str = answer_id or mint_answer_id(client.dialect)
        self.began: float = time.monotonic()
        self.sent_size: int = 0
        """The bytes of the last request upstream, including what was added to the client's."""
        self.past: Past = drafts.past
        self._gateway = gateway
        self._drafts = drafts
        order = drafts.routes()
        self._trials = Trials(order, gateway.cooldowns)
        self._passed_over: list[str] = []
        self._rest: Wire | None = None
        self._is_kept = False
        if self._trials.route is not order[0]:
            self._passed_over.append(f"{order[0].target.name} failed recently")
        self._take(drafts.make(self._trials.route))

    def _take(self, draft: Draft) -> None:
        """Make this draft's target the current one."""
        self.route, self.prepared = draft.route, draft.prepared
        self._records, self._refused = draft.records, list[Refused]()
        self._relay = self._relay_for(draft.prepared)
        passed_over = []
        if self._passed_over:
            text = "; ".join([*self._passed_over, f"{self.route.target.name} answers"])
            passed_over.append(Note("target", text, warning=True))
        notes = (*passed_over, *draft.notes)
        self.notes = notes_for_client(notes, self.asked, self.client.dialect)

    @property
    def _hides_thinking(self) -> bool:
        """Whether the client is not sent thinking, because it did not ask for it. Its answers are
        stored with their thinking like all others, which is sent back with them."""
        return not (self.asked.thinking.returned or self.route.shows_thinking)

    def _relay_for(self, prepared: Prepared) -> Relay:
        """The relay that passes the answer of this request to the client."""
        tools, target = prepared.made.options.tools, prepared.target
        renamed = names_on_wire((tool.name for tool in tools), target.dialect)
        names = {wire: own for own, wire in renamed.items()}
        return Relay(self.client, target.origin, self._gateway.envelopes, self.id, names)

    def about(self, *, as_list: bool = False) -> About:
        """What the writer of the client's dialect needs to know."""
        return About(
            source=self.prepared.target.dialect,
            id=self.id,
            model=self.asked.model or self.prepared.target.name,
            created=int(time.time()),
            usage=self.asked.stream_usage,
            as_list=as_list,
            free_text=frozenset(tool.name for tool in self.asked.tools if tool.free_text),
            tools={tool.name: tool.wire for tool in self.asked.tools if tool.wire is not None},
        )

    def writer(self, *, as_list: bool = False) -> AnswerWriter:
        """The writer of the client's dialect."""
        return answer_writer(self.client.dialect, self.about(as_list=as_list))

    async def events(self) -> AsyncGenerator[list[Event], None]:
        """The answer as it is sent to the client, batch by batch. The last batch is yielded once
        the answer is stored.

        Raises:
            RemoteError: the upstream rejected the request or could not be reached, before its first
                event; or the client has reached a limit.
        """
        if self._gateway.accounts is not None:
            await self._gateway.accounts.admit(self)
        size = 0
        with Observed(self._gateway.observers, self) as observed:
            try:
                async with aclosing(self._answered()) as batches:
                    async for arrived in batches:
                        batch = arrived if len(arrived) <= 1 else join_deltas(arrived)
                        size += _size_of(batch)
                        if size > MOST_ANSWER:
                            batch = [Failed(_ENDLESS)]
                        if self._refused:
                            await self._gateway.forget(self.client, self._refused)
                            self._refused = []
                        events = self._relay.translate(batch)
                        if not events:
                            continue
                        if isinstance(events[-1], Finished):
                            await self._remember()
                        if Warned in map(type, events):
                            said = [one.text for one in events if isinstance(one, Warned)]
                            self._add_notes(Note("answer", text, warning=True) for text in said)
                        observed.emitted(events)
                        if self._hides_thinking:
                            events = [one for one in events if not isinstance(one, _THINKING)]
                        if events:
                            yield events
                        if size > MOST_ANSWER:
                            return
            finally:
                begun = self._relay.upstream
                if not self._is_kept and (begun.text or begun.tool_calls):
                    await self._gateway.remember(self, self._relay, is_whole=False)

    async def _answered(self) -> AsyncGenerator[Sequence[Event], None]:
        """The answer of the first target that gives one."""
        trials = self._trials
        while True:
            trials.begin()
            responded = False
            try:
                async with aclosing(self._send()) as batches:
                    async for batch in batches:
                        if batch:
                            responded = True
                            trials.succeed()
                        yield batch
                return
            except (RemoteError, LocalError) as error:  # LocalError: no key could be obtained
                if responded:
                    raise
                if not await self._go_on(error):
                    raise trials.error from None
            finally:
                trials.leave()

    def _send(self) -> AsyncGenerator[Sequence[Event], None]:
        way = self._gateway.tracing.along(self, self.route.way)
        options = replace(_OPTIONS, sending=self._sent)
        batches = self._gateway.engine.sender(way, options, work=self.aside)(self.prepared)
        return batches if self._trials.is_last else until_generated(batches)

    async def aside(self, work: Callable[[], _T]) -> _T:
        """Do work on this request; in a thread if it is large."""
        return await aside(self.size, work)

    async def _go_on(self, error: MullError) -> bool:
        """Switch to the next target that may answer; return whether there is one."""
        reason = failure_reason(self.route, error)
        route = self._trials.fail(error)
        while route is not None:
            try:
                draft = await self.aside(partial(self._drafts.make, route))
            except (LocalError, TooLongError):  # what suits the first target need not suit the next
                route = self._trials.skip()
                continue
            self._passed_over.append(reason)
            self._take(draft)
            log_warning(f"{reason}; trying {route.target.name} at {host_of(route.way.base_url)}")
            return True
        return False

    def _sent(self, prepared: Prepared, wire: WireRequest) -> None:
        """Called with each request that is sent upstream: a fix may have changed it, or sent it to
        another API of the same provider."""
        if prepared.target.origin != self.prepared.target.origin:
            self._relay = self._relay_for(prepared)
        if len(prepared.target.refused) > len(self.prepared.target.refused):
            self._refused = self._records_of(prepared.target.refused)
        self.prepared, self.sent_size = prepared, len(wire.body)
        notes = (*prepared.notes, *wire.notes)
        self._add_notes(notes_for_client(notes, self.asked, self.client.dialect))

    def _records_of(self, refused: Container[str]) -> list[Refused]:
        """The records in the request that hold carriers with these fingerprints."""
        return [
            (self._drafts.keys_of(kept), kept)
            for kept in self._records.values()
            if any(name in refused for block in kept.blocks for name in fingerprints(block))
        ]

    async def settle(self, writer: AnswerWriter) -> None:
        """Called when the end of the answer has been written, before it is sent to the client."""

    async def _remember(self) -> None:
        self._is_kept = True
        self._add_notes(await self._gateway.remember(self, self._relay))

    def _add_notes(self, notes: Iterable[Note]) -> None:
        self.notes = tuple(dict.fromkeys((*self.notes, *notes)))

    async def whole(self) -> Message:
        """The complete answer.

        Raises:
            RemoteError: there is no answer.
        """
        folded: Assembler | None = None
        async for events in self.events():
            folded = folded or Assembler(self.prepared.target.origin)
            folded.add_all(events)
            last = events[-1]
            if isinstance(last, Failed):  # a partial answer would look complete
                raise as_error(last)
            if isinstance(last, Finished):
                self._rest = last.wire
        return (folded or Assembler(self.prepared.target.origin)).message()

    async def document(self) -> bytes:
        """The complete answer as one document in the client's dialect.

        Raises:
            RemoteError: there is no answer.
        """
        message = await self.whole()
        about = replace(self.about(), rest=self._rest)
        return write_answer(message, self.client.dialect, about).body


def _size_of(events: Iterable[Event]) -> int:
    """The approximate size of events in memory, in bytes."""
    size = 0
    for event in events:
        size += _EVENT_SIZE
        match event:
            case TextDelta() | ThinkingDelta():
                size += len(event.text)
            case ToolCallDelta():
                size += len(event.arguments)
            case ThinkingCarrier():
                size += sum(len(part) for part in astuple(event) if isinstance(part, str))
            case _:
                pass
    return size
