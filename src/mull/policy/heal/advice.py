"""What the user is told about a failure: the provider's own words, why, and what to do."""

from __future__ import annotations

import re

from mull.neutral.target import Target
from mull.policy.failure import READ, Failure, meaning_of
from mull.policy.heal.causes import causes_of

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


def explain(failure: Failure, target: Target) -> str:
    """What the provider said, why as far as known, and what to do: two lines for the user."""
    said = _shortened(failure.text)
    status = "" if failure.streamed else f" ({failure.status})"
    did = "could not answer" if (failure.status or 0) >= SERVER_FAULT else "rejected"
    first = f"{target.provider_name} {did} the request for {target.model}{status}"
    first += f": {said}" if said else " without a reason"
    return f"{first}\n{advise(failure, target)}".rstrip()


def advise(failure: Failure, target: Target) -> str:
    """Why, and what to do, as far as known: one line for the user, or nothing."""
    if failure.keyless and failure.status == 401:
        return f"No API key was sent; store one with `mull keys set {target.provider}`."
    cause, _ = next(causes_of(failure), (meaning_of(failure), None))
    why = cause.why[:1].upper() + cause.why[1:]
    return f"{why}; {cause.advice.format(provider=target.provider)}." if why else ""


def _shortened(text: str) -> str:
    """The beginning, on one line; a word that was cut could be half of a key."""
    words = text[:READ].split()
    if len(text) > READ and len(words) > 1:
        words.pop()
    line = _SECRETS.sub("***", " ".join(words))
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
