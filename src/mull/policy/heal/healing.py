"""Makes a rejected request again, once: from the same log and settings, with what was learnt.

A rejection yields a lesson about the target, something to do differently this once, or both; the
request is prepared again with them. Pure: the client sends the result, at most once per request,
and stores the lesson when it was accepted. The result always differs from what was rejected, and is
not fixed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from mull.neutral.blocks import Value
from mull.neutral.errors import LocalError
from mull.neutral.request import Note, Request
from mull.neutral.target import Target
from mull.neutral.thinking import WRITERS, ThinkingPlan, write_thinking
from mull.policy.failure import Failure, overflow_of, plain, stated, worded
from mull.policy.heal.case import Case, Mend, keys_of, squashed
from mull.policy.heal.causes import causes_of
from mull.policy.heal.history import drop_named_parts, drop_parts
from mull.policy.heal.lessons import Lesson, apply_lesson
from mull.policy.heal.overflow import lower_answer
from mull.policy.heal.plan import take_back
from mull.policy.heal.request import drop_extras
from mull.policy.prepare import Prepared
from mull.policy.thinking.wish import wish_of

__all__ = ["Repaired", "heal"]

HEALING = "healing"
"""The subject of a fix's note; a request that has one is not fixed again."""
REFUSED_PARTS = "the endpoint does not accept back what it sent and mull does not know"
WORDS_OF_NOTHING = 8
"""A rejection of so few words that it may not say what it is about."""
_BAD_REQUEST = frozenset({400, 422})
_NO_PLAN = ThinkingPlan("absent")


class Repaired(Value, frozen=True):
    """A request that may be accepted where another was not.

    `reason` says in our words why the first was rejected, `change` what is different. `learn` is to
    be stored for the *rejected* target once this one is accepted (`only_carriers` lessons
    immediately).
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
        """Where it goes: the same endpoint, with more known about it."""
        return self.prepared.target


def heal(prepared: Prepared, refusal: Failure) -> Repaired | None:
    """The fixed request; None if the rejection has another subject or nothing would change."""
    if any(note.about == HEALING for note in prepared.notes):
        return None
    for why, mend in _mends(prepared, refusal):
        healed = _anew(prepared, mend)
        if healed is not None:
            return _told(prepared, healed, mend, why)
    return None


def _mends(prepared: Prepared, refusal: Failure) -> Iterator[tuple[str, Mend]]:
    """Everything that may help, the most likely first, each with its reason."""
    overflow = overflow_of(refusal)
    if overflow is not None:
        for mend in lower_answer(prepared, overflow):
            yield "request and answer together exceed the context window", mend
        return
    off = wish_of(prepared.made.snapshot).is_off
    case = Case(prepared.request, prepared.target, plain(refusal), off)
    for mend in drop_named_parts(case):
        yield REFUSED_PARTS, mend
    for cause, found in causes_of(refusal):
        for mend in cause.repair(case, found):
            yield cause.why, mend
    if _blames_guess(case, refusal):
        for mend in take_back(case):
            yield "it was not known how this endpoint controls thinking", mend
    if refusal.status in _BAD_REQUEST and not stated(refusal) and not worded(refusal):
        for mend in drop_extras(case):
            yield "the endpoint may not know what the client added for its own provider", mend
        for mend in drop_parts(case):
            yield REFUSED_PARTS, mend


def _blames_guess(case: Case, refusal: Failure) -> bool:
    """If it was not known how the endpoint controls thinking, the guess is the first suspect: a
    rejection that names it or names nothing is attributed to it.
    """
    fragment = write_thinking(case.plan)
    if case.target.compat.thinking_writer != "usual" or not fragment:
        return False
    if stated(refusal) or worded(refusal):
        return False
    said = squashed(case.said)
    named = any(name in said for name in keys_of(fragment))
    return named or (refusal.status in _BAD_REQUEST and _names_nothing(refusal.text))


def _names_nothing(text: str) -> bool:
    return len(text.split()) <= WORDS_OF_NOTHING and not re.search(r"\w[_.]\w", text)


def _anew(prepared: Prepared, mend: Mend) -> Prepared | None:
    """The request made again with what the rejection taught; None if that does not help."""
    target = apply_lesson(prepared.target, mend.lesson)
    try:
        healed = prepared.anew(target, mend.amendment)
    except LocalError:
        return None
    if "thinking" in mend.amendment.without and healed.request.thinking.thinks:
        return None
    return healed if _written(healed) != _written(prepared) else None


def _written(prepared: Prepared) -> tuple[object, ...]:
    """Everything an encoder looks at; of the writer, its output."""
    request, target = prepared.request, prepared.target
    signs = WRITERS[target.compat.thinking_writer].demands_signatures
    return (
        write_thinking(request.thinking),
        msgspec.structs.replace(request, thinking=_NO_PLAN),
        msgspec.structs.replace(target.compat, thinking_writer="none", ignores_off=False),
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
