"""Repairs of the history: thoughts and carriers that an endpoint would not take back.

Completed turns give up their thoughts first, because no endpoint misses those; in an open turn
only what the refusal names goes. Visible text, tool calls and results always stay. The messages
are copies of a view: what is stored keeps everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, TypeAlias

import msgspec

from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock
from mull.neutral.messages import Message
from mull.policy.heal.case import Case, Change
from mull.policy.heal.lessons import Lesson, fingerprints
from mull.policy.reasoning import starts_turn

__all__ = [
    "drop_blank",
    "drop_bound",
    "drop_extra_key",
    "drop_items",
    "drop_last_answer",
    "drop_latest",
    "drop_open",
    "drop_trailing",
    "drop_unsigned",
    "drop_unverified",
    "rebuilt",
    "turn_start",
    "without_thoughts",
]

_PATH = re.compile(r"\bmessages\.(\d+)\b")
_Which: TypeAlias = Callable[[ThinkingBlock], bool]
_Dropped: TypeAlias = tuple[ThinkingBlock, ...]


def _any(block: ThinkingBlock) -> bool:
    return True


def _carries(block: ThinkingBlock) -> bool:
    return block.has_carrier or block.signature is not None  # an empty one is refused like others


def _is_unsigned(block: ThinkingBlock) -> bool:
    return not block.signature and block.redacted is None


def _is_blank(block: ThinkingBlock) -> bool:
    return not block.thought.strip() and block.redacted is None


def turn_start(messages: Sequence[Message]) -> int:
    """Where the last turn begins; everything before it is complete."""
    starts = (at for at in range(len(messages) - 1, -1, -1) if starts_turn(messages[at]))
    return next(starts, 0)


def without_thoughts(
    messages: Sequence[Message], places: Collection[int], which: _Which = _any
) -> tuple[tuple[Message, ...], _Dropped]:
    """The messages without such thoughts of the assistant at these places, and what went."""
    kept: list[Message] = []
    dropped: list[ThinkingBlock] = []
    for at, message in enumerate(messages):
        gone = [b for b in message.thinking if which(b)] if at in places else []
        if not gone or message.role != "assistant":
            kept.append(message)
            continue
        dropped += gone
        blocks = tuple(
            block
            for block in message.blocks
            if not (isinstance(block, ThinkingBlock) and which(block))
        )
        if blocks:
            kept.append(msgspec.structs.replace(message, blocks=blocks))
    return tuple(kept), tuple(dropped)


def drop_unverified(case: Case, found: re.Match[str]) -> Change | None:
    """Signatures or data that do not verify: from the named answer to the end of its part."""
    messages = case.request.messages
    # A thought that goes takes along all that are bound to it.
    start = len(messages) if case.target.compat.binds_thinking else turn_start(messages)
    named = _named(messages, case.said)
    if named is None:
        choices = [range(start), range(len(messages))]
    elif named.start < start:
        choices = [range(named.start, start)]
    else:
        choices = [range(named.start, len(messages))]
    for places in choices:
        kept, dropped = without_thoughts(messages, places, _carries)
        if dropped:
            where = "earlier turns" if places.stop < len(messages) else "the conversation"
            text = f"{_thoughts(dropped)} of {where} left out: the endpoint cannot verify them"
            return case.sends(text, kept, _refused(dropped))
    if case.target.dialect == "anthropic" and case.target.compat.missing_reasoning is not None:
        lesson = Lesson(compat={"missingReasoning": None})
        return case.asks("no filler sent in place of thoughts", lesson)
    return None


def drop_bound(case: Case, found: re.Match[str]) -> Change | None:
    """Blocks bound to what came before them: the named one, and all that are bound to it.

    Where it is known what a thought is bound to, it is left out before anybody can refuse it. So
    these are thoughts of which that is not known, and they will not be good again.
    """
    messages = case.request.messages
    named = _named(messages, case.said) or range(len(messages))
    kept, dropped = without_thoughts(messages, range(named.start, len(messages)), _carries)
    text = f"{_thoughts(dropped)} left out: bound to a conversation that has changed since"
    lesson = Lesson(compat={"bindsThinking": True}) | _refused(dropped)
    return case.sends(text, kept, lesson) if dropped else None


def drop_latest(case: Case, found: re.Match[str]) -> Change | None:
    """All thoughts of the named answer, else of the latest: a part of them would be a change."""
    messages = case.request.messages
    named = _named(messages, case.said)
    if named is None:
        latest = [run for run in _runs(messages) if messages[run.start].role == "assistant"]
        named = latest[-1] if latest else range(0)
    kept, dropped = without_thoughts(messages, named)
    text = f"{_thoughts(dropped)} of one answer left out: not what the endpoint remembers"
    return case.sends(text, kept) if dropped else None


def drop_unsigned(case: Case, found: re.Match[str]) -> Change | None:
    """Thoughts without a signature."""
    return _drop_everywhere(case, _is_unsigned, "without a signature left out")


def drop_blank(case: Case, found: re.Match[str]) -> Change | None:
    """Thoughts without text: those without a signature first."""

    def is_blank_and_unsigned(block: ThinkingBlock) -> bool:
        return _is_blank(block) and not block.signature

    said = "without text left out"
    first = _drop_everywhere(case, is_blank_and_unsigned, said)
    return first or _drop_everywhere(case, _is_blank, said)


def drop_trailing(case: Case, found: re.Match[str]) -> Change | None:
    """Thoughts at the end of an answer, with nothing said or done after them."""
    out: list[Message] = []
    gone = 0
    for message in case.request.messages:
        end = len(message.blocks)
        while (
            message.role == "assistant"
            and end
            and isinstance(message.blocks[end - 1], ThinkingBlock)
        ):
            end -= 1
        gone += len(message.blocks) - end
        if end == len(message.blocks):
            out.append(message)
        elif end:
            out.append(msgspec.structs.replace(message, blocks=message.blocks[:end]))
    text = f"{_count(gone)} at the end of an answer left out"
    return case.sends(text, tuple(out)) if gone else None


def drop_open(case: Case, found: re.Match[str]) -> Change | None:
    """All thoughts of the last turn."""
    messages = case.request.messages
    kept, dropped = without_thoughts(messages, range(turn_start(messages), len(messages)))
    text = f"{_thoughts(dropped)} of the open turn left out: this request does not think"
    return case.sends(text, kept) if dropped else None


def drop_items(case: Case, found: re.Match[str]) -> Change | None:
    """All reasoning, and the ids by which the endpoint would ask for it."""
    messages = case.request.messages
    kept, dropped = without_thoughts(messages, range(len(messages)))
    plain = tuple(rebuilt(message, _without_id) for message in kept)
    text = f"{_thoughts(dropped)} and the ids of what followed them left out"
    return case.sends(text, plain, _refused(dropped)) if plain != messages else None


def drop_extra_key(case: Case, found: re.Match[str]) -> Change | None:
    """A key that was kept from the wire and is not taken back."""
    key = found["key"]

    def clean(block: Block) -> Block:
        if isinstance(block, TextBlock | ToolCallBlock) and key in (block.extra or {}):
            return msgspec.structs.replace(block, extra=_without_key(block.extra, key))
        if isinstance(block, ThinkingBlock) and any(key in entry for entry in block.details or ()):
            details = [_without_key(entry, key) or {} for entry in block.details or ()]
            return msgspec.structs.replace(block, details=details)
        return block

    messages = tuple(rebuilt(message, clean) for message in case.request.messages)
    text = f"the key {key} left out of earlier answers"
    return case.sends(text, messages) if messages != case.request.messages else None


def drop_last_answer(case: Case, found: re.Match[str]) -> Change | None:
    """An answer at the end that says nothing; one with words is the user's own prefill."""
    messages = case.request.messages
    if not messages or messages[-1].role != "assistant":
        return None
    says = any(
        not isinstance(block, ThinkingBlock)
        and not (isinstance(block, TextBlock) and not block.text.strip())
        for block in messages[-1].blocks
    )
    text = "an empty answer at the end left out"
    return None if says else case.sends(text, tuple(messages[:-1]))


def _runs(messages: Sequence[Message]) -> list[range]:
    """The messages as the Messages API counts them: neighbours of one side are one."""
    first = next((at for at, m in enumerate(messages) if m.role != "system"), len(messages))
    runs: list[range] = []
    sides = groupby(range(first, len(messages)), lambda at: messages[at].role == "assistant")
    for _, places in sides:
        run = tuple(places)
        runs.append(range(run[0], run[-1] + 1))
    return runs


def _named(messages: Sequence[Message], said: str) -> range | None:
    """The messages of the answer that the path in a refusal names, if it has thoughts."""
    path = _PATH.search(said)
    runs = _runs(messages)
    if path is None or len(path[1]) > 6 or int(path[1]) >= len(runs):
        return None
    run = runs[int(path[1])]
    is_answer = messages[run.start].role == "assistant"
    return run if is_answer and any(messages[at].thinking for at in run) else None


def _drop_everywhere(case: Case, which: _Which, said: str) -> Change | None:
    messages = case.request.messages
    kept, dropped = without_thoughts(messages, range(len(messages)), which)
    return case.sends(f"{_thoughts(dropped)} {said}", kept) if dropped else None


def _refused(dropped: Iterable[Block]) -> Lesson:
    return Lesson(refused=tuple(name for block in dropped for name in fingerprints(block)))


def _thoughts(dropped: _Dropped) -> str:
    return _count(len(dropped))


def _count(number: int) -> str:
    return f"{number} thought{'' if number == 1 else 's'}"


def rebuilt(message: Message, change: Callable[[Block], Block]) -> Message:
    """The message with its blocks changed; the same object where none is."""
    if message.role != "assistant":
        return message
    blocks = tuple(map(change, message.blocks))
    same = all(map(_is_same, blocks, message.blocks))
    return message if same else msgspec.structs.replace(message, blocks=blocks)


def _is_same(one: Block, other: Block) -> bool:
    return one is other


def _without_id(block: Block) -> Block:
    if isinstance(block, TextBlock | ToolCallBlock) and "id" in (block.extra or {}):
        return msgspec.structs.replace(block, extra=_without_key(block.extra, "id"))
    return block


def _without_key(extra: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    return {name: value for name, value in (extra or {}).items() if name != key} or None
