"""What rejections taught about endpoints, and how it changes a target.

A lesson is what a compat row and a model's facts should have said, in their own keys, plus the
carriers that the endpoint did not accept back, by fingerprint. It applies to one model at one
endpoint in one dialect. Values only: the client decides when to learn, the store where to keep
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from mull.dialects.registry import seals
from mull.neutral.blocks import Block, OpaqueBlock, Value
from mull.neutral.errors import ConfigError
from mull.neutral.messages import Dialect
from mull.neutral.target import Compat, ModelFacts, Target

__all__ = [
    "Lesson",
    "Lessons",
    "apply_lesson",
    "apply_lessons",
    "fingerprints",
    "lessons_from_json",
    "lessons_to_json",
]


_ordered = msgspec.json.Encoder(order="sorted").encode
KEPT_CARRIERS = 4096
"""Maximum rejected carriers remembered per target; the oldest go first."""


class Lesson(Value, frozen=True):
    """What to do differently from now on.

    `compat` and `facts` override the target's, key by key, in the spelling of the config file and
    of models.dev. With a new `dialect` nothing else of the old compat applies.
    """

    compat: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    dialect: Dialect | None = None
    refused: tuple[str, ...] = ()

    @property
    def only_carriers(self) -> bool:
        """Whether it says nothing about the endpoint itself: true whatever the next response is."""
        return not (self.compat or self.facts or self.dialect)

    def __or__(self, later: Lesson) -> Lesson:
        refused = dict.fromkeys((*self.refused, *later.refused))
        return Lesson(
            compat={**self.compat, **later.compat},
            facts={**self.facts, **later.facts},
            dialect=later.dialect or self.dialect,
            refused=tuple(refused)[-KEPT_CARRIERS:],
        )


class _Entry(Value, frozen=True):
    """`believed` is what compat rows said, key by key, when the endpoint taught otherwise."""

    provider: str
    dialect: Dialect
    model: str
    lesson: Lesson
    endpoint: str | None = None
    believed: dict[str, list[Any]] = {}

    def is_of(self, target: Target) -> bool:
        return (self.provider, self.endpoint, self.dialect, self.model) == (
            target.provider,
            target.endpoint,
            target.dialect,
            target.model,
        )

    def taught(self, target: Target) -> Lesson:
        """The lesson without what rows now say differently: a row written since overrides a
        rejection of what was there before.
        """
        if self.lesson.dialect not in (None, target.dialect):
            return self.lesson  # nothing of the old rows applies in the new dialect
        now = _said(target.compat)
        kept = {
            key: value
            for key, value in self.lesson.compat.items()
            if key not in self.believed or now.get(key) in self.believed[key]
        }
        return msgspec.structs.replace(self.lesson, compat=kept)


class Lessons(Value, frozen=True):
    """All lessons, each for the target that rejected a request. Learning returns a new value."""

    entries: tuple[_Entry, ...] = ()

    def learn(self, target: Target, lesson: Lesson) -> Lessons:
        """These lessons and one more; `target` is the one whose request was rejected."""
        before = next((entry for entry in self.entries if entry.is_of(target)), None)
        others = tuple(entry for entry in self.entries if entry is not before)
        rows, believed = _said(target.compat), dict[str, list[Any]]()
        if before is not None:
            believed, lesson = dict(before.believed), before.lesson | lesson
        for key in lesson.compat:
            known = believed.get(key, [])
            believed[key] = known if rows.get(key) in known else [*known, rows.get(key)]
        place = (target.provider, target.dialect, target.model)
        return Lessons((*others, _Entry(*place, lesson, target.endpoint, believed)))

    def for_target(self, target: Target) -> Lesson | None:
        """What was learnt about this target, as far as no row now says otherwise."""
        return next((entry.taught(target) for entry in self.entries if entry.is_of(target)), None)


def _said(compat: Compat) -> dict[str, Any]:
    """What rows said beside the defaults, as stored."""
    said: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(compat))
    return said


def apply_lesson(target: Target, lesson: Lesson) -> Target:
    """The target with the lesson applied."""
    moved = lesson.dialect is not None and lesson.dialect != target.dialect
    compat = Compat() if moved else target.compat
    if lesson.compat or moved:
        compat = msgspec.convert({**msgspec.to_builtins(compat), **lesson.compat}, Compat)
    facts, known = target.facts, target.known
    if lesson.facts:
        values = {**msgspec.to_builtins(facts), **lesson.facts}
        if "reasoning_options" in lesson.facts:  # a model with controls reasons, listed or not
            values["reasoning"] = known = True
        facts = msgspec.convert(values, ModelFacts)
    return msgspec.structs.replace(
        target,
        compat=compat,
        facts=facts,
        dialect=lesson.dialect or target.dialect,
        known=known,
        refused=tuple(dict.fromkeys((*target.refused, *lesson.refused))),
    )


def apply_lessons(target: Target, lessons: Lessons) -> Target:
    """The target with everything learnt about it, also in the dialect it moved to."""
    seen: set[Dialect] = set()
    while target.dialect not in seen:
        seen.add(target.dialect)
        lesson = lessons.for_target(target)
        if lesson is not None:
            target = apply_lesson(target, lesson)
    return target


def fingerprints(block: Block) -> Iterator[str]:
    """Short names for the carriers of a block; a carrier itself is never stored again. A block of
    an unknown kind is one as a whole.
    """
    if isinstance(block, OpaqueBlock):
        carriers = [_ordered(block.data).decode("utf-8", "replace")]
    else:
        carriers = [seal for _, seal in seals(block)]
    for name in ("signature", "encrypted", "redacted"):
        if (carrier := getattr(block, name, None)) is not None:  # an empty one can be rejected too
            carriers.append(carrier)
    from hashlib import blake2b

    for carrier in carriers:
        yield blake2b(carrier.encode("utf-8", "replace"), digest_size=8).hexdigest()


def lessons_to_json(lessons: Lessons) -> bytes:
    """The lessons as JSON."""
    return msgspec.json.encode(lessons)


def lessons_from_json(data: bytes | str) -> Lessons:
    """The lessons that `lessons_to_json` wrote, without those that are no longer valid.

    Raises:
        ConfigError: the JSON contains no lessons; says where and why.
    """
    try:
        lessons = msgspec.json.decode(data, type=Lessons)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not lessons: {error}") from None
    return Lessons(tuple(entry for entry in lessons.entries if _fits(entry.lesson)))


def _fits(lesson: Lesson) -> bool:
    """Whether this version knows the keys: what it cannot use it will learn again."""
    try:
        msgspec.convert(lesson.compat, Compat)
        msgspec.convert(lesson.facts, ModelFacts)
    except msgspec.ValidationError:
        return False
    return True
