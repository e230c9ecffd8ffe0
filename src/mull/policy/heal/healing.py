"""A refused request, made again once: from the same log and settings, with what was learnt.

A refusal yields a lesson about the target, something to do otherwise this once, or both; the
request is prepared anew with them. Pure: the client sends what comes out, at most once for a
request, and remembers what was learnt when it was accepted. What comes out is never what was
refused, and is not repaired again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import BudgetError
from mull.neutral.request import Note, Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan, write_thinking
from mull.policy.heal.case import READ, Case, Mend, Refusal, keys_of, plain, squashed
from mull.policy.heal.causes import causes_of, has_other_subject
from mull.policy.heal.lessons import Lesson, apply_lesson
from mull.policy.heal.plan import take_back
from mull.policy.prepare import Prepared

__all__ = ["Refusal", "Repaired", "advise", "explain", "heal"]

HEALING = "healing"
"""What the note of a repair is about; a request that has one is not repaired again."""
SHOWN = 300
WORDS_OF_NOTHING = 8
"""A refusal of so few words that it may well not say what it is about."""
_BAD_REQUEST = frozenset({400, 422})
_NO_PLAN = ThinkingPlan("absent")


class Repaired(Value, frozen=True):
    """A request that may pass where another did not.

    `reason` says in our words why the first was refused, `change` what is different. `learn` is
    to be kept for the *refused* target once this one passes (`only_carriers` lessons at once).
    """

    prepared: Prepared
    reason: str
    change: str
    learn: Lesson | None = None

    @property
    def request(self) -> Request:
        """The changed request."""
        return self.prepared.request

    @property
    def target(self) -> Target:
        """Where it goes: the same place, perhaps known better."""
        return self.prepared.target


def heal(prepared: Prepared, refusal: Refusal) -> Repaired | None:
    """The repaired request; None where the refusal has another subject or nothing would change."""
    if any(note.about == HEALING for note in prepared.notes):
        return None
    for why, mend in _mends(prepared, refusal):
        healed = _anew(prepared, mend)
        if healed is not None:
            return _told(prepared, healed, mend, why)
    return None


def _mends(prepared: Prepared, refusal: Refusal) -> Iterator[tuple[str, Mend]]:
    """All that may help, the likeliest first, each with why."""
    case = Case(prepared.request, prepared.target, plain(refusal))
    for cause, found in causes_of(refusal):
        for mend in cause.repair(case, found):
            yield cause.why, mend
    if _blames_guess(case, refusal):
        for mend in take_back(case):
            yield "how this endpoint steers thinking was not known", mend


def _blames_guess(case: Case, refusal: Refusal) -> bool:
    """Where nobody knew how the endpoint is steered, what was tried is the first suspect: whatever
    the words, a refusal that names it or names nothing is taken to mean it."""
    fragment = write_thinking(case.plan)
    if case.target.compat.thinking_writer != "usual" or not fragment or _is_of_others(refusal):
        return False
    said = squashed(case.said)
    named = any(name in said for name in keys_of(fragment))
    return named or (refusal.status in _BAD_REQUEST and _names_nothing(refusal.text))


def _names_nothing(text: str) -> bool:
    return len(text.split()) <= WORDS_OF_NOTHING and not re.search(r"\w[_.]\w", text)


def _is_of_others(refusal: Refusal) -> bool:
    if has_other_subject(refusal):
        return True
    said = plain(refusal)
    return any(known.pattern.search(said) for known in _OTHERS)


def _anew(prepared: Prepared, mend: Mend) -> Prepared | None:
    """The request made again with what the refusal taught; None where that is no help."""
    target = apply_lesson(prepared.target, mend.lesson)
    try:
        healed = prepared.anew(target, mend.amendment)
    except BudgetError:
        return None
    if "thinking" in mend.amendment.without and healed.request.thinking.thinks:
        return None
    return healed if _written(healed) != _written(prepared) else None


def _written(prepared: Prepared) -> tuple[object, ...]:
    """All that an encoder looks at; of the writer, what it writes."""
    request, target = prepared.request, prepared.target
    signs = target.compat.thinking_writer == "gemini-level"
    return (
        write_thinking(request.thinking),
        msgspec.structs.replace(request, thinking=_NO_PLAN),
        msgspec.structs.replace(target.compat, thinking_writer="none"),
        (target.dialect, target.facts.reasoning, signs),
    )


def _told(prepared: Prepared, healed: Prepared, mend: Mend, why: str) -> Repaired:
    change = mend.text
    if healed.thinking != prepared.thinking:
        change += f"; thinking: {healed.thinking}"
    note = Note(HEALING, f"{change} ({why})", warning=True)
    healed = msgspec.structs.replace(healed, notes=(*healed.notes, note))
    learn = None if mend.lesson == Lesson() else mend.lesson
    return Repaired(healed, why, change, learn)


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    why: str
    advice: str


def _known(pattern: str, why: str, advice: str) -> _Known:
    return _Known(re.compile(pattern, re.IGNORECASE), why, advice)


_OTHERS = (
    _known(
        r"context_length|context length|context limit|context window|prompt is too long"
        r"|maximum context",
        "the conversation is longer than the model can read",
        "compress it, start a new one, or choose a model with a larger window",
    ),
    _known(
        r"insufficient_quota|quota|billing|credit|payment",
        "the account has no credit left there",
        "look at the provider's billing page",
    ),
    _known(
        r"content_policy|content_filter|safety|flagged",
        "the provider will not answer this",
        "put the question differently",
    ),
    _known(
        r"model_not_found|does not exist|no such model|not found the model",
        "the provider does not offer this model to this account",
        "`mull models` lists names",
    ),
)
_BY_STATUS = {
    401: ("the key was not accepted", "`mull keys set {provider}` stores another"),
    402: ("the account has no credit left there", "look at the provider's billing page"),
    403: ("the key may not do this", "check what the account and its key are allowed"),
    404: ("there is nothing at this address", "check the base URL and the model's name"),
    413: ("the request is too large", "compress the conversation"),
    429: ("too many requests, or a limit of the account", "wait a little"),
}
_SECRETS = re.compile(
    r"(?i:bearer)\s+[^\s,;\"']+"
    r"|(?i:api[-_ ]?key)\s*[=:]\s*[^\s,;\"']+"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghu|github_pat|AIza)[-_]?[A-Za-z0-9_*.\-]{8,}"
    r"|\b(?=[A-Za-z_=\-]*\d)[A-Za-z0-9_=\-]{32,}"
)
"""Keys, and anything as long as one: signatures and ids are no use to a reader either."""


def explain(refusal: Refusal, target: Target) -> str:
    """What the provider said, why as far as known, and what to do: two lines for a person."""
    said = _shortened(refusal.text)
    status = f" ({refusal.status})" if refusal.status != 200 else ""
    first = f"{target.provider_name} refused the request for {target.model}{status}"
    first += f": {said}" if said else " without a reason"
    return f"{first}\n{advise(refusal, target)}".rstrip()


def advise(refusal: Refusal, target: Target) -> str:
    """Why, and what to do, as far as known: one line for a person, or nothing."""
    why, advice = _meaning(refusal)
    return f"{why}; {advice.format(provider=target.provider)}." if why else ""


def _meaning(refusal: Refusal) -> tuple[str, str]:
    for cause, _ in causes_of(refusal):
        return _sentence(cause.why), cause.advice
    said = plain(refusal)
    for known in _OTHERS:
        if known.pattern.search(said):
            return _sentence(known.why), known.advice
    if refusal.status >= 500:
        return "The fault is the provider's", "try again later"
    why, advice = _BY_STATUS.get(refusal.status, ("", ""))
    return _sentence(why), advice


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _shortened(text: str) -> str:
    """The beginning, on one line; a word that was cut could be half of a key."""
    words = text[:READ].split()
    if len(text) > READ and len(words) > 1:
        words.pop()
    line = _SECRETS.sub("***", " ".join(words))
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
