"""What became of the reasoning: from the requests that came back and the answers reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from mull.neutral.blocks import Value
from mull.testing.fidelity.case import Case, Check, Reply
from mull.testing.fidelity.paths import texts_in, values_at

__all__ = ["Heard", "Mark", "Outcome", "Seen", "judge"]

Mark: TypeAlias = Literal["kept", "lost", "leaked", "refused", "not claimed", "not measured"]
_WORST: Sequence[Mark] = ("refused", "leaked", "lost")
_SHORTEST_LEAK = 4
_REDACTED = re.compile(r"\[[^\]]*redacted[^\]]*\]", re.IGNORECASE)
_TAG = re.compile(r"</?think|<\|channel|<\|message\|>|</?thought>")


class Outcome(Value, frozen=True):
    """The verdict on one case, and why."""

    mark: Mark
    reason: str = ""


class Seen(msgspec.Struct, frozen=True, rename="camel"):
    """What a client reported of one answer; None if it has no such thing."""

    text: str | None = None
    thinking: str | None = None
    reasoning_tokens: int | None = None
    error: str | None = None
    incomplete: bool = False


class Heard(Value, frozen=True):
    """A request to an endpoint. If it was refused it has no reply."""

    endpoint: str
    body: Any
    reply: Reply | None = None
    refusal: str | None = None


def judge(case: Case, heard: Sequence[Heard], seen: Sequence[Seen]) -> Outcome:
    """The worst of what happened."""
    found = list(_problems(case, heard, seen))
    for mark in _WORST:
        reasons = [outcome for outcome in found if outcome.mark == mark]
        if reasons:
            return reasons[0]
    refusals = sum(one.refusal is not None for one in heard)
    return Outcome("kept", f"after {refusals} repaired" if refusals else "")


def _problems(case: Case, heard: Sequence[Heard], seen: Sequence[Seen]) -> Iterator[Outcome]:
    accepted = [one for one in heard if one.reply is not None]
    if (refusal := _unrepaired(heard, seen)) is not None:
        yield Outcome("refused", refusal)
    for name, replies in case.replies.items():
        bodies = [one.body for one in accepted if one.endpoint == name]
        checked = case.requests.get(name, ())
        for number, (body, checks) in enumerate(zip(bodies, checked, strict=False), 1):
            yield from _wrong(body, checks, f"request {number} to {name}")
        if len(bodies) < _fewest(replies, checked):
            errors = (one.error for one in seen if one.error)
            why = next(errors, "it was not sent")
            yield Outcome("lost", f"request {len(bodies) + 1} to {name} never came: {why}")
    yield from _answers([one.reply for one in accepted if one.reply], seen)


def _fewest(replies: Sequence[Reply], checked: Sequence[Sequence[Check]]) -> int:
    """How many requests an endpoint must get: one for each reply. A client may give up after one
    that breaks; the requests that have checks must come even then.
    """
    if not any(map(_may_fail, replies)):
        return len(replies)
    return max((number for number, checks in enumerate(checked, 1) if checks), default=1)


def _unrepaired(heard: Sequence[Heard], seen: Sequence[Seen]) -> str | None:
    """The first refusal, unless the client sent another request and nobody noticed."""
    refusals = [one.refusal for one in heard if one.refusal is not None]
    failures = sum(one.error is not None for one in seen)
    excused = sum(one.reply is not None and _may_fail(one.reply) for one in heard)
    ended = bool(heard) and heard[-1].refusal is not None
    return refusals[0] if refusals and (ended or failures > excused) else None


def _may_fail(reply: Reply) -> bool:
    return reply.shows.may_fail or not reply.shows.complete


def _wrong(body: Any, checks: Sequence[Check], where: str) -> Iterator[Outcome]:
    for check in checks:
        problem = _fails(body, check)
        if problem is not None:
            mark: Mark = "leaked" if check.lacks is not None else "lost"
            yield Outcome(mark, f"{where}: {problem}")


def _fails(body: Any, check: Check) -> str | None:
    if check.any_of:
        problems = [_fails(body, one) for one in check.any_of]
        return None if None in problems else " and ".join(filter(None, problems))
    values = values_at(check.path, body)
    if check.lacks is not None:
        texts = values if check.path else texts_in(body)
        found = any(check.lacks in text for text in texts if isinstance(text, str))
        return f"{_short(check.lacks)} is at {check.path or 'some place'}" if found else None
    if check.order is not None:
        order = [value for value in values if value in check.order]
        if order == list(check.order):
            return None
        missing = [one for one in check.order if one not in order]
        told = f"lacks {_short(missing[0])}" if missing else "has another order or repeats"
        return f"{check.path} {told}"
    if check.joined is not None:
        whole = check.joined in map(_joined, values)
        return None if whole else f"{check.path} is not {_short(check.joined)}"
    return None if check.has in values else f"{check.path} is not {_short(check.has)}"


def _joined(parts: Any) -> str | None:
    """The text of a list of text parts, None if it is anything else."""
    if not isinstance(parts, list):
        return None
    texts = [one.get("text") for one in parts if isinstance(one, dict)]
    plain = [text for text in texts if isinstance(text, str)]
    return "".join(plain) if len(plain) == len(parts) else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _answers(replies: Sequence[Reply], seen: Sequence[Seen]) -> Iterator[Outcome]:
    """What the client reported, against what was sent. A broken answer may be asked for again."""
    told = iter(seen)
    thoughts = [thought for reply in replies for thought in reply.shows.thoughts]
    for reply in replies:
        one = next(told, None)
        if one is None:
            if not _may_fail(reply):
                yield Outcome("lost", "an answer was not reported")
            continue
        if not reply.shows.complete:
            yield from _broken(reply, one)
        elif one.error is not None and reply.shows.may_fail:
            continue
        elif one.error is not None:
            yield Outcome("lost", f"the client failed: {one.error}")
        else:
            yield from _answer(reply, one, thoughts)


def _broken(reply: Reply, one: Seen) -> Iterator[Outcome]:
    shows = reply.shows
    if one.error is None and not one.incomplete:
        yield Outcome("lost", "a broken answer was passed off as complete")
    yield from _leaks(one.text or "", shows.text or "", shows.thoughts)


def _answer(reply: Reply, one: Seen, thoughts: Sequence[str]) -> Iterator[Outcome]:
    shows, text = reply.shows, one.text or ""
    if shows.text is not None and text.strip() != shows.text.strip():
        yield from _leaks(text, shows.text, thoughts)
        yield Outcome("lost", f"the answer is {_short(text)}, not {_short(shows.text)}")
    if shows.thoughts and not _holds(one.thinking, shows.thoughts):
        said = shows.text or ""
        if one.thinking and said and said not in text and said in one.thinking:
            yield Outcome("leaked", "the answer is in the thinking")
        yield Outcome("lost", f"the thinking is {_short(one.thinking)}")
    if shows.reasoning_tokens is not None and one.reasoning_tokens != shows.reasoning_tokens:
        counted = f"{one.reasoning_tokens} reasoning tokens, not {shows.reasoning_tokens}"
        yield Outcome("lost", counted)


def _leaks(text: str, expected: str, thoughts: Sequence[str]) -> Iterator[Outcome]:
    for thought in thoughts:
        plain = thought.strip()
        if len(plain) >= _SHORTEST_LEAK and plain in text and plain not in expected:
            yield Outcome("leaked", f"the answer contains the thought {_short(plain)}")
    if _TAG.search(text) and not _TAG.search(expected):
        yield Outcome("leaked", f"the answer contains a tag: {_short(text)}")


def _holds(thinking: str | None, thoughts: Sequence[str]) -> bool:
    """Whether the reported thinking is these thoughts, joined by blank space or nothing. A note in
    brackets may stand for a redacted one.
    """
    rest = _REDACTED.sub("", thinking or "")
    for thought in filter(None, thoughts):
        before, found, rest = rest.partition(thought)
        if not found or before.strip():
            return False
    return not rest.strip()


def seen_in(answers: Sequence[Mapping[str, Any]]) -> list[Seen]:
    """The report of an adapter.

    Raises:
        msgspec.ValidationError: it is not one.
    """
    return msgspec.convert(answers, list[Seen])
