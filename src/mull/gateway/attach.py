"""Gives a conversation back what its client dropped, altered or cannot know.

A client sends what it has: answers with calls under minted ids, perhaps with thoughts, perhaps with
envelopes. Here each answer is found again as its provider gave it. What the client says was said
and called holds; what only the provider can read goes along where both agree. An answer that is not
found goes without carriers: whose they are is not known, and no endpoint is sent another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from mull.gateway.anchors import (
    Past,
    call_key,
    carrier_key,
    carriers_of,
    same_calls,
    same_text,
)
from mull.gateway.envelope import Sealed, is_envelope
from mull.gateway.record import Kept
from mull.neutral.blocks import Block, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultBlock
from mull.neutral.messages import Message
from mull.neutral.request import Note

__all__ = ["REATTACHED", "Attached", "Unknown", "attach", "keys_of", "past_of"]

REATTACHED = "reattached"
"""What the notes are about that tell which answers were found again."""

Unknown: TypeAlias = Literal["bare", "readable", "trusted"]
"""How an answer that nobody knows goes: without its thoughts, with those that can be read, or as it
is, where nobody could be asked and its dialect is the target's."""


class Attached(NamedTuple):
    """The conversation with all that is known of it, and what became of its answers. `records`
    are those that were used, by a key of each."""

    messages: tuple[Message, ...]
    notes: tuple[Note, ...]
    records: Mapping[str, Kept] = {}


def keys_of(messages: Sequence[Message]) -> list[tuple[str, ...]]:
    """For each message the keys that its record may have, best first; none if it is no answer.
    Answers in a row may be the pieces of one: the first key of the last is that of them all."""
    past = Past()
    keys: list[tuple[str, ...]] = []
    for is_answer, run in groupby(messages, _is_answer):
        row = list(run)
        is_row = is_answer and len(row) > 1
        whole = tuple(past.keys(_one(row))) if is_row else ()  # by what was before all of them
        for message in row:
            keys.append(tuple(_keys(message, past)) if is_answer else ())
            past.add(message)
        keys[-1] = (*whole, *keys[-1])
    return keys


def _is_answer(message: Message) -> bool:
    return message.role == "assistant"


def _one(pieces: Sequence[Message]) -> Message:
    """The pieces of one message put together."""
    if len(pieces) == 1:
        return pieces[0]
    return replace(pieces[0], blocks=tuple(block for piece in pieces for block in piece.blocks))


def past_of(messages: Iterable[Message]) -> Past:
    """What was said before the answer to come."""
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
    """Put together what the client sent and what the store and the envelopes hold."""
    messages, keys = _joined(*_results_first(messages, keys), found)
    made: list[Message] = []
    ids: dict[str, str] = {}
    counts = {"found": 0, "unknown": 0, "altered": 0}
    records: dict[str, Kept] = {}
    for message, wanted in zip(messages, keys, strict=True):
        if message.role != "assistant":
            made.append(_with_own_ids(message, ids))
            continue
        by = next((key for key in wanted if key in found), None)
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


def _results_first(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with results right after their calls: some clients say something between
    them, which follows."""
    said: list[Message] = []
    named: list[tuple[str, ...]] = []
    calls: set[str] = set()
    after = 0
    for message, wanted in zip(messages, keys, strict=True):
        at = len(said)
        if message.role == "assistant":
            calls, after = {call.id for call in message.tool_calls}, at + 1
        elif message.role == "tool" and not calls.isdisjoint(_answered(message)):
            at, after = after, after + 1
        said.insert(at, message)
        named.insert(at, wanted)
    return said, named


def _answered(message: Message) -> list[str]:
    return [block.call_id for block in message.blocks if isinstance(block, ToolResultBlock)]


def _joined(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]], found: Mapping[str, Kept]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with each answer in one piece. Some clients send back every block as an
    answer of its own, and some tell calls and results in turn."""
    said: list[list[Message]] = []
    named: list[list[str]] = []
    last: int | None = None
    record: Kept | None = None
    for message, wanted in zip(*_rows(messages, keys, found), strict=True):
        if message.role == "assistant":
            kept = next((found[key] for key in wanted if key in found), None)
            if last is not None and _belongs(said[-1][-1], message, record, kept):
                said[last].append(message)
                named[last] += wanted
                record = kept or record
                continue
            last, record = len(said), kept
        elif message.role == "tool" and said and said[-1][-1].role == "tool":
            said[-1].append(message)
            continue
        elif message.role != "tool":
            last = None
        said.append([message])
        named.append([*wanted])
    return [_one(pieces) for pieces in said], [tuple(some) for some in named]


def _rows(
    messages: Sequence[Message], keys: Sequence[tuple[str, ...]], found: Mapping[str, Kept]
) -> tuple[Sequence[Message], Sequence[tuple[str, ...]]]:
    """The conversation with the answers in a row put together that are known as one. The pieces
    alone may be found too, as answers of another conversation that began like this one."""
    said: list[Message] = []
    named: list[tuple[str, ...]] = []
    pairs = zip(messages, keys, strict=True)
    for is_answer, run in groupby(pairs, lambda pair: _is_answer(pair[0])):
        row, wanted = zip(*run, strict=True)
        if is_answer and len(row) > 1 and wanted[-1][0] in found:
            row, wanted = (_one(row),), wanted[-1:]
        said += row
        named += wanted
    return said, named


def _belongs(before: Message, piece: Message, record: Kept | None, kept: Kept | None) -> bool:
    """Whether an answer with one record, after which `before` was said, goes on with a piece that
    has another, or the same."""
    if record is not None and record == kept:
        return before.role == "assistant" or bool(record.ids)
    if before.role != "assistant" or (record is None) == (kept is None):
        return False
    unknown = before if record is None else piece
    return not unknown.tool_calls


def _from_record(message: Message, kept: Kept) -> tuple[Message, str]:
    """The answer as it was given, where the client says no other."""
    given = Message(role="assistant", status="complete", origin=kept.origin, blocks=kept.blocks)
    if same_calls(message, given):
        if same_text(message, given):
            return given, "found"
        return replace(given, blocks=tuple(_retold(given.blocks, message.text))), "found"
    bare = _without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_renamed(block, kept.ids) for block in bare)
    return replace(message, blocks=blocks, origin=None), "altered"


def _retold(blocks: Iterable[Block], text: str) -> Iterator[Block]:
    """The blocks with the client's text in the place of their own."""
    told = False
    for block in blocks:
        if not isinstance(block, TextBlock):
            if isinstance(block, ToolCallBlock) and text and not told:
                told = True
                yield TextBlock(text)
            yield block
        elif text and not told:
            told = True
            yield TextBlock(text)
    if text and not told:
        yield TextBlock(text)


def _from_envelopes(
    message: Message, unseal: Callable[[str], Sealed | None], unknown: Unknown
) -> tuple[Message, str]:
    """The answer with what its envelopes hold, each block in the place that it had."""
    carriers = [carrier for block in message.blocks for carrier in carriers_of(block)]
    opened = [sealed for carrier in carriers if (sealed := unseal(carrier)) is not None]
    if not opened:
        if unknown == "trusted" and not any(map(is_envelope, carriers)):
            return replace(message, origin=None), "unknown"
        bare = _without_carriers(message.blocks, thoughts=unknown != "bare")
        return replace(message, blocks=tuple(bare), origin=None), "unknown"
    held = {at: block for sealed in opened for at, block in sealed.blocks.items()}
    calls = {at: count for sealed in opened for at, count in sealed.calls.items()}
    said = _without_carriers(message.blocks, thoughts=False)
    blocks = tuple(_in_place(held, calls, said))
    return replace(message, blocks=blocks, origin=opened[0].origin), "found"


def _moved(before: Message, after: Message) -> dict[str, str]:
    """The ids that changed."""
    pairs = zip(before.tool_calls, after.tool_calls, strict=True)
    return {call_key(one.id): other.id for one, other in pairs if one.id != other.id}


def _in_place(
    held: Mapping[int, Block], calls: Mapping[int, int], said: Iterable[Block]
) -> Iterator[Block]:
    """Thoughts where they stood, and between them what the client says was said and called. Each
    call is the mark of what was thought before it: of texts there may be fewer than there were."""
    thoughts = [at for at in sorted(held) if isinstance(held[at], ThinkingBlock)]
    signed = [block for block in held.values() if isinstance(block, ToolCallBlock)]
    at = called = 0
    for block in said:
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
    """A call with the signature and the keys that it came with."""
    if isinstance(block, ToolCallBlock):
        for at, one in enumerate(sealed):
            if one.name == block.name:
                del sealed[at]
                return replace(block, id=one.id, signature=one.signature, wire=one.wire)
    return block


def _without_carriers(blocks: Iterable[Block], *, thoughts: bool) -> list[Block]:
    """The readable part; a thought of which nothing can be read goes."""
    left: list[Block] = []
    for block in blocks:
        match block:
            case ThinkingBlock():
                if block.thought and thoughts:
                    left.append(ThinkingBlock(block.thought, source_field=block.source_field))
            case TextBlock():
                left.append(TextBlock(block.text))
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
    """Results under the ids that the provider gave their calls."""
    blocks = tuple(
        replace(block, call_id=ids.get(call_key(block.call_id), block.call_id))
        if isinstance(block, ToolResultBlock)
        else block
        for block in message.blocks
    )
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _notes(counts: Mapping[str, int]) -> Iterator[Note]:
    if counts["altered"]:
        text = "{} of the answers call something else than they did: their reasoning is left out"
        yield Note(REATTACHED, text.format(counts["altered"]), warning=True)
    if counts["unknown"]:
        text = "{} of the answers are not known here: they go without what only their origin reads"
        yield Note(REATTACHED, text.format(counts["unknown"]))
