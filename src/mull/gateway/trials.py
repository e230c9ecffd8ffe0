"""Which target to try next when one fails.

Until the first token is generated, the request may be sent to another target, because the client
has received nothing yet. An error in the request itself is returned to the client, which alone can
fix it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from mull.client.refusal import failure_in_stream, is_refusal
from mull.gateway.cooldown import Cooldowns
from mull.gateway.routes import Route
from mull.neutral.errors import LocalError, MullError, NetworkError, RefusedError
from mull.neutral.events import (
    BlockEnded,
    Event,
    Failed,
    Healed,
    Retrying,
    Started,
    TextDelta,
    ThinkingDelta,
    UsageReported,
    Warned,
)
from mull.policy.failure import Failure, Meaning, meaning_of, worded

__all__ = ["Trials", "as_error", "failure_reason", "may_help_elsewhere", "until_generated"]

_BEFORE = frozenset({Started, UsageReported, Warned, BlockEnded, Retrying, Healed})
"""Events that may precede the first generated token."""
_THEIRS = frozenset({"quota", "auth", "model", "address"})
"""Meanings of rejections that concern the target's key, account or address, not the request."""
_STATUSES = {"rate": 429, "overload": 503}
_BAD_REQUEST, _BAD_GATEWAY = 400, 502


class Trials:
    """The targets to which one request may be sent, in order."""

    def __init__(self, order: Sequence[Route], cooldowns: Cooldowns) -> None:
        self._left = list(order)
        self._cooldowns = cooldowns
        self._errors: list[MullError] = []
        self._open = False
        self.route: Route = self._take()

    @property
    def is_last(self) -> bool:
        """Whether no other target is left to try."""
        return not any(self._cooldowns.wait(route.place) == 0 for route in self._left)

    def begin(self) -> None:
        """The request is being sent to the target."""
        self._open = True
        self._cooldowns.begin(self.route.place)

    def succeed(self) -> None:
        """The target has responded."""
        if self._open:
            self._open = False
            self._cooldowns.succeed(self.route.place)

    def leave(self) -> None:
        """The request has ended, whether or not the target responded."""
        if self._open:
            self._open = False
            self._cooldowns.leave(self.route.place)

    def fail(self, error: MullError) -> Route | None:
        """The target to try next; None if the client should receive `error`."""
        self._errors.append(error)
        if not may_help_elsewhere(error):
            self.succeed()  # the target works and reported what is wrong with the request
            return None
        self._open = False
        asked = error.retry_after if isinstance(error, RefusedError) else None
        self._cooldowns.fail(self.route.place, asked)
        return self.skip()

    @property
    def error(self) -> MullError:
        """The most useful of all errors: preferably one that says when to retry, then a temporary
        one, then one about the request itself, then any other."""
        return min(self._errors, key=_rank)

    def skip(self) -> Route | None:
        """The next target, if the request cannot be encoded for this one."""
        if self.is_last:
            return None
        self.route = self._take()
        return self.route

    def _take(self) -> Route:
        """The next target that is not cooling down; if all are, the one whose cool-down ends first,
        because trying it is better than failing the request."""
        waits = [self._cooldowns.wait(route.place) for route in self._left]
        return self._left.pop(waits.index(min(waits)))


def may_help_elsewhere(error: MullError) -> bool:
    """Whether another target may succeed after this error."""
    if isinstance(error, NetworkError | LocalError):
        return True
    if not isinstance(error, RefusedError):
        return False
    if error.status < _BAD_REQUEST:  # a redirect or a web page
        return True
    meaning = _meaning(error)
    return meaning.passes or meaning.name in _THEIRS


def _meaning(error: RefusedError) -> Meaning:
    failure = Failure(error.text, status=error.status, code=error.code)
    meaning = worded(failure)
    if meaning is not None and meaning.name == "safety":  # some send it with an auth status
        return meaning
    return meaning_of(failure)


def _rank(error: MullError) -> tuple[float, ...]:
    if not isinstance(error, RefusedError):
        return (4,)
    if not may_help_elsewhere(error):
        return (2,)
    if not _meaning(error).passes:
        return (3,)
    return (1,) if error.retry_after is None else (0, error.retry_after)


async def until_generated(
    batches: AsyncGenerator[Sequence[Event], None],
) -> AsyncGenerator[Sequence[Event], None]:
    """The batches, with all that precede the first generated token joined into one.

    Raises:
        RemoteError: the stream fails before the first token.
    """
    held: list[Event] = []
    waiting = True
    async with aclosing(batches):
        async for batch in batches:
            if not waiting:
                yield batch
                continue
            held += batch
            if batch and isinstance(batch[-1], Failed) and not any(map(_generates, held)):
                raise as_error(batch[-1])
            if any(map(_generates, batch)):
                waiting = False
                yield held
    if waiting and held:
        yield held


def _generates(event: Event) -> bool:
    if isinstance(event, TextDelta | ThinkingDelta) and not event.text:
        return False
    return type(event) not in _BEFORE and not isinstance(event, Failed)


def as_error(failed: Failed) -> RefusedError:
    """The rejection that an answer's `Failed` event amounts to. Its code is its status, if it can
    be one: some providers number their errors."""
    status = _BAD_GATEWAY
    if is_refusal(failed):
        failure = failure_in_stream(failed)
        status = _STATUSES.get(meaning_of(failure).name, _BAD_GATEWAY)
        named = failure.status or 0
        if named >= _BAD_REQUEST and failed.code == str(named):
            status = named
    return RefusedError(failed.text, status=status, text=failed.text, code=failed.code)


def failure_reason(route: Route, error: MullError) -> str:
    """Why another target was tried, for the client."""
    if isinstance(error, RefusedError):
        return f"{route.target.name} rejected the request ({error.status})"
    return f"{route.target.name} could not be reached"
