"""Calls to a provider beside its answers: files, batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mull.client.access import Access, request_headers, request_url, signed
from mull.client.refusal import read_refusal, refused_error, scrubbed
from mull.client.retry import Retry, RetryRules, Stop, decide
from mull.client.secrets import secrets_in
from mull.client.transport import HttpRequest
from mull.neutral.errors import NetworkError, UnusableError
from mull.neutral.request import WireRequest
from mull.neutral.target import Target
from mull.policy.failure import Failure

if TYPE_CHECKING:
    from mull.client.answer import Client
    from mull.client.clock import Clock

__all__ = ["call"]

LONGEST = 1 << 30
"""Bytes of a response."""
IDLE = 300.0
_RULES = RetryRules(attempts=6)
_UNDONE = frozenset({429, 503, 529})


def _once(reason: str) -> None:
    """Nothing is sent again without a look at what it is."""
    raise NetworkError(reason)


async def call(
    wire: WireRequest, target: Target, way: Access, *, transport: Client, clock: Clock
) -> bytes:
    """The body of the response; what may pass is tried again.

    What changes something is sent again only if the provider says that it did not do it.

    Raises:
        RefusedError: the provider rejected it.
        NetworkError: the provider cannot be reached.
    """
    attempt = 0
    while True:
        attempt += 1
        broke: NetworkError | None = None
        headers = request_headers(way, target, wire)
        secrets = (
            *way.secrets,
            *secrets_in({n: headers[n] for n in headers.keys() - wire.headers}),
        )
        bare = HttpRequest(wire.method, request_url(way, wire.path), headers, wire.body)
        request = signed(way, bare, clock.wall())
        try:
            async with transport.send(request, idle=IDLE, again=_once) as answer:
                if await answer.succeeded():
                    body = await answer.read(LONGEST)
                    if len(body) < LONGEST:
                        return body
                    raise UnusableError("the response is too long")
                failure = await read_refusal(answer, target)
        except NetworkError as error:
            if wire.method != "GET" or not error.retryable:
                raise
            broke, failure = error, Failure(str(error))
        step = decide(failure, attempt, clock.wall(), clock.rand(), _RULES)
        if wire.method != "GET" and failure.status not in _UNDONE:
            step = Stop()
        if not isinstance(step, Retry):
            if broke is not None:
                raise broke
            failure = scrubbed(failure, secrets)
            raise refused_error(failure, target, request.url, step.reason, clock.wall())
        await clock.sleep(step.seconds)
