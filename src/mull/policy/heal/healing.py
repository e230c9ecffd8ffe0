"""A refused request, repaired once: the smallest change that the refusal names, or none.

Pure: the client sends what comes out, at most once for a request, and remembers what was learnt
when it was accepted. A repair never gives back what was refused, and never repairs a repair.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.messages import Message
from mull.neutral.request import Note, Request
from mull.neutral.target import Target
from mull.neutral.thinking import ThinkingPlan, write_thinking
from mull.policy.heal.case import READ, Case, Change, Refusal, keys_of, plain, squashed
from mull.policy.heal.causes import causes_of, has_other_subject
from mull.policy.heal.history import turn_start, without_thoughts
from mull.policy.heal.lessons import Lesson, apply_lesson
from mull.policy.heal.plan import take_back, without_thinking
from mull.policy.prepare import CHAIN_STARTS_WITH_THOUGHT, OFF_FORBIDS_THOUGHTS, Prepared
from mull.policy.thinking.plan import OUTCOME, healed_notes
from mull.policy.view.turn import chain_lacks_thought, is_open_chain

__all__ = ["Refusal", "Repaired", "advise", "explain", "heal"]

HEALING = "healing"
"""What the note of a repair is about; a request that has one is not repaired again."""
SHOWN = 300
WORDS_OF_NOTHING = 8
"""A refusal of so few words that it may well not say what it is about."""
_BAD_REQUEST = frozenset({400, 422})


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
    case = Case(prepared.request, prepared.target, plain(refusal))
    for cause, found in causes_of(refusal):
        change = cause.repair(case, found)
        if change is None:
            continue
        target = apply_lesson(prepared.target, change.lesson)
        again = _anew(prepared, change, target)
        request = _consistent(prepared.request, again.request, target)
        if not _differs(prepared, request, target):
            continue
        return _repaired(again, cause.why, change, request, target)
    return _without_guess(prepared, case, refusal)


def _without_guess(prepared: Prepared, case: Case, refusal: Refusal) -> Repaired | None:
    """Where nobody knew how the endpoint is steered, what was tried is the first suspect: whatever
    the words, a refusal that names it or names nothing is taken to mean it."""
    fragment = write_thinking(case.plan)
    if case.target.compat.thinking_writer != "usual" or not fragment or _is_of_others(refusal):
        return None
    said = squashed(case.said)
    named = any(name in said for name in keys_of(fragment))
    if not named and not (refusal.status in _BAD_REQUEST and _names_nothing(refusal.text)):
        return None
    change = take_back(case)
    target = apply_lesson(prepared.target, change.lesson)
    request = _consistent(prepared.request, change.request, target)
    why = "how this endpoint steers thinking was not known"
    return _repaired(prepared, why, change, request, target)


def _names_nothing(text: str) -> bool:
    return len(text.split()) <= WORDS_OF_NOTHING and not re.search(r"\w[_.]\w", text)


def _is_of_others(refusal: Refusal) -> bool:
    if has_other_subject(refusal):
        return True
    said = plain(refusal)
    return any(known.pattern.search(said) for known in _OTHERS)


def _anew(prepared: Prepared, change: Change, target: Target) -> Prepared:
    """The request after the change. Where the lesson alone says it all, it is made again from the
    log, which may hold more for a target that is known better."""
    changed = msgspec.structs.replace(prepared, request=change.request)
    if not change.renew and not change.lesson.refused:
        return changed
    again = prepared.anew(target)
    if not change.renew and again.request.messages != change.request.messages:
        return changed
    field = change.request.reasoning_field
    request = msgspec.structs.replace(again.request, reasoning_field=field)
    return msgspec.structs.replace(again, request=request)


def _repaired(
    prepared: Prepared, why: str, change: Change, request: Request, target: Target
) -> Repaired:
    text = change.text
    if not change.renew and request.thinking != change.request.thinking:
        text += "; thinking is off for this request"
    note = Note(HEALING, f"{text} ({why})", warning=True)
    notes = (*healed_notes(prepared.notes, request.thinking), note)
    outcome = next((one.text for one in notes if one.kind == OUTCOME), prepared.thinking)
    healed = msgspec.structs.replace(
        prepared, request=request, target=target, thinking=outcome, notes=notes
    )
    learn = None if change.lesson == Lesson() else change.lesson
    return Repaired(healed, why, text, learn)


def _consistent(before: Request, request: Request, target: Target) -> Request:
    """What one change entails: no thinking in a chain without its thought, none in silence."""
    plan, messages = request.thinking, request.messages
    if plan.writer in CHAIN_STARTS_WITH_THOUGHT and plan.state == "on":
        chain = messages[turn_start(messages) :]
        lost = _verifiable(chain) < _verifiable(before.messages[turn_start(before.messages) :])
        if chain_lacks_thought(chain, target.origin) or (lost and is_open_chain(chain)):
            quiet = without_thinking(target)
            plan = plan if quiet.thinks else quiet.plan
    if plan != before.thinking and _is_silent(plan) and target.dialect in OFF_FORBIDS_THOUGHTS:
        messages, _ = without_thoughts(messages, range(turn_start(messages), len(messages)))
    return msgspec.structs.replace(request, thinking=plan, messages=messages)


def _verifiable(messages: Sequence[Message]) -> int:
    thoughts = (block for message in messages for block in message.thinking)
    return sum(block.signature is not None or block.redacted is not None for block in thoughts)


def _is_silent(plan: ThinkingPlan) -> bool:
    return plan.state == "absent" or (plan.state == "off" and plan.off_type == "disabled")


def _differs(prepared: Prepared, request: Request, target: Target) -> bool:
    """Whether an encoder would write something else."""
    before, old = prepared.request, prepared.target
    if write_thinking(request.thinking) != write_thinking(before.thinking):
        return True
    if msgspec.structs.replace(request, thinking=before.thinking) != before:
        return True
    reasons = (target.dialect, target.compat, target.facts.reasoning)
    return reasons != (old.dialect, old.compat, old.facts.reasoning)


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
