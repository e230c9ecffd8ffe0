"""A batch that the provider works through itself, at its lower price and in its own time.

Requests are encoded and answers decoded as for any other request; only the way between is another.
What is submitted stands in the file of the batch before the provider is asked to begin, so that
another process can collect it days later, and nothing is submitted twice.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mull.agent.batch.file import SubmissionLine
from mull.agent.batch.items import Item
from mull.agent.batch.values import BatchResult
from mull.agent.batch.work import Work
from mull.agent.results import Result, result_of
from mull.client.refusal import error_in
from mull.dialects.batch_api import (
    APIS,
    BatchApi,
    BatchState,
    Outcome,
    Submission,
    batch_headers,
)
from mull.dialects.registry import decode_response, encode_request
from mull.history.log import Entry
from mull.neutral.assemble import assemble
from mull.neutral.errors import LocalError, MullError, RefusedError, RemoteError
from mull.neutral.events import Failed, Started
from mull.neutral.request import Note, WireRequest
from mull.policy.cost import cost_of
from mull.policy.prepare import Prepared, too_long_text

if TYPE_CHECKING:
    from mull.agent.batch.progress import Display
    from mull.agent.library import Conversation
    from mull.agent.run import Turn

__all__ = ["ProviderWork"]

FIRST_LOOK, LONGEST_LOOK = 5.0, 120.0
"""Seconds between two looks at a batch: it may take minutes, or a day."""
CLOCK_SKEW = 120.0
_Put: TypeAlias = Callable[[BatchResult], None]


class _Group(Struct):
    """Requests to one model that will be submitted together."""

    talk: Conversation
    """A conversation with that model, which knows its target and how to reach it."""
    api: BatchApi
    """The provider's batch API."""
    path: str
    """The path that each request would be sent to on its own."""
    token: str
    """A random text that marks the batch as mull's, and begins the names of its requests."""
    headers: dict[str, str]
    """The headers that the batch needs because its requests have them."""
    items: list[Item] = []
    """The items whose requests these are."""
    lines: list[bytes] = []
    """Their requests, encoded as the batch API wants them."""
    size: int = 0
    """The bytes of these lines, with their line ends."""


class _Sent(Struct):
    """Requests that were submitted."""

    token: str
    """The text that marks the batch as mull's."""
    talk: Conversation
    """A conversation with the model that is asked."""
    api: BatchApi
    """The provider's batch API."""
    items: dict[str, Item]
    """The items whose answers are awaited, by the names of their requests."""
    id: str | None = None
    """The provider's id of the batch; None while it is not known whether the provider has it."""
    total: int = 0
    """How many requests were submitted."""
    at: float = 0.0
    """When they were submitted, in seconds since 1970."""
    state: BatchState | None = None
    """What the provider last said of it; None before its first word."""
    is_whole: bool = True
    """Whether this run has all its items. Answers to the others can still be collected by another
    run.
    """


class ProviderWork(Work):
    """One batch at a provider. Without `wait`, it collects what is there, and ends.

    Raises:
        LocalError: the provider has no batch API, or an option is not possible.
    """

    def __init__(
        self,
        items: Iterable[Any],
        model: str | None,
        options: Mapping[str, Any],
        *,
        concurrency: int,
        file: Path | None,
        wait: bool = True,
    ) -> None:
        super().__init__(items, model, options, concurrency=concurrency, file=file)
        self._api(self.base)
        if not wait and file is None:
            raise LocalError("wait=False needs a file: it says what was submitted, and to where")
        self._waits = wait
        self._sent: list[_Sent] = []

    async def run(self, put: _Put, display: Display | None) -> None:
        async with self.opened(display):
            await self._submit_rest(self._put(put))
            await self._collect(self._put(put))

    async def cancel(self) -> None:
        """Have the provider end what was submitted; answers that are there can be collected.

        Raises:
            RemoteError: the provider cannot be reached, or refuses.
        """
        if self._sent:  # the answers are polled here
            await self._cancel(self._sent)
            return
        if self.path is None:
            raise LocalError("a batch that runs elsewhere needs a file that says what it submitted")
        async with self.opened(None):
            await self._cancel(await self._earlier({item.id: item for item in self.items()}))

    async def _cancel(self, submitted: Iterable[_Sent]) -> None:
        for sent in tuple(submitted):
            if sent.id is not None:
                await self._call(sent.talk, sent.api.cancel(sent.id))

    def waiting(self) -> str:
        states = [sent.state for sent in self._sent if sent.state is not None]
        return ", ".join(f"{one.id} {one.status} {one.done}/{one.total}" for one in states[:3])

    def _put(self, put: _Put) -> _Put:
        def counted(one: BatchResult) -> None:
            self.progress.add(one)
            put(one)

        return counted

    def _api(self, talk: Conversation) -> BatchApi:
        name = talk.target.compat.batches
        if name is None:
            raise LocalError(
                f"{talk.target.provider_name} has no batch API that mull knows: ask without it, or"
                ' name its API in a compat row, such as {"batches": "openai"}'
            )
        return APIS[name]

    async def _call(self, talk: Conversation, wire: WireRequest) -> bytes:
        return await talk._engine.call(wire, talk.target, talk.way())

    async def _submit_rest(self, put: _Put) -> None:
        """Submit all items that have no answer and are not at the provider already."""
        todo: dict[str, Item] = {}
        for item in self.items():
            one = self.known(item)
            if one is not None:
                put(one)
            else:
                todo[item.id] = item
        self._sent += await self._earlier(todo)
        there = {item.id for sent in self._sent for item in sent.items.values()}
        groups: dict[tuple[str, str], _Group] = {}
        for item in todo.values():
            if item.id in there:
                continue
            await asyncio.sleep(0)  # there may be thousands of them
            try:
                talk, _, prepared = self._prepared(item)
                wire = encode_request(prepared.request, prepared.target)
                await self._add(groups, item, talk, wire)
            except LocalError as error:
                put(self.keep(item, None, error, None))
        for group in groups.values():
            await self._submit(group)

    async def _add(
        self,
        groups: dict[tuple[str, str], _Group],
        item: Item,
        talk: Conversation,
        wire: WireRequest,
    ) -> None:
        """Put a request into its group; one that is full is submitted."""
        place = (talk.target.name, wire.path)
        group = groups.get(place)
        line = b""
        if group is not None:
            line = group.api.line(f"{group.token}-{len(group.lines)}", wire)
            full = group.size + len(line) > group.api.most_bytes
            if full or len(group.lines) >= group.api.most_lines:
                await self._submit(group)
                group = None
        if group is None:
            token, api = uuid.uuid4().hex[:16], self._api(talk)
            group = groups[place] = _Group(talk, api, wire.path, token, {})
            line = api.line(f"{token}-0", wire)
        group.items.append(item)
        group.lines.append(line)
        group.size += len(line) + 1
        group.headers.update(batch_headers(wire))

    def _prepared(self, item: Item) -> tuple[Conversation, Turn, Prepared]:
        """The request of an item: whole, not as a stream."""
        talk, turn = self.started(item)
        whole = replace(turn.now, options=replace(turn.now.options, stream=False))
        prepared = whole.quickly_prepared(talk.log)
        if prepared.too_long:
            raise LocalError(too_long_text(prepared))
        return talk, turn, prepared

    async def _submit(self, group: _Group) -> None:
        if not group.lines:
            return
        names = {f"{group.token}-{at}": item for at, item in enumerate(group.items)}
        sent = _Sent(group.token, group.talk, group.api, names, None, len(names), time.time())
        items = [(item.id, item.hash, item.index) for item in group.items]
        self._log("submitting", sent, model=group.talk.target.name, items=items)
        submission = Submission(group.token, group.path, tuple(group.lines), group.headers)
        try:
            before = group.api.upload(submission)
            uploaded = None if before is None else await self._call(group.talk, before)
            body = await self._call(group.talk, group.api.create(submission, uploaded))
        except RefusedError:
            self._log("collected", sent)  # there is nothing at the provider
            raise
        sent.state = group.api.read_state(body)
        sent.id = sent.state.id
        self._log("submitted", sent, batch=sent.id)
        self._sent.append(sent)
        group.items, group.lines = [], []

    def _log(self, kind: str, sent: _Sent, **more: Any) -> None:
        if self.file is not None:
            self.file.append({"type": kind, "token": sent.token, "at": sent.at, **more})

    async def _earlier(self, todo: Mapping[str, Item]) -> list[_Sent]:
        """What earlier runs submitted and nobody collected yet."""
        told: dict[str, dict[str, SubmissionLine]] = {}
        for line in self.file.submissions if self.file is not None else ():
            told.setdefault(line.token, {})[line.type] = line
        found = []
        for lines in told.values():
            if "collected" in lines or "submitting" not in lines:
                continue
            submitted = lines.get("submitted")
            batch = None if submitted is None else submitted.batch
            sent = self._read_sent(lines["submitting"], batch, todo)
            if sent.id is None:
                await self._find(sent)
            if sent.id is not None and sent.items:
                found.append(sent)
        return found

    def _read_sent(
        self, line: SubmissionLine, batch: str | None, todo: Mapping[str, Item]
    ) -> _Sent:
        assert self.file is not None
        names: dict[str, Item] = {}
        missing = False
        for at, (id, hash, _) in enumerate(line.items):
            item = todo.get(id)
            if item is not None and item.hash == hash:
                names[f"{line.token}-{at}"] = item
            elif not self.file.has(id, hash):
                missing = True
        items = list(names.values())
        talk = self.started(items[0])[0] if items else self.base
        total, api = len(line.items), self._api(talk)
        return _Sent(line.token, talk, api, names, batch, total, line.at, is_whole=not missing)

    async def _find(self, sent: _Sent) -> None:
        """A process ended while it submitted this: see whether the provider has it."""
        body = await self._call(sent.talk, sent.api.recent())
        sent.id = sent.api.find(body, sent.token, sent.total, sent.at - CLOCK_SKEW)
        if sent.id is not None:
            self._log("submitted", sent, batch=sent.id)
        else:
            self._log("collected", sent)
            self.notes.append(
                f"a batch of {sent.total} items was not found at the provider: submitted again"
            )

    async def _collect(self, put: _Put) -> None:
        wait = FIRST_LOOK
        while self._sent:
            for sent in tuple(self._sent):
                assert sent.id is not None
                sent.state = await self._looked(sent, sent.id)
                if sent.state is not None and sent.state.is_over:
                    await self._finish(sent, sent.state, put)
                    self._sent.remove(sent)
                    wait = FIRST_LOOK
            if not self._waits:
                return
            if self._sent:
                await asyncio.sleep(wait)
                wait = min(wait * 1.5, LONGEST_LOOK)

    async def _looked(self, sent: _Sent, id: str) -> BatchState | None:
        """The state of a batch, or the last one if the provider cannot be reached for a while."""
        try:
            return sent.api.read_state(await self._call(sent.talk, sent.api.look(id)))
        except RemoteError as error:
            if not error.retryable or not self._waits:
                raise
            return sent.state

    async def _finish(self, sent: _Sent, state: BatchState, put: _Put) -> None:
        for path in state.files:
            body = await self._call(sent.talk, sent.api.fetch(path))
            for outcome in sent.api.read_outcomes(body):
                item = sent.items.pop(outcome.id, None)
                if item is not None:
                    put(self._outcome(item, outcome))
                    await asyncio.sleep(0)
        for item in sent.items.values():
            why = state.problem or f"it is {state.status}, and has no answer to this"
            error = RemoteError(f"the provider's batch {state.id} failed: {why}")
            put(self.keep(item, None, error, None))
        if sent.is_whole:
            self._log("collected", sent)

    def _outcome(self, item: Item, outcome: Outcome) -> BatchResult:
        result: Result | None = None
        value = None
        try:
            result, value = self._decoded(item, outcome)
            error: MullError | None = result.error
        except MullError as raised:
            error = raised
        return self.keep(item, result, error, value)

    def _decoded(self, item: Item, outcome: Outcome) -> tuple[Result, Any]:
        """The answer in a line of results, as if it had been sent alone."""
        _, turn, prepared = self._prepared(item)
        target = prepared.target
        if outcome.problem is not None:
            raise RemoteError(f"{target.provider_name} did not answer: {outcome.problem}")
        if outcome.status is None or outcome.status >= 400:
            raise error_in(outcome.body, outcome.status, target)
        events = decode_response(outcome.body, target)
        message = assemble(events, target.origin)
        turn.prepared = prepared
        turn.note(*prepared.notes, *self._price_note(turn))
        turn.started = Started(request_id=outcome.request_id)
        turn.failed = next((event for event in events if isinstance(event, Failed)), None)
        turn.add(Entry(message, time.time()))
        full = cost_of(message.usage, target.facts.cost)
        turn.costs.append(None if full is None else full * target.compat.batch_price)
        if turn.shape is None or turn.failed is not None:
            return result_of(turn), None
        turn.value = turn.shape.read(message)
        return result_of(turn), turn.shape.plain(turn.value)

    def _price_note(self, turn: Turn) -> Iterator[Note]:
        price = turn.target.compat.batch_price
        if price != 1:
            yield Note("cost", f"answered by the provider's batch API, at {price:.0%} of the price")
