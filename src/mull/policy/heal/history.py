"""Fixes of the history: thinking, carriers and marks that an endpoint rejects.

Completed turns lose their thinking first, because no endpoint requires it; in an open turn only
what the rejection names is removed. Visible text, tool calls and results always stay. What is left
out is missing from one request, and carriers that do not verify from all later ones; what is stored
keeps everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from mull.dialects.traits import TRAITS
from mull.neutral.blocks import Block, OpaqueBlock, ThinkingBlock
from mull.neutral.messages import Message
from mull.policy.heal.amendment import Amendment, thought_name
from mull.policy.heal.case import Case, Mend, Mends, squashed
from mull.policy.heal.lessons import Lesson, fingerprints
from mull.policy.heal.plan import steer_by
from mull.policy.reasoning import turn_start

__all__ = [
    "drop_blank",
    "drop_bound",
    "drop_extra_key",
    "drop_items",
    "drop_latest",
    "drop_named_parts",
    "drop_open",
    "drop_parts",
    "drop_trailing",
    "drop_unsigned",
    "drop_unverified",
    "plain_calls",
    "sign_calls",
    "strip_signatures",
]

_NOTHING = Lesson()
_LEAST_NAME = 4
"""Characters of a name that is found in a rejection by more than chance."""
_PATH = re.compile(r"\bmessages\.(\d+)\b")
_Which: TypeAlias = Callable[[ThinkingBlock], bool]


def _any(block: ThinkingBlock) -> bool:
    return True


def _carries(block: ThinkingBlock) -> bool:
    return block.has_carrier or block.signature is not None  # an empty one is rejected like others


def _is_unsigned(block: ThinkingBlock) -> bool:
    return not block.signature and block.redacted is None


def _is_blank(block: ThinkingBlock) -> bool:
    return not block.thought.strip() and block.redacted is None


def plain_calls(case: Case, found: re.Match[str]) -> Mends:
    """Tool calls rejected for their names or arguments: sent in the plainest form, otherwise as
    text.
    """
    yield Mend("tool calls sent in their simplest form", amendment=Amendment(calls="plain"))
    yield Mend("tool calls and their results sent as text", amendment=Amendment(calls="text"))


def drop_unverified(case: Case, found: re.Match[str]) -> Mends:
    """Signatures or data that do not verify: from the named answer to the end of its part."""
    messages, compat = case.request.messages, case.target.compat
    end = len(messages)
    # Removing thinking removes everything that is bound to it.
    start = end if compat.binds_thinking else turn_start(messages)
    named = _named(case)
    choices = [range(start), range(end)]
    if named is not None:
        choices = [range(named.start, start if named.start < start else end)]
    for places in choices:
        where = "earlier turns" if places.stop < end else "the conversation"
        said = f"of {where} left out: the endpoint cannot verify them"
        yield from _without(_thoughts(messages, places, _carries), said, forever=True)
    in_blocks = TRAITS[case.target.dialect].takes == "signed"  # a placeholder has a signature
    if in_blocks and compat.missing_reasoning is not None:
        lesson = Lesson(compat={"missingReasoning": None})
        yield Mend("no placeholder sent for missing thinking", lesson)


def drop_bound(case: Case, found: re.Match[str]) -> Mends:
    """Blocks bound to what precedes them: the named one, and all that are bound to it.

    If it is known what thinking is bound to, it is left out before it can be rejected. So this is
    thinking for which that is unknown, and it will not become valid again.
    """
    messages = case.request.messages
    named = _named(case) or range(len(messages))
    bound = _thoughts(messages, range(named.start, len(messages)), _carries)
    said = "left out: bound to a conversation that has changed since"
    yield from _without(bound, said, Lesson(compat={"bindsThinking": True}), forever=True)


def drop_latest(case: Case, found: re.Match[str]) -> Mends:
    """All thinking of the named answer, otherwise of the latest: removing a part would be a
    change.
    """
    messages = case.request.messages
    named = _named(case)
    if named is None:
        latest = [run for run in _runs(messages) if messages[run.start].role == "assistant"]
        named = latest[-1] if latest else range(0)
    said = "of one answer left out: not what the endpoint sent"
    yield from _without(_thoughts(messages, named), said)


def drop_unsigned(case: Case, found: re.Match[str]) -> Mends:
    """Thinking without a signature."""
    yield from _without(_all(case, _is_unsigned), "without a signature left out")


def drop_blank(case: Case, found: re.Match[str]) -> Mends:
    """Thinking without text: first the blocks without a signature."""
    blank = _all(case, _is_blank)
    yield from _without([one for one in blank if not one.signature], "without text left out")
    yield from _without(blank, "without text left out")


def drop_trailing(case: Case, found: re.Match[str]) -> Mends:
    """Thinking at the end of an answer, with nothing after it."""
    answers = (m for m in case.request.messages if m.role == "assistant")
    trailing = [thought for answer in answers for thought in _trailing(answer.blocks)]
    yield from _without(trailing, "at the end of an answer left out")


def _trailing(blocks: Sequence[Block]) -> Iterator[ThinkingBlock]:
    for block in reversed(blocks):
        if not isinstance(block, ThinkingBlock):
            return
        yield block


def drop_open(case: Case, found: re.Match[str]) -> Mends:
    """All thinking of the last turn."""
    messages = case.request.messages
    thoughts = _thoughts(messages, range(turn_start(messages), len(messages)))
    yield from _without(thoughts, "of the open turn left out: this request does not think")


def drop_items(case: Case, found: re.Match[str]) -> Mends:
    """All reasoning, and the ids by which the endpoint would look for it."""
    thoughts = _all(case, _any)
    names, ids = frozenset(map(thought_name, thoughts)), frozenset({"id"})
    text = f"{_count(thoughts)} and the ids of what followed them left out"
    yield Mend(text, _refused(thoughts), Amendment(thoughts=names, keys=ids))


def drop_extra_key(case: Case, found: re.Match[str]) -> Mends:
    """A key kept from the wire that is not accepted back."""
    key = found["key"]
    text = f"the key {key} left out of earlier answers"
    yield Mend(text, amendment=Amendment(keys=frozenset({key})))


def drop_named_parts(case: Case) -> Mends:
    """The unknown parts of earlier answers that the rejection names by their ids."""
    yield from _without_parts([block for _, block in _parts(case) if _is_named(block, case.said)])


def drop_parts(case: Case) -> Mends:
    """Unknown parts of earlier answers: all of an answer that has one of a kind that the rejection
    names, because they may belong together; otherwise all there are. What stands for earlier
    messages is left out last.
    """
    parts, said = _parts(case), squashed(case.said)
    named = {at for at, block in parts if any(kind in said for kind in _kinds_of(block))}
    yield from _without_parts([block for at, block in parts if at in named])
    yield from _without_parts([block for _, block in parts if not block.stands_for_earlier])
    yield from _without_parts([block for _, block in parts])


def _without_parts(parts: Sequence[OpaqueBlock]) -> Mends:
    if parts:
        some = "1 unknown part" if len(parts) == 1 else f"{len(parts)} unknown parts"
        earlier = any(block.stands_for_earlier for block in parts)
        lost = ", and with it the conversation that it stood for" if earlier else ""
        yield Mend(f"{some} of earlier answers left out{lost}", _refused(parts))


def _parts(case: Case) -> list[tuple[int, OpaqueBlock]]:
    """The unknown parts of answers, each with the number of its message."""
    return [
        (at, block)
        for at, message in enumerate(case.request.messages)
        if message.role == "assistant"
        for block in message.blocks
        if isinstance(block, OpaqueBlock)
    ]


def _is_named(block: OpaqueBlock, said: str) -> bool:
    name = block.data.get("id")
    if not isinstance(name, str) or len(name) < _LEAST_NAME:
        return False
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said, re.IGNORECASE) is not None


def _kinds_of(block: OpaqueBlock) -> Iterator[str]:
    """What a part calls itself: its type, or in APIs without types its only keys."""
    kind = block.data.get("type")
    for name in [kind] if isinstance(kind, str) else block.data:
        if len(name) >= _LEAST_NAME:
            yield squashed(name)


def sign_calls(case: Case, found: re.Match[str]) -> Mends:
    """Unsigned calls of the current turn, marked as not the model's own.

    Every Gemini model that requires signatures is controlled by levels; for those the encoder marks
    a step in which no call is signed.
    """
    messages, lesson = case.request.messages, _NOTHING
    turn = messages[turn_start(messages) :]
    if all(calls[0].signature for message in turn if (calls := message.tool_calls)):
        return
    if TRAITS[case.target.dialect].marks_calls:
        lesson = steer_by("gemini-level", case.target.facts)
    text = "tool calls of this turn marked as not the model's own"
    yield Mend(text, lesson, Amendment(marks_calls=True))


def strip_signatures(case: Case, found: re.Match[str]) -> Mends:
    """All of Gemini's signatures, in its own dialect and in OpenAI's format; the calls of the
    current turn are marked as not the model's own.
    """
    answers = (message for message in case.request.messages if message.role == "assistant")
    lesson = _refused(block for answer in answers for block in answer.blocks)
    text = "thought signatures of earlier steps left out: the endpoint cannot verify them"
    yield Mend(text, lesson, Amendment(marks_calls=not TRAITS[case.target.dialect].marks_calls))


def _without(
    thoughts: Sequence[ThinkingBlock],
    said: str,
    lesson: Lesson = _NOTHING,
    *,
    forever: bool = False,
) -> Mends:
    """Leave out this thinking: this once, or permanently if it has carriers."""
    if thoughts:
        names = frozenset(map(thought_name, thoughts))
        lesson = lesson | _refused(thoughts) if forever else lesson
        yield Mend(f"{_count(thoughts)} {said}", lesson, Amendment(thoughts=names))


def _all(case: Case, which: _Which) -> list[ThinkingBlock]:
    return _thoughts(case.request.messages, range(len(case.request.messages)), which)


def _thoughts(
    messages: Sequence[Message], places: Collection[int], which: _Which = _any
) -> list[ThinkingBlock]:
    """Matching thinking of assistant messages at these places."""
    answers = (m for at, m in enumerate(messages) if at in places and m.role == "assistant")
    return [thought for answer in answers for thought in answer.thinking if which(thought)]


def _runs(messages: Sequence[Message]) -> list[range]:
    """The messages as the Messages API counts them: consecutive ones of one role are one."""
    first = next((at for at, m in enumerate(messages) if m.role != "system"), len(messages))
    runs: list[range] = []
    sides = groupby(range(first, len(messages)), lambda at: messages[at].role == "assistant")
    for _, places in sides:
        run = tuple(places)
        runs.append(range(run[0], run[-1] + 1))
    return runs


def _named(case: Case) -> range | None:
    """The messages of the answer that the path in a rejection names, if it has thinking."""
    messages, path = case.request.messages, _PATH.search(case.said)
    runs = _runs(messages)
    if path is None or len(path[1]) > 6 or int(path[1]) >= len(runs):
        return None
    run = runs[int(path[1])]
    return run if _thoughts(messages, run) else None


def _refused(blocks: Iterable[Block]) -> Lesson:
    return Lesson(refused=tuple(name for block in blocks for name in fingerprints(block)))


def _count(thoughts: Sequence[ThinkingBlock]) -> str:
    return f"{len(thoughts)} thought{'' if len(thoughts) == 1 else 's'}"
