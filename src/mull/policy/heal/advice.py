"""What the user is told about a failure: the provider's own words, why, and what to do."""

from __future__ import annotations

import re

from mull.neutral.errors import TooLongError
from mull.neutral.target import Target
from mull.policy.failure import READ, Failure, meaning_of, overflow_of
from mull.policy.heal.causes import causes_of
from mull.policy.heal.overflow import UNKNOWN_WINDOW, far_below
from mull.policy.lengths import Overflow
from mull.policy.prepare import Prepared
from mull.policy.thinking.wish import wish_of
from mull.settings.layers import Snapshot

__all__ = ["advise", "explain"]

SHOWN = 300
SERVER_FAULT = 500
"""The lowest status that means that the server failed."""
_SECRETS = re.compile(
    r"(?i:bearer)\s+[^\s,;\"']+"
    r"|(?i:api[-_ ]?key)\s*[=:]\s*[^\s,;\"']+"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu|github_pat|AIza)[-_]?[A-Za-z0-9_*.\-]{8,}"
    r"|\b(?=[A-Za-z_=\-]*\d)[A-Za-z0-9_=\-]{32,}"
)
"""Keys, and anything as long as one: signatures and ids are of no use to a reader either."""
_SET = re.compile(r"\bset (?P<key>[\w.]+)=(?P<value>\w+)|\bunset (?P<unset>[\w.]+)")
_OR = ", or "


def explain(failure: Failure, target: Target, prepared: Prepared | None = None) -> str:
    """What the provider said, why as far as known, and what to do: two lines for the user.

    `prepared` is the rejected request: nobody is advised to do what was done.
    """
    said = _shortened(failure.text)
    status = "" if failure.streamed else f" ({failure.status})"
    did = "could not answer" if (failure.status or 0) >= SERVER_FAULT else "rejected"
    first = f"{target.provider_name} {did} the request for {target.model}{status}"
    first += f": {said}" if said else " without a reason"
    return f"{first}\n{advise(failure, target, prepared)}".rstrip()


def advise(failure: Failure, target: Target, prepared: Prepared | None = None) -> str:
    """Why, and what to do, as far as known: one line for the user, or nothing."""
    if failure.keyless and failure.status == 401:
        return f"No API key was sent; store one with `mull keys set {target.provider}`."
    if prepared is not None and (text := _of_little(failure, prepared)):
        return text
    snapshot = prepared.made.snapshot if prepared is not None else None
    cause, _ = next(causes_of(failure), (meaning_of(failure), None))
    if not cause.why:
        return ""
    why = cause.why[:1].upper() + cause.why[1:]
    ways = cause.advice.format(provider=target.provider).split(_OR)
    left = _OR.join(way for way in ways if not _is_followed(way, snapshot))
    return f"{why}; {left}." if left else f"{why}."


def _of_little(failure: Failure, prepared: Prepared) -> str | None:
    """Why a request that is far from too long is rejected as such, as far as known."""
    overflow = overflow_of(failure)
    if overflow is None and meaning_of(failure).error is TooLongError:
        overflow = Overflow()  # words about length that name nothing
    limit = None if overflow is None else far_below(prepared, overflow)
    if limit is None:
        return None
    known = f", far below {limit:,}" if limit != UNKNOWN_WINDOW else ""
    return (
        f"By mull's count it holds about {prepared.tokens:,} tokens{known}: the limit may be a"
        " proxy's, the account's, or one on bytes, which attachments reach first."
    )


def _is_followed(advice: str, snapshot: Snapshot | None) -> bool:
    """Whether the request was made with the settings that the advice names."""
    found = _SET.search(advice)
    if snapshot is None or found is None:
        return False
    key, value = found["key"] or found["unset"], found["value"]
    if f"{key}={value}" == "reasoning.enabled=false":
        return wish_of(snapshot).is_off
    held = snapshot[key]
    return held is None if value is None else str(held).lower() == value.lower()


def _shortened(text: str) -> str:
    """The beginning, on one line; a word that was cut could be half of a key."""
    words = text[:READ].split()
    if len(text) > READ and len(words) > 1:
        words.pop()
    line = _SECRETS.sub("***", " ".join(words))
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
