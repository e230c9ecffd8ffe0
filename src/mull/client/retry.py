"""Whether a request that failed goes out again, and when.

Only what failed before anything came is asked about here; the caller sees to that. Whether waiting
may help follows from what the failure means (`mull.policy.failure`). A server's own word on when to
come back goes before any arithmetic, in whatever form it says it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mull.client.clock import say_seconds
from mull.client.moments import read_moment, read_number, read_span
from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern

if TYPE_CHECKING:
    from mull.policy.failure import Failure, Meaning

__all__ = ["PATIENT", "Retry", "RetryRules", "Stop", "decide", "may_pass", "wait_asked"]

TOO_MANY = 429
_SPENT = "quota"
FIRST_WAIT, LONGEST_BACKOFF = 0.5, 30.0

_TRY_AGAIN = pattern(
    r"(?:try again|retry) (?:in|after) ((?:\d+(?:\.\d+)?\s?(?:ms|d|h|m|s)(?![a-z]))+)"
    r"|(?:try again|retry) (?:in|after) (\d+(?:\.\d+)?) seconds?",
    re.IGNORECASE,
)


class RetryRules(Value, frozen=True):
    """At most this many attempts in all, and no single wait longer than this many seconds."""

    attempts: int = 4
    longest_wait: float = 120.0


PATIENT = RetryRules(attempts=10)
"""For somebody who watches and can end it: about two minutes in all."""


class Retry(Value, frozen=True):
    """Ask again after so many seconds."""

    seconds: float
    reason: str


class Stop(Value, frozen=True):
    """Do not ask again. `reason` is empty where the failure itself says it all."""

    reason: str = ""


_RULES = RetryRules()


def decide(
    failure: Failure, attempt: int, now: float, rand: float, rules: RetryRules = _RULES
) -> Retry | Stop:
    """Decide after attempt number `attempt` (from 1); `now` is in seconds since 1970, `rand` from
    0 to 1."""
    if not may_pass(failure):
        return Stop("Retrying does not help" if _meaning(failure).name == _SPENT else "")
    asked = wait_asked(failure, now)
    if asked is not None and asked > rules.longest_wait:
        return Stop(f"It asks to wait {say_seconds(asked)}: try again after that")
    if attempt >= rules.attempts:
        return Stop(f"Tried {attempt} times" if attempt > 1 else "")
    if asked is not None:
        # Others were told the same moment: come a little after it, not all at once.
        return Retry(asked + rand * min(1.0, 0.1 * asked + 0.05), _reason(failure))
    ceiling = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_BACKOFF, rules.longest_wait)
    return Retry(ceiling * (0.5 + 0.5 * rand), _reason(failure))


def may_pass(failure: Failure) -> bool:
    """Whether the same request may succeed later: by its meaning, or by the server's own word."""
    meaning, told = _meaning(failure), failure.headers.get("x-should-retry")
    if meaning.name == _SPENT:
        return False
    return told == "true" if told in ("true", "false") else meaning.passes


def _meaning(failure: Failure) -> Meaning:
    from mull.policy.failure import meaning_of  # needed only when something failed

    return meaning_of(failure)


def _reason(failure: Failure) -> str:
    bare = failure.status is None or failure.streamed
    return failure.text if bare else f"{failure.status}: {failure.text}"


def wait_asked(failure: Failure, now: float) -> float | None:
    """How many seconds the server asks to wait, in any of the ways that servers say it."""
    headers = failure.headers
    for seconds in (
        read_number(headers.get("retry-after-ms"), 1e-3),
        read_moment(headers.get("retry-after"), now),
        _retry_info(failure.body),
        _in_words(failure.text),
        _resets(headers, now) if failure.status == TOO_MANY else None,
    ):
        if seconds is not None:
            return max(seconds, 0.0)
    return None


def _in_words(text: str) -> float | None:
    """`Please try again in 6m0s.`"""
    match = _TRY_AGAIN.search(text)
    if match is None:
        return None
    return read_span(match.group(1).lower()) if match.group(1) else read_number(match.group(2))


def _resets(headers: Mapping[str, str], now: float) -> float | None:
    """When the last of the used-up shares is full again (`x-ratelimit-reset-tokens`,
    `anthropic-ratelimit-requests-reset`); shares that have something left do not matter."""
    waits = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        left = read_number(headers.get(name.replace("reset", "remaining")))
        wait = read_moment(value, now)
        if wait is not None and not left:
            waits.append(wait)
    return max(waits, default=None)


def _retry_info(body: Any) -> float | None:
    """`retryDelay`, as Google writes it."""
    from mull.policy.failure import details

    for detail in details(body):
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (span := read_span(delay)) is not None:
            return span
    return None
