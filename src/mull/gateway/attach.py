"""Restores what a client dropped from a conversation, altered, or never received.

A client sends answers whose calls have the gateway's ids, possibly with thinking, possibly with
envelopes. Each answer is restored as the provider sent it, from the store or from its envelopes.
The client's text and calls take precedence; carriers are added only if its calls are the stored
ones. An answer that is not found is sent upstream without carriers: their origin is unknown, and
no endpoint may receive another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import is_
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from mull.gateway.anchors import (
    Past,
    call_key,
    carrier_key,
    carriers_of,
    is_of_turn,
    same_calls,
    same_text,
)
from mull.gateway.envelope import Sealed, is_envelope
from mull.gateway.record import Kept
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message
from mull.neutral.request import Note

__all__ = ["REATTACHED", "Attached", "Keys", "Unknown", "attach", "keys_of", "past_of"]

REATTACHED = "reattached"
"""The subject of notes about answers that were not restored."""

Unknown: TypeAlias = Literal["bare", "readable", "trusted"]
"""What to send of an answer that is not found: none of its thinking ("bare"), only the readable
thinking, or the answer as received ("trusted"), if the store could not be read and the client
speaks the target's dialect."""


class Attached(NamedTuple):
    """The restored conversation, with notes about answers that were not restored. `records` are the
    stored records that were used, each by one of its keys."""

    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    records: Mapping[str, Kept] = {}


class Keys(NamedTuple):
    """For each message of a conversation, the keys that its record may have, and the digest of the
    conversation before the next answer."""

    of_each: Sequence[tuple[str, ...]]
    past: Past


def keys_of(messages: Sequence[Message]) -> Keys:
    """The keys of each message, most specific first; none if it is not an answer. Consecutive
    answers may be pieces of one: the first key of the last piece is the key of the joined
    answer."""
    past = Past()
    keys: list[tuple[str, ...]] = []
    for is_answer, run in groupby(messages, _is_answer):
        row = list(run)
        is_row = is_answer and len(row) > 1
        whole = tuple(past.keys(_one(row))) if is_row else ()  # before `past` includes them
        for message in row:
            keys.append(tuple(_keys(message, past)) if is_answer else ())
            past.add(message)
        keys[-1] = (*whole, *keys[-1])
    return Keys(keys, past)


def _is_answer(message: Message) -> bool:
    return message.role == "assistant"


def _one(pieces: Sequence[Message]) -> Message:
    """The pieces joined into one message."""
    if len(pieces) == 1:
        return pieces[0]
    return replace(pieces[0], blocks=tuple(block for piece in pieces for block in piece.blocks))


def past_of(messages: Iterable[Message]) -> Past:
    """The digest of the messages before the next answer."""
    past = Past()
    for message in messages:
        past.add(message)
    return past


def _keys(message: Message, past: Past) -> Iterator[str]:
    for call in message.tool_calls:
        yield call_key(call.id)
    yield from past.keys(message)
    for block in message.blocks:
        for carrier in carriers_of(block):
            if not is_envelope(carrier):
                yield carrier_key(carrier)


def attach(
    messages: Sequence[Message],
    keys: Sequence[tuple[str, ...]],
    found: Mapping[str, Kept],
    unseal: Callable[[str], Sealed | None],
    unknown: Unknown = "bare",
) -> Attached:
    """Restore the answers that the client sent, from stored records and envelopes."""
    if not _alternates(messages):
        messages, keys = _joined(*_results_first(messages, keys), found)
    made: list[Message] = []
    ids: dict[str, str] = {}
    counts = {"found": 0, "unknown": 0, "altered": 0}
    records: dict[str, Kept] = {}
    for message, by in zip(messages, _found_by(keys, found), strict=True):
        if message.role != "assistant":
            made.append(_with_own_ids(message, ids))
            continue
        if by is not None:
            kept = records[by] = found[by]
            ids |= kept.ids
            answer, how = _from_record(message, kept)
        else:
            answer, how = _from_envelopes(message, unseal, unknown)
            ids |= _moved(message, answer)
        counts[how] += 1
        made.append(answer)
    return Attached(tuple(made), tuple(_notes(counts)), records)


def _found_by(keys: Sequence[tuple[str, ...]], found: Mapping[str, Kept]) -> Sequence[str | None]:
    """For each message, the key by which its record is found. By the messages of its turn alone,
    only the last answer with such a key finds a record, and only if no other answer is that
    record: an answer is never restored twice."""
    by = [next((key for key in wanted if key in found), None) for wanted in keys]
    of_turn = [at for at, key in enumerate(by) if key is not None and is_of_turn(key)]
    if of_turn:
        taken = [found[key] for key in by if key is not None and not is_of_turn(key)]
        for at in reversed(of_turn):
            kept = found[by[at] or ""]
            if kept in taken:
                by[at] = None
            else:
                taken.append(kept)
    return by


def _alternates(messages: Sequence[Message]) -> bool:
    """Whether there are no tool results, and no two answers in a row: nothing to put in order."""
    before = None
    for message in messages:
        role = message.role
        if role == "tool" or (role == "assistant" and before == "assistant"):
            return False
        before = role
    return True


def _results_first(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with tool results directly after their calls. What some clients put between
    them follows."""
    ordered: list[Message] = []
    ordered_keys: list[tuple[str, ...]] = []
    calls: set[str] = set()
    after = 0
    for message, wanted in zip(messages, keys, strict=True):
        at = len(ordered)
        if message.role == "assistant":
            calls, after = {call.id for call in message.tool_calls}, at + 1
        elif message.role == "tool" and not calls.isdisjoint(_answered(message)):
            at, after = after, after + 1
        ordered.insert(at, message)
        ordered_keys.insert(at, wanted)
    return ordered, ordered_keys


def _answered(message: Message) -> list[str]:
    return [block.call_id for block in message.blocks if isinstance(block, ToolResultBlock)]


def _joined(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]], found: Mapping[str, Kept]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with each answer in one message. Some clients send each block as a separate
    answer, and some alternate calls and results."""
    joined: list[list[Message]] = []
    joined_keys: list[list[str]] = []
    last: int | None = None
    record: Kept | None = None
    for message, wanted in zip(*_rows(messages, keys, found), strict=True):
        if message.role == "assistant":
            kept = next((found[key] for key in wanted if key in found), None)
            if last is not None and _belongs(joined[-1][-1], message, record, kept):
                joined[last].append(message)
                joined_keys[last] += wanted
                record = kept or record
                continue
            last, record = len(joined), kept
        elif message.role == "tool" and joined and joined[-1][-1].role == "tool":
            joined[-1].append(message)
            continue
        elif message.role != "tool":
            last = None
        joined.append([message])
        joined_keys.append([*wanted])
    return [_one(pieces) for pieces in joined], [tuple(some) for some in joined_keys]


def _rows(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]], found: Mapping[str, Kept]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with consecutive answers joined if they are stored as one. A piece may also
    be found by itself, as an answer of another conversation with the same beginning."""
    joined: list[Message] = []
    joined_keys: list[tuple[str, ...]] = []
    pairs = zip(messages, keys, strict=True)
    for is_answer, run in groupby(pairs, lambda pair: _is_answer(pair[0])):
        row, wanted = zip(*run, strict=True)
        if is_answer and len(row) > 1 and wanted[-1][0] in found:
            row, wanted = (_one(row),), wanted[-1:]
        joined += row
        joined_keys += wanted
    return joined, joined_keys


def _belongs(before: Message, piece: Message, record: Kept | None, kept: Kept | None) -> bool:
    """Whether a piece, found in the record `kept`, continues the answer found in `record`. `before`
    is the message directly before the piece."""
    if record is not None and record == kept:
        return before.role == "assistant" or bool(record.ids)
    if before.role != "assistant" or (record is None) == (kept is None):
        return False
    unknown = before if record is None else piece
    return not unknown.tool_calls


def _from_record(message: Message, kept: Kept) -> tuple[Message, str]:
    """The stored answer, with the client's text if that differs. If the calls differ, the client's
    answer without thinking."""
    given = Message(role="assistant", status="complete", origin=kept.origin, blocks=kept.blocks)
    if same_calls(message, given):
        if same_text(message, given):
            return given, "found"
        return replace(given, blocks=tuple(_with_text(given.blocks, message.text))), "found"
    bare = _without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_renamed(block, kept.ids) for block in bare)
    return replace(message, blocks=blocks, origin=None), "altered"


def _with_text(blocks: Iterable[Block], text: str) -> Iterator[Block]:
    """The blocks, with this text in place of their own."""
    done = not text
    for block in blocks:
        if not done and isinstance(block, TextBlock | ToolCallBlock):
            done = True
            yield TextBlock(text)
        if not isinstance(block, TextBlock):
            yield block
    if not done:
        yield TextBlock(text)


def _from_envelopes(
    message: Message, unseal: Callable[[str], Sealed | None], unknown: Unknown
) -> tuple[Message, str]:
    """The answer with the blocks from its envelopes, each in its original position."""
    carriers = [carrier for block in message.blocks for carrier in carriers_of(block)]
    opened = [sealed for carrier in carriers if (sealed := unseal(carrier)) is not None]
    if not opened:
        if unknown == "trusted" and not any(map(is_envelope, carriers)):
            return replace(message, origin=None), "unknown"
        bare = tuple(_without_carriers(message.blocks, thoughts=unknown != "bare"))
        is_same = len(bare) == len(message.blocks) and all(map(is_, bare, message.blocks))
        if is_same and message.origin is None:
            return message, "unknown"
        return replace(message, blocks=bare, origin=None), "unknown"
    held = {at: block for sealed in opened for at, block in sealed.blocks.items()}
    calls = {at: count for sealed in opened for at, count in sealed.calls.items()}
    visible = _without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_in_place(held, calls, visible))
    return replace(message, blocks=blocks, origin=opened[0].origin), "found"


def _moved(before: Message, after: Message) -> dict[str, str]:
    """The provider's ids of calls whose ids differ, by the key of the client's id."""
    calls = before.tool_calls
    if not calls:
        return {}
    pairs = zip(calls, after.tool_calls, strict=True)
    return {call_key(one.id): other.id for one, other in pairs if one.id != other.id}


def _in_place(
    held: Mapping[int, Block], calls: Mapping[int, int], visible: Iterable[Block]
) -> Iterator[Block]:
    """Thinking in its original position among the client's texts and calls. `calls` is the number
    of calls before each block: it fixes the position even if a client joined texts."""
    thoughts = [at for at in sorted(held) if isinstance(held[at], ThinkingBlock)]
    signed = [block for block in held.values() if isinstance(block, ToolCallBlock)]
    at = called = 0
    for block in visible:
        is_call = isinstance(block, ToolCallBlock)
        while thoughts and calls.get(thoughts[0], called) <= called:
            if not is_call and thoughts[0] > at:
                break
            yield held[thoughts.pop(0)]
            at += 1
        at += 1
        called += is_call
        yield _signed(block, signed)
    yield from (held[one] for one in thoughts)


def _signed(block: Block, sealed: list[ToolCallBlock]) -> Block:
    """A call with its original id, signature and extra fields."""
    if isinstance(block, ToolCallBlock):
        for at, one in enumerate(sealed):
            if one.name == block.name:
                del sealed[at]
                return replace(block, id=one.id, signature=one.signature, wire=one.wire)
    return block


def _without_carriers(blocks: Iterable[Block], *, thoughts: bool) -> list[Block]:
    """The readable part of the blocks; `thoughts` says whether to include readable thinking."""
    left: list[Block] = []
    for block in blocks:
        match block:
            case ThinkingBlock():
                if block.thought and thoughts:
                    left.append(ThinkingBlock(block.thought, source_field=block.source_field))
            case TextBlock():
                left.append(TextBlock(block.text) if block.signature or block.wire else block)
            case ToolCallBlock():
                left.append(replace(block, signature=None, wire=None))
            case _:
                left.append(block)
    return left


def _renamed(block: Block, ids: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCallBlock):
        return replace(block, id=ids.get(call_key(block.id), block.id))
    return block


def _with_own_ids(message: Message, ids: Mapping[str, str]) -> Message:
    """The message, with results under the provider's ids of their calls."""
    if not ids or ToolResultBlock not in map(type, message.blocks):
        return message
    blocks = tuple(
        replace(block, call_id=ids.get(call_key(block.call_id), block.call_id))
        if isinstance(block, ToolResultBlock)
        else block
        for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _notes(counts: Mapping[str, int]) -> Iterator[Note]:
    if counts["altered"]:
        text = f"{_answers(counts['altered'])} sent back with other tool calls: reasoning left out"
        yield Note(REATTACHED, text, warning=True)
    if counts["unknown"]:
        text = f"{_answers(counts['unknown'])} not found"
        yield Note(REATTACHED, f"{text}: sent without signatures and encrypted reasoning")


def _answers(count: int) -> str:
    return "1 answer was" if count == 1 else f"{count} answers were"
