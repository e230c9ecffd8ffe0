"""One request to an endpoint and its answer, as events.

Here the pieces meet: encode, send, decode, and what to do when it fails. The rules:

- A request that failed before its first event goes out again where that may help; the wait and
  its reason are an event (`Retrying`). A connection that breaks later is not tried again: what
  came is kept, and the last event says what happened.
- A refusal, before the stream or inside it, is shown to `heal` once, as long as nothing visible
  has come. A repaired request goes out (`Healed`) unless those very bytes were sent before.
  A refusal inside a stream may also be retried then, as if it had come before it.
- Refusals and failures before the first event are raised, later ones are a `Failed` event.
- The dialect's own end is the end, whatever the endpoint does with the connection: what follows is
  no part of the answer. After a mere reason for the end, counts may follow for a few seconds.

An answer that begins anew after `Retrying` or `Healed` may say `Started` a second time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import msgspec

from mull.client.access import Access, has_key, request_headers, request_url, signed
from mull.client.answer import Answer
from mull.client.clock import SystemClock, idle_limit, say_seconds
from mull.client.connection import running_loop
from mull.client.rate_limit import rate_limit_of
from mull.client.retry import Retry, RetryRules, Stop, decide
from mull.client.secrets import scrub, secrets_in
from mull.client.transport import HttpRequest, host_of
from mull.dialects.decoder import Decoder
from mull.dialects.registry import codec, decoder, encode_request
from mull.neutral.errors import (
    NetworkError,
    RemoteError,
    SilenceError,
    UnusableError,
    request_id_of,
)
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Finished,
    Healed,
    Retrying,
    Started,
    UsageReported,
    Warned,
)
from mull.neutral.request import WireRequest
from mull.policy.prepare import Prepared

if TYPE_CHECKING:
    from mull.client.answer import Client
    from mull.client.clock import Clock
    from mull.client.limiter import Gate, Ticket
    from mull.neutral.target import Target
    from mull.policy.failure import Failure
    from mull.policy.heal.healing import Repaired

__all__ = ["Aid", "ExchangeOptions", "Sending", "Work", "exchange", "here"]

_T = TypeVar("_T")
CLOSING_SECONDS = 5.0
"""How long an answer that has said why it ends is waited for, after anything new in it."""
_TELLS: frozenset[type] = frozenset({Warned, Failed})
_UNSEEN: frozenset[type] = frozenset({Started, UsageReported, Warned, BlockEnded})


Sending: TypeAlias = "Callable[[Prepared, WireRequest], None]"
"""Is told each request as it goes out: the one that was given, or one that was repaired."""


def _ignore(prepared: Prepared, wire: WireRequest) -> None:
    pass


class Work(Protocol):
    """Does the work on a request, here or in a thread."""

    async def __call__(self, work: Callable[[], _T], /) -> _T:
        """What the work returns."""


async def here(work: Callable[[], _T]) -> _T:
    """Do the work where it is asked for."""
    return work()


class Aid(msgspec.Struct, frozen=True):
    """What helps an exchange. `enter` has the last word on the way before anything goes out, `heal`
    may repair what was refused, and `learn` is told when that helped. `work` does what takes time
    with large requests: writing and repairing them."""

    enter: Callable[[Access], Awaitable[Access]] | None = None
    heal: Callable[[Prepared, Failure], Repaired | None] | None = None
    learn: Callable[[Target, Repaired], None] | None = None
    work: Work = here


_RULES = RetryRules()


class ExchangeOptions(msgspec.Struct, frozen=True):
    """`idle` and `total` are limits in seconds: None leaves the idle limit to what is known of the
    model, and the total off. `sending` is told each request that goes out, keyless, with its notes
    and, after healing, with the target it really goes to. Each request waits for the `gate`, which
    is told what the endpoint says about its limits.
    """

    idle: float | None = None
    total: float | None = None
    retry: RetryRules = _RULES
    sending: Sending = _ignore
    gate: Gate | None = None


class _Unlimited:
    """Stands for a gate's ticket where there is no gate."""

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(self, *_: object) -> None:
        pass

    def heard(self, status: int, headers: Mapping[str, str]) -> None:
        pass

    def failed(self, failure: Failure) -> None:
        pass


_UNLIMITED = _Unlimited()
_OPTIONS = ExchangeOptions()
_NO_AID = Aid()
_CLOCK = SystemClock()


async def exchange(
    prepared: Prepared,
    way: Access,
    *,
    transport: Client,
    options: ExchangeOptions = _OPTIONS,
    clock: Clock = _CLOCK,
    aid: Aid = _NO_AID,
    sending: Sending = _ignore,
) -> AsyncGenerator[Sequence[Event], None]:
    """Send a prepared request and give the events of its answer, those together that come
    together; bytes that complete no event give an empty batch.

    `sending` is told each request that goes out. Closing the iterator, or cancelling the task,
    closes the socket at once.

    Raises:
        RefusedError: the endpoint said no, and neither healing nor waiting helps.
        NetworkError: it could not be reached, or broke off before it said anything.
        LocalError: the request cannot be sent as it is.
    """
    way = way if aid.enter is None else await aid.enter(way)
    run = await aid.work(partial(_Run, prepared, way, options, clock, aid.heal, sending))
    # imported while the connection is being made
    running_loop().call_soon(getattr, codec(prepared.target.dialect), "decode")
    while True:
        gate = options.gate
        ticket = _UNLIMITED if gate is None else await run.admitted(gate)
        attempt = run.begin()
        last: list[Event] = []
        try:
            async with (
                ticket,
                transport.send(
                    run.request, idle=run.idle, total=run.left(), again=run.sent_again
                ) as answer,
            ):
                ticket.heard(answer.status, answer.headers)
                if run.untold:
                    yield run.told()
                if await attempt.open(answer):
                    async for chunk in answer:
                        events = attempt.feed(chunk)
                        if attempt.ends(answer, bool(events)):
                            last = events
                            break
                        yield events  # none at all also says that the endpoint is there
        except NetworkError as error:
            attempt.broke = error
        if events := [*run.told(), *last, *attempt.close()]:
            if aid.learn and run.repaired and isinstance(events[-1], Finished):
                aid.learn(prepared.target, run.repaired)
            yield events
        if attempt.failure is None:
            return
        ticket.failed(attempt.failure)
        step = await aid.work(partial(run.recover, attempt))
        yield [step]
        if isinstance(step, Failed):
            return
        if isinstance(step, Retrying):
            await clock.sleep(step.seconds)


class _Run:
    """What outlives an attempt: the request as it stands, the attempts made, the time spent."""

    def __init__(
        self,
        prepared: Prepared,
        way: Access,
        options: ExchangeOptions,
        clock: Clock,
        heal: Callable[[Prepared, Failure], Repaired | None] | None,
        sending: Sending,
    ) -> None:
        self._way = way
        self._options = options
        self._clock = clock
        self._heal = heal
        self._sending = sending
        self.repaired: Repaired | None = None
        self._began = clock.now()
        self._attempt = 0
        self._attempts = options.retry.attempts
        self._sent: set[tuple[str, bytes, frozenset[tuple[str, str]]]] = set()
        self.untold: list[Retrying] = []
        self.request: HttpRequest
        self._take(prepared, *self._encode(prepared))

    def begin(self) -> _Attempt:
        """Count an attempt and say what goes out."""
        self._attempt += 1
        self.request = signed(self._way, self.request, self._clock.wall())
        self._sent.add((self.request.url, *_said(self._wire)))
        self._sending(self.prepared, self._wire)
        self._options.sending(self.prepared, self._wire)
        host = host_of(self.request.url)
        return _Attempt(self.prepared, host, self._secrets, self._clock)

    async def admitted(self, gate: Gate) -> Ticket:
        """Wait at the gate; that is no part of the time limit."""
        began = self._clock.now()
        ticket = await gate.wait(self.prepared, self._way)
        self._began += self._clock.now() - began
        return ticket

    def sent_again(self, reason: str) -> None:
        """The transport sent the request a second time, which is an attempt like any other."""
        self._attempt += 1
        self.untold.append(Retrying(self._attempt, 0.0, reason, self._attempts))

    def told(self) -> list[Event]:
        """What was not told yet, which is told now."""
        told: list[Event] = [*self.untold]
        self.untold.clear()
        return told

    def left(self) -> float | None:
        """How much of the total limit is left."""
        total = self._options.total
        return None if total is None else total - (self._clock.now() - self._began)

    def recover(self, attempt: _Attempt) -> Healed | Retrying | Failed:
        """What to do about an attempt that failed.

        Raises:
            RemoteError: nothing, and nothing of this attempt was told yet.
        """
        failure = attempt.failure
        assert failure is not None
        refused = failure.status is not None
        healed = self._repair(failure) if refused else None
        if healed is not None:
            return healed
        decision = self._decide(failure, attempt)
        if isinstance(decision, Retry):
            return Retrying(self._attempt + 1, decision.seconds, decision.reason, self._attempts)
        if attempt.ending is not None and refused:
            text = f"{attempt.ending.text}\n{decision.reason}".strip()
            return msgspec.structs.replace(attempt.ending, text=text)
        raise self._error(failure, attempt.broke, decision)

    def _decide(self, failure: Failure, attempt: _Attempt) -> Retry | Stop:
        left = self.left()
        hopeless = isinstance(attempt.broke, SilenceError | UnusableError)
        if hopeless or (left is not None and left <= 0):
            # A model may think in silence: asking again would have it think, and cost, twice.
            return Stop()
        clock, rules = self._clock, self._options.retry
        decision = decide(failure, self._attempt, clock.wall(), clock.rand(), rules)
        if isinstance(decision, Retry) and left is not None and decision.seconds >= left:
            span = say_seconds(decision.seconds)
            return Stop(f"Another attempt in {span} would exceed the time limit")
        return decision

    def _repair(self, failure: Failure) -> Healed | None:
        if self._heal is None:
            return None
        repaired = self._heal(self.prepared, failure)
        if repaired is None:
            return None
        wire, request = self._encode(repaired.prepared)
        if (request.url, *_said(wire)) in self._sent:
            return None
        self._heal, self.repaired = None, repaired
        self._take(repaired.prepared, wire, request)
        return Healed(repaired.reason, repaired.change)

    def _encode(self, prepared: Prepared) -> tuple[WireRequest, HttpRequest]:
        wire = encode_request(prepared.request, prepared.target)
        headers = request_headers(self._way, prepared.target, wire, prepared.request.messages)
        url = request_url(self._way, wire.path)
        return wire, HttpRequest(wire.method, url, headers, wire.body)

    def _take(self, prepared: Prepared, wire: WireRequest, request: HttpRequest) -> None:
        self.prepared, self.request, self._wire = prepared, request, wire
        asked = self._options.idle
        self.idle = idle_limit(prepared.request, prepared.target) if asked is None else asked
        open_headers = {name.lower() for name in wire.headers}
        kept = {n: v for n, v in request.headers.items() if n not in open_headers}
        self._secrets = (*self._way.secrets, *secrets_in(kept))

    def _error(self, failure: Failure, broke: NetworkError | None, stop: Stop) -> RemoteError:
        if failure.status is not None:
            from mull.client.refusal import refused_error

            target = self.prepared.target
            keyless = not self._secrets and not has_key(target, self.request.headers)
            failure = msgspec.structs.replace(failure, keyless=keyless)
            url, now = self.request.url, self._clock.wall()
            return refused_error(failure, target, url, stop.reason, now, self.prepared)
        kind = type(broke) if broke is not None else NetworkError
        return kind(f"{failure.text}\n{stop.reason}".rstrip())


def _said(wire: WireRequest) -> tuple[bytes, frozenset[tuple[str, str]]]:
    """What a request says, apart from who says it."""
    return wire.body, frozenset(wire.headers.items())


class _Attempt:
    """One request on its way: what it has told so far, and how it ended.

    `failure` is set by `close` where something may be done about the end; `ending` is the event
    that a refusal inside a stream was.
    """

    def __init__(
        self, prepared: Prepared, host: str, secrets: tuple[str, ...], clock: Clock
    ) -> None:
        self._prepared = prepared
        self._clock = clock
        self._host = host
        self._secrets = secrets
        self._decoder: Decoder | None = None
        self._begun = self._visible = self._closing = False
        self._headers: Mapping[str, str] | None = None
        self.broke: NetworkError | None = None
        self.ending: Failed | None = None
        self.failure: Failure | None = None

    async def open(self, answer: Answer) -> bool:
        """Look at the head; whether a body follows that is to be decoded."""
        target = self._prepared.target
        if await answer.succeeded():
            field = self._prepared.request.reasoning_field
            self._decoder = decoder(target, field, reads_on=False)
            self._headers = answer.headers
            return True
        from mull.client.refusal import read_refusal, scrubbed

        self.failure = scrubbed(await read_refusal(answer, target), self._secrets)
        return False

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that these bytes complete."""
        assert self._decoder is not None
        events = self._decoder.feed(chunk)
        if self._headers is not None and events:
            events = self._told(events, self._headers)
        if not self._visible and events:
            self._note(events)
        return self._without_secrets(events)

    def _told(self, events: list[Event], headers: Mapping[str, str]) -> list[Event]:
        """What the headers say of request and limits is told where the answer begins."""
        self._headers = None
        request_id, limits = request_id_of(headers), rate_limit_of(headers, self._clock.wall())
        if request_id is None and limits is None:
            return events
        return [
            msgspec.structs.replace(event, request_id=request_id, rate_limit=limits)
            if isinstance(event, Started)
            else event
            for event in events
        ]

    def ends(self, answer: Answer, told: bool) -> bool:
        """Whether nothing more is to be read; one that is about to end is not waited for long,
        except while it tells something new."""
        assert self._decoder is not None
        stage = self._decoder.stage
        if stage == "over":
            answer.drain()
        elif stage == "closing" and (told or not self._closing):
            self._closing = True
            answer.finish_within(CLOSING_SECONDS)
        return stage == "over"

    def close(self) -> list[Event]:
        """The last events of an answer that is over; none where a failure is to be dealt with."""
        if self._decoder is None:
            if self.failure is None:
                self.failure = self._broken()
            return []
        *rest, end = self._without_secrets(self._decoder.close())
        begun = self._begun
        self._note(rest)
        if isinstance(end, Finished):
            return [*rest, end]
        assert isinstance(end, Failed)
        from mull.client.refusal import failure_in_stream, is_refusal

        if is_refusal(end):
            if not self._visible:
                self.ending, self.failure = end, failure_in_stream(end)
                return []
        elif begun and self.broke is not None:
            text = f"{self.broke}; what arrived before is kept"
            end = Failed(text, "network", "interrupted")
        elif not begun and (self.broke is not None or end.status == "interrupted"):
            self.failure = self._broken()
            return []
        return [*rest, end]

    def _note(self, events: list[Event]) -> None:
        self._begun = self._begun or bool(events)
        self._visible = self._visible or any(type(event) not in _UNSEEN for event in events)

    def _broken(self) -> Failure:
        from mull.policy.failure import Failure

        if self.broke is not None:
            return Failure(str(self.broke))
        return Failure(f"{self._host} ended the response before it began")

    def _without_secrets(self, events: list[Event]) -> list[Event]:
        """Whatever tells of trouble may quote what was sent."""
        if _TELLS.isdisjoint(map(type, events)):
            return events
        return [self._cleaned(event) for event in events]

    def _cleaned(self, event: Event) -> Event:
        if isinstance(event, Warned):
            return msgspec.structs.replace(event, text=scrub(event.text, self._secrets))
        if not isinstance(event, Failed):
            return event
        return msgspec.structs.replace(
            event,
            text=scrub(event.text, self._secrets),
            code=scrub(event.code, self._secrets),
            body=scrub(event.body, self._secrets),
        )
