"""The latest requests to the gateway, kept in memory for the watch page.

Content is kept only here: it is never logged, and it is discarded when newer requests need the
space or the process ends.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mull.gateway.tokens import client_name
from mull.neutral.blocks import Value
from mull.neutral.events import Event, Reclassified, TextDelta, ThinkingDelta, ToolCallDelta
from mull.neutral.usage import Usage
from mull.policy.cost import cost_of

if TYPE_CHECKING:
    from mull.gateway.job import Job
    from mull.gateway.observing import Outcome

__all__ = ["Seen", "Subscriber", "Summary", "Watch", "pieces_of", "summary_of"]

_MOST_KEPT = 200
_MOST_BYTES = 64_000_000
_MOST_SUMMARIES = 5_000
_MOST_WAITING = 2_000
_OVERHEAD = 2_000
"""Approximate bytes that a request occupies in addition to its content."""
_LONGEST_NAME, _LONGEST_ERROR = 200, 2_000
"""Characters of a model's name and of an error that a summary contains at most."""


class Summary(Value, frozen=True, omit_defaults=False):
    """One request without its content. Durations are in seconds."""

    id: str
    """Its number since the gateway started, as text."""
    at: float
    """When it began, in seconds since 1970."""
    client: str
    """The name of the client's token; empty if there are no tokens."""
    speaks: str
    """The dialect of the client."""
    asked: str
    """The name of the model as the client wrote it."""
    provider: str
    """The id of the provider that was asked."""
    model: str
    """The model that was asked, as the provider spells it."""
    upstream: str
    """The dialect of the provider."""
    stream: bool
    """Whether the client wants the answer as a stream."""
    state: str = "open"
    """How it ended (`complete`, `refused`, `broken`, `left`); `open` while it runs."""
    status: int = 200
    """The HTTP status that the client got."""
    error: str = ""
    """Why there is no complete answer; empty if there is one."""
    first: float | None = None
    """The time until the first event; None if none came yet."""
    total: float | None = None
    """The time until the end; None while it runs."""
    input: int | None = None
    """The input tokens, cached ones included; None if unknown."""
    cached: int | None = None
    """The input tokens that were read from a cache; None if unknown."""
    output: int | None = None
    """The output tokens, reasoning included; None if unknown."""
    reasoning: int | None = None
    """The tokens of reasoning; None if unknown."""
    cost: float | None = None
    """The price in dollars; None if unknown."""
    warnings: int = 0
    """How many of its notes are warnings."""


class Seen:
    """One request with its content."""

    def __init__(self, job: Job, number: str) -> None:
        self.job = job
        self.id = number
        self._ended: Summary | None = None
        self.pieces: list[tuple[str, str]] = []
        self.size: int = _OVERHEAD
        """The approximate bytes in memory; of a request in progress, those of its answer alone."""

    @property
    def is_open(self) -> bool:
        """Whether the request is in progress."""
        return self._ended is None

    @property
    def scope(self) -> str:
        """The scope of the client that sent the request."""
        return self.job.client.scope

    @property
    def summary(self) -> Summary:
        """The request without its content, in its current state."""
        return self._ended or summary_of(self.job, number=self.id)

    def end(self, outcome: Outcome) -> Summary:
        """Record how the request ended."""
        self.pieces = self.content()  # a list of single tokens takes many times their size
        self.size += len(self.job.body) + 2 * max(len(self.job.body), self.job.sent_size)
        self._ended = summary_of(self.job, outcome, self.id)
        return self._ended

    def add(self, kind: str, text: str) -> None:
        """Add a piece of thinking, text or a tool call."""
        self.pieces.append((kind, text))
        self.size += 2 * len(text)  # the job holds it too

    def content(self) -> list[tuple[str, str]]:
        """Thinking, text and tool calls in order, each joined into one piece."""
        runs = itertools.groupby(self.pieces, key=lambda piece: piece[0])
        return [(kind, "".join(text for _, text in run)) for kind, run in runs]

    def holds(self, words: str) -> bool:
        """Whether the request, its answer or its names contain the words."""
        summary = self.summary
        names = (summary.client, summary.asked, summary.provider, summary.model, summary.error)
        return (
            any(words in name.lower() for name in names)
            or any(words in text.lower() for _, text in self.content())
            or words in self.job.body.decode("utf-8", "replace").lower()
        )


class Subscriber:
    """Receives messages about requests from now on; one that reads too slowly is notified that it
    missed some."""

    def __init__(self, scope: str | None) -> None:
        self.scope = scope
        self._queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_MOST_WAITING)

    def deliver(self, message: dict[str, Any]) -> None:
        """Deliver a message without waiting."""
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            while not self._queue.empty():
                self._queue.get_nowait()
            self._queue.put_nowait({"type": "missed"})

    async def next(self) -> dict[str, Any]:
        """The next message."""
        return await self._queue.get()


class Watch:
    """An observer that keeps the latest requests; `is_on` says whether to keep a new request. The
    `scope` of its methods is that of the client whose requests may be seen; None means all."""

    def __init__(
        self,
        most: int = _MOST_KEPT,
        most_bytes: int = _MOST_BYTES,
        is_on: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_on = is_on
        self._most, self._most_bytes = most, most_bytes
        self._seen: OrderedDict[int, Seen] = OrderedDict()
        self._size = 0
        self._done: deque[tuple[str, Summary]] = deque(maxlen=_MOST_SUMMARIES)
        self._subscribers: set[Subscriber] = set()
        self._count = 0

    def began(self, job: Job) -> None:
        """Start to keep a request."""
        if not self._is_on():
            return
        self._count += 1
        seen = self._seen[id(job)] = Seen(job, f"{self._count}")
        self._publish_state(seen)

    def emitted(self, job: Job, events: Sequence[Event]) -> None:
        """Keep events of the answer."""
        seen = self._seen.get(id(job))
        if seen is None:
            return
        for kind, text in pieces_of(events):
            seen.add(kind, text)
            if self._subscribers:
                piece = {"type": "piece", "id": seen.id, "kind": kind, "text": text}
                self._publish(seen, piece)

    def ended(self, job: Job, outcome: Outcome) -> None:
        """Keep how the request ended, and discard the oldest requests."""
        seen = self._seen.get(id(job))
        if seen is None:
            return
        self._done.append((seen.scope, seen.end(outcome)))
        self._size += seen.size
        self._publish_state(seen)
        self._trim()

    def _trim(self) -> None:
        """Discard the oldest requests that have ended."""
        while len(self._seen) > self._most or self._size > self._most_bytes:
            over = (key for key, seen in self._seen.items() if not seen.is_open)
            if (oldest := next(over, None)) is None:
                return
            self._size -= self._seen.pop(oldest).size

    def summaries(self, scope: str | None = None) -> list[Summary]:
        """All requests in memory, oldest first; those in progress come last."""
        opened = [(one.scope, one.summary) for one in self._seen.values() if one.is_open]
        return [one for own, one in (*self._done, *opened) if scope in (None, own)]

    def search(self, words: str, scope: str | None = None) -> list[str]:
        """The ids of the requests that contain these words."""
        wanted = words.lower()
        return [
            seen.id
            for seen in self._seen.values()
            if scope in (None, seen.scope) and seen.holds(wanted)
        ]

    def find(self, number: str, scope: str | None = None) -> Seen | None:
        """A request whose content is still kept."""
        for seen in self._seen.values():
            if seen.id == number and scope in (None, seen.scope):
                return seen
        return None

    def subscribe(self, scope: str | None = None) -> Subscriber:
        """A new subscriber; it receives messages until `unsubscribe`."""
        subscriber = Subscriber(scope)
        self._subscribers.add(subscriber)
        return subscriber

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Stop sending messages to a subscriber."""
        self._subscribers.discard(subscriber)

    def _publish_state(self, seen: Seen) -> None:
        if self._subscribers:
            self._publish(seen, {"type": "request", "request": seen.summary})

    def _publish(self, seen: Seen, message: dict[str, Any]) -> None:
        for subscriber in self._subscribers:
            if subscriber.scope in (None, seen.scope):
                subscriber.deliver(message)


def pieces_of(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """The readable pieces of these events: the kind (`thought`, `text`, `call`, `note`) and the
    text of each."""
    for event in events:
        match event:
            case ThinkingDelta() if event.text:
                yield "thought", event.text
            case TextDelta() if event.text:
                yield "text", event.text
            case ToolCallDelta():
                if event.name:
                    yield "call", f"\n{event.name} "
                if event.arguments:
                    yield "call", event.arguments
            case Reclassified():
                yield "note", "\nThe text above was thinking.\n"
            case _:
                pass


def summary_of(job: Job, outcome: Outcome | None = None, number: str = "") -> Summary:
    """A request without its content, in its current state."""
    target = job.prepared.target
    summary = Summary(
        id=number,
        at=time.time() - (time.monotonic() - job.began),
        client=client_name(job.client.scope),
        speaks=job.client.dialect,
        asked=(job.asked.model or "")[:_LONGEST_NAME],
        provider=target.provider,
        model=target.model,
        upstream=target.dialect,
        stream=job.asked.stream,
        warnings=sum(note.warning for note in job.notes),
    )
    if outcome is None:
        return summary
    usage = outcome.usage or Usage()
    return replace(
        summary,
        state=outcome.ending,
        status=outcome.status,
        error=outcome.error[:_LONGEST_ERROR],
        first=None if outcome.first is None else outcome.first - job.began,
        total=outcome.ended - job.began,
        input=usage.input,
        cached=usage.cache_read,
        output=usage.output,
        reasoning=usage.reasoning,
        cost=cost_of(outcome.usage, target.facts.cost),
    )
