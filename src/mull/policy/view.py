"""What one turn of the log looks like in a request.

Thinking is kept by preference (strip, then include) or because the protocol needs it in an open
tool chain. Carriers go only to the origin that made them; thinking of another model is dropped
or handed over as plain text, never in tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from mull.neutral.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    Value,
)
from mull.neutral.messages import Message, Origin
from mull.policy.reasoning import StripPolicy
from mull.policy.repair import repair_turn

__all__ = ["Place", "Rules", "Tally", "TurnView", "is_open_chain", "view_turn"]


class Rules(Value, frozen=True):
    """Everything that decides a view: the user's preferences and the endpoint's demands.

    With `carried_only` what the protocol needs are carriers, not readable thoughts.
    """

    origin: Origin
    include: bool
    strip: StripPolicy
    handoff: Literal["drop", "text"]
    required: bool
    forbidden: bool
    carried_only: bool = False


class Place(Value, frozen=True):
    """Where a turn stands: is it the last, and is it the last that has thinking."""

    last: bool = False
    last_thinking: bool = False


class Tally(Value, frozen=True):
    """How much of a view differs from the log; turns add up."""

    stripped: int = 0
    required: int = 0
    foreign: int = 0
    opaque: int = 0
    handed_over: int = 0
    forbidden: int = 0
    unfinished: int = 0
    empty: int = 0
    closed_calls: int = 0
    orphans: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(_counts(self), _counts(other), strict=True)))

    def __sub__(self, other: Tally) -> Tally:
        return Tally(*(a - b for a, b in zip(_counts(self), _counts(other), strict=True)))


def _counts(tally: Tally) -> tuple[int, ...]:
    return msgspec.structs.astuple(tally)


class TurnView(Value, frozen=True):
    """The messages of one turn as they are sent."""

    messages: tuple[Message, ...]
    tally: Tally


def is_open_chain(messages: Sequence[Message]) -> bool:
    """Whether the turn waits for the model to go on after its own tool calls."""
    return bool(messages) and messages[-1].carries_results


def view_turn(messages: Sequence[Message], place: Place, rules: Rules) -> TurnView:
    """The view of one turn."""
    repaired = repair_turn(messages)
    wanted = rules.include and (
        rules.strip == "none" or (rules.strip == "allButLast" and place.last_thinking)
    )
    needed = rules.required and place.last and is_open_chain(repaired.messages)
    out: list[Message] = []
    tally = Tally(
        unfinished=repaired.unfinished,
        empty=repaired.empty,
        closed_calls=repaired.closed_calls,
        orphans=repaired.orphans,
    )
    for message in repaired.messages:
        if message.role != "assistant":
            out.append(message)
            continue
        seen, more = _view_message(message, rules, wanted=wanted, needed=needed)
        tally += more
        if seen.blocks:
            out.append(seen)
    return TurnView(tuple(out), tally)


def _view_message(
    message: Message, rules: Rules, *, wanted: bool, needed: bool
) -> tuple[Message, Tally]:
    own = message.origin is None or message.origin == rules.origin
    if own:
        blocks, tally = _own_blocks(message, rules, wanted=wanted, needed=needed)
    else:
        blocks, tally = _foreign_blocks(message, rules, wanted=wanted)
    if len(blocks) == len(message.blocks) and all(map(_same, blocks, message.blocks)):
        return message, tally
    return msgspec.structs.replace(message, blocks=tuple(blocks)), tally


def _same(one: Block, other: Block) -> bool:
    return one is other


def _own_blocks(
    message: Message, rules: Rules, *, wanted: bool, needed: bool
) -> tuple[list[Block], Tally]:
    thinking = len(message.thinking)
    if rules.forbidden and thinking:
        return _others(message), Tally(forbidden=thinking)
    if wanted:
        return list(message.blocks), Tally()
    if needed:
        kept = [b for b in message.blocks if _is_needed(b, rules)]
        left = len(message.blocks) - len(kept)
        return kept, Tally(required=thinking - left, stripped=left)
    return _others(message), Tally(stripped=thinking)


def _is_needed(block: Block, rules: Rules) -> bool:
    if not rules.carried_only or not isinstance(block, ThinkingBlock):
        return True
    carriers = (block.signature, block.encrypted, block.redacted, block.details)
    return any(carrier is not None for carrier in carriers)


def _others(message: Message) -> list[Block]:
    return [block for block in message.blocks if not isinstance(block, ThinkingBlock)]


def _foreign_blocks(message: Message, rules: Rules, *, wanted: bool) -> tuple[list[Block], Tally]:
    """Text and calls without what only their origin understands."""
    out: list[Block] = []
    dropped = handed = opaque = 0
    for block in message.blocks:
        match block:
            case ThinkingBlock():
                if wanted and rules.handoff == "text" and block.thought.strip():
                    handed += 1
                    out.append(TextBlock(f"(Earlier reasoning) {block.thought}\n\n"))
                else:
                    dropped += 1
            case OpaqueBlock():
                opaque += 1
            case TextBlock():
                own = block.signature or block.extra
                out.append(TextBlock(block.text) if own else block)
            case ToolCallBlock():
                own = block.signature or block.extra
                plain = msgspec.structs.replace(block, signature=None, extra=None)
                out.append(plain if own else block)
            case ToolResultBlock() | MediaBlock():
                out.append(block)
            case _:
                assert_never(block)
    return out, Tally(foreign=dropped, opaque=opaque, handed_over=handed)
