"""Makes one turn acceptable to any endpoint: calls and results in pairs, no empty messages.

An unfinished answer is sent as far as it came, and its last words say that it was cut off; its
calls that never ran are left out, and so is a call that the token limit cut. A call without a
result gets one that says so; a result without a call is left out. Valid messages pass through as
the same objects.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mull.neutral.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.messages import Message
from mull.policy.view.calls import has_object

__all__ = [
    "BROKEN_OFF",
    "INTERRUPTED",
    "NO_OBJECT",
    "NO_RESULT",
    "Repair",
    "is_unfinished",
    "repair_turn",
]

INTERRUPTED = "[Interrupted by the user]"
BROKEN_OFF = "[Cut off: the connection or the provider failed]"
"""The last words of an answer that is sent incomplete."""

NO_RESULT = "No result: the tool did not finish."
NO_OBJECT = "No result: the arguments were not a JSON object, so the tool did not run."
_VOID = TextBlock("")
_SUFFIXES = 4
"""The most suffixes that tell a call's id from another's."""


class Repair(Value, frozen=True):
    """The sendable messages of a turn, and how much was repaired."""

    messages: tuple[Message, ...]
    """The messages in an order and a form that any endpoint accepts."""
    unfinished: int = 0
    """Answers left out because they broke off and the turn continued without them."""
    interrupted: int = 0
    """Answers that broke off and are sent as far as they came."""
    unmade_calls: int = 0
    """Calls of such answers that never ran, and are not sent."""
    empty: int = 0
    """Answers left out because they contain nothing but thinking."""
    closed_calls: int = 0
    """Calls without a result, which got one that says so."""
    orphans: int = 0
    """Results left out because no call has their id."""
    cut_calls: int = 0
    """Calls left out because the token limit cut them off."""
    torn: frozenset[int] = frozenset()
    """The Python ids of thinking blocks whose follower never came or is left out."""

    @property
    def is_mended(self) -> bool:
        """Whether anything was."""
        return self != Repair(self.messages)


def repair_turn(messages: Sequence[Message], *, goes_on: bool = False) -> Repair:
    """Repair one turn (from a user message up to the next), or a round of one that `goes_on`."""
    if len(messages) == 1 and _is_sound(messages[0]):
        return Repair((messages[0],))
    out: list[Message] = []
    unfinished = interrupted = unmade = empty = closed = orphans = cut = 0
    torn: frozenset[int] = frozenset()
    groups = _groups(messages)
    for at, (head, results) in enumerate(groups):
        calls: Sequence[ToolCallBlock] = ()
        if head is not None:
            clean, strays = _without_strays(head)
            clean, cuts = _without_cut(clean, results)
            orphans, cut = orphans + strays, cut + cuts
            is_partial = is_unfinished(clean) and not _has_results(clean, results)
            if is_partial:
                given, clean = clean, _as_far_as_it_came(clean)
            if is_partial and (goes_on or at + 1 < len(groups)):
                unfinished += 1
            elif _says_nothing(clean, head):
                empty += 1
            else:
                out.append(clean)
                calls = clean.tool_calls
                if is_partial:
                    interrupted += 1
                    unmade += len(given.tool_calls)
                    torn |= _torn(given)
        paired, more_closed, more_orphans = _pair(calls, results)
        out += paired
        closed, orphans = closed + more_closed, orphans + more_orphans
    return Repair(tuple(out), unfinished, interrupted, unmade, empty, closed, orphans, cut, torn)


_SAID: frozenset[type[Block]] = frozenset({TextBlock, ThinkingBlock})


def _is_sound(message: Message) -> bool:
    """Whether it is a whole answer without calls, which needs no repair by itself. Most are."""
    if message.role != "assistant" or message.status != "complete":
        return False
    if message.stop_reason == "length" or not _SAID.issuperset(map(type, message.blocks)):
        return False
    return not _says_nothing(message, message)


def _groups(messages: Sequence[Message]) -> list[tuple[Message | None, list[Message]]]:
    """Each message with the results that directly follow it."""
    groups: list[tuple[Message | None, list[Message]]] = []
    for message in messages:
        if not message.carries_results:
            groups.append((message, []))
        elif groups:
            groups[-1][1].append(message)
        else:
            groups.append((None, [message]))
    return groups


def _without_strays(message: Message) -> tuple[Message, int]:
    """Results belong to tool messages and calls to assistant messages; anywhere else they are
    removed.
    """
    stray: tuple[type, ...] = (ToolResultBlock,)
    if message.role != "assistant":
        stray = (ToolResultBlock, ToolCallBlock)
    blocks = tuple(block for block in message.blocks if not isinstance(block, stray))
    if len(blocks) == len(message.blocks):
        return message, 0
    return msgspec.structs.replace(message, blocks=blocks), len(message.blocks) - len(blocks)


def _says_nothing(message: Message, before: Message) -> bool:
    """An assistant message of thinking alone, or of nothing: endpoints reject it in the history."""
    if message.role != "assistant":
        return message is not before and not message.blocks
    if message.is_paused and message.thinking:
        return False  # its provider continues it
    return all(isinstance(block, ThinkingBlock) or _is_void(block) for block in message.blocks)


def _is_void(block: Block) -> bool:
    if isinstance(block, OpaqueBlock):
        return block.broken
    return isinstance(block, TextBlock) and block == _VOID


def is_unfinished(message: Message) -> bool:
    """Whether it is an answer that was cut off."""
    return message.role == "assistant" and message.status in ("interrupted", "error")


def _has_results(message: Message, results: Sequence[Message]) -> bool:
    answered = _answered(results)
    return any(call.id in answered for call in message.tool_calls)


def _as_far_as_it_came(message: Message) -> Message:
    """What arrived, and that it ends there. If nothing arrived, nothing is left.

    Calls were not made, and pieces that only their provider understands may be half of a pair,
    unless they stand for the conversation before them.
    """
    blocks = tuple(b for b in message.blocks if _is_whole(b))
    if all(_is_blank(block) for block in blocks) and not message.tool_calls:
        return msgspec.structs.replace(message, blocks=())
    by_user = message.status == "interrupted" and message.stop_reason is None
    mark = INTERRUPTED if by_user else BROKEN_OFF
    gap = "\n\n" if blocks and isinstance(blocks[-1], TextBlock) else ""
    return msgspec.structs.replace(message, blocks=(*blocks, TextBlock(gap + mark)))


def _torn(message: Message) -> frozenset[int]:
    """The thinking of an unfinished answer that is no longer before what it led to."""
    torn: set[int] = set()
    last: list[ThinkingBlock] = []
    for block in message.blocks:
        if isinstance(block, ThinkingBlock):
            last.append(block)
        elif not _is_void(block):
            torn.update(() if _is_whole(block) else map(id, last))
            last = []
    return frozenset({*torn, *map(id, last)})


def _is_whole(block: Block) -> bool:
    if isinstance(block, OpaqueBlock):
        return block.stands_for_earlier
    return isinstance(block, TextBlock | ThinkingBlock)


def _is_blank(block: Block) -> bool:
    if isinstance(block, TextBlock):
        return not block.text.strip()
    return isinstance(block, ThinkingBlock) and block.is_blank


def _answered(results: Sequence[Message]) -> set[str]:
    return {b.call_id for m in results for b in m.blocks if isinstance(b, ToolResultBlock)}


def _without_cut(message: Message, results: Sequence[Message]) -> tuple[Message, int]:
    """An answer that ended at its token limit, without the call that it ended in."""
    if message.status != "truncated" and message.stop_reason != "length":
        return message, 0
    last = message.blocks[-1] if message.blocks else None
    if not isinstance(last, ToolCallBlock) or last.id in _answered(results):
        return message, 0
    if has_object(last) and (last.input or (last.arguments or "").strip()):
        return message, 0
    return msgspec.structs.replace(message, blocks=message.blocks[:-1]), 1


def _pair(
    calls: Sequence[ToolCallBlock], messages: Sequence[Message]
) -> tuple[Iterable[Message], int, int]:
    """Match results to calls, in the order of the calls: some APIs distinguish them by nothing
    else. Results of a provider's own kinds of calls stay, after them. Valid messages stay
    unchanged.
    """
    waiting: dict[str, deque[ToolResultBlock]] = {}
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                waiting.setdefault(block.call_id, deque()).append(block)
    closed = 0
    blocks: list[ToolResultBlock] = []
    own = [queue.popleft() if (queue := waiting.get(call.id)) else None for call in calls]
    for call, result in zip(calls, own, strict=True):
        if result is not None:
            blocks.append(result)
        elif queue := _of_namesake(call.id, waiting):
            blocks.append(msgspec.structs.replace(queue.popleft(), call_id=call.id))
        else:
            closed += 1
            said = NO_RESULT if has_object(call) else NO_OBJECT
            blocks.append(ToolResultBlock(call.id, said, is_error=True))
    orphans = sum(map(len, waiting.values()))
    given = [b for m in messages for b in m.blocks if isinstance(b, ToolResultBlock)]
    others = [b for m in messages for b in m.blocks if isinstance(b, OpaqueBlock)]
    kept: tuple[Block, ...] = (*blocks, *others)
    if not closed and not orphans and _same_order(given, blocks):
        return messages if kept else (), 0, 0
    return (Message(role="tool", blocks=kept),) if kept else (), closed, orphans


def _of_namesake(
    call_id: str, waiting: Mapping[str, deque[ToolResultBlock]]
) -> deque[ToolResultBlock] | None:
    """The results left under the id that a call had before it got one of its own, because another
    call had it too: that id, with a suffix.
    """
    given = call_id
    for _ in range(_SUFFIXES):
        given, mark, _ = given.rpartition("_")
        if not mark or (queue := waiting.get(given)):
            return queue if mark else None
    return None


def _same_order(one: Sequence[ToolResultBlock], other: Sequence[ToolResultBlock]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
